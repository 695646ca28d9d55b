# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.pixelshuffle."""

from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class PixelShuffle(Module):
    def __init__(
        self, upscale_factor: int | None = None, h_upscale_factor: int | None = None,
        w_upscale_factor: int | None = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class PixelUnshuffle(Module):
    def __init__(self, downscale_factor: int) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

