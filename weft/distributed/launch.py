"""`python -m weft.distributed.launch`: the launcher, under OneFlow's and PyTorch's name for it."""

from __future__ import annotations

import sys

from weft.launch.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
