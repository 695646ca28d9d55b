"""ZeRO: choose where gradients are reduce-scattered.

In stage 1 that is right before the update, which is the first to need its shard. From stage 2 on a bucket is scattered
as soon as its last member is made, and micro-batches accumulate shards, so that whole gradients are freed early.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from weft.boxing.steps import ReduceScatter
from weft.compiler import buckets
from weft.compiler.options import Options
from weft.compiler.passes.fuse_collectives import fused
from weft.compiler.zero import stage_of
from weft.job.job import Job
from weft.job.value import Node, Value


def run(job: Job, options: Options) -> None:
    stage = stage_of(options)
    if stage is None:
        return
    readers = job.readers()
    ways = _ways(job, readers)
    if stage.early:
        _early(job, ways, readers)
        readers = job.readers()
    place = {n: i for i, n in enumerate(job.nodes)}
    scatters = [_Scatter.of(way, place, job, readers) for way in ways]
    here: dict[int, list[Node]] = {}
    for bucket in _together(sorted(scatters, key=lambda s: s.made)):
        at = bucket[-1].made + 1 if stage.early else min(s.read for s in bucket)
        here.setdefault(at, []).extend([fused([s.node for s in bucket]), *(n for s in bucket for n in s.behind)])
    job.arrange(before=here, without={n for s in scatters for n in (s.node, *s.behind)})


class _Scatter(NamedTuple):
    """A reduce-scatter of a gradient, the movements after it, and the indices of its producer and its last reader."""

    node: Node
    behind: list[Node]
    made: int
    read: int

    @staticmethod
    def of(way: list[Node], place: dict[Node, int], job: Job, readers: dict[Value, list[Node]]) -> _Scatter:
        i = next(i for i, n in enumerate(way) if buckets.kind(n, ReduceScatter) is not None)
        made = place[job.producer[way[i].args[0]]]
        read = min((place[r] for r in readers[way[-1].outputs[0]]), default=len(place))
        return _Scatter(way[i], way[i + 1 :], made, read)


def _ways(job: Job, readers: dict[Value, list[Node]]) -> list[list[Node]]:
    """The sequences of movements from gradients to the layouts of their parameters' shards, without other readers."""
    parts = {v.spec for v in job.parts}
    found = []
    for node in job.nodes:
        if node.outputs[:1] == () or node.outputs[0].spec not in parts or not _stays(node):
            continue
        if len(by := readers[node.outputs[0]]) == 1 and _stays(by[0]):
            continue  # the way goes on
        way = [node]
        while _stays(before := job.producer[way[0].args[0]]) and readers[way[0].args[0]] == [way[0]]:
            way.insert(0, before)
        if any(buckets.kind(n, ReduceScatter) is not None for n in way):
            found.append(way)
    return found


def _stays(node: Node) -> bool:
    """Whether a node moves one value within one placement."""
    route = node.extra.get("route")
    return route is not None and route.src.placement is route.dst.placement


def _early(job: Job, ways: list[list[Node]], readers: dict[Value, list[Node]]) -> None:
    """Start each sequence where the gradient is made; for micro-batches, before accumulation."""
    moved = {n for way in ways for n in way}
    after: dict[Node, list[Node]] = {}
    for way in ways:
        start = job.producer[way[0].args[0]]
        if start.op == "accumulate" and readers[start.outputs[0]] == [way[0]]:
            moved.add(start)
            _added_in_parts(start, way)
            way.append(start)
            start = job.producer[way[0].args[0]]
        after.setdefault(start, []).extend(way)
    job.arrange(after={i: after[n] for i, n in enumerate(job.nodes) if n in after}, without=moved)


def _added_in_parts(total: Node, way: list[Node]) -> None:
    """Move the accumulation over micro-batches behind its movements."""
    now, result = total.args[0], way[-1].outputs[0]
    for node in way:
        v = node.outputs[0]
        each = Value(f"{v.name}.micro", v.shape, v.dtype, v.spec, v.device)
        node.args, node.outputs, node.micro = (now, *node.args[1:]), (each,), True
        now = each
    total.args, total.outputs = (now,), (result,)


def _together(scatters: list[_Scatter]) -> list[list[_Scatter]]:
    """Buckets, in the order in which their gradients are made; all of a bucket is made before any of it is read."""
    most = buckets.limit(sum(buckets.bytes_of(s.node) for s in scatters))
    found: list[list[_Scatter]] = []
    going: dict[Hashable, tuple[int, int, list[_Scatter]]] = {}  # its bytes, and the index up to which members may join
    for s in scatters:
        size, kind = buckets.bytes_of(s.node), buckets.kind(s.node, ReduceScatter)
        held, until, bucket = going.get(kind, (most, 0, []))
        alone = buckets.travels_alone(size, most)
        if alone or held + size > most or s.made >= until:
            held, until, bucket = 0, s.read, []
            found.append(bucket)
        bucket.append(s)
        if not alone:
            going[kind] = held + size, min(until, s.read), bucket
    return found
