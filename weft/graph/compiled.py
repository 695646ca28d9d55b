"""Calls of a compiled graph: check the arguments' form, allocate the outputs, launch."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from weft.autograd.call import version
from weft.autograd.trees import mapped
from weft.compiler.lower import Lowered
from weft.core.device import Device
from weft.core.errors import GraphError
from weft.core.stored import stored
from weft.graph import tree
from weft.graph.blocks import ProxyModule
from weft.graph.config import GraphConfig
from weft.graph.run import Running
from weft.graph.scaling import Scaler
from weft.interpreter.trace_values import Expectation
from weft.job.value import Value
from weft.ops import OPS
from weft.optim import Optimizer
from weft.optim.agreement import Agreement, check_alike
from weft.plan.calls import Ref
from weft.plan.plan import Plan
from weft.tensor.blob import Blob, blob_of
from weft.tensor.counters import counters
from weft.tensor.tensor import Tensor, of_shard, of_torch
from weft.tensor.written import mark
from weft.transport.check import Check, check_of
from weft.vm import vm_of


class Program(Protocol):
    """What tracing, saving and loading read of an nn.Graph."""

    config: GraphConfig
    numbers: dict[str, Any]
    _blocks: dict[str, ProxyModule]
    _optimizers: list[tuple[Optimizer, Any]]  # with their schedules
    _sparse: list[Optimizer]  # those that update the rows of tables that were looked up alone
    _scaler: Scaler
    _compiled: Compiled | None
    _shares: Any  # another one, or None
    _of_values: bool  # whether it is compiled for each value that `build` reads of its arguments
    _debug_level: int

    @property
    def name(self) -> str: ...
    def build(self, *args: Any, **kwargs: Any) -> Any: ...
    def _need(self) -> Compiled: ...


class Compiled:
    """A traced and lowered graph with its runtime."""

    def __init__(
        self, lowered: Lowered, running: Running, form: Any, outputs: Any, examples: list[tuple[str, Tensor]],
        optimizers: list[Any], numbers: list[Callable[[], float]], made: list[Value], scaler: Any,
        holders: list[Holder], arguments: Any, fixed: Sequence[tuple[Tensor, int]] = (),
        expected: Sequence[Expectation] = (),
    ) -> None:  # fmt: skip
        self.lowered, self.running, self.form, self.outputs = lowered, running, form, outputs
        self.examples, self.optimizers, self.numbers, self.made = examples, optimizers, numbers, made
        self.arguments = arguments  # of the first call
        self.fixed = fixed  # tensors whose values the trace has read, and their versions then
        self.expected = expected  # what the trace has read of values that follow from the arguments
        self.launches, self.scaler = 0, scaler  # the scaler reads the last output
        read = {id(blob_of(t)): t for t in lowered.job.variables.values()}
        self.holders = [h for h in holders if id(blob_of(h.parameter)) in read]
        self.tied = [(h, t) for h in self.holders if (t := read[id(blob_of(h.parameter))]) is not h.parameter]
        trained = {id(p) for o, _ in optimizers for group in o.param_groups for p in group["params"]}
        self.trained = [(h, h.parameter.requires_grad) for h in self.holders if id(h.parameter) in trained]
        self.scheduled = [(o, schedule) for o, schedule in optimizers if schedule is not None]
        self.quick = [_quick(t) for _, t in examples]
        self._gather()
        self.agreement = Agreement() if check_of(running.rank) is Check.FULL and running.rank.world_size > 1 else None
        rank = running.rank.index
        shapes = [v.spec.local_shape(rank) if v.spec is not None else v.shape for v in made]
        devices = [v.device.torch if v.spec is None else running.device for v in made]
        self.forms = [(v, _maker(v, shape, at)) for v, shape, at in zip(made, shapes, devices, strict=True)]

    def _gather(self) -> None:
        lowered, running = self.lowered, self.running
        names = written(lowered.plan)
        changed = {v for v in running.variables if v.name in names}
        self.overwrites = [b for v, b in running.variables.items() if v in changed and v.spec is not None]
        # one blob stands for all: they share one access record
        self.writes = running.together([b for v, b in running.variables.items() if v in changed])
        self.reads = running.together([b for v, b in running.variables.items() if v not in changed])

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = self._inputs(args) if not kwargs else None
        if inputs is None:
            args, kwargs = tree.ours((args, kwargs))
            given = tree.form((args, kwargs))
            if given != self.form:
                raise GraphError(self._mismatch(given))
            inputs = [blob_of(t) for _, t in tree.leaves((args, kwargs)) if isinstance(t, Tensor)]
        if (found := self.differing(args, kwargs)) is not None:
            read, now = found
            raise GraphError(
                f"{self.lowered.job.name} was compiled for a value that build() read and that follows from its "
                f"arguments ({read.line}): {_brief(read.was)} then, and {_brief(now)} now. Write flow.where(condition, "
                "a, b) there, or let the class compile for each such value: @nn.Graph.with_dynamic_input_shape()"
            )
        if self.fixed and any(version(t) != seen for t, seen in self.fixed):
            raise GraphError(
                f"{self.lowered.job.name} was compiled for a value that build() read from a tensor, which was "
                "overwritten since. Give the tensor as an argument and write flow.where(condition, a, b), or make "
                "another graph"
            )
        if self.running.exchanges != counters.exchanged:
            self._compare_variables()
            if self.running.renewed():
                self._gather()
        blobs, tensors = [], []
        for v, make in self.forms:
            t = of_torch(make()) if v.spec is None else of_shard(make(), v.spec)
            tensors.append(t)
            blobs.append(blob_of(t))
        for optimizer, schedule in self.scheduled:
            optimizer.counted.check(self.lowered.job.name, schedule)
        if self.overwrites:
            mark(self.overwrites)
        self.launches += 1
        numbers, streams = [n() for n in self.numbers], self.running.streams
        if streams is None or streams.device.current() == streams.own:
            self.running.launch(inputs, numbers, blobs, self.reads, self.writes)
        else:  # the program chose another stream
            with streams.between():
                self.running.launch(inputs, numbers, blobs, self.reads, self.writes)
                vm_of().drain()
        if self.scaler is not None:
            self.scaler.expect(tensors[-1])
        for optimizer, _ in self.scheduled:
            optimizer.counted.step()
        if self.agreement is not None and self.agreement.due():
            check_alike((f"{v.name} of {self.lowered.job.name}", t) for v, t in self.lowered.job.variables.items())
        if isinstance(self.outputs, Output):
            return tensors[0]
        found = iter(tensors)
        return mapped(self.outputs, lambda leaf: next(found) if isinstance(leaf, Output) else leaf)

    def differing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Expectation, torch.Tensor] | None:
        """The first value that `build` read and that differs for these arguments, with what it is now."""
        if not self.expected:
            return None
        tensors = (t for _, t in tree.leaves((args, kwargs)) if isinstance(t, Tensor))
        given = {symbol.value: t for (_, symbol), t in zip(self.examples, tensors, strict=True)}
        pairs = ((e, e.now(given)) for e in self.expected)
        return next(((e, now) for e, now in pairs if not e.holds(now)), None)

    def blank(self) -> Any:
        """The outputs of a call, filled with zeros."""
        made = ((v, make().zero_()) for v, make in self.forms)
        found = iter([of_torch(data) if v.spec is None else of_shard(data, v.spec) for v, data in made])
        return mapped(self.outputs, lambda leaf: next(found) if isinstance(leaf, Output) else leaf)

    def _inputs(self, args: tuple[Any, ...]) -> list[Blob] | None:
        """Fast path: the blobs of tensor arguments of the right form; None if the full check is needed."""
        if len(args) != len(self.quick):
            return None
        blobs = []
        for t, expected in zip(args, self.quick, strict=True):
            if not isinstance(t, Tensor):
                return None
            spec = t.spec
            if spec is not None:
                if spec is not expected:
                    return None
                blobs.append(t.shard)
                continue
            data = t.blob.data
            if data is None or (data.shape, data.dtype, data.device) != expected:
                return None
            blobs.append(t.blob)
        return blobs

    def _compare_variables(self) -> None:
        """After a tensor was replaced, or given other memory: check that the job's variables exist in their forms."""
        for module, path, p, name in self.holders:
            if _at(module, path) is not p:
                raise GraphError(
                    f"{self.lowered.job.name} was compiled with {name}, and there is another parameter in its place by "
                    "now, or none: the graph would go on with the old one. Write into it instead (load_state_dict, or "
                    "copy_ under no_grad), or make another graph"
                )
        for h, was in self.trained:
            if h.parameter.requires_grad != was:
                what, now = ("trained", "frozen") if was else ("frozen", "to be trained")
                raise GraphError(
                    f"{self.lowered.job.name} was compiled with {h.name} {what}, and it is {now} since "
                    "(requires_grad): what a graph trains is settled when it is compiled. Make another graph for the "
                    "other phase"
                )
        for h, t in self.tied:
            if blob_of(h.parameter) is not blob_of(t):
                raise GraphError(
                    f"{self.lowered.job.name} was compiled with {h.name} in the memory of another parameter, and one "
                    "of them was given other memory since (x.data = ...). Make another graph"
                )
        for v, t in self.lowered.job.variables.items():
            device = t.device if t.is_local else CPU
            if t.spec is not v.spec or t.shape != v.shape or t.dtype is not v.dtype or device is not v.device:
                now = t.spec or f"{t.dtype.name}[{','.join(map(str, t.shape))}] {t.device}"
                raise GraphError(
                    f"{self.lowered.job.name} was compiled with {v.name} as {v.form}, and it is {now!s} by now: a "
                    "graph's parameters and buffers keep shape, dtype and layout. Make another graph after "
                    "model.to(...), .half(), to_global(...), the first call of a graph with enable_zero() and the like"
                )

    def _mismatch(self, given: Any) -> str:
        pairs = itertools.zip_longest(_flat(self.form), _flat(given), fillvalue="nothing")
        expected, got = next(((a, b) for a, b in pairs if a != b), (self.form, given))
        return (
            f"{self.lowered.job.name} was compiled for other arguments: a graph's inputs keep shape, dtype and layout "
            f"(OneFlow: ONLY accepts static inputs tensor meta). Expected {tree.describe(expected)}, got "
            f"{tree.describe(got)}. Make another graph for this form, pad the input, or let the class compile for each "
            "form: @nn.Graph.with_dynamic_input_shape()"
        )

    def plan(self) -> Any:
        return self.lowered.plan

    def close(self) -> None:
        self.running.close()


CPU = Device("cpu")


class Holder(NamedTuple):
    """A parameter's location: a block's module, the path from there, and the name."""

    module: Any
    path: str
    parameter: Tensor
    name: str


def _at(module: Any, path: str) -> Any:
    for key in path.split("."):
        module = None if module is None else stored(module).get(key)
    return module


class Output:
    """A placeholder for a tensor in the tree of outputs."""


def _brief(value: torch.Tensor) -> str:
    return str(value.tolist()) if value.numel() < 10 else f"{value.dtype} of shape {list(value.shape)}"


def _flat(form: Any) -> list[Any]:
    if isinstance(form, tuple) and form and form[0] in ("tuple", "list", "dict"):
        return [x for f in form[1:] for x in _flat(f)]
    return [form]


def _maker(v: Value, shape: tuple[int, ...], device: torch.device) -> Callable[[], torch.Tensor]:
    """An allocator of an output's memory; `empty_strided` takes half the time of `empty`."""
    strides = torch.empty(shape, device="meta").stride()
    return functools.partial(torch.empty_strided, shape, strides, dtype=v.dtype.torch, device=device)


def _quick(t: Tensor) -> Any:
    if t.spec is not None:
        return t.spec
    return torch.Size(t.shape), t.dtype.torch, t.device.torch


def written(plan: Plan) -> set[str]:
    """The names of the variables that a rank's calls overwrite."""
    places = ((c, i) for t in plan.tasks for c in t.step.calls if c.op in OPS for i in OPS[c.op].writes)
    given = (c.args[i] for c, i in places)
    return {v.name for a in given for v in (a if isinstance(a, tuple) else (a,)) if isinstance(v, Ref)}
