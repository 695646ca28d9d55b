"""Function transforms: `flow.func.grad`, `vjp`, `jvp`, `jacrev`, ...

Arguments and results are trees of tensors. Each transform uses the tape, as `autograd.grad` does. Its result is
differentiable if something outside of the function requires a gradient: an argument, or a tensor in its closure. So
transforms nest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.autograd.engine import grad as gradients
from weft.autograd.modes import enable_grad
from weft.autograd.node import Slot
from weft.autograd.trees import filled, leaves, mapped
from weft.core.errors import ArgumentError
from weft.core.idle import idle
from weft.ops import ops
from weft.tensor.tensor import Tensor

Function = Callable[..., Any]
Places = int | tuple[int, ...]


class _Called:
    """A function's call: its result, and the tape back to the arguments that are differentiated."""

    def __init__(self, name: str, func: Function, args: Sequence[Any], kwargs: dict[str, Any], at: Places, aux: bool):
        self.name, self.at, self.has_aux = name, at, aux
        several = at if isinstance(at, tuple) else (at,)
        for i in several:
            if not -len(args) <= i < len(args):
                raise ArgumentError(f"{name}(): argnums names argument {i}, but {len(args)} were given")
        given = list(args)
        with enable_grad():
            for i in several:
                given[i] = mapped(given[i], self._followed)
            self.args = tuple(given[i] for i in several)
            result = func(*given, **kwargs)
        if aux and not (isinstance(result, tuple) and len(result) == 2):
            raise ArgumentError(f"{name}(has_aux=True): the function must return (result, aux); got {_kind(result)}")
        self.result, self.aux = result if aux else (result, None)
        self.ins = [t for t in leaves(self.args) if isinstance(t, Tensor)]
        self.outs = list(leaves(self.result))
        if not all(isinstance(y, Tensor) for y in self.outs):
            raise ArgumentError(f"{name}(): the function must return tensors; it returned {_kind(self.result)}")
        self.deep = _beyond(self.outs, self.ins)

    def _followed(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if not x.dtype.differentiable:
            raise ArgumentError(f"{self.name}(): only floating and complex arguments have derivatives; got {x.dtype}")
        return ops.mul(x, 1) if x.requires_grad else x.detach().requires_grad_()

    def number(self) -> Tensor:
        """The result of a scalar function."""
        if len(self.outs) != 1 or self.outs[0].numel() != 1 or self.outs[0].ndim:
            raise ArgumentError(f"{self.name}(): the function must return a 0-d tensor; it returned "
                                f"{_kind(self.result)}; reduce it, loss.mean(), or take jacrev or vjp")  # fmt: skip
        return self.outs[0]

    def back(self, vectors: Iterable[Any], keep: bool = False, deep: bool | None = None) -> list[Tensor]:
        """The gradients of the arguments' tensors, from these gradients of the results."""
        deep = self.deep if deep is None else deep
        return _products(self.outs, self.ins, vectors, keep or deep, deep)

    def as_args(self, values: Iterable[Any]) -> Any:
        """Values for the arguments' tensors, in the arguments' structure."""
        made = filled(self.args, iter(values))
        return made if isinstance(self.at, tuple) else made[0]

    def jacobian(self, rows: Callable[[int, Tensor], Any]) -> Any:
        """The rows of each tensor of the result, in its structure."""
        found = filled(self.result, (rows(i, y) for i, y in enumerate(self.outs)))
        return (found, self.out(self.aux)) if self.has_aux else found

    def out(self, tree: Any) -> Any:
        """The function's result, detached from tensors inside the transform."""
        return tree if self.deep else mapped(tree, lambda x: x.detach() if isinstance(x, Tensor) else x)


def _products(ys: Sequence[Tensor], xs: Sequence[Tensor], vectors: Iterable[Any], keep: bool, deep: bool) -> Any:
    """The gradients of xs from those of ys; zeros where there are none."""
    pairs = [(y, v) for y, v in zip(ys, vectors, strict=True) if y.requires_grad]
    found: Any = [None] * len(xs)
    if pairs:
        found = gradients([y for y, _ in pairs], xs, [v for _, v in pairs], keep, deep, allow_unused=True)
    return [ops.zeros_like(x, None) if g is None else g for g, x in zip(found, xs, strict=True)]


def _kind(result: Any) -> str:
    return f"a tensor of shape {list(result.shape)}" if isinstance(result, Tensor) else f"a {type(result).__name__}"


def _beyond(outs: Iterable[Tensor], ins: Iterable[Tensor]) -> bool:
    """Whether something other than these inputs needs a gradient from the results."""
    known = {id(t) for t in ins if t.node is None}
    if any(t.node is not None for t in ins):
        return True
    todo: list[Any] = [t.node or t for t in outs if t.requires_grad]
    seen: set[int] = set()
    while todo:
        edge = todo.pop()
        if isinstance(edge, Tensor):
            if id(edge) not in known:
                return True
            continue
        node = edge.node if type(edge) is Slot else edge
        if id(node) not in seen:
            seen.add(id(node))
            todo.extend(e for e in node.edges if e is not None)
    return False


# ---- of scalar functions --------------------------------------------------------------------------------


def grad_and_value(func: Function, argnums: Places = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of the scalar function `func` by its arguments, and its value.

    >>> g, y = flow.func.grad_and_value(lambda x: (x * x).sum())(flow.tensor([1.0, 2.0])); g.tolist(), y.item()
    ([2.0, 4.0], 5.0)
    """

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        called = _Called("grad", func, args, kwargs, argnums, has_aux)
        called.number()
        found = called.as_args(called.back([None]))
        value = called.out(called.result)
        return (found, (value, called.out(called.aux))) if has_aux else (found, value)

    return call


def grad(func: Function, argnums: Places = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of the scalar function `func` by its arguments.

    >>> flow.func.grad(flow.func.grad(lambda x: x * x * x))(flow.tensor(2.0)).item()
    12.0
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return call


# ---- products ----------------------------------------------------------------------------------------


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of `func`, and a function from vectors of the result's structure to their products with the Jacobian,
    one for each argument.

    >>> y, back = flow.func.vjp(lambda x: x * x, flow.tensor([1.0, 2.0])); back(flow.tensor([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    called = _Called("vjp", func, primals, {}, tuple(range(len(primals))), has_aux)

    def back(*cotangents: Any, retain_graph: bool = True) -> tuple[Any, ...]:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors = list(leaves(given))
        shapes = [list(t.shape) for t in called.outs]
        if [list(getattr(v, "shape", ())) for v in vectors] != shapes:
            raise ArgumentError(f"vjp: vectors must have the result's structure, {shapes}; got {_kind(given)}")
        return called.as_args(called.back(vectors, keep=retain_graph))

    out = called.out(called.result)
    return (out, back, called.out(called.aux)) if has_aux else (out, back)


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of `func`, and the product of its Jacobian with vectors, one for each argument, by double backward.

    >>> flow.func.jvp(lambda x: x * x, (flow.tensor([1.0, 2.0]),), (flow.tensor([1.0, 10.0]),))[1].tolist()
    [2.0, 40.0]
    """
    idle("jvp(strict)", strict)
    called = _Called("jvp", func, primals, {}, tuple(range(len(primals))), has_aux)
    out = called.out(called.result), _tangents(called, tangents)
    return (*out, called.out(called.aux)) if has_aux else out


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The result of `func`, and a function from vectors, one for each argument, to the product of its Jacobian with
    them: the function is called once, and its gradients for each.

    >>> y, push = flow.func.linearize(lambda x: x * x, flow.tensor([1.0, 2.0])); push(flow.tensor([1.0, 10.0])).tolist()
    [2.0, 40.0]
    """
    called = _Called("linearize", func, primals, {}, tuple(range(len(primals))), False)
    return called.out(called.result), lambda *tangents: _tangents(called, tangents)


def _tangents(called: _Called, tangents: Any) -> Any:
    """The product of the Jacobian with vectors of the arguments' structure, in the result's."""
    vectors = list(leaves(tangents))
    if [list(v.shape) for v in vectors] != [list(t.shape) for t in called.ins]:
        raise ArgumentError(
            f"{called.name}: tangents must have the arguments' structure, {[list(t.shape) for t in called.ins]}"
        )
    return filled(called.result, iter(_forward(called, [vectors])[0]))


def _forward(called: _Called, several: Iterable[Sequence[Tensor]]) -> list[list[Tensor]]:
    """Products of the Jacobian with vectors: gradients of the vjp, which is linear in its vectors."""
    with enable_grad():
        hold = [ops.zeros_like(y, None).requires_grad_() for y in called.outs]
        back = called.back(hold, keep=True, deep=True)
        made = [_products(back, hold, vectors, True, called.deep) for vectors in several]
    return made if called.deep else [[t.detach() for t in row] for row in made]


# ---- whole Jacobians ---------------------------------------------------------------------------------


def _units(x: Tensor) -> list[Tensor]:
    """The unit vectors of x's shape."""
    flat = ops.reshape(ops.zeros_like(x, None), (-1,)).detach()
    one = ops.ones_like(ops.narrow(flat, 0, 0, min(1, flat.shape[0])), None)
    return [ops.reshape(ops.narrow_scatter(flat, one, 0, i, 1, 1), tuple(x.shape)) for i in range(flat.shape[0])]


def _stacked(parts: list[Tensor], shape: tuple[int, ...], like: Tensor, last: bool) -> Tensor:
    if not parts:
        return ops.reshape(ops.zeros_like(like, None), shape)
    rows = ops.cat([ops.reshape(p, (1, -1)) for p in parts], 0)
    return ops.reshape(ops.transpose(rows, 0, 1) if last else rows, shape)


def jacrev(func: Function, argnums: Places = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """A function that returns the Jacobian, of shape [*result, *argument] for each result and argument, row by row, by
    backward.

    >>> flow.func.jacrev(lambda x: x * x)(flow.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    idle("jacrev(chunk_size)", chunk_size)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        called = _Called("jacrev", func, args, kwargs, argnums, has_aux)

        def rows(i: int, y: Tensor) -> Any:
            zeros: list[Any] = [None if j == i else ops.zeros_like(t, None) for j, t in enumerate(called.outs)]
            each = [called.back([*zeros[:i], unit, *zeros[i + 1 :]], keep=True) for unit in _units(y)]
            return called.as_args(
                _stacked([row[j] for row in each], (*y.shape, *x.shape), x, False) for j, x in enumerate(called.ins)
            )

        return called.jacobian(rows)

    return call


def jacfwd(func: Function, argnums: Places = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """A function that returns the Jacobian, column by column, by jvp.

    >>> flow.func.jacfwd(lambda x: x * x)(flow.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    idle("jacfwd(randomness)", randomness != "error")

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        called = _Called("jacfwd", func, args, kwargs, argnums, has_aux)
        columns: list[list[list[Tensor]]] = []
        for i, x in enumerate(called.ins):
            zeros = [ops.zeros_like(t, None) for t in called.ins]
            columns.append(_forward(called, [[*zeros[:i], unit, *zeros[i + 1 :]] for unit in _units(x)]))

        def of(i: int, y: Tensor) -> Any:
            return called.as_args(
                _stacked([column[i] for column in columns[j]], (*y.shape, *x.shape), x, True)
                for j, x in enumerate(called.ins)
            )

        return called.jacobian(of)

    return call


def hessian(func: Function, argnums: Places = 0) -> Function:
    """A function that returns the second derivatives of `func` by its arguments.

    >>> flow.func.hessian(lambda x: (x * x * x).sum())(flow.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
