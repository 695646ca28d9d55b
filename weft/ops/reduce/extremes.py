"""Maximum and minimum along a dimension, with indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import Op, op
from weft.ops.index.indexing import scatter_add_zeros
from weft.ops.reduce.sums import reduced
from weft.ops.shape.views import dim_of, unsqueeze


def _along(name: str, kernel: Callable[..., Any], which: str) -> Op:
    def body(x: Tensor, dim: int, keepdim: bool = False) -> Any:
        return tuple(kernel(x, dim, keepdim))

    body.__name__ = name
    body.__doc__ = f"The {which} element of every slice along a dimension, and its index."
    declared = op(returns="values indices*")(body)
    declared.layout(lambda x, dim, keepdim: _whole_slices(len(x), dim, keepdim, 2))

    @declared.grad
    def _(dvalues, indices, x_shape, dim, keepdim):
        shape = tuple(x_shape)
        if not shape:
            return dvalues
        if not keepdim:
            dvalues, indices = unsqueeze(dvalues, dim), unsqueeze(indices, dim)
        return scatter_add_zeros(dvalues, dim_of(dim, len(shape)), indices, shape)

    declared.samples(lambda rand: [(rand(4, 6), 1), (rand(4, 6), 0, True)])

    return declared


def _whole_slices(ndim: int, dim: int | None, keepdim: bool, outputs: int) -> str:
    left, _, right = reduced(ndim, dim, keepdim, "!").partition("->")
    return f"{left}->{', '.join([right.strip()] * outputs)}" if right.strip() else "_ -> " + ", ".join([""] * outputs)


max = _along("max", torch.max, "largest")
min = _along("min", torch.min, "smallest")


def _where(name: str, kernel: Callable[..., Any], which: str) -> Op:
    def body(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return kernel(x, dim, keepdim)

    body.__name__ = name
    body.__doc__ = f"""The index of the {which} element, along a dimension or of all.

    >>> flow.{name}(flow.tensor([3., 1., 2.])).item()
    {0 if name == "argmax" else 1}
    """
    declared = op(returns="indices*")(body)
    declared.layout(lambda x, dim, keepdim: _whole_slices(len(x), dim, keepdim, 1))
    declared.samples(lambda rand: [(rand(4, 6),), (rand(4, 6), 1), (rand(4, 6), 0, True)])
    return declared


argmax = _where("argmax", torch.argmax, "largest")
argmin = _where("argmin", torch.argmin, "smallest")
