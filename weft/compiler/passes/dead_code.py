"""Dead code elimination: drop nodes without an effect whose outputs nobody reads. A draw affects later draws."""

from __future__ import annotations

from weft.compiler.local_node import written as written
from weft.compiler.options import Options
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops import OPS

EFFECTS = ("input", "output", "steer", "require")  # inputs stay, so that a call's arguments keep their places


def run(job: Job, options: Options) -> None:
    wanted: set[Value] = set()
    kept: list[Node] = []
    for node in reversed(job.nodes):
        if node.op in EFFECTS or writes(node) or node.draws or any(v in wanted for v in node.outputs):
            kept.append(node)
            wanted.update(node.operands())
    job.rebuild(kept[::-1])


def writes(node: Node) -> bool:
    return node.op in OPS and bool(OPS[node.op].writes)
