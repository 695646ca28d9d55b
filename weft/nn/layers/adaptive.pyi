# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.modules.adaptive."""

from collections.abc import Sequence
from typing import Any
from weft.nn.layers.clusters import Clustered
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

class AdaptiveLogSoftmaxWithLoss(Module):
    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None
    ) -> None: ...
    def reset_parameters(self) -> None: ...
    def forward(self, input_: Tensor, target_: Tensor) -> Clustered: ...
    def log_prob(self, input: Tensor) -> Tensor: ...
    def predict(self, input: Any) -> Any: ...

