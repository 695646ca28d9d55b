"""Every op by its name: `ops.mul(a, b)`. What is called here is the op itself, on tensors of any interpreter.

The names are filled in once all are declared; `ops.pyi`, written by `make stubs`, says in which file each is.
"""

from __future__ import annotations

from weft.ops.declaration import OPS, Op


def __getattr__(name: str) -> Op:
    if name not in OPS:
        raise AttributeError(f"there is no op {name!r}")
    return OPS[name]
