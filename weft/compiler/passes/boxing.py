"""Insert boxing: where a node wants an operand in another layout, the steps of a route are put before it.

A value is moved to a layout once, for all its readers. Afterwards every operand has the layout of its node's signature,
and `to_global` nodes are gone.
"""

from __future__ import annotations

from typing import Any

from weft.boxing import Links, Route, signature
from weft.boxing.planner import route
from weft.boxing.steps import Exchange, Relabel
from weft.compiler.local_node import signature_of
from weft.compiler.options import Options
from weft.compiler.passes.dead_code import written
from weft.core.errors import CompileError
from weft.core.spec import Spec
from weft.core.substitution import substituted
from weft.job.job import SPECIAL, Job
from weft.job.value import Node, Value


def run(job: Job, options: Options) -> None:
    moves = _Moves(job, options.links)
    for node in job.nodes:
        moves.place(node)
    job.rebuild(moves.nodes)


class _Moves:
    def __init__(self, job: Job, links: Links) -> None:
        self.job, self.links = job, links
        self.changing = {v for node in job.nodes if node.micro for v in written(node)}  # by each micro-batch
        self.nodes: list[Node] = []
        self.table: dict[Value, Value] = {}
        self.moved: dict[tuple[Value, Spec], Value] = {}
        self.names: dict[str, int] = {}
        self.asked: tuple[str, tuple[Any, ...], signature.Signature] | None = None  # who wants a value moved: an op

    def place(self, node: Node) -> None:
        node.replace_operands(self.table)
        if node.op == "to_global":
            spec = node.outputs[0].spec
            assert spec is not None
            self.asked = None
            self.table[node.outputs[0]] = self.move(node.args[0], spec, node)
            return
        if node.op not in SPECIAL and any(v.spec is not None for v in (*node.operands(), *node.outputs)):
            self.fit(node)
        self.nodes.append(node)
        overwritten = written(node)
        if overwritten:
            self.moved = {key: v for key, v in self.moved.items() if key[0] not in overwritten}

    def fit(self, node: Node) -> None:
        chosen = node.signature = signature_of(node, self.links)
        for v, spec in zip(node.outputs, chosen.outputs, strict=True):
            if v.spec is not spec:
                raise CompileError(
                    f"{node.name} was traced with {v.spec} and is now {spec}: a pass changed its operands"
                )
        node.ranked = chosen.ranked
        wanted, self.asked = iter(chosen.inputs), (node.op, node.args, chosen)
        node.args = substituted(node.args, Value, lambda v: self.move(v, next(wanted), node))

    def move(self, v: Value, spec: Spec, reader: Node) -> Value:
        """The value in another layout, moved there once."""
        assert v.spec is not None
        if v.spec is spec:
            return v
        known = self.moved.get((v, spec))
        if known is not None:
            return known
        now = v
        path = route(v.shape, v.dtype, v.spec.placement, v.spec.nd_sbp, spec.placement, spec.nd_sbp, self.links)
        states = list(path.states())
        for step, after in zip(path.steps, states[1:], strict=True):
            target = v.spec.replace(placement=after.placement, nd_sbp=after.nd_sbp)
            shared = self.moved.get((v, target))
            if shared is None:
                assert now.spec is not None
                if isinstance(step, Relabel) and now.spec.placement is not after.placement:
                    step = Exchange(step.src, step.dst)  # each chain is on one placement, with registers between chains
                shared = Value(self._name(v), v.shape, v.dtype, target, v.device)
                text, micro = str(step), self.job.is_micro(v) or (reader.micro and v in self.changing)
                node = Node(
                    shared.name, "boxing", (now, text), (shared,), reader.scope, reader.at, micro, stage=reader.stage,
                    extra={"route": Route(now.spec, target, (step,)), "hosts": self.links.hosts, "asked": self.asked},
                )  # fmt: skip
                self.nodes.append(node)
                self.job.producer[shared] = node
                self.moved[v, target] = shared
            now = shared
        self.moved[v, spec] = now
        return now

    def _name(self, v: Value) -> str:
        n = self.names[v.name] = self.names.get(v.name, 0) + 1
        return f"{v.name}.boxed{n}"
