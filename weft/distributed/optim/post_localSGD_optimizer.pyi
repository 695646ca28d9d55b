# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.optim.post_localSGD_optimizer."""

from typing import Any
from weft.distributed.algorithms.model_averaging.averagers import ModelAverager
from weft.optim.optimizer import Optimizer

class PostLocalSGDOptimizer(Optimizer):
    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None: ...
    @property
    def state(self) -> Any: ...
    def step(self) -> Any: ...
    def zero_grad(self, set_to_none: bool = True) -> Any: ...

