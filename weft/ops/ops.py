"""Every op's entry by its name: `ops.mul(a, b)` calls the op, on tensors of any interpreter. What is declared of it is
`OPS["mul"]`'s.

The names are set once entries can be made; `ops.pyi`, written by `make stubs`, gives each one's file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ops.declaration import OPS


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in OPS:
        raise AttributeError(f"there is no op {name!r}")
    return OPS[name].entry
