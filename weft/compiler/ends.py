"""The source and the sink of a rank's plan: a launch's inputs and outputs. Pure.

graph.input, graph.number       fill an entry of a register with an argument, or with a number from the host
graph.output                    an output of the launch: a value, or nothing if it is on other ranks
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.compiler.layout import Packet
from weft.compiler.local_node import local_call, refs
from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.spec import Spec
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.plan.calls import Call, Place, Ref, Result, Step

Form = tuple[Any, ...]


def form_of(v: Value) -> Form:
    """A value's form as a plan writes it: dtype, shape and layout."""
    if v.spec is not None:
        return v.dtype.name, v.shape, v.spec.placement, tuple(v.spec.nd_sbp)
    return v.dtype.name, v.shape, v.device


def value_of(name: str, form: Form) -> Value:
    """The inverse."""
    dtype, shape, place, *sbps = form
    if not sbps:
        assert isinstance(place, Device)
        return Value(name, shape, dtypes.named(dtype), None, place)
    return Value(name, shape, dtypes.named(dtype), Spec(shape, dtypes.named(dtype), place, sbps[0]), Device("cpu"))


def source_step(job: Job, packets: Iterable[Packet]) -> Step:
    """The step that takes all arguments and numbers, in the job's order; those that this rank reads have places."""
    calls, inputs = [], [n for n in job.nodes if n.op == "input"]
    places = {v: p for p in packets for v in p.entries}
    for n in job.nodes:
        if n.op not in ("input", "host"):
            continue
        v = n.outputs[0]
        results = (_entry(v, places[v]),) if v in places else ()
        if n.op == "input":
            calls.append(Call("graph.input", (inputs.index(n),), results, (("form", form_of(v)),), v.name))
        else:
            calls.append(Call("graph.number", (n.args[0],), results, (), v.name))
    return Step(tuple(calls))


def sink_step(
    outputs: list[tuple[Node, Packet | None]], views: Mapping[Value, Node],
    strides: Mapping[Value, tuple[int, ...] | None], rank: int,
) -> Step:  # fmt: skip
    """The step that returns all outputs, in order: from registers, variables, and views of these."""
    calls: dict[str, Call] = {}

    def look(v: Value) -> Ref | None:
        if v.spec is not None and rank not in v.spec.placement:
            return None
        n = views.get(v)
        if v.name not in calls and n is None:
            result = Result(v.name, v.dtype.name, v.local_shape(rank), Place("variable"), strides.get(v))
            calls[v.name] = Call("variable", (), (result,), variable_options(v), v.name)
        elif v.name not in calls and n is not None:
            look(n.args[0])
            args, options = local_call(n, rank)
            place = Place("view", of=n.args[0].name)
            results = tuple(Result(w.name, w.dtype.name, w.local_shape(rank), place) for w in n.outputs)
            calls[v.name] = Call(n.op, refs(args), results, options, n.name)
        return Ref(v.name)

    shown = []
    for n, packet in outputs:
        v = n.args[0]
        if packet is not None and v.name not in calls:
            calls[v.name] = Call("read", (), (_entry(v, packet),), (), v.name)
        given = Ref(v.name) if packet is not None else look(v)
        shown.append(Call("graph.output", (given,), (), (("form", form_of(v)),), n.name))
    return Step((*calls.values(), *shown))


def variable_options(v: Value) -> tuple[tuple[str, Any], ...]:
    """A variable's options: what its local form doesn't say."""
    return () if v.spec is None and v.device is Device("cpu") else (("form", form_of(v)),)


def _entry(v: Value, packet: Packet) -> Result:
    return Result(v.name, v.dtype.name, packet.entries[v], Place("register", packet.offset(v), packet.id))
