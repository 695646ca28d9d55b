"""Conversion of foreign argument values to those that ops declare: NumPy's numbers to Python's, custom sequences to
tuples, torch's tensors and arrays to Weft's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import torch

from weft.autograd.trees import leaves
from weft.core.device import Device
from weft.core.dispatch import here, hooks
from weft.core.dtype import DType
from weft.core.errors import ArgumentError
from weft.core.sbp import broadcast
from weft.ops.declaration import Op, Param
from weft.ops.explain import explain
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor, of_torch

OTHERS: Final = (np.generic, np.ndarray, torch.Tensor)
SEVERAL: Final = (list, tuple)
PLAIN: Final = frozenset({Tensor, Parameter, int, float, bool, str, tuple, list, type(None), DType, Device})


def plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with Python's numbers, tuples and Weft's tensors."""
    for a in args:
        if type(a) in SEVERAL:
            if a and type(a[0]) is not int and not PLAIN.issuperset(map(type, a)):
                if any(isinstance(v, torch.Tensor) for v in a):
                    return _made(args)
        elif type(a) not in PLAIN and (isinstance(a, OTHERS) or is_others(a)):
            return _made(args)
    return args


def _made(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments converted; an array beside a global tensor is the same on every rank, as numbers are."""
    spec = next((a.spec for a in args if isinstance(a, Tensor) and a.spec is not None), None)
    if spec is None:
        return tuple(map(_plain, args))
    whole = (broadcast,) * spec.placement.ndim
    return tuple(
        hooks.placed(torch.from_numpy(a), None, spec.placement, whole) if isinstance(a, np.ndarray) else _plain(a)
        for a in args
    )


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


def behind(a: Any) -> Any:
    """The tensor behind a stand-in, from one of torch's modules; anything else itself."""
    return getattr(a, "of", a) if isinstance(a, torch.Tensor) else a


def ours(a: Any) -> Any:
    """A tensor of torch's as Weft's; anything else itself."""
    return taken(a) if isinstance(a, torch.Tensor) else a


def taken(a: Any) -> Any:
    """A torch tensor as a Weft one, over the same memory."""
    if (own := behind(a)) is not a:
        return own
    if a.requires_grad and torch.is_grad_enabled() and here.grad:
        raise ArgumentError(
            "a tensor of torch's that requires a gradient: torch would not see what Weft computes with it. Give "
            "x.detach(), or let Weft train it: flow.nn.Parameter(x), flow.from_torch(module)"
        )
    return of_torch(dense(a.detach()))


def theirs(tree: Any) -> bool:
    """Whether a tensor of torch's is among the leaves."""
    return any(isinstance(v, torch.Tensor) for v in leaves(tree))


def refuse_trained(given: tuple[Any, ...], parameters: bool) -> None:
    """Refuse torch's tensors that require gradients, as torch's tape would lack what is computed with them."""
    for several in given:
        for v in leaves(several) if isinstance(several, (tuple, list, dict)) else (several,):
            if isinstance(v, torch.Tensor) and v.requires_grad and (parameters or type(v) is torch.Tensor):
                taken(v)


def dense(a: torch.Tensor) -> torch.Tensor:
    """The tensor, if it is dense; a lazy conjugate or negative, which can't be written as pairs, is computed."""
    if a.layout is not torch.strided:
        raise ArgumentError(f"a tensor of layout {a.layout}: tensors are dense here. Give x.to_dense()")
    return a.resolve_conj().resolve_neg()


def is_others(a: Any) -> bool:
    """Whether it is a custom sequence, such as a list of a configuration."""
    return isinstance(a, Sequence) and not isinstance(a, (tuple, list, str, bytes))


def numbered(params: Iterable[Param], values: Iterable[Any]) -> list[Any]:
    """The values, with the number that a 0-d tensor holds where only a number fits: torch's kernels read it, too."""
    return [_numbers(p.type, v) if p.kind == "attribute" else v for p, v in zip(params, values, strict=True)]


def _numbers(kind: str, v: Any) -> Any:
    if type(v) in SEVERAL:
        numbers = [_numbers(kind, n) for n in v]
        return v if all(map(operator.is_, numbers, v)) else type(v)(numbers)
    if not isinstance(v, Tensor) or v.ndim or v.requires_grad or v.dtype.is_complex:
        return v
    fits = ("float", "Scalar") if v.dtype.is_floating_point else ("int", "Size", "float", "Scalar")
    return v.item() if "Tensor" not in kind and any(word in kind for word in fits) else v


def again(op: Op, cause: Exception, args: tuple[Any, ...], run: Callable[[Op, tuple[Any, ...]], Any]) -> Any:
    """Retry a call that a kernel refused, with Python's numbers in place of others; the error, if there are none."""
    numbers = plain(args)
    if numbers is args:
        numbers = tuple(numbered(op.params, args))
    if all(map(operator.is_, numbers, args)):
        raise explain(op, cause, args) from cause
    return run(op, numbers)
