"""The cost of an actor: a message and an act; a launch from call to result. Minimum of several repeats.

python -m bench.actors
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from weft.plan.net import Net, line
from weft.runtime.actor import Actor, Turn
from weft.runtime.executor import Executor
from weft.runtime.message import LAUNCH, NONE, Message


def nothing(turn: Turn) -> None:
    """An act whose kernel takes no time."""


def least(run: Callable[[], float], repeats: int = 7) -> float:
    return min(run() for _ in range(repeats))


def act_cost(actors: int = 10, launches: int = 2_000) -> float:
    """Seconds per act, its messages included, for a chain of actors on one thread."""
    plan = line(*(f"a{i}" for i in range(actors)), copies=2).plan()
    registers = {r.id: r for r in plan.registers}

    def run() -> float:
        every = {t.id: Actor(t, registers) for t in plan.tasks}
        messages = deque([Message(LAUNCH, plan.tasks[0].id, NONE, launches)])
        start = time.perf_counter()
        while messages:
            message = messages.popleft()
            actor = every[message[1]]
            messages.extend(actor.on_message(message))
            while not actor.blocked:
                actor.begin()
                messages.extend(actor.finish())
        seconds = time.perf_counter() - start
        assert all(a.acts == launches for a in every.values())
        return seconds / launches / actors

    return least(run)


def launch_cost(net: Net, calls: int = 500, in_flight: int = 1) -> float:
    """Seconds from a call to its result, with empty acts."""
    plan = net.plan()
    executor = Executor(plan, {t.id: nothing for t in plan.tasks}, deadline=10)

    def run() -> float:
        start = time.perf_counter()
        for _ in range(calls // in_flight):
            tickets = [executor.launch() for _ in range(in_flight)]
            tickets[-1].wait()
        return (time.perf_counter() - start) / (calls // in_flight * in_flight)

    cost = least(run)
    executor.close()
    return cost


def rows() -> list[tuple[str, float]]:
    """Cases with their seconds."""
    threaded = Net().stream("compute").stream("loader", "worker").node("source", stream="loader", kind="source")
    threaded.node("chain").node("sink", kind="sink").wire("source", "chain", copies=2).wire("chain", "sink", copies=2)
    return [
        ("message and act of an actor", act_cost()),
        ("call to result: one chain", launch_cost(line("chain"))),
        ("call to result: source, chain, sink", launch_cost(line("source", "chain", "sink"))),
        ("the same, 8 in flight", launch_cost(line("source", "chain", "sink", copies=2), in_flight=8)),
        ("call to result: the source on a worker thread", launch_cost(threaded)),
    ]


if __name__ == "__main__":
    for what, seconds in rows():
        print(f"{what:48} {seconds * 1e6:8.2f} us")
