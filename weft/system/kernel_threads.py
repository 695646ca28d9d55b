"""How many threads kernels use."""

from __future__ import annotations

import torch

from weft.api.table import public
from weft.core.errors import ArgumentError


@public("flow")
def set_num_threads(num: int) -> None:
    """Set how many threads one op may use on the CPU."""
    if not isinstance(num, int) or num < 1:
        raise ArgumentError(f"set_num_threads(): takes at least 1; got {num!r}")
    torch.set_num_threads(num)


@public("flow")
def get_num_threads() -> int:
    """How many threads one op may use on the CPU."""
    return torch.get_num_threads()
