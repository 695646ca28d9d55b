"""pad: constant, reflect, replicate, circular; constant_pad_nd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api.table import public
from weft.core.errors import ShapeError
from weft.functional.tensor.memory_format import contiguous
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("flow")
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """Constant padding: (left, right) of the last dimension, then of the one before it, and so on.

    >>> flow.constant_pad_nd(flow.ones(1), (1, 1), 5).tolist()
    [5.0, 1.0, 5.0]
    """
    return ops.pad_with(x, tuple(pad), value)


@public("neural flow")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """x padded: (left, right) of the last dimension, then of the one before it, and so on.

    >>> flow.nn.functional.pad(flow.ones(2), (1, 2)).tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    around = tuple(pad)
    if len(around) % 2 or len(around) > 2 * input.ndim:
        wrong = "be divisible by 2" if len(around) % 2 else "be less than or equal to two times the input dimension"
        raise ShapeError(
            f"Padding length should {wrong}: pad takes two numbers per dimension, from the last "
            f"one on, for at most {input.ndim}; got {list(around)}"
        )
    if mode == "constant":
        return ops.pad_with(input, around, 0.0 if value is None else value)
    if mode == "circular":
        input = contiguous(input)  # as torch's result is
        for i in range(len(around) // 2):
            input = _wrapped(input, input.ndim - 1 - i, around[2 * i], around[2 * i + 1])
        return input
    return ops.pad_edges(input, around, mode)


def _wrapped(x: Tensor, dim: int, left: int, right: int) -> Tensor:
    if left < 0 or right < 0:  # crop first, then pad
        start = max(0, -left)
        x = ops.narrow(x, dim, start, max(0, x.shape[dim] - start - max(0, -right)))
        left, right = max(0, left), max(0, right)
    size = x.shape[dim]
    if max(left, right) > size:
        raise ShapeError(f"circular padding is at most the size, {size}; got {left} and {right}")
    parts = [ops.narrow(x, dim, size - left, left), x, ops.narrow(x, dim, 0, right)]
    return ops.cat(parts, dim)
