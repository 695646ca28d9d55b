"""Doors to other libraries: tensors, modules and state from torch and numpy, and torch's names for Weft's."""

from weft.interop.torch_state import from_torch, load_torch, to_torch

__all__ = ["from_torch", "load_torch", "to_torch"]
