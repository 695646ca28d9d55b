"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from typing import Any

from weft.core.errors import OptionError
from weft.functional.neural.sizes import several
from weft.nn import functional as F
from weft.nn import init
from weft.nn.layers.lazy import _lazy
from weft.nn.module.making import made
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

PADS = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}  # to F.pad's modes


class _Conv(Module):
    """The common part of all convolutions: options, weight and bias."""

    dims: int
    transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        groups: int, bias: bool, padding_mode: str, output_padding: Any, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise OptionError(
                f"in_channels ({in_channels}) and out_channels ({out_channels}) must be divisible by groups ({groups})"
            )
        if padding_mode not in PADS or (self.transposed and padding_mode != "zeros"):
            there = "zeros" if self.transposed else ", ".join(PADS)
            raise OptionError(f"padding_mode {padding_mode!r}: there is {there}")
        n = self.dims
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = several(kernel_size, n, "kernel_size")
        self.stride = several(stride, n, "stride")
        self.dilation = several(dilation, n, "dilation")
        self.output_padding = several(output_padding, n, "output_padding")
        self.padding: Any = padding if isinstance(padding, str) else several(padding, n, "padding")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise OptionError(f"padding must be 'same', 'valid', or numbers; got {padding!r}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise OptionError("padding='same' is not supported for strided convolutions")
        self.padding_mode = padding_mode
        shape = (
            (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        ) + self.kernel_size
        self.weight = made(shape, device, dtype)
        self.register_parameter("bias", made((out_channels,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan = init.calc_fan(self.weight.shape)
            if fan:
                init.uniform_(self.bias, -1 / math.sqrt(fan), 1 / math.sqrt(fan))

    def _around(self) -> tuple[tuple[int, int], ...]:
        """The padding before and after along each dimension."""
        if self.padding == "valid":
            return ((0, 0),) * self.dims
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return tuple((t // 2, t - t // 2) for t in totals)
        return tuple((n, n) for n in self.padding)

    def extra_repr(self) -> str:
        n = self.dims
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        usual = {"padding": (0,) * n, "dilation": (1,) * n, "output_padding": (0,) * n, "groups": 1}
        now = {name: getattr(self, name) for name in (*usual, "padding_mode")} | {"bias": self.bias is not None}
        usual |= {"bias": True, "padding_mode": "zeros"}
        return ", ".join([*parts, *(f"{name}={now[name]}" for name in usual if now[name] != usual[name])])


class _Forward(_Conv):
    """A convolution; subclasses name the function for a number of dimensions."""

    function: str

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0, device,
            dtype,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight, self.bias)

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with another weight, for layers that compute theirs from this one."""
        run, around = getattr(F, self.function), self._around()
        padding = tuple(a for a, _ in around)
        if self.padding_mode != "zeros" or any(a != b for a, b in around):  # what the kernel can't pad itself
            x = F.pad(x, [n for pair in reversed(around) for n in pair], PADS[self.padding_mode])
            padding = (0,) * self.dims
        return run(x, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Forward):
    """Convolution over (batch, channels, length)."""

    dims, function = 1, "conv1d"


class Conv2d(_Forward):
    """Convolution over (batch, channels, height, width)."""

    dims, function = 2, "conv2d"


class Conv3d(_Forward):
    """Convolution over (batch, channels, depth, height, width)."""

    dims, function = 3, "conv3d"


class _Transposed(_Conv):
    """A transposed convolution: the gradient of a convolution with respect to its input, as a layer."""

    function: str
    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            output_padding, device, dtype,
        )  # fmt: skip

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        """`output_size` selects one of the sizes that the stride allows."""
        more = self.output_padding if output_size is None else self._more(x, tuple(output_size)[-self.dims :])
        padding = tuple(a for a, _ in self._around())
        run = getattr(F, self.function)
        return run(x, self.weight, self.bias, self.stride, padding, more, self.groups, self.dilation)

    def _more(self, x: Tensor, wanted: tuple[int, ...]) -> tuple[int, ...]:
        around = zip(x.shape[-self.dims :], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in around]
        more = tuple(w - n for w, n in zip(wanted, least, strict=True))
        if any(not 0 <= m < max(s, d) for m, s, d in zip(more, self.stride, self.dilation, strict=True)):
            raise OptionError(f"output_size {list(wanted)}: of {list(x.shape)} it is {least}, or up to a stride more")
        return more


class ConvTranspose1d(_Transposed):
    """Transposed convolution over (batch, channels, length)."""

    dims, function = 1, "conv_transpose1d"


class ConvTranspose2d(_Transposed):
    """Transposed convolution over (batch, channels, height, width)."""

    dims, function = 2, "conv_transpose2d"


class ConvTranspose3d(_Transposed):
    """Transposed convolution over (batch, channels, depth, height, width)."""

    dims, function = 3, "conv_transpose3d"


LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(k, -1 - k.dims) for k in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(k, -1 - k.dims) for k in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
