"""Stacking: `stack`, `hstack`, `vstack`, `dstack`, `column_stack`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.api.fast_path import Short, in_one
from weft.api.table import named, public
from weft.autograd.plain import plain
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, ShapeError
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("flow", short=Short("stack"))
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    if not tensors:
        raise ArgumentError("stack expects a non-empty TensorList; got none")
    if here.trace is None:
        try:
            return ops.stack(tensors, dim)
        except ShapeError:
            _same_shapes(tensors)
            raise
    _same_shapes(tensors)
    d = dim_of(dim, tensors[0].ndim + 1)
    return ops.cat([ops.unsqueeze(x, d) for x in tensors], d)  # a graph writes the operands in place


def _same_shapes(tensors: Sequence[Tensor]) -> None:
    other = next((i for i, x in enumerate(tensors) if x.shape != tensors[0].shape), None)
    if other is not None:
        raise ShapeError(
            f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
            f"{list(tensors[other].shape)} at entry {other}. cat() joins tensors that differ in one dimension"
        )


def _at_least(ndim: int) -> Any:
    @named(f"atleast_{ndim}d", f"The tensors reshaped to at least {ndim} dimension{'s' * (ndim > 1)}.")
    def raised(*tensors: Any) -> Any:
        several = len(tensors) != 1 or isinstance(tensors[0], (list, tuple))
        given = plain(tuple(tensors[0]) if several and len(tensors) == 1 else tensors)
        shaped = tuple(x if x.ndim >= ndim else ops.reshape(x, _LIFTED[ndim](tuple(x.shape))) for x in given)
        return shaped if several else shaped[0]

    return public("flow")(raised)


_LIFTED: dict[int, Any] = {
    1: lambda s: s or (1,),
    2: lambda s: (1,) * (2 - len(s)) + s,
    3: lambda s: (1, 1, 1) if not s else (1, s[0], 1) if len(s) == 1 else (*s, 1),
}
atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


@public("flow")
@in_one(torch.hstack)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors concatenated along the second dimension, vectors along their only one."""
    lifted = [atleast_1d(x) for x in tensors]
    return ops.cat(lifted, 0 if lifted[0].ndim == 1 else 1)


@public("flow")
@in_one(torch.vstack)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors concatenated along the first dimension, vectors as rows."""
    return ops.cat([atleast_2d(x) for x in tensors], 0)


@public("flow")
@in_one(torch.dstack)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors concatenated along the third dimension."""
    return ops.cat([atleast_3d(x) for x in tensors], 2)


@public("flow")
@in_one(torch.column_stack)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors concatenated along the second dimension, vectors as columns."""
    return ops.cat([ops.reshape(x, (-1, 1)) if x.ndim <= 1 else x for x in tensors], 1)
