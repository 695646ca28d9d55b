"""Torch's kernels by the shortest way that Python has to them.

`torch.ops.aten` looks for the overload at every call; functions that torch has bound for modules of its own don't.
"""

from __future__ import annotations

from typing import Any

import torch

_BOUND = [getattr(torch._C, name) for name in ("_nn", "_VariableFunctions")]


class Kernels:
    """`aten.silu(x)`. Overloads (`aten.silu_backward.grad_input`) are there for what isn't bound."""

    def __getattr__(self, name: str) -> Any:
        found = next((getattr(space, name) for space in _BOUND if hasattr(space, name)), None)
        kernel = getattr(torch.ops.aten, name) if found is None else found
        setattr(self, name, kernel)
        return kernel


aten = Kernels()
