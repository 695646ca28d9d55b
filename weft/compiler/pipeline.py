"""Pipeline schedules: how far each chain may run ahead of its readers, and which is due first on a rank.

No schedule is written down. In a full pipeline data goes one chain deeper each beat, so an act is due at the depth of
its chain plus the number of its micro-batch. With several stages per rank (interleaved), the ranks are busy with later
stages once each of them has had a micro-batch; so micro-batches enter in groups of as many as there are ranks, and the
next group enters when the one before has gone through all stages.

1F1B          quotas alone: a stage keeps as many micro-batches as there are stages from it to the last
interleaved   several stages per rank: of the chains that could act, a rank takes the one that is due first
zero bubble   weights' gradients are separate chains, due after everything else: they fill the bubbles. Each stage keeps
              as many micro-batches as the first one, so that no bubble is left for want of memory

A rank that ran whatever is ready would often begin the wrong act a moment before the right one is. So where the order
matters, it is that of a simulated run without delays, and the chains pass a turn around.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.compiler.chains import Key
from weft.compiler.streams import kind_of
from weft.job.job import Job
from weft.job.value import Node
from weft.ops import OPS


class Pipeline:
    """The schedule of all chains, computed alike on every rank.

    beats    how deep in the pipeline each chain is
    cut      the placements whose stages collectives with streams cut into several chains
    stages   the number of stages of the model, over all ranks
    row      how many micro-batches enter in a row: as many as there are placements
    timed    whether the order of acts must be enforced
    """

    def __init__(self, job: Job, beats: Mapping[Key, int], micro: int) -> None:
        chains = [k for k in beats if k.micro and not k.stream]
        steps = {beats[k] for k in chains if not k.late}
        self.beats = beats
        self.cut = {k.placement for k in beats if k.micro and kind_of(k.stream) == "collective"}
        training = any(n.op == "accumulate" for n in job.nodes)
        self.micro = micro
        self.row = max(1, len({(k.placement, k.device) for k in chains}))
        self.stages = (len(steps) + 1) // 2 if training else len(steps)
        self.timed = self.stages > self.row or any(k.late for k in chains)
        self.end = max(steps, default=0) + (micro // self.row + 1) * self.stages

    def copies(self, a: Key, b: Key) -> int:
        """How many micro-batches may be in flight between two chains. The quota between a stage's forward and backward
        chain is enough to give 1F1B; one more lets the next micro-batch compute while collectives of this one are
        under way, and keeps a rank whose order is fixed from waiting for every delay of the others."""
        copying = "copy" in (kind_of(a.stream), kind_of(b.stream))  # the next is copied while this one is used
        if a.placement is not b.placement or not (a.micro and b.micro):
            return 1 + copying if a.placement is b.placement or not a.micro else min(2 + self.timed, self.micro)
        kept = (self.beats[b] - self.beats[a]) // 2 + 1 + copying + (a.placement in self.cut)
        if b.late:
            kept = -(-kept // self.row) * self.row
        return min(kept + self.timed, self.micro)

    def due(self, k: Key, act: int) -> int:
        """The beat at which an act is due in a full pipeline."""
        if not (self.timed and k.micro):
            return 0
        return self.beats[k] + self.end * k.late + act // self.row * max(self.stages, self.row) + act % self.row


def roles(chains_of: Mapping[Node, tuple[Key, ...]]) -> dict[Key, str]:
    """What a chain computes for a micro-batch: forward (F), gradients of inputs (B), gradients of weights (W)."""
    members: dict[Key, list[Node]] = {}
    made = {v: ks[-1] for n, ks in chains_of.items() for v in n.outputs}
    for n, ks in chains_of.items():
        for k in ks:
            members.setdefault(k, []).append(n)
    apart = any(k.late for k in members)  # then those in a chain with B come from the same kernel
    found: dict[Key, str] = {}
    for k, nodes in members.items():
        backward = [bool(n.extra.get("backward")) for n in nodes if n.op in OPS and not OPS[n.op].view]
        weights = not apart and any(n.op == "accumulate" for n in nodes)
        found[k] = "F" * (not all(backward)) + "B" * any(backward) + "W" * weights if k.micro and not k.stream else ""
    for k, nodes in members.items():
        if k.late:
            given = {found[made[v]] for n in nodes for v in n.operands() if v in made and made[v] != k}
            found[k] = "W" if any("B" in role for role in given) else "BW"  # all of backward, in the first stage
    return found
