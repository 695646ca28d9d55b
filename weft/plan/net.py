"""Build plans by hand, of named nodes and wires between them: for the simulator, documents and tests.

>>> net = Net().node("a").node("b", rank=1).wire("a", "b", copies=2)
>>> [t.name for plan in net.plans() for t in plan.tasks]
['a', 'b']
"""

from __future__ import annotations

from itertools import pairwise

from weft.plan.ids import encode
from weft.plan.plan import Kind, Plan, Policy, Port, Register, Stream, Task


class Net:
    """A builder of plans. Every method returns the net, for chaining."""

    def __init__(self, name: str = "net") -> None:
        self.name = name
        self._streams: dict[str, Policy] = {}
        self._tasks: dict[str, Task] = {}
        self._registers: dict[str, Register] = {}
        self._reads: dict[str, list[Port]] = {}
        self._writes: dict[str, list[Port]] = {}

    def stream(self, name: str, policy: Policy = "caller") -> Net:
        self._streams[name] = policy
        return self

    def node(
        self, name: str, acts: int = 1, *, rank: int = 0, stream: str = "compute", kind: Kind = "compute",
        ahead: bool = False,
    ) -> Net:  # fmt: skip
        """Add a task on a stream of its rank; a new stream gets the policy "caller"."""
        self._streams.setdefault(stream, "caller")
        id = encode(rank, "cpu", 0, list(self._streams).index(stream), len(self._tasks))
        self._tasks[name] = Task(id, name, kind, acts=acts, ahead=ahead)
        return self

    def wire(
        self, producer: str, *consumers: str, name: str = "", copies: int = 1, full: int = 0,
        over: tuple[int, int] = (1, 1), at: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    ) -> Net:  # fmt: skip
        """Add a register from one node to others; `over` are the periods of both ends, `at` the acts that use it."""
        name = name or f"{producer}_{consumers[0] if consumers else ''}"
        id = len(self._registers)
        to = tuple(self._tasks[c].id for c in consumers)
        self._registers[name] = Register(id, name, self._tasks[producer].id, to, copies, full=full)
        self._writes.setdefault(producer, []).append(Port(id, over[0], at[0]))
        for c in consumers:
            self._reads.setdefault(c, []).append(Port(id, over[1], at[1]))
        return self

    def id(self, node: str) -> int:
        return self._tasks[node].id

    def plans(self) -> tuple[Plan, ...]:
        """One per rank."""
        every = [
            Task(t.id, n, t.kind, tuple(self._reads.get(n, ())), tuple(self._writes.get(n, ())), t.acts, t.ahead)
            for n, t in self._tasks.items()
        ]
        size = 1 + max((t.rank for t in every), default=0)
        streams = [Stream(i, name, policy) for i, (name, policy) in enumerate(self._streams.items())]
        plans = []
        for rank in range(size):
            tasks = tuple(t for t in every if t.rank == rank)
            ids = {p.register for t in tasks for p in (*t.consumes, *t.produces)}
            registers = tuple(r for r in self._registers.values() if r.id in ids)
            used = tuple(s for s in streams if s.index in {t.stream for t in tasks})
            plans.append(Plan(self.name, rank, size, used, tasks, registers))
        return tuple(plans)

    def plan(self) -> Plan:
        """The plan, if all nodes are on one rank."""
        (plan,) = self.plans()
        return plan


def line(*names: str, copies: int = 1, apart: bool = False) -> Net:
    """A chain of nodes, on one stream, or `apart`, each on a separate one.

    >>> [r.name for r in line("a", "b", "c").plan().registers]
    ['a_b', 'b_c']
    """
    net = Net()
    for name in names:
        net.node(name, stream=name if apart else "compute")
    for a, b in pairwise(names):
        net.wire(a, b, copies=copies)
    return net
