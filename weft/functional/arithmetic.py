"""Python's operators on tensors, and the forms of arithmetic that take more than their op does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.autograd.inplace import in_place
from weft.functional.table import calling, entry, overwriting, public
from weft.ops import OPS
from weft.tensor.tensor import Tensor

_add, _sub, _mul, _div, _matmul = map(calling, ["add", "sub", "mul", "div", "matmul"])
KNOWN = (Tensor, int, float, complex)

STRAIGHT = {  # operator: the op, in the order of its operands
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div",
    "__pow__": "pow", "__matmul__": "matmul", "__neg__": "neg", "__abs__": "abs", "__lt__": "lt", "__le__": "le",
    "__gt__": "gt", "__ge__": "ge", "__mod__": "remainder", "__floordiv__": "floor_divide",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__rand__": "bitwise_and",
    "__ror__": "bitwise_or", "__rxor__": "bitwise_xor", "__invert__": "bitwise_not",
    "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
}  # fmt: skip
REFLECTED = {
    "__rsub__": "sub", "__rtruediv__": "div", "__rpow__": "pow", "__rmatmul__": "matmul", "__rmod__": "remainder",
    "__rfloordiv__": "floor_divide",
}  # fmt: skip
OVERWRITING = {
    "__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div", "__ipow__": "pow",
    "__imod__": "remainder", "__ifloordiv__": "floor_divide", "__iand__": "bitwise_and", "__ior__": "bitwise_or",
    "__ixor__": "bitwise_xor",
}  # fmt: skip


def _reflected(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, other: f(other, x)


def _compared(f: Callable[..., Any]) -> Callable[..., Any]:
    """Python asks == of anything, in `in` and in `dict`: leave what is no number and no tensor to Python."""
    return lambda x, other: f(x, other) if isinstance(other, KNOWN) else NotImplemented


def operators() -> dict[str, Callable[..., Any]]:
    """Tensor's operators, as far as their ops are declared."""
    bound = {magic: entry(OPS[name]) for magic, name in STRAIGHT.items() if name in OPS}
    bound |= {magic: _reflected(entry(OPS[name])) for magic, name in REFLECTED.items() if name in OPS}
    bound |= {magic: overwriting(OPS[name]) for magic, name in OVERWRITING.items() if name in OPS}
    return bound | {"__eq__": _compared(entry(OPS["eq"])), "__ne__": _compared(entry(OPS["ne"]))}


def _scaled(other: Any, alpha: Any) -> Any:
    return other if alpha == 1 else _mul(other, alpha) if isinstance(other, Tensor) else other * alpha


@public("flow tensor", "rsub")
def rsub(x: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * x."""
    return _sub(other, _scaled(x, alpha))


@public("flow tensor")
def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 * tensor2."""
    return _add(x, _scaled(_mul(tensor1, tensor2), value))


@public("flow tensor")
def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 / tensor2."""
    return _add(x, _scaled(_div(tensor1, tensor2), value))


@public("flow tensor")
def equal(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    return x.shape == other.shape and bool((x._whole("equal") == other._whole("equal")).all())


@public("flow tensor")
def allclose(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether |x - other| <= atol + rtol * |other| for every element."""
    return x._whole("allclose").allclose(other._whole("allclose"), rtol, atol, equal_nan)


@public("flow tensor", "addmm")
def addmm(x: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * (mat1 @ mat2)."""
    return _add(_scaled(x, beta), _scaled(_matmul(mat1, mat2), alpha))


@public("flow tensor")
def clamp_min(x: Tensor, min: Any) -> Tensor:
    """x, but at least min."""
    return OPS["clamp"](x, min, None)


@public("flow tensor")
def clamp_max(x: Tensor, max: Any) -> Tensor:
    """x, but at most max."""
    return OPS["clamp"](x, None, max)


@public("tensor", "clamp_min_")
def clamp_min_(x: Tensor, min: Any) -> Tensor:
    """`clamp_min`, into x's memory."""
    return in_place(OPS["clamp"], (x, min, None))


@public("tensor", "clamp_max_")
def clamp_max_(x: Tensor, max: Any) -> Tensor:
    """`clamp_max`, into x's memory."""
    return in_place(OPS["clamp"], (x, None, max))


@public("flow tensor")
def isclose(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether |x - other| <= atol + rtol * |other|, element by element."""
    near = OPS["le"](OPS["abs"](_sub(x, other)), _add(_mul(OPS["abs"](other), rtol), atol))
    near = OPS["logical_or"](near, OPS["eq"](x, other))
    near = OPS["logical_and"](near, OPS["logical_not"](OPS["logical_xor"](OPS["isinf"](x), OPS["isinf"](other))))
    both = OPS["logical_and"](OPS["isnan"](x), OPS["isnan"](other))
    return OPS["logical_or"](near, both) if equal_nan else near
