"""Fractional max pooling: windows of random step sizes, to a given output size."""

from __future__ import annotations

from typing import Any

from torch import Tensor, int64

from weft.ops.declaration import Op, Size, op
from weft.ops.kernels import aten
from weft.ops.neural.pooling import scatter_places

KERNELS = {2: aten.fractional_max_pool2d, 3: aten.fractional_max_pool3d}


def _fractional(dims: int) -> Op:
    kernel = KERNELS[dims]

    def body(x: Tensor, samples: Tensor, kernel_size: Size, output_size: Size) -> Any:
        if not x.shape[:2].numel():  # a rank's shard, if there are fewer channels than ranks
            y = x.new_empty((*x.shape[:2], *output_size))
            return y, y.to(int64)
        return tuple(kernel(x, list(kernel_size), list(output_size), samples.to(x.dtype)))

    body.__name__ = f"fractional_max_pool{dims}d_at"
    wide = ", ".join("3" * dims)
    body.__doc__ = (
        f"Fractional max pooling over {dims} dimensions of (batch, channels, ...): the maxima, and their flat "
        "indices. `samples`, (batch, channels, dimension) between 0 and 1, determine the windows.\n\n"
        f">>> x, samples = flow.ones(1, 1, {wide}), flow.zeros(1, 1, {dims})\n"
        f">>> flow._C.{body.__name__}(x, samples, {(2,) * dims}, {(1,) * dims})[0].item()\n1.0"
    )
    declared = op(returns="y indices*")(body)

    @declared.layout
    def _(x, samples, kernel_size, output_size):
        before, after = (" ".join(["n c", *(f"{a}{i}!" for i in range(dims))]) for a in "so")
        return f"{before}, n c d! -> {after}, {after}"

    declared.grad(lambda dy, x_shape, indices: (scatter_places(dy, indices, tuple(x_shape), dims), None))

    @declared.samples
    def _(rand):
        yield rand(2, 3, *(6, 7, 5)[:dims]), rand(2, 3, dims).sigmoid(), (2, 3, 2)[:dims], (3, 4, 2)[:dims]

    return declared


fractional_max_pool2d_at, fractional_max_pool3d_at = map(_fractional, (2, 3))
