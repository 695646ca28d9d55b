# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils.dlpack: from_dlpack, to_dlpack"""

from typing import Any
from weft.tensor.tensor import Tensor


def from_dlpack(exporter: Any) -> Tensor:
    """A tensor that shares memory with any DLPack exporter: NumPy, torch, jax, cupy."""

def to_dlpack(x: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory."""
