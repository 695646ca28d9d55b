"""`autograd.Variable`: PyTorch's deprecated class."""

from __future__ import annotations

from typing import Any

from weft.autograd.graph import at_end_of_backward
from weft.core.errors import ArgumentError
from weft.tensor.tensor import Tensor


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class _Engine:
    """`Variable._execution_engine`, under PyTorch's private name."""

    queue_callback = staticmethod(at_end_of_backward)


class Variable(metaclass=_Kind):
    """`Variable(x)` is `x.detach()`, with `requires_grad` as given; every tensor is an instance.

    >>> v = flow.autograd.Variable(flow.ones(2), requires_grad=True)
    >>> v.requires_grad, isinstance(v, flow.autograd.Variable)
    (True, True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        if not isinstance(data, Tensor):
            raise ArgumentError(f"Variable() takes a tensor; got {type(data).__name__}; make it one: flow.tensor(data)")
        return data.detach().requires_grad_(requires_grad)
