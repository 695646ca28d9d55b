"""im2col and col2im: sliding windows of images as columns, and back."""

from __future__ import annotations

from torch import Tensor

from weft.ops.declaration import Size, op
from weft.ops.kernels import aten


@op("n c! h! w! -> n k! l!", linear="x")
def im2col(x: Tensor, kernel_size: Size, dilation: Size, padding: Size, stride: Size) -> Tensor:
    """Every window of (batch, channels, height, width) as a column: (batch, channels * window, windows).

    >>> flow._C.im2col(flow.ones(1, 1, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1)).shape
    torch.Size([1, 4, 4])
    """
    return aten.im2col(x, tuple(kernel_size), tuple(dilation), tuple(padding), tuple(stride))


@im2col.grad
def _(dy, x_shape, kernel_size, dilation, padding, stride):
    return col2im(dy, tuple(x_shape)[2:], kernel_size, dilation, padding, stride)


im2col.samples(lambda rand: [(rand(4, 2, 5, 6), (2, 3), (1, 1), (1, 0), (2, 1))])


@op("n k! l! -> n c! h! w!", linear="x")
def col2im(x: Tensor, output_size: Size, kernel_size: Size, dilation: Size, padding: Size, stride: Size) -> Tensor:
    """Columns added back to the positions that im2col reads.

    >>> flow._C.col2im(flow.ones(1, 4, 1), (2, 2), (2, 2), (1, 1), (0, 0), (1, 1)).tolist()
    [[[[1.0, 1.0], [1.0, 1.0]]]]
    """
    return aten.col2im(x, tuple(output_size), tuple(kernel_size), tuple(dilation), tuple(padding), tuple(stride))


col2im.grad(lambda dy, kernel_size, dilation, padding, stride: im2col(dy, kernel_size, dilation, padding, stride))
col2im.samples(lambda rand: [(rand(4, 8, 4), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1))])
