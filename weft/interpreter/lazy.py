"""Lazy execution: a call becomes a node of the job that is being traced; its outputs are symbols.

Eager tensors that the program uses become variables of the job, or constants, at their first use.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from weft.boxing import signature
from weft.boxing.network import links_of
from weft.boxing.planner import route
from weft.boxing.signature import Signature
from weft.core.device import Device
from weft.core.dispatch import here, tracing
from weft.core.errors import PlacementError, TraceError
from weft.core.rank import current
from weft.core.sbp import NdSbp
from weft.core.spec import Spec
from weft.core.substitution import substituted
from weft.interpreter.explain_movements import refuse, strict
from weft.interpreter.trace_values import traced
from weft.job.builder import Builder
from weft.job.value import Value
from weft.ops.declaration import OPS, Op
from weft.ops.explain import call_text, check_arguments
from weft.ops.form import Form
from weft.ops.infer import infer
from weft.tensor.tensor import Tensor, of_value

FUNCTIONS = {"from_local": "to_global of a local tensor", "to_local": "to_local"}
# a symbol has no strides: its contiguous() is itself, so a later view must reshape, or reads it made contiguous
STRIDELESS = {"view": "reshape"}
DENSE = frozenset({"view_as_complex", "reinterpret", "as_strided"})


def run(op: Op, args: tuple[Any, ...], builder: Builder) -> tuple[list[Tensor], tuple[Any, ...]]:
    if op.name in ("from_local", "to_local"):
        raise TraceError(
            f"{FUNCTIONS[op.name]} inside build(): a graph is either local or global as a whole. Convert outside of "
            "it, and give build() the result; a new tensor is global by flow.ones(2, placement=P, sbp=B)"
        )
    args = tuple([_number(a, op, args) if p.kind == "attribute" else a for a, p in zip(args, op.params, strict=False)])
    check_arguments(op, args)
    op = OPS[STRIDELESS.get(op.name, op.name)]
    if op.dynamic:
        values = _computed(op, args, builder)
    else:
        symbols = tuple([_symbol(a, builder) for a in args])
        if op.name in DENSE:
            symbols = (*emit(OPS["dense"], symbols[:1], builder), *symbols[1:])
        values = emit(op, symbols, builder)
    return [of_value(v, v.spec) for v in values], args


def _number(a: Any, op: Op, args: tuple[Any, ...]) -> Any:
    """A number, or numbers, that the program may give as tensors: x.narrow(0, 0, n)."""
    if isinstance(a, Tensor):
        error = (
            f"{op.name} has a result whose shape depends on a tensor's values, or takes a number from it, and inside "
            f"build() they aren't known: {call_text(op, args)}"
        )
        return traced(a, error).item()
    return type(a)(_number(v, op, args) for v in a) if type(a) in (list, tuple) else a


def _computed(op: Op, args: tuple[Any, ...], builder: Builder) -> tuple[Value, ...]:
    """The outputs, as constants, of an op whose shapes depend on data: its operands follow from constants alone."""
    error = (
        f"{op.name} makes a shape that depends on data, and a graph's shapes are fixed when it is compiled: "
        f"{call_text(op, args)}. Call it outside of build(), or use flow.where or a mask, which keep the shape"
    )
    args = tuple(traced(a, error) if isinstance(a, Tensor) else a for a in args)
    with tracing(None):
        made = op.entry(*args)
    return tuple(builder.read(y) for y in (made if isinstance(made, tuple) else (made,)))


def emit(op: Op, args: tuple[Any, ...], builder: Builder) -> tuple[Value, ...]:
    """Add a node; `args` hold values in place of tensors."""
    values = [v for a in args for v in (a if isinstance(a, tuple) else (a,)) if isinstance(v, Value)]
    if op.conversion:
        return _convert(op, args, builder)
    placed = op.placed is not None and args[op.placed] is not None
    if any(v.spec is not None for v in values) or placed:
        local = [v for v in values if v.spec is None]
        if local:
            raise PlacementError(f"{op.name}: some operands are global and some are local in this graph: {values}")
        held = tuple(builder.held(v) for v in values)
        specs, there = substituted(args, Value, _spec), held if any(held) else ()
        chosen = signature.choose(op, specs, there, links_of(current()), here.backward)
        if strict():
            _refuse_unasked(op, values, held, chosen)
        builder.moves(values, chosen.inputs)
        return builder.add(op.name, args, [(s.shape, s.dtype, s, _CPU) for s in chosen.outputs], chosen=chosen)
    forms = infer(op, substituted(args, Value, lambda v: Form(v.shape, v.dtype)))
    device = _device(op, args) or next((v.device for v in values if v.shape or v.device is not _CPU), _CPU)
    return builder.add(op.name, args, [(f.shape, f.dtype, None, device) for f in forms])


def _refuse_unasked(op: Op, values: list[Value], held: Sequence[Container[NdSbp]], chosen: Signature) -> None:
    """Raise if an operand would be moved implicitly."""
    for v, there, wanted in zip(values, held, chosen.inputs, strict=True):
        spec = _spec(v)
        if spec is not wanted and wanted.nd_sbp not in there:
            ends = spec.placement, spec.nd_sbp, wanted.placement, wanted.nd_sbp
            refuse(route(spec.shape, spec.dtype, *ends, links_of(current())), op.name)


_CPU = Device("cpu")


def _device(op: Op, args: tuple[Any, ...]) -> Device | None:
    return args[op.names.index("device")] if "device" in op.names else None


def _spec(v: Value) -> Spec:
    assert v.spec is not None
    return v.spec


def _convert(op: Op, args: tuple[Any, ...], builder: Builder) -> tuple[Value, ...]:
    """A node of `to_global`, unless it would move nothing."""
    x = args[0]
    spec = x.spec.replace(placement=args[1], nd_sbp=tuple(args[2]))
    return (x,) if spec is x.spec else builder.add(op.name, args, [(x.shape, x.dtype, spec, x.device)])


def _symbol(a: Any, builder: Builder) -> Any:
    if isinstance(a, Tensor):
        if a.value is None:
            return builder.read(a)
        if a.value not in builder.job.producer:
            raise TraceError(
                f"{a!r} is a symbol of another graph, or of an earlier trace that failed: it has no value here. Make "
                "it inside of this build(), or return it from the other graph and read it there"
            )
        return a.value
    if isinstance(a, (list, tuple)):
        return tuple([_symbol(v, builder) for v in a])
    return a


def zeros(like: Tensor, builder: Builder) -> Tensor:
    """Zeros of a symbol's form."""
    value = emit(OPS["zeros_like"], (like.value, None), builder)[0]
    return of_value(value, value.spec)
