"""Tensors and states to and from torch, sharing memory where that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from weft.core.errors import ArgumentError
from weft.nn.module import Module
from weft.tensor import tensor as tensors
from weft.tensor.tensor import Tensor


def from_torch(data: torch.Tensor) -> Tensor:
    """A local tensor over a torch tensor's memory; its gradient stays behind.

    >>> import torch
    >>> from weft.interop import from_torch
    >>> a = torch.zeros(2); b = from_torch(a); a[0] = 5.0; b.tolist()
    [5.0, 0.0]
    """
    if not isinstance(data, torch.Tensor):
        raise ArgumentError(
            f"from_torch takes a torch.Tensor; got {type(data).__name__}. Other arrays go to flow.tensor"
        )
    return tensors.of_torch(data.detach())


def to_torch(x: Tensor) -> torch.Tensor:
    """A torch tensor over a local tensor's memory, or over this rank's part of a global one.

    >>> from weft.interop import to_torch
    >>> to_torch(flow.ones(2)).sum().item()
    2.0
    """
    return x.detach().to_torch()


def load_torch(module: Module, source: torch.nn.Module | Mapping[str, Any], strict: bool = True) -> Module:
    """Copy the state of a torch module, or a state dict of torch tensors, into a module with the same names.

    A module in a global layout takes its part of each tensor.
    """
    state = source.state_dict() if isinstance(source, torch.nn.Module) else source
    module.load_state_dict({k: from_torch(v) for k, v in state.items() if isinstance(v, torch.Tensor)}, strict=strict)
    return module
