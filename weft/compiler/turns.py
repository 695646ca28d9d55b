"""How chains hang together, seen from above all ranks, and the order in which those with collectives take turns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from weft.compiler.chains import Key
from weft.compiler.passes.dead_code import written
from weft.core.placement import Placement
from weft.job.value import Node, Value
from weft.plan import ids, order
from weft.plan.plan import Port, Register, Task
from weft.plan.verify import Act


class Turns:
    """What every rank works out alike from the chains; its cost doesn't depend on how many ranks there are.

    data       pairs of chains of which one makes what the other reads
    loops      pairs of which the first writes variables that the second reads, on ranks that they share; and whether
               that is for the next launch, because the second comes first in this one
    talking    chains with collectives inside
    """

    def __init__(self, homes: dict[Node, tuple[Key, ...]], keys: list[Key], variables: dict[Value, Value]) -> None:
        self.keys = keys
        self.data = dict.fromkeys(_data(homes))
        self.talking = {ks[0] for n, ks in homes.items() if len(ks) == 1 and _talks(n)}
        reads: dict[Key, set[Value]] = {}
        writes: dict[Key, set[Value]] = {}
        for n, ks in homes.items():
            reads.setdefault(ks[0], set()).update(variables[v] for v in n.operands() if v in variables)
            writes.setdefault(ks[0], set()).update(variables[v] for v in written(n) if v in variables)
        self.loops = [
            (w, k, int(keys.index(w) > keys.index(k)))
            for w, k in itertools.permutations(keys, 2)
            if w in writes and k in reads and writes[w] & reads[k] and _meet(w.placement, k.placement)
        ]

    def acts(
        self, micro: int, copies: Callable[[Key, Key], int], period: Callable[[Key, Key], int],
        takes: Callable[[Key], int], due: Callable[[Key, int], int],
    ) -> list[Act]:  # fmt: skip
        """One launch of all chains, in the order in which those that talk act on every rank. Tasks are places."""
        place = {k: i for i, k in enumerate(self.keys)}
        task = {k: ids.encode(0, "cpu", 0, 0, i) for k, i in place.items()}
        reads: dict[Key, list[Port]] = {k: [] for k in self.keys}
        writes: dict[Key, list[Port]] = {k: [] for k in self.keys}
        registers: dict[int, Register] = {}
        wires = [(a, b, copies(a, b), 0) for a, b in self.data] + [(a, b, 1, full) for a, b, full in self.loops]
        for n, (a, b, count, full) in enumerate(wires):
            registers[n] = Register(n, str(n), task[a], (task[b],), count, full=full)
            writes[a].append(Port(n, period(a, b)))
            reads[b].append(Port(n, period(b, a)))
        tasks = {
            task[k]: Task(task[k], str(place[k]), "compute", tuple(reads[k]), tuple(writes[k]), micro if k.micro else 1)
            for k in self.keys
        }
        lanes = self._lanes()
        key = {t: k for k, t in task.items()}
        found = order.imagined(
            tasks, registers, lambda t: lanes[key[t.id]], lambda t: takes(key[t.id]),
            lambda a: due(key[a.task], a.number),
        )  # fmt: skip
        return [Act(place[key[a.task]], a.number) for a in found]

    def _lanes(self) -> dict[Key, int]:
        """Chains of a stream whose placements share a rank can't act at once, nor those that a third one ties."""
        lanes: dict[Key, int] = {}
        for n, k in enumerate(self.keys):
            near = {lanes[o] for o in lanes if o.stream == k.stream and _meet(k.placement, o.placement)}
            lanes = {other: n if lane in near else lane for other, lane in lanes.items()}
            lanes[k] = n
        return lanes


def _data(homes: dict[Node, tuple[Key, ...]]) -> Iterator[tuple[Key, Key]]:
    made = {v: ks[-1] for n, ks in homes.items() for v in n.outputs}
    for n, ks in homes.items():
        yield from [(made[v], ks[0]) for v in n.operands() if v in made and made[v] != ks[0]]
        if len(ks) == 2:
            yield ks[0], ks[1]


def _talks(node: Node) -> bool:
    """Whether a node calls other ranks while it runs."""
    if node.op != "boxing":
        return False
    route = node.extra["route"] if "route" in node.extra else node.extra["routes"][0]
    return any(not step.local for step in route.steps)


def _meet(a: Placement | None, b: Placement | None) -> bool:
    return a is b or a is None or b is None or not set(a.members).isdisjoint(b.members)
