# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.utils.spectral_norm."""

from typing import Any
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

__all__ = [
    "SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "remove_spectral_norm",
    "spectral_norm"
]


class SpectralNorm:
    def __init__(self, name: str = 'weight', n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None: ...
    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor: ...
    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor: ...
    def remove(self, module: Module) -> None: ...
    def __call__(self, module: Module, inputs: Any) -> None: ...
    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm: ...

class SpectralNormLoadStateDictPreHook:
    def __init__(self, fn: Any) -> None: ...
    def __call__(
        self, state_dict: Any, prefix: Any, local_metadata: Any, strict: Any, missing_keys: Any, unexpected_keys: Any,
        error_msgs: Any
    ) -> None: ...

class SpectralNormStateDictHook:
    def __init__(self, fn: Any) -> None: ...
    def __call__(self, module: Any, state_dict: Any, prefix: Any, local_metadata: Any) -> None: ...

def remove_spectral_norm(module: Any, name: str = 'weight') -> Any: ...
def spectral_norm(
    module: Any, name: str = 'weight', n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any: ...
