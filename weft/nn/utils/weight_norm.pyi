# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.utils.weight_norm."""

from typing import Any
from weft.nn.module.module import Module

__all__ = [
    "WeightNorm", "remove_weight_norm", "weight_norm"
]


class WeightNorm:
    def __init__(self, name: str, dim: int) -> None: ...
    def compute_weight(self, module: Module) -> Any: ...
    @staticmethod
    def apply(module: Any, name: str, dim: int) -> WeightNorm: ...
    def remove(self, module: Module) -> None: ...
    def __call__(self, module: Module, inputs: Any) -> None: ...

def remove_weight_norm(module: Any, name: str = 'weight') -> Any: ...
def weight_norm(module: Any, name: str = 'weight', dim: int = 0) -> Any: ...
