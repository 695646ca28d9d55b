# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.utils.parametrizations."""

from enum import Enum
from typing import Any
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

__all__ = [
    "orthogonal", "spectral_norm", "weight_norm"
]


class _OrthMaps(Enum):
    matrix_exp: Any
    cayley: Any
    householder: Any

class _Orthogonal(Module):
    def __init__(self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: Any = True) -> None: ...
    def forward(self, X: Tensor) -> Tensor: ...
    def right_inverse(self, Q: Tensor) -> Tensor: ...

class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None: ...
    def forward(self, weight: Tensor) -> Tensor: ...
    def right_inverse(self, value: Tensor) -> Tensor: ...

class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None: ...
    def forward(self, weight_g: Any, weight_v: Any) -> Any: ...
    def right_inverse(self, weight: Any) -> Any: ...

def orthogonal(
    module: Module, name: str = 'weight', orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module: ...
def spectral_norm(
    module: Module, name: str = 'weight', n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module: ...
def weight_norm(module: Module, name: str = 'weight', dim: int = 0) -> Any: ...
