# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.utils.parametrizations."""

from typing import Any
from weft.nn.module.module import Module

def orthogonal(
    module: Module, name: str = 'weight', orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module: ...
def spectral_norm(
    module: Module, name: str = 'weight', n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module: ...
def weight_norm(module: Module, name: str = 'weight', dim: int = 0) -> Any: ...
