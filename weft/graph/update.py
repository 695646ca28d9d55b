"""The optimizers' part of a job: accumulate gradients, move them to the parameters' layouts, update."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import partial
from typing import Any, Final

from weft.core import dispatch
from weft.core.dispatch import here
from weft.core.errors import GraphError, TraceError
from weft.core.rank import current
from weft.graph import scaling
from weft.graph.compiled import Program
from weft.job.builder import Builder
from weft.job.value import Node
from weft.nn.module.module import Module
from weft.ops import OPS, ops
from weft.optim import Optimizer
from weft.tensor.tensor import Tensor, of_value

LOOK_UPS: Final = ("embedding", "embedding_bags")


def update(graph: Program, builder: Builder, numbers: dict[str, Callable[[], float]]) -> Tensor | None:
    """Add the nodes that update parameters. `numbers` gets the functions that each launch asks for numbers.

    Returns the flag that says whether the gradients were finite, if there is a scaler.
    """
    if not graph._optimizers:
        _see_use(graph, builder)
        return None
    known = {id(p) for block in graph._blocks.values() for p in block.to(Module).parameters()}
    before, here.grad, builder.updating = here.grad, False, True
    try:
        tables = {p: node for optimizer, _ in graph._optimizers for p, node in _tables(graph, builder, optimizer)}
        every = [
            scaling.unscaled(builder, _gradients(graph, builder, optimizer, known, tables))
            for optimizer, _ in graph._optimizers
        ]
        if not builder.losses and not any(every) and not tables:
            raise TraceError(
                f"{graph.name} has an optimizer, but build() calls no backward(); write loss.backward() in it"
            )
        guard = scaling.Guard(graph._scaler, builder, (g for grads in every for g in grads.values()))
        for i, ((optimizer, _), grads) in enumerate(zip(graph._optimizers, every, strict=True)):
            with dispatch.tracing(None):  # make the states eagerly
                optimizer.prepare(grads)
            for p in grads:
                for what, t in optimizer.state[p].items():
                    if isinstance(t, Tensor):
                        builder.name_of(t, f"{builder.known_name(p)}-{what}")
            rates = []
            for j, group in enumerate(optimizer.param_groups):
                name = f"lr.{i}.{j}"
                numbers[name] = Rate(graph.name, optimizer, group)
                rates.append(partial(builder.given, name))
            guard.keep(grads)
            guard.keep(t for p in grads for t in optimizer.state[p].values() if isinstance(t, Tensor))
            optimizer.apply_update(optimizer.clipped(grads), rates)
            for rate, group in zip(rates, optimizer.param_groups, strict=True):
                for p in [p for p in group["params"] if p in tables]:
                    rows, ids, _, padding_idx, *_ = tables[p].args
                    looked_up = (of_value(v, v.spec) for v in (ids, rows))
                    optimizer.update_rows(group, p, *looked_up, padding_idx, optimizer.rate_at(p, rate))
        guard.restore()
        return guard.finite
    finally:
        here.grad = before


def _tables(graph: Program, builder: Builder, optimizer: Optimizer) -> Iterator[tuple[Tensor, Node]]:
    """The tables of embeddings of which the rows that were looked up are updated alone, with their gradients' nodes:
    where it is asked for, and the gradient isn't added to, scaled or clipped."""
    if optimizer.update_rows is None or graph._scaler is not None or builder.job.micro_batches > 1:
        return
    every = any(o is optimizer for o in graph._sparse)
    asked = {n.args[1] for n in builder.job.nodes if n.op in LOOK_UPS and n.args[OPS[n.op].names.index("sparse")]}
    for group in optimizer.param_groups:
        if optimizer.is_by_rows(group) and group.get("clip_grad_max_norm") is None:
            for p in group["params"]:
                g = builder.gradients.of(p)
                node = None if g is None else builder.job.producer[g.value]
                if node is not None and node.op == "embedding_weight_grad" and (every or node.args[1] in asked):
                    yield p, node


def _gradients(
    graph: Program, builder: Builder, optimizer: Optimizer, known: set[int], without: Container[Tensor]
) -> dict[Tensor, Tensor]:
    """The gradients of the optimizer's parameters; those that no loss depends on have none."""
    grads: dict[Tensor, Tensor] = {}
    dropped = False
    for group in optimizer.param_groups:
        for p in group["params"]:
            found = None if p in without else builder.gradients.of(p)
            if found is not None:
                grads[p] = _in_layout(builder.accumulated(found), p)
            elif id(p) in builder.gradients.leaves:
                dropped = p not in without
            elif id(p) not in known:
                raise GraphError(
                    f"{graph.name}: the optimizer updates a parameter of shape {list(p.shape)} that is not in the "
                    "graph: no module of it holds that, and no loss depends on it. Set the module as "
                    "an attribute in __init__, and give the optimizer the parameters that it has then"
                )
    if dropped and not grads:
        raise TraceError(
            f"{graph.name}: build() drops every gradient that backward() found, so the optimizer has nothing to do. A "
            "graph's gradients begin anew at each launch: leave zero_grad() out of it"
        )
    return grads


def _see_use(graph: Program, builder: Builder) -> None:
    """Without an optimizer, raise if the program uses no `.grad` after backward."""
    found = {g.value for leaf, _ in builder.gradients.leaves.values() if (g := leaf._grad) is not None}
    if not any(v in found for node in builder.job.nodes for v in node.operands()):
        raise TraceError(
            f"{graph.name}: build() calls backward(), but nothing uses the gradients; "
            "call self.add_optimizer(...) in __init__, or return the .grad that you want"
        )


def _in_layout(g: Tensor, p: Tensor) -> Tensor:
    if p.spec is None or g.spec is p.spec:
        return g
    return ops.to_global(g, p.spec.placement, p.spec.nd_sbp)


READ: Final = ("params", "lr", "initial_lr", "lr_scale")  # a group's options that aren't compiled in


class Rate:
    """A group's learning rate, read at each launch, times its `lr_scale`, if any. Its other options are constants of
    the job."""

    __slots__ = ("graph", "optimizer", "exchanges", "group", "compiled", "seen")

    def __init__(self, graph: str, optimizer: Optimizer, group: dict[str, Any]) -> None:
        self.graph, self.group = graph, group
        self.optimizer, self.exchanges = optimizer, optimizer.exchanges
        self.compiled = {k: v for k, v in group.items() if k not in READ}
        self.seen = dict(group)

    def __call__(self) -> float:
        if self.group != self.seen or self.optimizer.exchanges != self.exchanges:
            self._look()
        return float(self.group["lr"]) * float(self.group.get("lr_scale", 1.0))

    def _look(self) -> None:
        for name, was in self.compiled.items():
            now = self.group.get(name)
            if now != was:
                raise GraphError(
                    f"{self.graph} was compiled with {name}={was!r}, and its optimizer has {name}={now!r} now: of a "
                    "graph's options only lr (and lr_scale) may change between launches. Give a cyclic schedule "
                    "cycle_momentum=False, or make another graph"
                )
        if self.optimizer.exchanges != self.exchanges:
            raise GraphError(
                f"{self.graph}: its optimizer is another since the graph was compiled. It was given a group of "
                "parameters, or counts steps apart, as a step updated some parameters only, or a state was loaded in "
                "which their steps differ; make another graph"
            )
        self.seen = dict(self.group)
        if current().world_size > 1:
            self.optimizer.agreement.announce(type(self.optimizer).__name__, self.optimizer.param_groups)
