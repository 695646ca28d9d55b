"""A job: the logical graph of one nn.Graph, in program order. `text` prints it; `verify` checks it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from weft.core.errors import CompileError
from weft.job.value import Node, Value

SPECIAL = (
    "input", "variable", "output", "unpack", "accumulate", "pack", "boxing", "to_global", "host", "source", "steer",
)  # fmt: skip


class Pass(NamedTuple):
    """A pass that has run: its time in seconds, and the number of nodes before and after."""

    name: str
    seconds: float
    before: int
    after: int

    def __str__(self) -> str:
        change = f"{self.before} nodes" if self.before == self.after else f"{self.before} -> {self.after} nodes"
        return f"{self.name}: {self.seconds * 1e3:.2f} ms, {change}"


class Job:
    """Nodes in topological order; writes of variables keep the program's order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.variables: dict[Value, Any] = {}  # with the tensors that hold their memory
        self.parts: set[Value] = set()  # the variables that are sharded by ZeRO
        self.producer: dict[Value, Node] = {}
        self.loaders: dict[str, Any] = {}  # by the name that source nodes give
        self.micro_batches = 1
        self.held = 0  # bytes of a rank, as the choice of what to recompute estimated them
        self.reasons: list[str] = []  # why passes chose what they chose
        self.passes: list[Pass] = []  # those that have run

    def append(self, node: Node) -> None:
        self.nodes.append(node)
        for v in node.outputs:
            self.producer[v] = node

    def is_micro(self, v: Value) -> bool:
        return self.producer[v].micro

    @property
    def outputs(self) -> list[Node]:
        return [n for n in self.nodes if n.op == "output"]

    def readers(self) -> dict[Value, list[Node]]:
        found: dict[Value, list[Node]] = {v: [] for n in self.nodes for v in n.outputs}
        for n in self.nodes:
            for v in n.operands():
                found[v].append(n)
        return found

    def rebuild(self, nodes: list[Node]) -> None:
        """Replace the list of nodes."""
        self.nodes = nodes
        self.producer = {v: n for n in nodes for v in n.outputs}
        self.variables = {v: t for v, t in self.variables.items() if v in self.producer}

    def arrange(
        self, before: Mapping[int, Sequence[Node]] = MappingProxyType({}),
        after: Mapping[int, Sequence[Node]] = MappingProxyType({}), without: Container[Node] = (),
    ) -> None:  # fmt: skip
        """Insert nodes before and after those of some indices, and leave some out."""
        nodes: list[Node] = []
        for i, node in enumerate(self.nodes):
            nodes += before.get(i, ())
            nodes += [node] * (node not in without)
            nodes += after.get(i, ())
        self.rebuild(nodes)

    def verify(self) -> None:
        """Operands come before their readers, names are unique, micro values leave through accumulate or pack."""
        seen: set[Value] = set()
        names: set[str] = set()
        for n in self.nodes:
            if n.name in names:
                raise CompileError(f"job {self.name}: two nodes are called {n.name}")
            names.add(n.name)
            for v in n.operands():
                if v not in seen:
                    raise CompileError(f"job {self.name}: {n.name} reads {v}, which nothing before it produces")
                if self.producer[v].micro and not n.micro and n.op not in ("accumulate", "pack"):
                    raise CompileError(
                        f"job {self.name}: {n.name} runs once a launch but reads {v}, made per micro-batch"
                    )
            seen.update(n.outputs)
