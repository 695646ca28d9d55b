"""nn.Graph: a program that is traced once, compiled, and then launched."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import torch

from weft.compiler import passes
from weft.compiler.lower import Lowered, lower
from weft.core import dispatch
from weft.core.dispatch import here
from weft.core.errors import GraphError, RankError, TraceError
from weft.core.rank import current
from weft.graph import tree
from weft.graph.blocks import ProxyModule, meta_text
from weft.graph.config import GraphConfig
from weft.graph.run import Running
from weft.job.builder import Builder
from weft.job.job import Job
from weft.job.text import show, show_node
from weft.job.value import Value
from weft.nn.module import Module
from weft.ops import OPS
from weft.optim import Optimizer
from weft.plan.verify import verify
from weft.tensor.blob import Blob
from weft.tensor.tensor import Tensor, of_shard, of_torch, of_value
from weft.transport import transport_of


class Graph:
    """Subclass it: modules in `__init__`, the computation in `build`; then call it like a function.

    The first call traces `build` and compiles it for tensors of these shapes. Calls return at once; reading an output
    waits for it. Parameters are shared with the eager modules.
    """

    def __init__(self) -> None:
        kind = type(self).__name__
        counts = current().resource("graph counts", lambda rank: {})
        number = counts[kind] = counts.get(kind, -1) + 1  # alike on every rank: it names what they share
        self.__dict__.update(
            _name=f"{kind}_{number}", _blocks={}, config=GraphConfig(), _optimizers=[], _compiled=None, _closed=False
        )

    def build(self, *args: Any, **kwargs: Any) -> Any:
        raise GraphError(f"{type(self).__name__} needs a method build(self, ...) that says what it computes")

    # ---- what it is made of ------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if "_blocks" not in self.__dict__:
            raise GraphError(f"call super().__init__() first, before setting {name!r}")
        if isinstance(value, Tensor):
            raise GraphAttributeError(
                f"'{type(self).__name__}' nn.Graph is not allowed to set Tensor attribute named '{name}': a graph "
                "holds modules. Put the tensor into an nn.Module (a parameter or a buffer) and that into the graph"
            )
        if isinstance(value, Module):
            if self._compiled is not None:
                raise GraphError(f"the graph is compiled already; add {name!r} in __init__")
            value = self._blocks[name] = ProxyModule(value, name)
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise GraphAttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def name(self) -> str:
        return self._name

    @property
    def training(self) -> bool:
        return self.config.training

    @property
    def is_compiled(self) -> bool:
        return self._compiled is not None

    def add_optimizer(self, optim: Optimizer, *, lr_sch: Any = None) -> None:
        """Update the optimizer's parameters after each `loss.backward()` of `build`; then step the schedule."""
        if not isinstance(optim, Optimizer):
            raise GraphError(f"add_optimizer takes an optimizer of flow.optim; got {type(optim).__name__}")
        if self._compiled is not None:
            raise GraphError("the graph is compiled already; add the optimizer in __init__")
        self._optimizers.append((optim, lr_sch))
        self.config.training = True

    def state_dict(self) -> dict[str, Any]:
        """Of every module, by its name in the graph."""
        self._settle()
        return {name: block.to(Module).state_dict() for name, block in self._blocks.items()}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        self._settle()
        unknown, missing = set(state) - set(self._blocks), set(self._blocks) - set(state)
        if strict and (unknown or missing):
            raise GraphError(
                f"load_state_dict: missing modules {sorted(missing)}, unexpected modules {sorted(unknown)}"
            )
        for name, block in self._blocks.items():
            if name in state:
                block.to(Module).load_state_dict(state[name], strict=strict)

    def _settle(self) -> None:
        if self._compiled is not None:
            self._compiled.running.vm.sync()

    # ---- calling -------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if here.trace is not None:
            return self.build(*args, **kwargs)  # a graph called inside another one's build is a part of it
        if self._closed:
            raise GraphError(f"{self._name} was closed")
        compiled = self._compiled
        if compiled is None:
            compiled = self.__dict__["_compiled"] = _compile(self, args, kwargs)
        return compiled(args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Trace and compile for arguments of this form, without launching."""
        if self._compiled is None:
            self.__dict__["_compiled"] = _compile(self, args, kwargs)

    _compile = compile

    def close(self) -> None:
        """Finish what is in flight and end the graph's threads."""
        compiled, self.__dict__["_closed"] = self._compiled, True
        if compiled is not None:
            compiled.close()

    # ---- looking at it -------------------------------------------------------------------------------------

    def _need(self) -> Compiled:
        if self._compiled is None:
            raise GraphError(
                f"{self._name} isn't compiled yet; call it once, or call .compile(...) with example arguments"
            )
        return self._compiled

    @property
    def job(self) -> Job:
        """The logical graph after the passes; `str(graph.job)` is text."""
        return self._need().lowered.job

    @property
    def plan(self) -> Any:
        """What this rank runs: tasks, registers, streams."""
        return self._need().plan()

    def source(self) -> str:
        """The chains of this rank, as the Python functions they are. Those that haven't run yet are not written yet."""
        compiled = self._need()
        tasks = compiled.lowered.plan.tasks
        return "\n\n".join(compiled.running.texts[t.id] for t in tasks if t.id in compiled.running.texts)

    def report(self) -> str:
        """Who waits for which register of whom."""
        return self._need().running.executor.report()

    def __repr__(self) -> str:
        ops: dict[str, list[str]] = {}
        lines = [f"(GRAPH:{self._name}:{type(self).__name__}): (", f"  {self.config!r}"]
        if self._compiled is not None:
            for node in self._compiled.lowered.job.nodes:
                ops.setdefault(node.scope, []).append(f"(OPERATOR: {show_node(node)})")
            lines += [f"  (INPUT:{name}:{meta_text(t)})" for name, t in self._compiled.examples]
        for block in self._blocks.values():
            lines += block.lines(ops, "  ")
        lines += [f"  {line}" for line in ops.get("", [])]
        return "\n".join([*lines, ")"])


class GraphAttributeError(GraphError, AttributeError):
    """An attribute that a graph doesn't have, or may not have."""


class Compiled:
    """A traced and lowered graph with its runtime."""

    def __init__(
        self, lowered: Lowered, running: Running, form: Any, outputs: Any, examples: list[tuple[str, Tensor]],
        optimizers: list[Any], numbers: list[Callable[[], float]], made: list[Value],
    ) -> None:  # fmt: skip
        self.lowered, self.running, self.form, self.outputs = lowered, running, form, outputs
        self.examples, self.optimizers, self.numbers, self.made = examples, optimizers, numbers, made
        self.quick = [_quick(t) for _, t in examples]
        written = {v for n in lowered.job.nodes for v in passes.dead_code.written(n)}
        # one of them stands for all: they share a record of who reads and writes
        self.writes = running.together([b for v, b in running.variables.items() if v in written])
        self.reads = running.together([b for v, b in running.variables.items() if v not in written])
        rank = running.rank.index
        self.forms = [(v, v.spec.local_shape(rank) if v.spec is not None else v.shape) for v in made]

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = self._inputs(args) if not kwargs else None
        if inputs is None:
            given = tree.form((args, kwargs))
            if given != self.form:
                raise GraphError(self._mismatch(given))
            inputs = [_blob(t) for _, t in tree.leaves((args, kwargs)) if isinstance(t, Tensor)]
        blobs, tensors = [], []
        for v, shape in self.forms:
            data = torch.empty(shape, dtype=v.dtype.torch)
            t = of_torch(data) if v.spec is None else of_shard(data, v.spec)
            tensors.append(t)
            blobs.append(_blob(t))
        self.running.launch(inputs, [n() for n in self.numbers], blobs, self.reads, self.writes)
        for _, schedule in self.optimizers:
            if schedule is not None:
                schedule.step()
        found = iter(tensors)
        return tree.rebuild(self.outputs, lambda leaf: next(found) if isinstance(leaf, _Output) else leaf)

    def _inputs(self, args: tuple[Any, ...]) -> list[Blob] | None:
        """The blobs of plain tensor arguments of the right form; None where a closer look is needed."""
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

    def _mismatch(self, given: Any) -> str:
        pairs = itertools.zip_longest(_flat(self.form), _flat(given), fillvalue="nothing")
        expected, got = next(((a, b) for a, b in pairs if a != b), (self.form, given))
        return (
            f"{self.lowered.job.name} was compiled for other arguments: a graph's inputs keep shape, dtype and layout "
            f"(OneFlow: ONLY accepts static inputs tensor meta). Expected {tree.describe(expected)}, got "
            f"{tree.describe(got)}. Make another graph for this form, or pad the input"
        )

    def plan(self) -> Any:
        return self.lowered.plan

    def close(self) -> None:
        self.running.close()


class _Output:
    """Marks a tensor's place in the tree of outputs."""


def _flat(form: Any) -> list[Any]:
    if isinstance(form, tuple) and form and form[0] in ("tuple", "list", "dict"):
        return [x for f in form[1:] for x in _flat(f)]
    return [form]


def _quick(t: Tensor) -> Any:
    if t.spec is not None:
        return t.spec
    return torch.Size(t.shape), t.dtype.torch, t.device.torch


def _blob(t: Tensor) -> Blob:
    return t.shard if t.shard is not None else t.blob


def _compile(graph: Graph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
    """Trace, rewrite, lower, agree with the other ranks, start the runtime."""
    options = graph.config.options()
    job = Job(graph.name)
    job.micro_batches = options.micro_batches
    settings = {id(m): s for block in graph._blocks.values() for m, s in block.settings()}
    builder = Builder(job, settings)
    _name_parameters(graph, builder)
    examples: list[tuple[str, Tensor]] = []
    numbers: dict[str, Callable[[], float]] = {}
    with dispatch.tracing(builder):
        symbols = tree.rebuild((args, kwargs), _feeder(builder, graph.name, examples))
        result = graph.build(*symbols[0], **symbols[1])
        if builder.losses or graph._optimizers:
            _update(graph, builder, numbers)
        outputs, made = _outputs(result, builder, graph.name)
    passes.apply(job, options)
    rank = current()
    lowered = lower(job, rank.index, rank.world_size, options)
    verify(lowered.plan)
    _agree(lowered)
    hosts = [n for n in job.nodes if n.op == "host"]
    inputs = [n.outputs[0] for n in job.nodes if n.op == "input"]
    running = Running(lowered, inputs, [n.outputs[0] for n in hosts])
    weakref.finalize(graph, _end, running)
    rank.resources.setdefault(f"graph {graph.name}", running)
    return Compiled(
        lowered, running, tree.form((args, kwargs)), outputs, examples, graph._optimizers,
        [numbers[n.args[0]] for n in hosts], made,
    )  # fmt: skip


def _end(running: Running) -> None:
    running.rank.resources.pop(f"graph {running.lowered.plan.name}", None)
    running.close()


def _name_parameters(graph: Graph, builder: Builder) -> None:
    for name, block in graph._blocks.items():
        module = block.to(Module)
        for path, t in itertools.chain(module.named_parameters(), module.named_buffers()):
            builder.name_of(t, f"{name}.{path}")
    for optimizer, _ in graph._optimizers:
        optimizer.prepare()
        for p, state in optimizer.state.items():
            for what, t in state.items():
                if isinstance(t, Tensor):
                    builder.name_of(t, f"{builder.known_name(p)}-{what}")


def _feeder(builder: Builder, name: str, examples: list[tuple[str, Tensor]]) -> Callable[[Any], Any]:
    def feed(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        symbol = builder.input(leaf, f"{name}.input.{len(examples)}")
        examples.append((symbol.value.name, symbol))
        return builder.unpack(symbol) if builder.job.micro_batches > 1 else symbol

    return feed


def _update(graph: Graph, builder: Builder, numbers: dict[str, Callable[[], float]]) -> None:
    """The optimizers' part of the job: gradients, summed over micro-batches and in the parameters' layout, applied."""
    if not graph._optimizers:
        raise TraceError(
            f"{graph.name}: build() calls backward(), but nothing uses the gradients; "
            "call self.add_optimizer(...) in __init__"
        )
    if not builder.losses:
        raise TraceError(f"{graph.name} has an optimizer, but build() calls no backward(); write loss.backward() in it")
    before, here.grad = here.grad, False
    try:
        for i, (optimizer, _) in enumerate(graph._optimizers):
            grads: dict[Any, Tensor] = {}
            for group in optimizer.param_groups:
                for p in group["params"]:
                    found = builder.gradients.get(id(p))
                    if found is not None:
                        grads[p] = _in_layout(builder.accumulated(found[1]), p)
            rates = []
            for j, group in enumerate(optimizer.param_groups):
                name = f"lr.{i}.{j}"
                numbers[name] = lambda group=group: float(group["lr"])
                v = builder.number(name)
                rates.append(of_value(v, v.spec))
            optimizer.apply_update(grads, rates)
    finally:
        here.grad = before


def _in_layout(g: Tensor, p: Tensor) -> Tensor:
    if p.spec is None or g.spec is p.spec:
        return g
    return OPS["to_global"](g, p.spec.placement, p.spec.nd_sbp)


def _outputs(result: Any, builder: Builder, name: str) -> tuple[Any, list[Value]]:
    made: list[Value] = []

    def out(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        made.append(builder.output(leaf, f"{name}.output.{len(made)}"))
        return _Output()

    return tree.rebuild(result, out), made


def _agree(lowered: Lowered) -> None:
    """Every rank must have traced the same job; a mismatch names the first line that differs."""
    rank = current()
    if rank.world_size == 1:
        return
    transport, plan = transport_of(), lowered.plan
    key = f"job/{plan.name}"
    text = show(lowered.job)
    if rank.index == 0:
        transport.put(key, text.encode())
        return
    theirs = transport.get(key).decode()
    if theirs != text:
        pairs = itertools.zip_longest(theirs.splitlines(), text.splitlines(), fillvalue="(nothing)")
        n, (a, b) = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
        raise RankError(
            f"rank {rank.index} traced another {plan.name} than rank 0; the first difference is line {n} of the job:\n"
            f"  rank 0: {a}\n  rank {rank.index}: {b}\nEvery rank must build the same graph"
        )
