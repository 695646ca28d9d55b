"""unfold and fold: sliding windows of images as columns, and back."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.functional.neural.sizes import several
from weft.ops import ops
from weft.tensor.tensor import Tensor


def _window(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[tuple[int, ...], ...]:
    given = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    return tuple(several(value, 2, name) for name, value in given.items())


@public("neural")
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Each window of an image as a column: (batch, channels, h, w) to (batch, channels * window, windows)."""
    if input.ndim == 3:
        return ops.squeeze(unfold(ops.unsqueeze(input, 0), kernel_size, dilation, padding, stride), 0)
    return ops.im2col(input, *_window(kernel_size, dilation, padding, stride))


@public("neural")
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The inverse of `unfold`; overlapping windows are summed."""
    if input.ndim == 2:
        one = ops.unsqueeze(input, 0)
        return ops.squeeze(fold(one, output_size, kernel_size, dilation, padding, stride), 0)
    wanted = several(output_size, 2, "output_size")
    return ops.col2im(input, wanted, *_window(kernel_size, dilation, padding, stride))
