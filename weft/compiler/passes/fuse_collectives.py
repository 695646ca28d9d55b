"""Fuse many small all-reduces to few large ones: gradients that are needed together are reduced together.

An all-reduce inside a chain is moved down to its first reader. Those of one group, dtype and reduction between the same
two nodes are merged into buckets of up to `fuse_bytes`.

A collective on its own stream is moved up instead: it starts after its last producer, and overlaps with the rest of the
chain. The size of its buckets follows from estimated times: when gradients are ready, and how long the link takes.
"""

from __future__ import annotations

import itertools
from typing import Any, Final, NamedTuple

from weft.boxing.costs import Costs
from weft.boxing.links import Links
from weft.boxing.steps import AllReduce
from weft.compiler.buckets import kind
from weft.compiler.chains import variables_of
from weft.compiler.options import Options
from weft.compiler.passes.layouts import work
from weft.compiler.streams import device_of
from weft.job.job import Job
from weft.job.value import Node, Value

HANDOVER: Final = 500e-6  # seconds: two thread switches, a chain cut in two, one more handshake


def run(job: Job, options: Options) -> None:
    _late(job, options)
    _early(job, options)


def _late(job: Job, options: Options) -> None:
    readers = job.readers()
    place = {n: i for i, n in enumerate(job.nodes)}
    groups: dict[Any, list[Node]] = {}
    for node in job.nodes:
        key = kind(node, AllReduce)
        if key is not None and readers[node.outputs[0]] and not device_of(node, options):
            first = min(place[r] for r in readers[node.outputs[0]])
            groups.setdefault((first, key), []).append(node)
    gone: set[Node] = set()
    before: dict[int, list[Node]] = {}
    for (first, _), members in groups.items():
        for bucket in _buckets(members, options.fuse_bytes):
            if len(bucket) > 1:
                gone.update(bucket)
                before.setdefault(first, []).append(fused(bucket))
    if gone:
        job.arrange(before=before, without=gone)


def _early(job: Job, options: Options) -> None:
    """Move each collective with a stream behind its last producer, in buckets."""
    place = {n: i for i, n in enumerate(job.nodes)}
    memory = variables_of(job)
    moving: dict[Node, int] = {}
    for node in job.nodes:
        if device_of(node, options) and memory.keys().isdisjoint(node.operands()):  # else it is read where it stands
            moving[node] = max(place[job.producer[v]] for v in node.operands())
    if not moving:
        return
    readers = job.readers()
    times = list(itertools.accumulate(work(n, n.signature) if n.signature else 0.0 for n in job.nodes))
    groups: dict[Any, list[Reduction]] = {}
    for node in sorted(moving, key=lambda n: (moving[n], place[n])):
        ready, read = moving[node], min((place[r] for r in readers[node.outputs[0]]), default=0)
        groups.setdefault(kind(node, AllReduce) or node, []).append(Reduction(node, ready, times[ready], read))
    behind: dict[int, list[Node]] = {}
    for key, members in groups.items():
        many = len(members) > 1 and not isinstance(key, Node)
        for bucket in _timely(members, options) if many else [[m] for m in members]:
            together = [m.node for m in bucket]
            behind.setdefault(bucket[-1].ready, []).append(fused(together) if len(bucket) > 1 else together[0])
    job.arrange(after=behind, without=moving)


class Reduction(NamedTuple):
    """An all-reduce that may be fused: the index of its operand's producer, when that ends, and its first reader."""

    node: Node
    ready: int
    seconds: float
    read: int


def _timely(members: list[Reduction], options: Options) -> list[list[Reduction]]:
    """Buckets by time: one is closed as soon as the link has sent half of the one before, if its bytes take longer than
    its call. While the link is busy, closing early gains nothing; while it is idle, time is lost. Half allows for wrong
    estimates, and for the next handshake meanwhile: two streams alternate."""
    found: list[list[Reduction]] = []
    size = soon = free = 0
    transfer = alone = 0.0
    for m in members:
        spec = m.node.outputs[0].spec
        assert spec is not None
        bucket = found[-1] if found else []
        due = transfer > alone and soon < m.seconds
        if not bucket or due or size + spec.bytes > options.fuse_bytes or m.ready >= min(b.read for b in bucket):
            if bucket:
                free = max(free, bucket[-1].seconds) + alone + transfer
                soon = free - transfer / 2
            found.append([])
            size, transfer, alone = 0, 0.0, 0.0
        found[-1].append(m)
        latency, seconds = _seconds(m.node, options.links)
        size, transfer, alone = size + spec.bytes, transfer + seconds - latency, HANDOVER + latency
    return found


def _seconds(node: Node, links: Links) -> tuple[float, float]:
    """Estimated seconds of a collective: its latency, and the total."""
    route = node.extra["route"]
    before, after = list(route.states())[:2]
    few, all_of_it = (
        Costs(route.shape, itemsize, links).of(route.steps[0], before, after).seconds
        for itemsize in (0, route.dtype.itemsize)
    )
    return few, all_of_it


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


def fused(bucket: list[Node]) -> Node:
    """One node that reduces many values; a single node stays as it is."""
    if len(bucket) == 1:
        return bucket[0]
    first = bucket[0]
    extra = {"routes": [n.extra["route"] for n in bucket], "hosts": first.extra.get("hosts")}
    values: tuple[Value, ...] = tuple(n.args[0] for n in bucket)
    return Node(
        f"{first.name}+{len(bucket) - 1}", "boxing", (values, first.args[1]), tuple(n.outputs[0] for n in bucket),
        first.scope, first.at, first.micro, stage=first.stage, extra=extra,
    )  # fmt: skip
