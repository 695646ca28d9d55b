"""Convert tensors and states to and from torch, sharing memory if possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, overload

import torch

from weft.autograd.plain import dense
from weft.core.errors import ArgumentError
from weft.interop import torch_modules
from weft.interop.entering import Callback
from weft.interop.facade import Facade
from weft.nn.module.module import Module
from weft.tensor import tensor as tensors
from weft.tensor.tensor import Tensor


@overload
def from_torch(data: torch.Tensor) -> Tensor: ...
@overload
def from_torch(data: torch.nn.Module | Module | Callable[..., Any]) -> Any: ...
def from_torch(data: Any) -> Any:
    """A local tensor over a torch tensor's memory, without its gradient. Or a torch module converted to Weft's, over
    the same memory: it computes the same, on Weft's tensors, and trains like any module here. Or a function that was
    written for torch's tensors, as one of Weft's.

    >>> import torch
    >>> from weft.interop import from_torch
    >>> a = torch.zeros(2); b = from_torch(a); a[0] = 5.0; b.tolist()
    [5.0, 0.0]
    >>> layer = from_torch(torch.nn.Linear(2, 3))
    >>> layer(flow.ones(4, 2)).shape, isinstance(layer, flow.nn.Module)
    (torch.Size([4, 3]), True)
    >>> from_torch(torch.nn.utils.parameters_to_vector)(layer.parameters()).shape
    torch.Size([9])
    """
    if isinstance(data, (torch.nn.Module, Module)):
        return torch_modules.from_module(data)
    if callable(data) and not isinstance(data, type):
        return Callback(data)
    if not isinstance(data, torch.Tensor):
        raise ArgumentError(
            f"from_torch takes a torch.Tensor, a torch.nn.Module or a function; got {type(data).__name__}. "
            "Other arrays go to flow.tensor"
        )
    return data.of.detach() if type(data) is Facade else tensors.of_torch(dense(data.detach()))


@overload
def to_torch(x: Tensor) -> torch.Tensor: ...
@overload
def to_torch(x: Module) -> torch.nn.Module: ...
def to_torch(x: Any) -> Any:
    """A torch tensor over a local tensor's memory, or over this rank's part of a global one. Or a torch module from one
    that `from_torch` converted, with the whole of each tensor: all ranks call it together.

    >>> from weft.interop import to_torch
    >>> to_torch(flow.ones(2)).sum().item()
    2.0
    """
    x = x.of if type(x) is Facade else x  # from an object that a module of torch's returned
    return x.detach().to_torch() if isinstance(x, Tensor) else torch_modules.to_module(x)


def load_torch(module: Module, source: torch.nn.Module | Mapping[str, Any], strict: bool = True) -> Module:
    """Copy the state of a torch module, or a state dict of torch tensors, into a module with the same names.

    A module with global parameters takes this rank's part of each tensor.
    """
    state = source.state_dict() if isinstance(source, torch.nn.Module) else source
    module.load_state_dict({k: from_torch(v) for k, v in state.items() if isinstance(v, torch.Tensor)}, strict=strict)
    return module
