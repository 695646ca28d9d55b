"""Borders around (batch, channels, ...)."""

from __future__ import annotations

from typing import Any

from weft.functional.neural import image_padding
from weft.functional.neural.sizes import several
from weft.nn.module.module import Module
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
        return image_padding.pad(x, self.padding, self.mode, self.value)

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


class CircularPad1d(_Pad):
    """What lies at the other end, around sequences."""

    dims, mode = 1, "circular"


class CircularPad2d(_Pad):
    """What lies at the other end, around images."""

    dims, mode = 2, "circular"


class CircularPad3d(_Pad):
    """What lies at the other end, around volumes."""

    dims, mode = 3, "circular"
