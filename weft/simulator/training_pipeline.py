"""A small model of pipeline training: one forward and one backward actor per stage, each stage a rank.

The 1F1B schedule is emergent. Stage s may hold `stages - s` micro-batches, which is the quota of the register between
its forward and its backward; the rest follows.
"""

from __future__ import annotations

from weft.core.errors import GraphError
from weft.plan.net import Net


def pipeline(stages: int, micro_batches: int, quotas: list[int] | None = None) -> Net:
    """`quotas`: how many micro-batches each stage may hold; by default what one-forward-one-backward needs."""
    quotas = quotas or [stages - s for s in range(stages)]
    if len(quotas) != stages:
        raise GraphError(f"{stages} stages take {stages} quotas; got {quotas}")
    net = Net("pipeline").stream("compute").stream("host", "worker")
    net.node("batch", rank=0, stream="host", kind="source")
    for s in range(stages):
        net.node(f"f{s}", micro_batches, rank=s).node(f"b{s}", micro_batches, rank=s)
        net.node(f"u{s}", rank=s, kind="sink")
    net.wire("batch", "f0", copies=2, over=(1, micro_batches))
    for s in range(stages):
        net.wire(f"f{s}", f"b{s}", name=f"stash{s}", copies=quotas[s])
        net.wire(f"b{s}", f"u{s}", name=f"gradient{s}", over=(micro_batches, 1))
        if s + 1 < stages:
            net.wire(f"f{s}", f"f{s + 1}", name=f"activation{s}", copies=2)
            net.wire(f"b{s + 1}", f"b{s}", name=f"delta{s}", copies=2)
    return net
