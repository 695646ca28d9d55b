# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.channelshuffle."""

from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class ChannelShuffle(Module):
    def __init__(self, groups: int) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

