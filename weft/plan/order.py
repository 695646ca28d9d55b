"""One order for acts that must not overtake each other, the same on every rank that works it out.

Collectives on a group must be called in one order on all its members, but actors act when messages come, and messages
come sooner here than there. So the compiler imagines one run: lanes (ranks that share work count as one) that do an act
at a time, the earliest in the chain of tasks that is ready. What it sees, each rank keeps, for acts that need an order.

Any such order is free of deadlocks: it is one way through all the precedences, and each rank follows a part of it.
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
    """Every act of one launch in the order in which they begin in an imagined run, where each takes its lane so long.

    Where several are ready, what is due first goes first, and of these, tasks of lesser id: if all is due at once, a
    stage goes forward as far as the quota of its registers lets it, then one backward, one forward, in turn.
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
    ends: list[tuple[int, Act]] = []  # of the acts under way, at most one a lane
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
    """Where a cyclic order goes from one task to another: per pair, the acts at both ends, and whether it is the way
    from one launch's end to the next one's beginning.

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
