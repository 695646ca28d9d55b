"""Layers that put borders around, change the size, or take windows of (batch, channels, ...)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.nn import images
from weft.nn.making import several
from weft.nn.module import Module
from weft.tensor.tensor import Tensor


class _Pad(Module):
    """A border of one width, or one for each side: (left, right, top, bottom, ...)."""

    dims: int
    mode: str
    value = 0.0

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = several(padding, 2 * self.dims, "padding")

    def forward(self, x: Tensor) -> Tensor:
        return images.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """A border of one value."""

    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A value at both ends."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """A value around images."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """A value around volumes."""

    dims = 3


class ZeroPad1d(_Pad):
    """Zeros at both ends."""

    dims, mode = 1, "constant"


class ZeroPad2d(_Pad):
    """Zeros around images.

    >>> flow.nn.ZeroPad2d((1, 0, 0, 0))(flow.ones(1, 1, 2)).tolist()
    [[[0.0, 1.0, 1.0]]]
    """

    dims, mode = 2, "constant"


class ZeroPad3d(_Pad):
    """Zeros around volumes."""

    dims, mode = 3, "constant"


class ReflectionPad1d(_Pad):
    """What lies at the ends, mirrored."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """What lies at an image's edges, mirrored."""

    dims, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """What lies at a volume's edges, mirrored."""

    dims, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """The values at the ends, repeated."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The values at an image's edges, repeated."""

    dims, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """The values at a volume's edges, repeated."""

    dims, mode = 3, "replicate"


class Upsample(Module):
    """Another size, given or by a factor."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        pair = isinstance(scale_factor, Sequence)
        self.scale_factor = tuple(map(float, scale_factor)) if pair else scale_factor and float(scale_factor)
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        return images.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        by = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{by}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images at another size, from the nearest pixels."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Images at another size, blended between four pixels, corners onto corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """Channels become pixels. OneFlow's: as many rows as columns, or how many of each."""

    def __init__(
        self, upscale_factor: int | None = None, h_upscale_factor: int | None = None,
        w_upscale_factor: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        each = h_upscale_factor, w_upscale_factor
        if (None in each) if upscale_factor is None else each != (None, None):
            raise OptionError("PixelShuffle takes an upscale_factor, or one for the height and one for the width")
        self.upscale_factor: Any = each if upscale_factor is None else upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return images.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels become channels."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return images.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class Unfold(Module):
    """Each window as a column."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        return images.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Columns back to windows, summed where they meet."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        return images.fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class _MaxUnpool(Module):
    """Values back to where a max-pooling found them."""

    dims: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = several(kernel_size, self.dims, "kernel_size")
        self.stride = self.kernel_size if stride is None else several(stride, self.dims, "stride")
        self.padding = several(padding, self.dims, "padding")

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        run = (images.max_unpool1d, images.max_unpool2d, images.max_unpool3d)[self.dims - 1]
        return run(x, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Back from MaxPool1d, whose indices it takes."""

    dims = 1


class MaxUnpool2d(_MaxUnpool):
    """Back from MaxPool2d, whose indices it takes."""

    dims = 2


class MaxUnpool3d(_MaxUnpool):
    """Back from MaxPool3d, whose indices it takes."""

    dims = 3
