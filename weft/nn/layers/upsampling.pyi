# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.upsampling."""

from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class Upsample(Module):
    def __init__(
        self, size: int | tuple[int, ...] | None = None, scale_factor: float | tuple[float, ...] | None = None,
        mode: str = 'nearest', align_corners: bool | None = None, recompute_scale_factor: bool | None = None
    ) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class UpsamplingBilinear2d(Upsample):
    def __init__(
        self, size: int | tuple[int, int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None: ...

class UpsamplingNearest2d(Upsample):
    def __init__(
        self, size: int | tuple[int, int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None: ...

