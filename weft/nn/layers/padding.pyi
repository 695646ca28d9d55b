# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.padding."""

from typing import Any
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class _CircularPadNd(Module):
    def forward(self, input: Tensor) -> Tensor: ...

class CircularPad1d(_CircularPadNd):
    def __init__(self, padding: int | tuple[int, int]) -> None: ...

class CircularPad2d(_CircularPadNd):
    def __init__(self, padding: int | tuple[int, int, int, int]) -> None: ...

class CircularPad3d(_CircularPadNd):
    def __init__(self, padding: int | tuple[int, int, int, int, int, int]) -> None: ...

class _ConstantPadNd(Module):
    def __init__(self, value: float) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class ConstantPad1d(_ConstantPadNd):
    def __init__(self, padding: Any, value: float = 0.0) -> None: ...

class ConstantPad2d(_ConstantPadNd):
    def __init__(self, padding: Any, value: float = 0.0) -> None: ...

class ConstantPad3d(_ConstantPadNd):
    def __init__(self, padding: Any, value: float = 0.0) -> None: ...

class _ReflectionPadNd(Module):
    def forward(self, input: Tensor) -> Tensor: ...

class ReflectionPad1d(_ReflectionPadNd):
    def __init__(self, padding: int | tuple[int, int]) -> None: ...

class ReflectionPad2d(_ReflectionPadNd):
    def __init__(self, padding: int | tuple[int, int, int, int]) -> None: ...

class ReflectionPad3d(_ReflectionPadNd):
    def __init__(self, padding: int | tuple[int, int, int, int, int, int]) -> None: ...

class _ReplicationPadNd(Module):
    def forward(self, input: Tensor) -> Tensor: ...

class ReplicationPad1d(_ReplicationPadNd):
    def __init__(self, padding: int | tuple[int, int]) -> None: ...

class ReplicationPad2d(_ReplicationPadNd):
    def __init__(self, padding: int | tuple[int, int, int, int]) -> None: ...

class ReplicationPad3d(_ReplicationPadNd):
    def __init__(self, padding: int | tuple[int, int, int, int, int, int]) -> None: ...

class ZeroPad1d(ConstantPad1d):
    def __init__(self, padding: int | tuple[int, int]) -> None: ...

class ZeroPad2d(ConstantPad2d):
    def __init__(self, padding: int | tuple[int, int, int, int]) -> None: ...

class ZeroPad3d(ConstantPad3d):
    def __init__(self, padding: int | tuple[int, int, int, int, int, int]) -> None: ...

