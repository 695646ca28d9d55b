"""Values that a program reads while it is traced: those that follow from constants, and from the graph's arguments.

What follows from constants is the same in every launch. What follows from arguments is an `Expectation`: each launch
computes it first, and holds for the same value alone. A question whether values are finite is answered with yes, and
each launch checks that on its way. Both are for code of torch's modules, and for graphs that compile for several such
values: in another `build` a branch on a value is rather an oversight, which would end a training later on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from weft.core import program_line
from weft.core.dispatch import here, hooks, tracing, without_casts
from weft.core.dtype import bool_
from weft.core.errors import TraceError
from weft.core.sbp import broadcast
from weft.core.substitution import substituted
from weft.job.builder import Builder
from weft.job.value import Value
from weft.ops import ops
from weft.ops.declaration import OPS
from weft.tensor.data import whole_data
from weft.tensor.tensor import Tensor


class Expectation(NamedTuple):
    """A value that the program has read: how it follows from the graph's arguments, and what it was."""

    value: Value
    nodes: tuple[tuple[str, tuple[Any, ...], tuple[Value, ...]], ...]  # the op, its operands and its outputs
    captured: Mapping[Value, Tensor]
    was: torch.Tensor
    line: str

    def now(self, given: Mapping[Value, Tensor]) -> torch.Tensor:
        """The value for these arguments."""
        return whole_data(computed(self.value, self.nodes, {**self.captured, **given}), "a graph's condition")

    def holds(self, now: torch.Tensor) -> bool:
        same = (now == self.was) | ((now != now) & (self.was != self.was)) if now.shape == self.was.shape else None
        return same is not None and bool(same.all())


def traced(t: Tensor, error: str, read: bool = True) -> Tensor:
    """The value of a symbol that follows from constants alone, or, if the program goes on by it (`read`), from the
    arguments of the graph's call; or that error."""
    builder = here.trace
    if not isinstance(builder, Builder) or not (t.value is None or t.value in builder.job.producer):
        raise TraceError(f"{error} ({program_line.brief()})")
    wanted = builder.read(t)
    needed, why = _needed(wanted, builder, read)
    assumed = bool(why) and read and builder.guarded > 0 and t.dtype is bool_ and t.numel() == 1
    if assumed:
        needed, still = _needed(wanted, builder, read, assume=True)
        why = still and why
    if why:
        raise TraceError(f"{error}{why} ({program_line.brief()})")
    captured: dict[Value, Any] = {v: builder.fixed(v) for v in needed if v in builder.job.variables}
    for c in captured.values() if read else ():
        builder.seen(c)
    given = {v: x for v, x in builder.arguments.items() if v in needed}
    nodes = [n for n in builder.job.nodes if not needed.isdisjoint(n.outputs) and n.op not in ("variable", "input")]
    steps = tuple((n.op, n.args, n.outputs) for n in nodes)
    made = computed(wanted, steps, {**captured, **given})
    if assumed:
        was = made.item()
        said = f"build() went on as if this were {was} in every launch, since it asks whether values are finite"
        ops.require(t, ops.eq(t, was), said)
    if given and all(e.value is not wanted for e in builder.expected):
        with tracing(None):
            data = whole_data(made, "a graph's condition")
        builder.expected.append(Expectation(wanted, steps, captured, data, program_line.brief()))
    return made


def _needed(wanted: Value, builder: Builder, read: bool, assume: bool = False) -> tuple[set[Value], str]:
    """The values that this one follows from, and why it isn't known, or nothing. `assume`: unknown values are known to
    be finite."""
    needed: set[Value] = set()
    waiting = [wanted]
    while waiting:
        v = waiting.pop()
        if v in needed:
            continue
        why = _unknown(v, builder, read)
        if why:
            return needed, why
        needed.add(v)
        node = builder.job.producer[v]
        if node.op in OF_FORM or (assume and node.op in FINITE and _needed(node.operands()[0], builder, read)[1]):
            continue
        waiting += node.operands()
    return needed, ""


def computed(wanted: Value, steps: Any, known: Mapping[Value, Any]) -> Any:
    """The value, by running these steps eagerly."""
    values = dict(known)

    def operand(v: Value) -> Any:
        return values[v] if v in values else _blank(v)

    with tracing(None):
        for op, args, outputs in steps:
            made = without_casts(OPS[op].entry, substituted(args, Value, operand), {})
            values.update(zip(outputs, made if isinstance(made, tuple) else (made,), strict=True))
    return values[wanted]


OF_FORM = ("ones_like", "zeros_like", "full_like")  # they follow from the form of their operand, not from its values
FINITE = ("isfinite", "isnan", "isinf", "isposinf", "isneginf")


def _blank(v: Value) -> Any:
    """Zeros of a value's form."""
    if v.spec is None:
        return OPS["full"].entry(v.shape, 0, v.dtype, v.device)
    sbp = tuple(broadcast if s.is_partial else s for s in v.spec.nd_sbp)
    return OPS["full"].entry(v.shape, 0, v.dtype, None, v.spec.placement, sbp)


def _unknown(v: Value, builder: Builder, read: bool) -> str:
    """Why a value isn't known while tracing, in addition to what it follows from; or nothing."""
    node = builder.job.producer[v]
    if node.op == "variable":
        return "" if builder.fixed(v) is not None else f". It follows from {v.name}, which launches change"
    if node.op == "input":
        if read and v in builder.arguments and not builder.guarded:
            return f". It follows from {v.name}; @nn.Graph.with_dynamic_input_shape() compiles for each such value"
        return "" if read and v in builder.arguments else f". It follows from {v.name}"
    op = OPS.get(node.op)
    if op is not None and op.random:
        return f". It follows from {node.op} ({node.at}), which each launch draws anew"
    return "" if op is not None and not op.writes else f". It follows from {v.name}"


hooks.traced = traced
