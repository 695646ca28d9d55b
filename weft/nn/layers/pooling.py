"""Pooling, and its reversal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.functional.neural import pooling_functions
from weft.functional.neural.fractional_pooling import check_sizes
from weft.functional.neural.sizes import several
from weft.nn import functional as F
from weft.nn.layers.activation import layer_of
from weft.nn.module.module import Module
from weft.ops import OPS
from weft.tensor.tensor import Tensor


class _MaxPool(Module):
    """The largest of each window."""

    function: str

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, x: Tensor) -> Any:
        run = OPS[f"{self.function}_with_indices" if self.return_indices else self.function]
        return run(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest of each window of (batch, channels, length)."""

    function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """The largest of each window of (batch, channels, height, width)."""

    function = "max_pool2d"


class MaxPool3d(_MaxPool):
    """The largest of each window of (batch, channels, depth, height, width)."""

    function = "max_pool3d"


def _single(n: Any) -> tuple[int, ...]:
    return tuple(n) if isinstance(n, Sequence) else (n,)


class _FractionalMaxPool(Module):
    """The largest of windows whose steps are drawn, to a size or to a fraction of the size."""

    dims: int

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        check_sizes(self.dims, output_size, output_ratio)
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, x: Tensor) -> Any:
        return getattr(F, f"fractional_max_pool{self.dims}d")(
            x, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest of drawn windows of ([batch,] channels, height, width).

    >>> flow.nn.FractionalMaxPool2d(2, output_ratio=0.5)(flow.ones(1, 1, 9, 6)).shape
    torch.Size([1, 1, 4, 3])
    """

    dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest of drawn windows of ([batch,] channels, depth, height, width)."""

    dims = 3


class _AvgPool(Module):
    """The mean of each window."""

    function: str

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Tensor) -> Tensor:
        options = {} if self.divisor_override is None else {"divisor_override": self.divisor_override}
        return getattr(F, self.function)(
            x, self.kernel_size, self.stride, self.padding, ceil_mode=self.ceil_mode,
            count_include_pad=self.count_include_pad, **options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of each window of (batch, channels, length)."""

    function = "avg_pool1d"

    def extra_repr(self) -> str:
        size, stride, padding = (_single(n) for n in (self.kernel_size, self.stride, self.padding))
        return f"kernel_size={size}, stride={stride}, padding={padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of (batch, channels, height, width)."""

    function = "avg_pool2d"


class AvgPool3d(_AvgPool):
    """The mean of each window of (batch, channels, depth, height, width)."""

    function = "avg_pool3d"


class _Adaptive(Module):
    """Windows that make an output of a given size."""

    function: str

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, x: Tensor) -> Any:
        options = {"return_indices": True} if self.return_indices else {}
        return getattr(F, self.function)(x, self.output_size, **options)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means over windows, to a given length."""

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_Adaptive):
    """Means over windows, to a given height and width."""

    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_Adaptive):
    """Means over windows, to a given depth, height and width."""

    function = "adaptive_avg_pool3d"


class AdaptiveMaxPool1d(_Adaptive):
    """Largest values of windows, to a given length."""

    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_Adaptive):
    """Largest values of windows, to a given height and width."""

    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_Adaptive):
    """Largest values of windows, to a given depth, height and width."""

    function = "adaptive_max_pool3d"


_WINDOW: dict[str, Any] = {"norm_type": ..., "kernel_size": ..., "stride": None, "ceil_mode": False, "home": __name__}
LPPool1d = layer_of("LPPool1d", pooling_functions.lp_pool1d, "The p-norm of every window of sequences.", **_WINDOW)
LPPool2d = layer_of("LPPool2d", pooling_functions.lp_pool2d, "The p-norm of every window of images.", **_WINDOW)
LPPool3d = layer_of("LPPool3d", pooling_functions.lp_pool3d, "The p-norm of every window of volumes.", **_WINDOW)


class _MaxUnpool(Module):
    """Values back to where a max-pooling found them."""

    dims: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = several(kernel_size, self.dims, "kernel_size")
        self.stride = self.kernel_size if stride is None else several(stride, self.dims, "stride")
        self.padding = several(padding, self.dims, "padding")

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        run = (pooling_functions.max_unpool1d, pooling_functions.max_unpool2d, pooling_functions.max_unpool3d)[
            self.dims - 1
        ]
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
