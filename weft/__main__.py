"""`python -m weft --doctor`: what is installed here, on a page that belongs into the report of a fault."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from weft.core.rank import current
from weft.transport import BACKENDS
from weft.transport.memory import available

ROOT = sys.modules["weft"]  # running `-m weft` has imported it


def doctor() -> Iterator[tuple[str, object]]:
    """The facts, each under its name."""
    yield "path", Path(__file__).parent
    yield "version", ROOT.__version__
    yield "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield "torch", torch.__version__
    yield "threads", f"{torch.get_num_threads()} per op, {os.cpu_count()} cores"
    count = torch.cuda.device_count()
    yield "cuda", ", ".join(torch.cuda.get_device_name(i) for i in range(count)) or "no device"
    yield "transports", ", ".join(["local", *(n for n in BACKENDS if n != "shm" or available())])
    rank = current()
    yield "rank", f"{rank.index} of {rank.world_size}"
    yield "settings", ", ".join(f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("WEFT_")) or "none"


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m weft", description=f"{__doc__} Programs start by weft.launch.")
    options.add_argument("--doctor", action="store_true", help="print what is installed here")
    if not options.parse_args().doctor:
        options.print_help()
        return
    for name, fact in doctor():
        print(f"{name}: {fact}")


if __name__ == "__main__":
    main()
