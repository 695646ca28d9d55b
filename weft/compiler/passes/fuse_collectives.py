"""Many small all-reduces become few large ones: gradients that are only needed together travel together.

An all-reduce moves down to its first reader. Those of one group, dtype and reduction that then stand in one gap merge,
up to `fuse_bytes` at a time.
"""

from __future__ import annotations

from typing import Any

from weft.boxing.steps import AllReduce
from weft.compiler.options import Options
from weft.job.job import Job
from weft.job.value import Node, Value


def run(job: Job, options: Options) -> None:
    readers = job.readers()
    place = {n: i for i, n in enumerate(job.nodes)}
    groups: dict[Any, list[Node]] = {}
    for node in job.nodes:
        key = _key(node)
        if key is not None and readers[node.outputs[0]]:
            first = min(place[r] for r in readers[node.outputs[0]])
            groups.setdefault((first, key), []).append(node)
    fused: set[Node] = set()
    before: dict[int, list[Node]] = {}
    for (first, _), members in groups.items():
        for bucket in _buckets(members, options.fuse_bytes):
            if len(bucket) > 1:
                fused.update(bucket)
                before.setdefault(first, []).append(_fuse(bucket))
    if not fused:
        return
    nodes: list[Node] = []
    for i, node in enumerate(job.nodes):
        nodes.extend(before.get(i, ()))
        if node not in fused:
            nodes.append(node)
    job.rebuild(nodes)


def _key(node: Node) -> Any:
    """What all-reduces must share to travel together; None for other nodes."""
    if node.op != "boxing" or "route" not in node.extra:  # a fused one is done with
        return None
    step = node.extra["route"].steps[0]
    if not isinstance(step, AllReduce):
        return None
    v = node.outputs[0]
    assert v.spec is not None
    return step, v.spec.placement, v.dtype, node.micro, node.stage


def _buckets(members: list[Node], most: int) -> list[list[Node]]:
    found: list[list[Node]] = []
    size = most + 1
    for node in members:
        spec = node.outputs[0].spec
        assert spec is not None
        if size + spec.bytes > most:
            found.append([])
            size = 0
        found[-1].append(node)
        size += spec.bytes
    return found


def _fuse(bucket: list[Node]) -> Node:
    first = bucket[0]
    values: tuple[Value, ...] = tuple(n.args[0] for n in bucket)
    return Node(
        f"{first.name}+{len(bucket) - 1}", "boxing", (values, first.args[1]), tuple(n.outputs[0] for n in bucket),
        first.scope, first.at, first.micro, stage=first.stage, extra={"routes": [n.extra["route"] for n in bucket]},
    )  # fmt: skip
