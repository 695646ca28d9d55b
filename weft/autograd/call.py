"""The general path of a call: interceptors, then the interpreter, then the tape."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import torch

from weft.autograd.freshness import current, own_memory, refresh, set_view, version_of
from weft.autograd.graph import Packed, hooks_around
from weft.autograd.node import Node, Slot, leading
from weft.autograd.plain import numbered, plain
from weft.core.dispatch import here, without_torchs_casts
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, AutogradError
from weft.interpreter import conversions, stack
from weft.ops.declaration import Op
from weft.tensor.blob import blob_of
from weft.tensor.tensor import Tensor, of_shard, of_torch, of_value, rewrap
from weft.tensor.written import next_sequence


def call(op: Op, args: tuple[Any, ...]) -> Any:
    """Run an op on complete arguments; returns its visible outputs, one or a tuple."""
    if here.torchs:
        with without_torchs_casts():
            n = len(args) - len(op.keywords)
            return op.entry(*args[:n], **dict(zip(op.keywords, args[n:], strict=True)))
    args = plain(args)
    try:
        return _intercepted(op, args, len(here.stack) - 1) if here.stack else _call(op, args)
    except ArgumentError:
        numbers = tuple(numbered(op.params, args))
        if all(map(operator.is_, numbers, args)):
            raise
    return call(op, numbers)


def _intercepted(op: Op, args: tuple[Any, ...], level: int) -> Any:
    if level < 0:
        return _call(op, args)
    return here.stack[level].intercept(op, args, lambda op, args: _intercepted(op, args, level - 1))


def _call(op: Op, args: tuple[Any, ...]) -> Any:
    for i in op.operands:
        for t in args[i] if type(args[i]) in (list, tuple) else (args[i],):
            if isinstance(t, Tensor) and t._view_of is not None:
                refresh(t)
    composed = stack.compose(op, args)
    if composed is not NotImplemented:
        return composed
    outputs, used = stack.run(op, args)
    visible = tuple(outputs[: op.visible])
    if op.view:
        for y in visible:
            base = args[op.operands[0]]
            others = tuple(a for i, a in enumerate(args) if i != op.operands[0])
            set_view(y, (base, op, others, base.node, version_of(base), here.grad))
            if y.spec is not None and y.value is None and base._view_of is not None:
                own_memory(y)
    if here.grad and op.vjp is not None:
        record(op, args, visible, tuple(outputs[op.visible :]), used)
    return visible[0] if op.visible == 1 else visible


def edge(t: Tensor) -> Any:
    """The node or leaf to which a tensor's gradient goes."""
    if t._view_of is not None:
        refresh(t)
    return t.node or t


def whole(t: Tensor, what: str) -> Tensor:
    """A global tensor's logical value on every rank of the world; `what` names the caller."""
    return conversions.whole(current(t), what)


def flat_operands(op: Op, args: tuple[Any, ...]) -> list[Any]:
    """The operands, lists flattened: tensors, numbers, None."""
    flat: list[Any] = []
    for i in op.operands:
        if op.params[i].kind == "tensors":
            flat.extend(args[i])
        else:
            flat.append(args[i])
    return flat


def record(
    op: Op, args: tuple[Any, ...], visible: tuple[Tensor, ...], hidden: tuple[Any, ...],
    used: tuple[Any, ...] | None = None, before: dict[int, int] | None = None,
) -> None:  # fmt: skip
    """Record a call on the tape if a gradient will be needed. Hidden outputs come as tensors, or as torch's.

    Gradients go to `args`; saved are the operands as they were `used`, so that backward needn't box them again.
    `before` has the operands' versions before an op that overwrote one of them.
    """
    edges = tuple(edge(t) if isinstance(t, Tensor) and t._requires_grad else None for t in flat_operands(op, args))
    if not any(e is not None for e in edges):
        return
    differentiable = [y for y, d in zip(visible, op.differentiable, strict=False) if d and y.dtype.differentiable]
    if not differentiable:
        return
    if len(edges) > 1:
        edges = in_own_dtypes(edges, flat_operands(op, args), differentiable[0].dtype)
    node = Node()
    node.op, node.sequence, node.edges = op, next_sequence(), edges
    outputs = (*visible, *(h if isinstance(h, Tensor) else of_torch(h) for h in hidden))
    saved, versions, attributes = [], [], []
    for kind, place in op.saves:
        if kind == "operand":
            t, given = (used or args)[place], args[place]
            several = type(t) in (list, tuple)
            saved.append([_as_used(*pair) for pair in zip(t, given, strict=True)] if several else _as_used(t, given))
            versions.append([_before(v, before) for v in t] if several else _before(t, before))
        elif kind in NOTED:
            saved.append(NOTED[kind](args[place]))
            versions.append(0)
        elif kind == "output":
            y = outputs[place]
            lazy = y.value is not None
            saved.append((y.blob if lazy or y.shard is None else y.shard, y.spec, y.value))
            versions.append(version(y))
        elif kind == "attribute":
            attributes.append(args[place])
    hooks = hooks_around()
    if hooks is not None:
        for at, (kind, place) in enumerate(s for s in op.saves if s[0] not in UNSAVED):
            t = saved[at] if kind == "operand" else outputs[place] if kind == "output" else None
            if isinstance(t, Tensor):
                saved[at] = Packed(t, hooks)
    node.saved, node.versions, node.attributes = tuple(saved), tuple(versions), tuple(attributes)
    if op.visible > 1:
        node.outputs = tuple(_zeros_like(y) for y in visible)
    for i, (y, d) in enumerate(zip(visible, op.differentiable, strict=False)):
        if d and y.dtype.differentiable:
            y.node = node if op.visible == 1 else Slot(node, i)
            y._requires_grad = True


UNSAVED: Final = ("gradient", "gradient or None", "attribute", "needs")
NOTED: Final[dict[str, Callable[[Any], Any]]] = {  # what is saved of an operand, if not its value
    "dtype": lambda t: t.dtype,
    "placement": lambda t: t.placement,
    "sbp": lambda t: t.sbp,
    "shape": lambda t: tuple(t.shape) if isinstance(t, Tensor) else None,
    "shapes": lambda ts: tuple(tuple(t.shape) for t in ts),
}


def in_own_dtypes(edges: tuple[Any, ...], operands: list[Any], dtype: DType) -> tuple[Any, ...]:
    """Edges that cast gradients to the dtypes of operands that were promoted."""
    return tuple(
        e if e is None or t.dtype is dtype else Node.of("cast", (e,), (t.dtype,), (0,))
        for e, t in zip(edges, operands, strict=True)
    )


def as_it_is(t: Any) -> Any:
    """A traced tensor's symbol, or a global view, in its current state: later writes don't change it."""
    if not isinstance(t, Tensor):
        return t
    symbol = t.value
    if symbol is None and here.trace is not None:  # captured, until it is overwritten
        symbol = here.trace.read(t)
    if symbol is not None:
        alone = of_value(symbol, symbol.spec)
    elif t._view_of is None or t.spec is None:
        return t
    else:
        alone = object.__new__(Tensor)
        alone.__dict__.update(t.__dict__)
        alone._view_of = None
    leaf = t._requires_grad and t.node is None
    alone.node, alone._requires_grad = leading(t) if leaf else t.node, t._requires_grad
    return alone


def _as_used(t: Any, given: Any) -> Any:
    """An operand as the tape saves it. A boxed copy refers to the original, for second derivatives."""
    if t is given or not isinstance(given, Tensor) or not given._requires_grad:
        return as_it_is(t)
    boxed, source = rewrap(t), edge(given)
    boxed.node, boxed._requires_grad = leading(source) if isinstance(source, Tensor) else source, True
    return boxed


def _before(t: Any, before: dict[int, int] | None) -> int:
    return before[id(t)] if before and id(t) in before else version(t)


def version(t: Any) -> int:
    if not isinstance(t, Tensor) or t.value is not None:
        return 0
    data = blob_of(t).data
    return 0 if data is None else data._version


def check_unwritten(t: Any, was: int, what: str, instead: str) -> None:
    """That nothing was written into t since its version was `was`; `what` names it."""
    if (now := version(t)) != was:
        raise AutogradError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"{what} is at version {now}; expected version {was} instead. {instead}, or write into another tensor"
        )


def _zeros_like(y: Tensor) -> Callable[[], Tensor]:
    """A function that makes zeros like y, without keeping y's memory."""
    return (lambda: stack.lazy_zeros(y)) if y.value is not None else zeros_of(y._meta, y.spec)


def zeros_of(data: torch.Tensor, spec: Any = None) -> Callable[[], Tensor]:
    shape, dtype, device = data.shape, data.dtype, data.device

    def zeros() -> Tensor:
        zeros = torch.zeros(shape, dtype=dtype, device=device)
        return of_torch(zeros) if spec is None else of_shard(zeros, spec)

    return zeros
