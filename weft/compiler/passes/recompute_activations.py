"""Activation checkpointing: for marked modules and nodes, backward recomputes forward values."""

from __future__ import annotations

from weft.compiler.options import Options
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
    known = {v: n for n in marked for v in n.outputs if not once(n)}
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
        outputs = tuple(Value(f"{o.name}.again", o.shape, o.dtype, o.spec, o.device) for o in node.outputs)
        copied = Node(
            f"{node.name}.again", node.op, node.args, outputs, node.scope, node.at, node.micro, node.ranked, node.stage,
            node.signature, {"backward": True},
        )  # fmt: skip
        copied.replace_operands(again)
        again.update(zip(node.outputs, outputs, strict=True))
        nodes.append(copied)
        for o in outputs:
            job.producer[o] = copied


def once(node: Node) -> bool:
    """Whether a node can't be repeated: a draw, or an update of running statistics."""
    op = OPS.get(node.op)
    return op is None or op.random or bool(op.writes)
