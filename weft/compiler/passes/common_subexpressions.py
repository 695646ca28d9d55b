"""Common subexpression elimination: nodes that compute the same of the same operands become one."""

from __future__ import annotations

from typing import Any

from weft.compiler.options import Options
from weft.compiler.passes.dead_code import written
from weft.job.job import SPECIAL, Job
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.infer import freeze


def run(job: Job, options: Options) -> None:
    changing = {v for n in job.nodes for v in written(n)}  # differs before and after the write
    known: dict[Any, Node] = {}
    table: dict[Value, Value] = {}
    kept: list[Node] = []
    for node in job.nodes:
        if table:
            node.replace_operands(table)
        if _pure(node) and not changing.intersection(node.operands()):
            key = (node.op, freeze(node.args), node.stage, tuple(v.spec for v in node.outputs))
            first = known.setdefault(key, node)
            if first is not node:
                table.update(zip(node.outputs, first.outputs, strict=True))
                continue
        kept.append(node)
    job.rebuild(kept)


def _pure(node: Node) -> bool:
    if node.op in SPECIAL:
        return node.op == "to_global"
    op = OPS[node.op]
    return not op.random and not op.writes
