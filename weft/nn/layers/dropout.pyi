# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.dropout."""

from typing import Any
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...

class AlphaDropout(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...

class Dropout(_DropoutNd):
    def forward(self, input: Tensor, addend: Tensor | None = None) -> Tensor: ...
    def __init__(self, p: float = 0.5, inplace: bool = False, generator: Any = None) -> None: ...
    generator: Any

class Dropout1d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...

class Dropout2d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...

class Dropout3d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...

class FeatureAlphaDropout(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...

