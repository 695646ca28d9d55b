"""Python's operators on tensors, and the forms of arithmetic that take more than their op does."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from weft.core.dtype import of_torch
from weft.core.errors import ArgumentError, ShapeError
from weft.core.program import warn
from weft.functional.conversion import cast
from weft.functional.overwrite import into, number_like
from weft.functional.signature import Signature, door
from weft.functional.table import calling, entry, overwriting, public
from weft.ops import OPS
from weft.ops.explain import LONGER
from weft.tensor.tensor import Tensor

_add, _sub, _mul, _div, _matmul = map(calling, ["add", "sub", "mul", "div", "matmul"])
_clamp, _round, _transpose = map(calling, ["clamp", "round", "transpose"])
_add_to, _clamp_, _div_to = (overwriting(OPS[name]) for name in ("add", "clamp", "div"))
KNOWN = (Tensor, np.generic, int, float, complex, np.ndarray, torch.Tensor)

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
    "__ixor__": "bitwise_xor", "__ilshift__": "bitwise_left_shift", "__irshift__": "bitwise_right_shift",
}  # fmt: skip


def _reflected(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, other: f(other, x)


def _shifted(f: Callable[..., Any]) -> Callable[..., Any]:
    """A number by a tensor of counts; the kernel takes two tensors."""
    return lambda x, other: f(OPS["full_like"](x, other, None), x)


def _compared(f: Callable[..., Any]) -> Callable[..., Any]:
    """Python asks == of anything, in `in` and in `dict`: leave what is no number and no tensor to Python."""
    return lambda x, other: f(x, other) if isinstance(other, KNOWN) else NotImplemented


def operators() -> dict[str, Callable[..., Any]]:
    """Tensor's operators, as far as their ops are declared."""
    bound = {magic: entry(OPS[name]) for magic, name in STRAIGHT.items() if name in OPS}
    bound |= {magic: _reflected(entry(OPS[name])) for magic, name in REFLECTED.items() if name in OPS}
    bound |= {magic: overwriting(OPS[name]) for magic, name in OVERWRITING.items() if name in OPS}
    shifts = {"__rlshift__": "bitwise_left_shift", "__rrshift__": "bitwise_right_shift"}
    bound |= {magic: _shifted(entry(OPS[name])) for magic, name in shifts.items()}
    bound["__pos__"] = lambda x: x
    return bound | {"__eq__": _compared(entry(OPS["eq"])), "__ne__": _compared(entry(OPS["ne"]))}


def _scaled(other: Any, alpha: Any) -> Any:
    return other if alpha == 1 else other * alpha if _numbers(other, alpha) else _mul(other, alpha)


def _numbers(a: Any, b: Any) -> bool:
    return isinstance(a, (int, float, complex)) and isinstance(b, (int, float, complex))


@public("flow tensor")
def add(x: Any, other: Any = None, *, alpha: Any = 1) -> Tensor:
    """x + alpha * other, element by element; of a list of tensors alone, their sum.

    >>> flow.add(flow.ones(2), 1, alpha=3).tolist(), flow.add([flow.ones(2)] * 3).tolist()
    ([4.0, 4.0], [3.0, 3.0])
    """
    if other is None:
        return _sum(x)
    return _add(x, other) if alpha == 1 else _add(x, _scaled(other, alpha))


def _sum(tensors: Any) -> Tensor:
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise ArgumentError("add(): missing required argument 'other'; a list of tensors needs none: add([a, b])")
    return functools.reduce(_add, tensors)


@public("flow tensor")
def sub(x: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """x - alpha * other, element by element.

    >>> flow.sub(flow.ones(2), 1, alpha=3).tolist()
    [-2.0, -2.0]
    """
    return _sub(x, other) if alpha == 1 else _sub(x, _scaled(other, alpha))


@public("flow tensor")
def div(x: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """x / other, element by element; rounded down with "floor", towards zero with "trunc".

    >>> flow.div(flow.tensor([-7.]), 2, rounding_mode="trunc").tolist()
    [-3.0]
    """
    if rounding_mode is None:
        return _div(x, other)
    if rounding_mode == "floor":
        return OPS["floor_divide"](x, other)
    if rounding_mode != "trunc":
        raise ArgumentError(f'div(): rounding_mode is None, "trunc" or "floor"; got {rounding_mode!r}')
    whole = isinstance(x, Tensor) and not x.dtype.differentiable and type(other) is not float
    if whole and (not isinstance(other, Tensor) or not other.dtype.differentiable):
        other = number_like(x, other)
        return OPS["where"](OPS["lt"](OPS["mul"](OPS["sign"](x), OPS["sign"](other)), 0),
                            OPS["neg"](OPS["floor_divide"](OPS["abs"](x), OPS["abs"](other))),
                            OPS["floor_divide"](OPS["abs"](x), OPS["abs"](other)))  # fmt: skip
    return OPS["trunc"](_div(x, other))


def _accumulating(plain: Callable[..., Tensor]) -> None:
    name = plain.__name__
    overwrite = overwriting(OPS[name])

    def f(x: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        return overwrite(x, other) if alpha == 1 else overwrite(x, _scaled(other, alpha))

    f.__name__ = f.__qualname__ = f"{name}_"
    f.__doc__ = f"`{name}`, into x's memory."
    plain.overwriting = public("flow tensor")(f)  # type: ignore[attr-defined]


_accumulating(add)
_accumulating(sub)


@public("flow tensor", "rsub")
def rsub(x: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * x."""
    return _sub(other, _scaled(x, alpha))


def _promoted(x: Tensor, *factors: Tensor) -> Iterator[Tensor]:
    """The factors in the dtype that all three together have: one without dimensions doesn't make the others wider."""
    kinds: dict[bool, list[torch.dtype]] = {}
    for t in (x, *factors):
        kinds.setdefault(t.ndim > 0, []).append(t.dtype.torch)
    of_each = [functools.reduce(torch.promote_types, kind) for kind in kinds.values()]
    if len(set(of_each)) == 1:
        return iter(factors)
    shapes = [(1,) if has else () for has in kinds]
    common = torch.result_type(*(torch.empty(s, dtype=d, device="meta") for s, d in zip(shapes, of_each, strict=True)))
    return (cast(t, of_torch(common)) for t in factors)


@public("flow tensor")
def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 * tensor2."""
    return _add(x, _scaled(_mul(*_promoted(x, tensor1, tensor2)), value))


@public("flow tensor")
def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 / tensor2."""
    return _add(x, _scaled(_div(*_promoted(x, tensor1, tensor2)), value))


@public("flow tensor")
def addcmul_(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """`addcmul`, into x's memory."""
    return _add_to(x, _scaled(_mul(tensor1, tensor2), value))


@public("flow tensor")
def addcdiv_(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """`addcdiv`, into x's memory."""
    return _add_to(x, _scaled(_div(tensor1, tensor2), value))


@public("flow tensor")
def equal(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    return x.shape == other.shape and bool((x._whole("equal") == other._whole("equal")).all())


def _tolerances(f: Callable[..., Any]) -> Callable[..., Any]:
    """Tell who gives tolerances without their names that PyTorch and OneFlow order them differently."""
    behind = door(f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 3 or (len(args) > 3 and args[2] != args[3]):
            warn(
                f"{f.__name__}(x, other, {', '.join(map(repr, args[2:4]))}): read as rtol, atol, as in PyTorch; "
                f"OneFlow reads atol, rtol. Name them: rtol={args[2]!r}",
            )
        return behind(*args, **kwargs)

    call.signatures = (Signature(f).text(f.__name__),)  # type: ignore[attr-defined]
    return call


@public("flow tensor")
@_tolerances
def allclose(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether |x - other| <= atol + rtol * |other| for every element."""
    return x._whole("allclose").allclose(other._whole("allclose"), rtol, atol, equal_nan)


def matmul(
    input: Tensor, other: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0
) -> Tensor:
    """The product of matrices with OneFlow's further arguments: either turned, and a factor."""
    a = _transpose(input, -2, -1) if transpose_a else input
    y = _matmul(a, _transpose(other, -2, -1) if transpose_b else other)
    return y if alpha == 1 else _mul(y, alpha)


LONGER["matmul"] = door(matmul)


def check_dims(name: str, dims: tuple[int, int], x: Any, other: Any) -> None:
    """Whether two operands of a product have as many dimensions as it takes."""
    try:
        fits = (x.ndim, other.ndim) == dims
    except AttributeError:
        fits = True  # matmul says what is wrong
    if not fits:
        i = 0 if x.ndim != dims[0] else 1
        kind = {1: "vector", 2: "matrix", 3: "3D tensor"}[dims[i]]
        raise ShapeError(
            f"{name}(): the {('first', 'second')[i]} must be a {kind}: it takes tensors of {dims[0]} and "
            f"{dims[1]} dimensions; got shapes {list(x.shape)} and {list(other.shape)}. matmul() takes any"
        )


@public("flow tensor")
def bmm(x: Tensor, mat2: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0) -> Tensor:
    """The products of two batches of matrices. OneFlow's further arguments are those of `matmul`."""
    check_dims("bmm", (3, 3), x, mat2)
    return matmul(x, mat2, transpose_a, transpose_b, alpha)


def _product(name: str, dims: tuple[int, int], doc: str) -> None:
    """matmul, for tensors of these numbers of dimensions alone."""

    def multiply(x: Tensor, other: Tensor) -> Tensor:
        check_dims(name, dims, x, other)
        return _matmul(x, other)

    multiply.__name__ = multiply.__qualname__ = name
    multiply.__doc__ = doc
    public("flow tensor")(multiply)


_product("mm", (2, 2), "The product of two matrices.")
_product("mv", (2, 1), "The product of a matrix and a vector.")
_product("dot", (1, 1), "The inner product of two vectors.")


@public("flow tensor", "addmm")
def addmm(x: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * (mat1 @ mat2)."""
    check_dims("addmm", (2, 2), mat1, mat2)
    return beside("addmm", x, beta, _scaled(_matmul(mat1, mat2), alpha))


def beside(name: str, x: Any, beta: Any, product: Tensor) -> Tensor:
    """beta * x + product, whose shape x is broadcast to; what x holds doesn't count where beta is zero."""
    y = _add(_scaled(x, beta) if beta != 0 else OPS["zeros_like"](x), product)
    if y.shape != product.shape:
        raise ShapeError(
            f"{name}(): x of shape {list(x.shape)} can't be expanded to the product's, {list(product.shape)}"
        )
    return y


@public("flow tensor")
def addmv(x: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * (mat @ vec)."""
    check_dims("addmv", (2, 1), mat, vec)
    return beside("addmv", x, beta, _scaled(_matmul(mat, vec), alpha))


@public("flow tensor")
def baddbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * (batch1 @ batch2).

    >>> flow.baddbmm(flow.ones(1), flow.ones(2, 1, 3), flow.ones(2, 3, 1)).flatten().tolist()
    [4.0, 4.0]
    """
    check_dims("baddbmm", (3, 3), batch1, batch2)
    return beside("baddbmm", x, beta, _scaled(_matmul(batch1, batch2), alpha))


@public("flow tensor")
def clamp_min(x: Tensor, min: Any) -> Tensor:
    """x, but at least min."""
    return clamp(x, min)


@public("flow tensor")
def clamp_max(x: Tensor, max: Any) -> Tensor:
    """x, but at most max."""
    return clamp(x, None, max)


@public("flow tensor", "clamp_min_")
def clamp_min_(x: Tensor, min: Any) -> Tensor:
    """`clamp_min`, into x's memory."""
    return clamp_(x, min)


@public("flow tensor", "clamp_max_")
def clamp_max_(x: Tensor, max: Any) -> Tensor:
    """`clamp_max`, into x's memory."""
    return clamp_(x, None, max)


@public("flow tensor")
@_tolerances
def isclose(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether |x - other| <= atol + rtol * |other|, element by element."""
    near = OPS["le"](OPS["abs"](_sub(x, other)), _add(_mul(OPS["abs"](other), rtol), atol))
    near = OPS["logical_or"](near, OPS["eq"](x, other))
    near = OPS["logical_and"](near, OPS["logical_not"](OPS["logical_xor"](OPS["isinf"](x), OPS["isinf"](other))))
    both = OPS["logical_and"](OPS["isnan"](x), OPS["isnan"](other))
    return OPS["logical_or"](near, both) if equal_nan else near


@public("flow tensor", "clamp clip")
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """x, held between min and max: numbers, tensors that broadcast, or None.

    >>> flow.clamp(flow.tensor([-2.0, 0.5, 3.0]), min=-1, max=1).tolist()
    [-1.0, 0.5, 1.0]
    """
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        low = x if min is None else _bounded("lt", x, number_like(x, min))
        return low if max is None else _bounded("gt", low, number_like(x, max))
    return _clamp(x, min, max)


@public("flow tensor", "clamp_ clip_")
def clamp_(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clamp`, into x's memory."""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return into(x, clamp, min, max)
    return _clamp_(x, min, max)


def _bounded(beyond: str, x: Tensor, limit: Tensor) -> Tensor:
    """x up to a limit; where it meets that, the gradient is x's alone, as torch's."""
    return OPS["where"](OPS[beyond](x, limit), limit, x)


@public("flow tensor")
def round(x: Tensor, decimals: int = 0) -> Tensor:
    """The nearest whole number, of two the even one; or the nearest with so many decimals.

    >>> flow.round(flow.tensor([1.26, -0.5]), decimals=1).tolist()
    [1.2999..., -0.5]
    """
    if not decimals:
        return _round(x)
    by = 10.0 ** builtins.abs(decimals)
    return _div(_round(_mul(x, by)), by) if decimals > 0 else _mul(_round(_div(x, by)), by)


@public("flow tensor", "div_ divide_ true_divide_")
def div_(x: Tensor, other: Any, rounding_mode: str | None = None) -> Tensor:
    """`div`, into x's memory."""
    if rounding_mode is None:
        return _div_to(x, other)
    return into(x, div, other, rounding_mode=rounding_mode)
