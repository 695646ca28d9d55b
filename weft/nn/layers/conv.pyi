# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.conv."""

from typing import Any, Literal
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class _ConvNd(Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...],
        padding: str | tuple[int, ...], dilation: tuple[int, ...], transposed: bool, output_padding: tuple[int, ...],
        groups: int, bias: bool, padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'], device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def reset_parameters(self) -> None: ...

class Conv1d(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int], stride: int | tuple[int] = 1,
        padding: str | int | tuple[int] = 0, dilation: int | tuple[int] = 1, groups: int = 1, bias: bool = True,
        padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros', device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Conv2d(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1, padding: str | int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1, groups: int = 1, bias: bool = True,
        padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros', device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Conv3d(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1, padding: str | int | tuple[int, int, int] = 0,
        dilation: int | tuple[int, int, int] = 1, groups: int = 1, bias: bool = True,
        padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros', device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class _ConvTransposeNd(_ConvNd):
    def __init__(
        self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        transposed: Any, output_padding: Any, groups: Any, bias: Any, padding_mode: Any, device: Any = None,
        dtype: Any = None
    ) -> None: ...

class ConvTranspose1d(_ConvTransposeNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int], stride: int | tuple[int] = 1,
        padding: int | tuple[int] = 0, output_padding: int | tuple[int] = 0, groups: int = 1, bias: bool = True,
        dilation: int | tuple[int] = 1, padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros',
        device: Any = None, dtype: Any = None
    ) -> None: ...
    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor: ...

class ConvTranspose2d(_ConvTransposeNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1, padding: int | tuple[int, int] = 0,
        output_padding: int | tuple[int, int] = 0, groups: int = 1, bias: bool = True,
        dilation: int | tuple[int, int] = 1,
        padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros', device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor: ...

class ConvTranspose3d(_ConvTransposeNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1, padding: int | tuple[int, int, int] = 0,
        output_padding: int | tuple[int, int, int] = 0, groups: int = 1, bias: bool = True,
        dilation: int | tuple[int, int, int] = 1,
        padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros', device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor: ...

class LazyConv1d(Conv1d):
    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int], stride: int | tuple[int] = 1,
        padding: str | int | tuple[int] = 0, dilation: int | tuple[int] = 1, groups: int = 1, bias: bool = True,
        padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros', device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def has_uninitialized_params(self) -> bool: ...
    def forward(self, x: Tensor, *more: Any, **named: Any) -> Tensor: ...
    def initialize_parameters(self, x: Tensor) -> None: ...

class LazyConv2d(Conv2d):
    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int, int], stride: int | tuple[int, int] = 1,
        padding: str | int | tuple[int, int] = 0, dilation: int | tuple[int, int] = 1, groups: int = 1,
        bias: bool = True, padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros',
        device: Any = None, dtype: Any = None
    ) -> None: ...
    def has_uninitialized_params(self) -> bool: ...
    def forward(self, x: Tensor, *more: Any, **named: Any) -> Tensor: ...
    def initialize_parameters(self, x: Tensor) -> None: ...

class LazyConv3d(Conv3d):
    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int, int, int], stride: int | tuple[int, int, int] = 1,
        padding: str | int | tuple[int, int, int] = 0, dilation: int | tuple[int, int, int] = 1, groups: int = 1,
        bias: bool = True, padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros',
        device: Any = None, dtype: Any = None
    ) -> None: ...
    def has_uninitialized_params(self) -> bool: ...
    def forward(self, x: Tensor, *more: Any, **named: Any) -> Tensor: ...
    def initialize_parameters(self, x: Tensor) -> None: ...

class LazyConvTranspose1d(ConvTranspose1d):
    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int], stride: int | tuple[int] = 1,
        padding: int | tuple[int] = 0, output_padding: int | tuple[int] = 0, groups: int = 1, bias: bool = True,
        dilation: int | tuple[int] = 1, padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros',
        device: Any = None, dtype: Any = None
    ) -> None: ...
    def has_uninitialized_params(self) -> bool: ...
    def forward(self, x: Tensor, *more: Any, **named: Any) -> Tensor: ...
    def initialize_parameters(self, x: Tensor) -> None: ...

class LazyConvTranspose2d(ConvTranspose2d):
    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int, int], stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0, output_padding: int | tuple[int, int] = 0, groups: int = 1,
        bias: bool = True, dilation: int | tuple[int, int] = 1,
        padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros', device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def has_uninitialized_params(self) -> bool: ...
    def forward(self, x: Tensor, *more: Any, **named: Any) -> Tensor: ...
    def initialize_parameters(self, x: Tensor) -> None: ...

class LazyConvTranspose3d(ConvTranspose3d):
    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int, int, int], stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] = 0, output_padding: int | tuple[int, int, int] = 0, groups: int = 1,
        bias: bool = True, dilation: int | tuple[int, int, int] = 1,
        padding_mode: Literal['zeros', 'reflect', 'replicate', 'circular'] = 'zeros', device: Any = None,
        dtype: Any = None
    ) -> None: ...
    def has_uninitialized_params(self) -> bool: ...
    def forward(self, x: Tensor, *more: Any, **named: Any) -> Tensor: ...
    def initialize_parameters(self, x: Tensor) -> None: ...

