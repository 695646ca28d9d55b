"""Activation checkpointing: for marked modules and nodes, backward recomputes forward values."""

from __future__ import annotations

from collections.abc import Mapping

from weft.compiler.options import Options
from weft.compiler.passes.dead_code import written
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops import OPS


def run(job: Job, options: Options) -> None:
    marked = [n for n in job.nodes if n.extra.get("checkpoint")]
    if not marked:
        return
    first_backward = next((i for i, n in enumerate(job.nodes) if n.extra.get("backward")), len(job.nodes))
    again: dict[Value, Value] = {}
    nodes: list[Node] = list(job.nodes[:first_backward])
    lasting = repeatable(job)
    known = {v: n for n in marked for v in n.outputs if n in lasting}
    for node in job.nodes[first_backward:]:
        for v in dict.fromkeys(node.operands()):
            _copy(v, known, again, nodes, job)
        node.replace_operands(again)
        nodes.append(node)
    job.rebuild(nodes)


def _copy(v: Value, known: dict[Value, Node], again: dict[Value, Value], nodes: list[Node], job: Job) -> None:
    """Insert a copy of the node that makes v, and of what it needs, here, once."""
    todo = [v]
    while todo:
        at = todo[-1]
        node = known.get(at)
        if node is None or at in again:
            todo.pop()
            continue
        missing = [o for o in node.operands() if o in known and o not in again]
        if missing:
            todo.extend(missing)
            continue
        todo.pop()
        nodes.append(copied(node, ".again", again))
        outputs = nodes[-1].outputs
        again.update(zip(node.outputs, outputs, strict=True))
        for o in outputs:
            job.producer[o] = nodes[-1]


def copied(n: Node, suffix: str, again: Mapping[Value, Value]) -> Node:
    """A copy of a node that is run again in backward, on what has been made again."""
    outputs = tuple(Value(f"{v.name}{suffix}", v.shape, v.dtype, v.spec, v.device) for v in n.outputs)
    copy = Node(
        f"{n.name}{suffix}", n.op, n.args, outputs, n.scope, n.at, n.micro, n.ranked, n.stage, n.signature,
        {"backward": True, "again": True},
    )  # fmt: skip
    copy.replace_operands(again)
    return copy


def repeatable(job: Job) -> set[Node]:
    """The forward nodes that give the same wherever they are run again: they don't draw or write, and nothing that they
    read or make is overwritten before its last reader."""
    found, until, writes, root = set[Node](), dict[Value, int](), dict[Value, list[int]](), dict[Value, Value]()
    for i, n in enumerate(job.nodes):
        if n.view:
            root.update((v, root.get(n.operands()[0], n.operands()[0])) for v in n.outputs)
        for v in written(n):
            writes.setdefault(root.get(v, v), []).append(i)
    first_backward = next((i for i, n in enumerate(job.nodes) if n.extra.get("backward")), len(job.nodes))
    for i, n in reversed([*enumerate(job.nodes)]):
        last = max((until.get(v, 0) for v in n.outputs), default=0)
        touched = {root.get(v, v) for v in (*n.operands(), *n.outputs)}
        if i < first_backward and not once(n) and not any(i < w < last for v in touched for w in writes.get(v, ())):
            found.add(n)
        for v in n.operands():
            until[v] = max(until.get(v, 0), i, last if n in found else 0)
    return found


def once(node: Node) -> bool:
    """Whether a node can't be repeated: a draw, or an update of running statistics."""
    op = OPS.get(node.op)
    return op is None or op.random or bool(op.writes)
