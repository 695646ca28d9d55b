"""Pooling beyond the ops: with indices, by the p-norm, and max unpooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.api.table import named, public
from weft.core.errors import ShapeError
from weft.core.program_line import warn
from weft.functional.neural.sizes import several
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor


def _max_pool(name: str) -> None:
    values, both = OPS[name].entry, OPS[f"{name}_with_indices"].entry

    @public("neural")
    @named(name, "Max pooling; with `return_indices`, the flat indices, too.")
    def pool(
        x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, *unnamed: Any,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        if unnamed:
            ceil_mode, return_indices = _flags(name, *unnamed)
        return (both if return_indices else values)(x, kernel_size, stride, padding, dilation, ceil_mode)

    @public("neural")
    @named(f"{name}_with_indices", "Max pooling, and the flat indices.")
    def where(
        x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> Any:  # fmt: skip
        return both(x, kernel_size, stride, padding, dilation, ceil_mode)


def _flags(name: str, first: bool, second: bool = False) -> tuple[bool, bool]:
    if bool(first) is not bool(second):
        warn(
            f"{name}(..., {first!r}, {second!r}): read as ceil_mode, return_indices, as in PyTorch; OneFlow has them "
            "in the other order. Name the one that is meant: ceil_mode=True, or return_indices=True"
        )
    return first, second


def _adaptive_max_pool(name: str) -> None:
    both = OPS[name].entry

    @public("neural")
    @named(name, "Adaptive max pooling; with `return_indices`, the flat indices, too.")
    def pool(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        found = both(x, output_size)
        return found if return_indices else found[0]

    @public("neural")
    @named(f"{name}_with_indices", "Adaptive max pooling, and the flat indices.")
    def where(x: Tensor, output_size: Any, return_indices: bool = True) -> Any:
        return both(x, output_size)


def _lp_pool(dims: int) -> None:
    mean = OPS[f"avg_pool{dims}d"].entry

    @public("neural")
    @named(f"lp_pool{dims}d", "Power-average pooling: the p-norm of every window.")
    def pool(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
        size = kernel_size if isinstance(kernel_size, Sequence) else (kernel_size,) * dims
        step = size if stride is None else stride if isinstance(stride, Sequence) else (stride,) * dims
        pooled = mean(ops.pow(input, float(norm_type)), tuple(size), tuple(step), (0,) * dims, ceil_mode)
        whole = ops.sign(pooled) * ops.relu(ops.abs(pooled)) * math.prod(size)
        return ops.pow(whole, 1.0 / norm_type)


def _max_unpool(dims: int) -> None:
    @public("neural")
    @named(f"max_unpool{dims}d", f"The partial inverse of max_pool{dims}d: values at their indices, zero elsewhere.")
    def unpool(
        input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Tensor:
        if indices.shape != input.shape:
            raise ShapeError(
                f"values of shape {list(input.shape)} need indices of this shape; got {list(indices.shape)}"
            )
        kernel = several(kernel_size, dims, "kernel_size")
        step = kernel if stride is None else several(stride, dims, "stride")
        border = several(padding, dims, "padding")
        lead, sizes = input.shape[:-dims], input.shape[-dims:]
        if output_size is None:
            wanted = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(sizes, step, border, kernel, strict=True))
        else:
            wanted = tuple(output_size)[-dims:]
        flat = ops.reshape(input, (*lead, math.prod(sizes)))
        blank = ops.pad_with(ops.zeros_like(flat), (0, math.prod(wanted) - math.prod(sizes)), 0.0)
        placed = ops.scatter(blank, len(lead), ops.reshape(indices, tuple(flat.shape)), flat)
        return ops.reshape(placed, (*lead, *wanted))


for _dims in (1, 2, 3):
    _max_pool(f"max_pool{_dims}d")
    _adaptive_max_pool(f"adaptive_max_pool{_dims}d")
    _lp_pool(_dims)
    _max_unpool(_dims)
