"""Resizing of images by interpolation."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from weft.core.errors import MissingFormulaError
from weft.ops.declaration import Size, op
from weft.ops.kernels import aten
from weft.ops.neural.convolution import spread
from weft.ops.shape.views import axes

# ---- resizing ----------------------------------------------------------------------------------------

# per mode: the number of dimensions, the kernel and its gradient's; whether corners can be aligned
_RESIZE = {
    ("nearest", 1): (aten.upsample_nearest1d, aten.upsample_nearest1d_backward, False),
    ("nearest", 2): (aten.upsample_nearest2d, aten.upsample_nearest2d_backward, False),
    ("nearest", 3): (aten.upsample_nearest3d, aten.upsample_nearest3d_backward, False),
    ("nearest-exact", 1): (aten._upsample_nearest_exact1d, aten._upsample_nearest_exact1d_backward, False),
    ("nearest-exact", 2): (aten._upsample_nearest_exact2d, aten._upsample_nearest_exact2d_backward, False),
    ("nearest-exact", 3): (aten._upsample_nearest_exact3d, aten._upsample_nearest_exact3d_backward, False),
    ("linear", 1): (aten.upsample_linear1d, aten.upsample_linear1d_backward, True),
    ("bilinear", 2): (aten.upsample_bilinear2d, aten.upsample_bilinear2d_backward, True),
    ("bicubic", 2): (aten.upsample_bicubic2d, aten.upsample_bicubic2d_backward, True),
    ("antialiased bilinear", 2): (aten._upsample_bilinear2d_aa, aten._upsample_bilinear2d_aa_backward, True),
    ("antialiased bicubic", 2): (aten._upsample_bicubic2d_aa, aten._upsample_bicubic2d_aa_backward, True),
    ("trilinear", 3): (aten.upsample_trilinear3d, aten.upsample_trilinear3d_backward, True),
}


def _kernels(mode: str, dims: int):
    found = _RESIZE.get((mode, dims))
    if found is None:
        there = ", ".join(sorted({f"{m} of {d}" for m, d in _RESIZE}))
        raise MissingFormulaError(f"resize: mode {mode!r} over {dims} dimensions; there are {there}")
    return found


def _scales(scales: Sequence[float] | None, dims: int) -> tuple[float | None, ...]:
    return (None,) * dims if scales is None else tuple(scales)


@op(linear="x", rounds=True, memory_order="channels_last of any")
def resize(
    x: Tensor, size: Size, mode: str = "nearest", align_corners: bool = False, scales: Sequence[float] | None = None
) -> Tensor:
    """(batch, channels, ...) resized by nearest-neighbor or linear interpolation.

    >>> flow._C.resize(flow.tensor([[[1., 2.]]]), (4,)).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    dims = x.dim() - 2
    kernel, _, cornered = _kernels(mode, dims)
    wanted = spread(tuple(size), dims)
    if x.numel() == 0:
        return x.new_empty((*x.shape[:2], *wanted))
    corners = (align_corners,) if cornered else ()
    return kernel(x, wanted, *corners, *_scales(scales, dims))


def _resized(ndim: int) -> tuple[str, str]:
    lead = axes(2)
    return " ".join([*lead, *(f"s{i}!" for i in range(ndim - 2))]), " ".join(
        [*lead, *(f"o{i}!" for i in range(ndim - 2))]
    )


resize.layout(lambda x, size, mode, align_corners, scales: " -> ".join(_resized(len(x))))


@resize.grad
def _(dy, x_shape, size, mode, align_corners, scales):
    return resize_grad(dy, tuple(x_shape), mode, align_corners, scales)


@resize.samples
def _(rand):
    yield rand(2, 3, 4), (7,)
    yield rand(2, 3, 4, 5), (6, 8), "bilinear", True
    yield rand(2, 3, 4, 5), (2, 3), "bicubic"
    yield rand(2, 3, 6, 5), (2, 3), "antialiased bilinear"
    yield rand(2, 3, 4, 5), (6, 3), "nearest-exact"
    yield rand(2, 3, 2, 3, 2), (3, 4, 5), "trilinear"


def _order_of_gradient(dy, shape, mode, align_corners, scales):
    return "" if "bicubic" in mode or ("nearest" in mode and len(shape) == 5) else "channels_last of any"


@op(linear="dy", returns="dx", shape_of="shape", memory_order=_order_of_gradient)
def resize_grad(
    dy: Tensor, shape: Size, mode: str = "nearest", align_corners: bool = False, scales: Sequence[float] | None = None
) -> Tensor:
    """The gradient of resize: each dy distributed among the elements that it was interpolated from."""
    dims = dy.dim() - 2
    _, kernel, cornered = _kernels(mode, dims)
    if dy.numel() == 0:
        return dy.new_zeros(tuple(shape))
    corners = (align_corners,) if cornered else ()
    return kernel(dy, tuple(dy.shape[2:]), tuple(shape), *corners, *_scales(scales, dims))


@resize_grad.layout
def _(dy, shape, mode, align_corners, scales):
    before, after = _resized(len(dy))
    return f"{after} -> {before}"


@resize_grad.grad
def _(ddx, dy_shape, mode, align_corners, scales):
    return resize(ddx, tuple(dy_shape)[2:], mode, align_corners, scales)


resize_grad.samples(lambda rand: [(rand(2, 3, 6, 8), (2, 3, 4, 5), "bilinear", True)])
