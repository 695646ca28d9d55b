"""A total order of acts, the same on every rank that computes it.

Collectives of a group must be called in one order on all members, but actors act when messages arrive, at different
times on each rank. So the compiler simulates one run of lanes (ranks that share work count as one), each of which does
one act at a time, the earliest ready one. Acts that need an order keep that of the simulation.

Any such order is free of deadlock: it is a topological order of all precedences, and each rank follows a part of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise

from weft.core.errors import CompileError
from weft.plan.plan import Register, Task
from weft.plan.verify import Act, precedences


def imagined(
    tasks: Mapping[int, Task], registers: Mapping[int, Register], lane: Callable[[Task], Hashable],
    takes: Callable[[Task], int] = lambda t: 1, due: Callable[[Act], int] = lambda a: 0,
) -> list[Act]:  # fmt: skip
    """The acts of one launch in the order in which they begin in a simulated run; `takes` is the time of a task's act.

    Of several ready acts the first due goes first, then the lesser task id: if all are due at once, a stage goes
    forward as far as the quota of its registers allows, then alternates one backward, one forward (1F1B).
    """
    waits = {Act(t.id, k): 0 for t in tasks.values() for k in range(t.acts)}
    after: dict[Act, list[Act]] = {a: [] for a in waits}
    for p in precedences(dict(tasks), dict(registers)):
        after[p.before].append(p.after)
        waits[p.after] += 1
    ready: dict[Hashable, list[tuple[int, int, int]]] = {}

    def add(a: Act) -> None:
        heapq.heappush(ready.setdefault(lane(tasks[a.task]), []), (due(a), a.task, a.number))

    for a, n in waits.items():
        if n == 0:
            add(a)
    found: list[Act] = []
    ends: list[tuple[int, Act]] = []  # of the running acts, at most one in each lane
    busy: set[Hashable] = set()
    clock = 0
    while ends or any(ready.values()):
        while ends and ends[0][0] == clock:
            _, a = heapq.heappop(ends)
            busy.remove(lane(tasks[a.task]))
            for b in after[a]:
                waits[b] -= 1
                if waits[b] == 0:
                    add(b)
        now = {on: Act(*heapq.heappop(heap)[1:]) for on, heap in ready.items() if heap and on not in busy}
        busy.update(now)
        for a in now.values():
            heapq.heappush(ends, (clock + takes(tasks[a.task]), a))
        found += sorted(now.values())
        clock = ends[0][0] if ends else clock
    if len(found) < len(waits):
        raise CompileError("no order of these acts exists: they wait for each other; verify(plans) shows the circle")
    return found


def handovers(order: Sequence[Act]) -> dict[tuple[int, int], list[tuple[int, int, bool]]]:
    """The handovers between tasks in a cyclic order: for each pair, the acts at both ends, and whether it leads from
    one launch's end to the next one's beginning.

    >>> handovers([Act(1, 0), Act(1, 1), Act(2, 0)])
    {(1, 2): [(1, 0, False)], (2, 1): [(0, 0, True)]}
    """
    found: dict[tuple[int, int], list[tuple[int, int, bool]]] = {}
    for a, b in pairwise(order):
        if a.task != b.task:
            found.setdefault((a.task, b.task), []).append((a.number, b.number, False))
    if order and order[-1].task != order[0].task:
        found.setdefault((order[-1].task, order[0].task), []).append((order[-1].number, order[0].number, True))
    return found
