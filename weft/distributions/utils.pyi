# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributions.utils."""

from collections.abc import Callable
from typing import Any
from weft.tensor.tensor import Tensor

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix"
]


class lazy_property:
    def __init__(self, wrapped: Callable[[Any], Any]) -> None: ...

class _lazy_property_and_property(lazy_property, property):
    def __init__(self, wrapped: Callable[[Any], Any]) -> None: ...

def broadcast_all(*values: Tensor | int | float | bool) -> tuple[Tensor, ...]: ...
def clamp_probs(probs: Tensor) -> Tensor: ...
def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor: ...
def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor: ...
def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor: ...
def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor: ...
