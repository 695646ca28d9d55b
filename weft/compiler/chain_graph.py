"""The dependency graph of chains over all ranks, and the order in which those with collectives take turns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from weft.compiler.chains import Key
from weft.compiler.passes.dead_code import written
from weft.compiler.streams import kind_of
from weft.core.placement import Placement
from weft.job.value import Node, Value
from weft.plan import ids, order
from weft.plan.plan import Port, Register, Task
from weft.plan.verify import Act


class ChainGraph:
    """The dependencies between chains, computed alike on every rank, at a cost independent of the number of ranks.

    data       pairs (producer, consumer)
    orders     more pairs of which the first acts before the second: where streams leave it open what comes first
    loops      pairs of which the first writes variables that the second reads, on common ranks; and whether that is for
               the next launch, because the second comes first in this one
    talking    chains with collectives inside
    """

    def __init__(
        self, chains_of: dict[Node, tuple[Key, ...]], keys: list[Key], variables: dict[Value, Value],
        held: dict[Value, Value],
    ) -> None:  # fmt: skip
        self.keys = keys
        data = dict.fromkeys(_data(chains_of))
        self.orders = dict.fromkeys((*_orders(keys, data), *_overwritten(chains_of, variables, held)))
        self.data = data | self.orders
        self.talking = {ks[0] for n, ks in chains_of.items() if len(ks) == 1 and _talks(n)}
        reads: dict[Key, set[Value]] = {}
        writes: dict[Key, set[Value]] = {}
        for n, ks in chains_of.items():
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
        """The acts of one launch, in the order in which chains with collectives act on every rank. An act's task is the
        chain's index."""
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
        """The lane of each chain: chains of a stream whose placements share a rank, transitively, act one at a time."""
        lanes: dict[Key, int] = {}
        for n, k in enumerate(self.keys):
            near = {lanes[o] for o in lanes if o.stream == k.stream and _meet(k.placement, o.placement)}
            lanes = {other: n if lane in near else lane for other, lane in lanes.items()}
            lanes[k] = n
        return lanes


def _data(chains_of: dict[Node, tuple[Key, ...]]) -> Iterator[tuple[Key, Key]]:
    made = {v: ks[-1] for n, ks in chains_of.items() for v in n.outputs}
    for n, ks in chains_of.items():
        yield from [(made[v], ks[0]) for v in n.operands() if v in made and made[v] != ks[0]]
        if len(ks) == 2:
            yield ks[0], ks[1]


def _orders(keys: list[Key], data: Iterable[tuple[Key, Key]]) -> Iterator[tuple[Key, Key]]:
    """Let what was computed before in the job act before what reads a stream's result, which may come early; and before
    a stream's chain that reads only variables, which would else begin with the launch."""
    before: dict[Key, Key] = {}  # the last chain of each line so far
    fed, awaiting = {b for _, b in data}, {b for a, b in data if a.stream and not b.micro}
    for k in sorted((k for k in keys if kind_of(k.stream) != "copy"), key=lambda k: (k.depth, not k.stream)):
        line = k._replace(depth=0, stream="")
        if line in before and (k not in fed if k.stream else k in awaiting):
            yield before[line], k
        if not k.stream:
            before[line] = k


def _overwritten(
    chains_of: dict[Node, tuple[Key, ...]], variables: dict[Value, Value], held: dict[Value, Value]
) -> Iterator[tuple[Key, Key]]:
    """Let results that are overwritten be read before that, or after it."""
    wrote: dict[Value, Key] = {}
    read: dict[Value, list[Key]] = {}
    for n, (k, *_) in chains_of.items():
        over = {held[v] for v in written(n) if v not in variables}
        for v in {held[v] for v in n.operands() if v in held and v not in variables}:
            before = [wrote[v]] if v in wrote else []
            if v in over:
                before, wrote[v], read[v] = before + read.get(v, []), k, []
            read.setdefault(v, []).append(k)
            yield from ((b, k) for b in before if b != k)


def _talks(node: Node) -> bool:
    """Whether a node communicates while it runs."""
    return node.op == "boxing" and any(not step.local for step in node.route.steps)


def _meet(a: Placement | None, b: Placement | None) -> bool:
    return a is b or a is None or b is None or not set(a.members).isdisjoint(b.members)
