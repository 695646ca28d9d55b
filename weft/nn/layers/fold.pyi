# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.fold."""

from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class Fold(Module):
    def __init__(
        self, output_size: int | tuple[int, ...], kernel_size: int | tuple[int, ...],
        dilation: int | tuple[int, ...] = 1, padding: int | tuple[int, ...] = 0, stride: int | tuple[int, ...] = 1
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Unfold(Module):
    def __init__(
        self, kernel_size: int | tuple[int, ...], dilation: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0, stride: int | tuple[int, ...] = 1
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

