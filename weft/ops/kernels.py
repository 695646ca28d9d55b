"""Torch's kernels by the fastest Python call.

`torch.ops.aten` resolves the overload at every call; functions that torch binds for its own modules don't.
"""

from __future__ import annotations

from typing import Any

import torch

_BOUND = [getattr(torch._C, name) for name in ("_nn", "_VariableFunctions")]


class Kernels:
    """`aten.silu(x)`, by the fastest binding. Unbound overloads (`aten.silu_backward.grad_input`) come from
    torch.ops."""

    def __getattr__(self, name: str) -> Any:
        found = next((getattr(space, name) for space in _BOUND if hasattr(space, name)), None)
        kernel = getattr(torch.ops.aten, name) if found is None else found
        setattr(self, name, kernel)
        return kernel


aten = Kernels()
