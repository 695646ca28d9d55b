"""Every op by its name: `ops.mul(a, b)` calls the op, on tensors of any interpreter.

The names are set once all are declared; `ops.pyi`, written by `make stubs`, gives each one's type and file.
"""

from __future__ import annotations

from weft.ops.declaration import OPS, Op


def __getattr__(name: str) -> Op:
    if name not in OPS:
        raise AttributeError(f"there is no op {name!r}")
    return OPS[name]
