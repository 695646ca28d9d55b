# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.flatten."""

import torch
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Unflatten(Module):
    def __init__(self, dim: int, unflattened_size: torch.Size | list[int] | tuple[int, ...]) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

