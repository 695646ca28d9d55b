# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.utils.parametrize."""

from collections.abc import Sequence
from typing import Any
from weft.nn.layers.container import ModuleList
from weft.nn.module.module import Module
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations"
]


class ParametrizationList(ModuleList):
    def __init__(self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False) -> None: ...
    def right_inverse(self, value: Tensor) -> None: ...
    def forward(self) -> Tensor: ...

def cached() -> Any: ...
def is_parametrized(module: Module, tensor_name: str | None = None) -> bool: ...
def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module: ...
def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module: ...
def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module: ...
def type_before_parametrizations(module: Module) -> type: ...
