"""Derivatives of functions as a whole: Jacobians and Hessians, and their products with vectors.

Inputs and results keep the form in which they are given: one tensor, or a tuple. With `create_graph`, the derivatives
can be differentiated again. `strict` refuses an output that doesn't depend on an input, whose derivative is else zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.autograd.engine import grad
from weft.autograd.modes import enable_grad
from weft.core.errors import ArgumentError, AutogradError
from weft.ops import OPS
from weft.tensor.tensor import Tensor

Tensors = tuple[Tensor, ...]
Given = Tensor | Sequence[Tensor]


def vjp(
    func: Callable[..., Any], inputs: Given, v: Given | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What `func` gives, and the product of a vector with its Jacobian. A scalar's vector is 1 if none is given.

    >>> y, g = flow.autograd.functional.vjp(lambda x: x.square().sum(), flow.tensor([1.0, 2.0]))
    >>> y.item(), g.tolist()
    (5.0, [2.0, 4.0])
    """
    ins, outs, form = _called(func, inputs, create_graph)
    vectors = _vectors("vjp", v, outs)
    found = _grad(outs, ins, vectors, create_graph, strict)
    return _as_given(_loose(outs, create_graph), form), _as_given(found, inputs)


def jvp(
    func: Callable[..., Any], inputs: Given, v: Given | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What `func` gives, and the product of its Jacobian with a vector: by going back over the way back.

    >>> y, t = flow.autograd.functional.jvp(lambda x: x * x, flow.tensor([1.0, 2.0]), flow.tensor([1.0, 10.0]))
    >>> t.tolist()
    [2.0, 40.0]
    """
    ins, outs, form = _called(func, inputs, create_graph)
    vectors = _vectors("jvp", v, ins)
    with enable_grad():
        hold = tuple(OPS["zeros_like"](y, None).requires_grad_() for y in outs)
        back = _grad(outs, ins, hold, True, strict)
        found = _grad(back, hold, vectors, create_graph, False)
    return _as_given(_loose(outs, create_graph), form), _as_given(found, form)


def jacobian(
    func: Callable[..., Any], inputs: Given, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The derivative of every element of every output by every element of every input: shape [*output, *input].

    Row by row, whatever `vectorize` and `strategy` say.

    >>> flow.autograd.functional.jacobian(lambda x: x * x, flow.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    ins, outs, form = _called(func, inputs, create_graph)
    found = []
    for y in outs:
        flat = OPS["reshape"](y, (-1,))
        rows = [
            _grad((OPS["select"](flat, 0, i),), ins, (None,), create_graph, strict, keep=True)
            for i in range(flat.shape[0])
        ]
        found.append(tuple(_stacked([row[j] for row in rows], y, x) for j, x in enumerate(ins)))
    return _as_given(tuple(_as_given(row, inputs) for row in found), form)


def hessian(
    func: Callable[..., Any], inputs: Given, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a scalar by every pair of elements of the inputs.

    >>> flow.autograd.functional.hessian(lambda x: (x * x * x).sum(), flow.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(_gradient(func, inputs, strict), inputs, create_graph, False)


def vhp(
    func: Callable[..., Any], inputs: Given, v: Given | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What a scalar function gives, and the product of a vector with its Hessian.

    >>> flow.autograd.functional.vhp(lambda x: (x * x).sum(), flow.ones(2), flow.tensor([1.0, 3.0]))[1].tolist()
    [2.0, 6.0]
    """
    ins, outs, form = _called(func, inputs, create_graph)
    _scalar(outs)
    vectors = _vectors("vhp", v, ins)
    with enable_grad():
        first = _grad(outs, ins, (None,), True, strict)
        found = _grad(first, ins, vectors, create_graph, False)
    return _as_given(_loose(outs, create_graph), form), _as_given(found, inputs)


def hvp(
    func: Callable[..., Any], inputs: Given, v: Given | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What a scalar function gives, and the product of its Hessian with a vector: `vhp`, as a Hessian is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)


# ---- inside ------------------------------------------------------------------------------------------


def _tuple(given: Any, what: str) -> Tensors:
    found = (given,) if isinstance(given, Tensor) else tuple(given) if isinstance(given, (tuple, list)) else None
    if not found or not all(isinstance(t, Tensor) for t in found):
        raise ArgumentError(f"{what} must be a tensor or a tuple of tensors; got {given!r}")
    return found


def _as_given(found: tuple[Any, ...], given: Any) -> Any:
    return found[0] if isinstance(given, Tensor) else found


def _called(func: Callable[..., Any], inputs: Given, create_graph: bool) -> tuple[Tensors, Tensors, Any]:
    """Inputs that the tape follows, what the function gives for them, and in which form."""
    with enable_grad():
        given = _tuple(inputs, "the inputs")
        ins = tuple(
            x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_()  # type: ignore[attr-defined]
            for x in given
        )
        result = func(*ins)
        return ins, _tuple(result, "what the function gives"), result


def _vectors(name: str, v: Given | None, like: Tensors) -> Tensors:
    if v is None:
        first, *others = like
        if others or first.numel() != 1:
            raise ArgumentError(
                f"{name}() needs a vector v, unless it is for a single element: it says what to multiply"
            )
        return (OPS["ones_like"](first, None),)
    found = _tuple(v, f"the vector of {name}()")
    if [tuple(t.shape) for t in found] != [tuple(t.shape) for t in like]:
        raise ArgumentError(
            f"the vector of {name}() has shapes {[list(t.shape) for t in found]}, and must have those of what it "
            f"multiplies, {[list(t.shape) for t in like]}"
        )
    return found


def _grad(
    outs: Tensors, ins: Tensors, vectors: Sequence[Tensor | None], create_graph: bool, strict: bool, keep: bool = False
) -> Tensors:
    pairs = [(y, v) for y, v in zip(outs, vectors, strict=True) if y.requires_grad]
    found: Sequence[Tensor | None] = (None,) * len(ins)
    if pairs:
        found = grad(
            [y for y, _ in pairs], ins, [v for _, v in pairs], create_graph=create_graph,
            retain_graph=True if keep else None, allow_unused=True,
        )  # fmt: skip
    if strict and any(g is None for g in found):
        which = [i for i, g in enumerate(found) if g is None]
        raise AutogradError(f"an output doesn't depend on input {which[0]}; with strict=False its derivative is zero")
    return tuple(OPS["zeros_like"](x, None) if g is None else g for g, x in zip(found, ins, strict=True))


def _stacked(rows: list[Tensor], y: Tensor, x: Tensor) -> Tensor:
    shape = (*y.shape, *x.shape)
    if not rows:
        return OPS["reshape"](OPS["zeros_like"](x, None), shape)
    return OPS["reshape"](OPS["cat"]([OPS["unsqueeze"](row, 0) for row in rows], 0), shape)


def _scalar(outs: Tensors) -> None:
    if len(outs) != 1 or outs[0].numel() != 1:
        raise ArgumentError(f"a Hessian is of one number; the function gives {[list(y.shape) for y in outs]}")


def _gradient(func: Callable[..., Any], inputs: Given, strict: bool) -> Callable[..., Any]:
    def gradient(*ins: Tensor) -> Any:
        outs = _tuple(func(*ins), "what the function gives")
        _scalar(outs)
        return _as_given(_grad(outs, ins, (None,), True, strict), inputs)

    return gradient


def _loose(outs: Tensors, create_graph: bool) -> Tensors:
    return outs if create_graph else tuple(y.detach() for y in outs)
