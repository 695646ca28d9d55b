"""ZeRO: choose where sharded parameters are all-gathered.

In stages 1 and 2 each is gathered once a launch, and freed after its last reader. In stage 3 it is gathered again for
each micro-batch, and wherever a bucket's worth of others was read since its last reader, which mostly means for
backward.

A bucket is prefetched: it is gathered where the bucket before it is first read, to overlap with computation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from weft.boxing.steps import AllGather
from weft.compiler import buckets
from weft.compiler.options import Options
from weft.compiler.passes.dead_code import written
from weft.compiler.passes.fuse_collectives import fused
from weft.compiler.zero import stage_of
from weft.job.job import Job
from weft.job.value import Node, Value


def run(job: Job, options: Options) -> None:
    stage = stage_of(options)
    if stage is None:
        return
    job.nodes.sort(key=lambda n: n.outputs[:1] == () or n.outputs[0] not in job.parts)  # available from the start
    reads = list(_reads(job))
    most = buckets.limit(sum(map(buckets.bytes_of, {g for _, g in reads})))
    uses = list(_uses(reads, most if stage.dropped else None))
    for use in uses:
        use.make(job, stage.dropped)
    here: dict[int, list[Node]] = {}
    before: dict[Hashable, int] = {}  # where the bucket before was first read
    for bucket in _together(uses, most):
        first = bucket[0]
        assert first.node is not None
        place = first.node.outputs[0].spec, first.node.micro, first.node.stage
        lane = (place[0] and place[0].placement, *place[1:])
        here.setdefault(min(before.get(lane, first.first), first.first), []).append(fused([_made(u) for u in bucket]))
        before[lane] = first.first
    job.arrange(before=here, without={g for _, g in reads})


@dataclass(eq=False)
class Use:
    """Readers of a parameter that share one all-gather."""

    gather: Node  # the original one
    again: int  # how often it was gathered before
    readers: list[int] = field(default_factory=list)  # their places
    node: Node | None = None

    @property
    def first(self) -> int:
        return self.readers[0]

    def make(self, job: Job, anew: bool) -> None:
        """Make the node that gathers for these readers."""
        old = self.gather
        by = [job.nodes[i] for i in self.readers]
        v = old.outputs[0]
        name, now = old.name, v
        if self.again:
            name = f"{old.name}.again{self.again}"
            now = Value(f"{v.name}.again{self.again}", v.shape, v.dtype, v.spec, v.device)
            for reader in by:
                reader.replace_operands({v: now})
        micro = anew and all(reader.micro for reader in by)
        self.node = Node(
            name, "boxing", old.args, (now,), by[0].scope, by[0].at, micro, stage=by[0].stage,
            extra={"route": old.extra["route"]},
        )  # fmt: skip


def _made(use: Use) -> Node:
    assert use.node is not None
    return use.node


def _reads(job: Job) -> Iterator[tuple[int, Node]]:
    """Each read of a gathered parameter: its index, and the node that gathers it now. Parameters that are written
    before their last read, or for each micro-batch, are left out."""
    gathers = {n.outputs[0]: n for n in job.nodes if buckets.kind(n, AllGather) is not None and n.args[0] in job.parts}
    changed = {v for node in job.nodes if node.micro for v in written(node)}
    for node in job.nodes:
        for v in {v for v in node.operands() if v in gathers and gathers[v].args[0] in changed}:
            del gathers[v]
        changed |= written(node)
    for i, node in enumerate(job.nodes):
        for v in dict.fromkeys(node.operands()):
            if v in gathers:
                yield i, gathers[v]


def _uses(reads: list[tuple[int, Node]], apart: int | None) -> Iterator[Use]:
    """Reads that share an all-gather: all of them, or those with less than `apart` bytes of others in between."""
    going: dict[Node, Use] = {}
    passed: dict[Node, int] = {}
    total, last = 0, None
    for i, gather in reads:
        use = going.get(gather)
        if use is None or (apart is not None and total - passed[gather] >= apart):
            use = going[gather] = Use(gather, 0 if use is None else use.again + 1)
            yield use
        use.readers.append(i)
        if gather is not last:
            total += buckets.bytes_of(gather)
        passed[gather], last = total, gather


def _together(uses: list[Use], most: int) -> list[list[Use]]:
    """Buckets, in the order in which they are first read."""
    found: list[list[Use]] = []
    going: dict[Hashable, tuple[int, list[Use]]] = {}
    for use in sorted(uses, key=lambda u: u.first):
        size, kind = buckets.bytes_of(use.gather), buckets.kind(_made(use), AllGather)
        held, bucket = going.get(kind, (most, []))
        if buckets.travels_alone(size, most) or held + size > most:
            bucket = []
            found.append(bucket)
            held = 0
        bucket.append(use)
        if not buckets.travels_alone(size, most):
            going[kind] = held + size, bucket
    return found
