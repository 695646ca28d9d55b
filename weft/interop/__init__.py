"""Interoperation with other libraries: tensors, modules and states from torch, and `import torch` that gives Weft."""

from weft.interop.torch_state import from_torch, load_torch, to_torch

__all__ = ["from_torch", "load_torch", "to_torch"]
