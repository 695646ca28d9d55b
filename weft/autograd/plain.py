"""Others' values among an op's arguments, and what ops declare, print and compare in their place: Python's numbers for
numpy's, tuples for sequences of other kinds, tensors for torch's and for arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import torch

from weft.core.device import Device
from weft.core.dispatch import here
from weft.core.dtype import DType
from weft.core.errors import ArgumentError
from weft.ops.declaration import Op
from weft.ops.explain import explain
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor, of_torch

OTHERS: Final = (np.generic, np.ndarray, torch.Tensor)
SEVERAL: Final = (list, tuple)
PLAIN: Final = frozenset({Tensor, Parameter, int, float, bool, str, tuple, list, type(None), DType, Device})


def plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, each number a Python one, each sequence a tuple, each tensor Weft's."""
    for a in args:
        if type(a) in SEVERAL:
            if a and type(a[0]) is not int and any(isinstance(v, torch.Tensor) for v in a):
                return tuple(map(_plain, args))
        elif type(a) not in PLAIN and (isinstance(a, OTHERS) or is_others(a)):
            return tuple(map(_plain, args))
    return args


def _plain(a: Any) -> Any:
    if isinstance(a, np.generic):
        return a.item()
    if isinstance(a, np.ndarray):
        return of_torch(torch.from_numpy(a))
    if isinstance(a, torch.Tensor):
        return taken(a)
    if type(a) in SEVERAL:
        return type(a)(map(_plain, a))
    return tuple(a) if is_others(a) else a


def taken(a: Any) -> Any:
    """A tensor of torch's as one of Weft's, over the same memory."""
    if hasattr(a, "of"):  # it stands for one of Weft's, in the hands of torch's modules
        return a.of
    if a.requires_grad and torch.is_grad_enabled() and here.grad:
        raise ArgumentError(
            "a tensor of torch's that requires a gradient: torch would not learn of what Weft computes with it. Give "
            "x.detach(), or let Weft train it: flow.nn.Parameter(x), flow.from_torch(module)"
        )
    return of_torch(dense(a.detach()))


def dense(a: torch.Tensor) -> torch.Tensor:
    """The tensor, if its elements lie in memory one by one."""
    if a.layout is not torch.strided:
        raise ArgumentError(f"a tensor of layout {a.layout}: tensors are dense here. Give x.to_dense()")
    return a


def is_others(a: Any) -> bool:
    """Whether it is a sequence of a kind of its own, such as a list of a configuration."""
    return isinstance(a, Sequence) and not isinstance(a, (tuple, list, str, bytes))


def again(op: Op, cause: Exception, args: tuple[Any, ...], run: Callable[[Op, tuple[Any, ...]], Any]) -> Any:
    """The call that a kernel refused, with Python's numbers for numpy's; the error, where there are none."""
    numbers = plain(args)
    if numbers is args:
        raise explain(op, cause, args) from cause
    return run(op, numbers)
