"""Python's operators on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from weft.api.table import overwriting
from weft.autograd.call import call
from weft.autograd.entry import make_entry
from weft.ops import OPS, ops
from weft.ops.declaration import Op
from weft.tensor.tensor import Tensor

KNOWN = (Tensor, np.generic, int, float, complex, np.ndarray, torch.Tensor)

STRAIGHT = {  # operator: the op, with operands in order
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div",
    "__pow__": "pow", "__matmul__": "matmul", "__neg__": "neg", "__abs__": "abs", "__lt__": "lt", "__le__": "le",
    "__gt__": "gt", "__ge__": "ge", "__mod__": "remainder", "__floordiv__": "floor_divide",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__rand__": "bitwise_and",
    "__ror__": "bitwise_or", "__rxor__": "bitwise_xor", "__invert__": "bitwise_not",
    "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
}  # fmt: skip
REFLECTED = {
    "__rsub__": "sub", "__rtruediv__": "div", "__rpow__": "pow", "__rmatmul__": "matmul", "__rmod__": "remainder",
    "__rfloordiv__": "floor_divide", "__rdiv__": "div",
}  # fmt: skip
OVERWRITING = {
    "__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div", "__ipow__": "pow",
    "__imod__": "remainder", "__ifloordiv__": "floor_divide", "__iand__": "bitwise_and", "__ior__": "bitwise_or",
    "__ixor__": "bitwise_xor", "__ilshift__": "bitwise_left_shift", "__irshift__": "bitwise_right_shift",
}  # fmt: skip


def _reflected(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, other: f(other, x)


def _shifted(f: Callable[..., Any]) -> Callable[..., Any]:
    """A number shifted by a tensor; the kernel takes two tensors."""
    return lambda x, other: f(ops.full_like(x, other, None), x)


def _compared(f: Callable[..., Any]) -> Callable[..., Any]:
    """Python compares with anything, in `in` and in `dict`: return NotImplemented unless it is a number or a tensor."""
    return lambda x, other: f(x, other) if isinstance(other, KNOWN) else NotImplemented


def _multiplied(op: Op, args: tuple[Any, ...]) -> Any:
    """A list, a tuple or a text times a tensor of one integer is Python's: repeated so often."""
    return NotImplemented if any(isinstance(a, (list, tuple, str, bytes)) for a in args) else call(op, args)


def operators() -> dict[str, Callable[..., Any]]:
    """Tensor's operators whose ops are declared."""
    bound = {magic: OPS[name].entry for magic, name in STRAIGHT.items() if name in OPS}
    bound |= {magic: _reflected(OPS[name].entry) for magic, name in REFLECTED.items() if name in OPS}
    bound |= {magic: overwriting(OPS[name]) for magic, name in OVERWRITING.items() if name in OPS}
    shifts = {"__rlshift__": "bitwise_left_shift", "__rrshift__": "bitwise_right_shift"}
    bound |= {magic: _shifted(OPS[name].entry) for magic, name in shifts.items()}
    bound["__mul__"] = bound["__rmul__"] = make_entry(OPS["mul"], _multiplied)
    bound["__pos__"] = lambda x: x
    return bound | {"__eq__": _compared(ops.eq), "__ne__": _compared(ops.ne)}
