# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.pooling."""

from typing import Any
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: int | None | tuple[int | None, ...]) -> None: ...

class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    def forward(self, input: Tensor) -> Tensor: ...

class _AdaptiveMaxPoolNd(Module):
    def __init__(self, output_size: int | None | tuple[int | None, ...], return_indices: bool = False) -> None: ...

class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    def forward(self, input: Tensor) -> Any: ...

class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    def forward(self, input: Tensor) -> Any: ...

class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    def forward(self, input: Tensor) -> Any: ...

class _AvgPoolNd(Module): ...

class AvgPool1d(_AvgPoolNd):
    def __init__(
        self, kernel_size: int | tuple[int], stride: int | tuple[int] = None, padding: int | tuple[int] = 0,
        ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class AvgPool2d(_AvgPoolNd):
    def __init__(
        self, kernel_size: int | tuple[int, int], stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class AvgPool3d(_AvgPoolNd):
    def __init__(
        self, kernel_size: int | tuple[int, int, int], stride: int | tuple[int, int, int] | None = None,
        padding: int | tuple[int, int, int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class FractionalMaxPool2d(Module):
    def __init__(
        self, kernel_size: int | tuple[int, int], output_size: int | tuple[int, int] | None = None,
        output_ratio: float | tuple[float, float] | None = None, return_indices: bool = False,
        _random_samples: Any = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class FractionalMaxPool3d(Module):
    def __init__(
        self, kernel_size: int | tuple[int, int, int], output_size: int | tuple[int, int, int] | None = None,
        output_ratio: float | tuple[float, float, float] | None = None, return_indices: bool = False,
        _random_samples: Any = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Any: ...

class _LPPoolNd(Module):
    def __init__(
        self, norm_type: float, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
        ceil_mode: bool = False
    ) -> None: ...

class LPPool1d(_LPPoolNd):
    def forward(self, input: Tensor) -> Tensor: ...

class LPPool2d(_LPPoolNd):
    def forward(self, input: Tensor) -> Tensor: ...

class LPPool3d(_LPPoolNd):
    def forward(self, input: Tensor) -> Tensor: ...

class _MaxPoolNd(Module):
    def __init__(
        self, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, return_indices: bool = False,
        ceil_mode: bool = False
    ) -> None: ...

class MaxPool1d(_MaxPoolNd):
    def forward(self, input: Tensor) -> Any: ...

class MaxPool2d(_MaxPoolNd):
    def forward(self, input: Tensor) -> Any: ...

class MaxPool3d(_MaxPoolNd):
    def forward(self, input: Tensor) -> Any: ...

class _MaxUnpoolNd(Module): ...

class MaxUnpool1d(_MaxUnpoolNd):
    def __init__(
        self, kernel_size: int | tuple[int], stride: int | tuple[int] | None = None, padding: int | tuple[int] = 0
    ) -> None: ...
    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor: ...

class MaxUnpool2d(_MaxUnpoolNd):
    def __init__(
        self, kernel_size: int | tuple[int, int], stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] = 0
    ) -> None: ...
    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor: ...

class MaxUnpool3d(_MaxUnpoolNd):
    def __init__(
        self, kernel_size: int | tuple[int, int, int], stride: int | tuple[int, int, int] | None = None,
        padding: int | tuple[int, int, int] = 0
    ) -> None: ...
    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor: ...

