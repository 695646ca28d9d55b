from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from weft.core import rank as ranks
from weft.core.errors import DeadlineError, GraphError, RankError
from weft.plan.net import Net, line
from weft.plan.plan import Plan
from weft.runtime.actor import Turn
from weft.runtime.executor import Executor

WORKER_SOURCE = (
    Net().stream("compute").stream("loader", "worker").node("source", stream="loader", kind="source")
    .node("chain").node("sink", kind="sink").wire("source", "chain", copies=2).wire("chain", "sink", copies=2)
)  # fmt: skip


class FakeChannel:
    """Two counters; what a transport's channel is to the bus."""

    def __init__(self) -> None:
        self._posts = self._acks = 0

    def post(self) -> None:
        self._posts += 1

    def arrived(self) -> int:
        return self._posts

    def acknowledge(self) -> None:
        self._acks += 1

    def acknowledged(self) -> int:
        return self._acks

    def rings(self, bell: Callable[[], None]) -> bool:
        return False


class Log:
    """Acts that write down who acted."""

    def __init__(self, plan: Plan) -> None:
        self.said: list[tuple[str, int]] = []
        self.acts: dict[int, Callable[[Turn], None]] = {t.id: self._act(t.name) for t in plan.tasks}

    def _act(self, name: str) -> Callable[[Turn], None]:
        return lambda turn: self.said.append((name, turn.act))

    def of(self, name: str) -> list[int]:
        return [act for who, act in self.said if who == name]


def fail(turn: Turn) -> None:
    raise ValueError("no such kernel")


def test_launches_run_in_order() -> None:
    plan = line("source", "chain", "sink", copies=2).plan()
    log = Log(plan)
    executor = Executor(plan, log.acts, deadline=60)
    first, second = executor.launch(), executor.launch(3)
    second.wait()
    assert first.done and second.done
    assert all(log.of(n) == [0, 1, 2, 3] for n in ("source", "chain", "sink"))
    executor.close()


def test_the_one_who_waits_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Executor, "_background", lambda self: None)  # which would take over from one who is held up
    plan = line("source", "sink").plan()
    threads: list[threading.Thread] = []
    executor = Executor(plan, {t.id: lambda turn: threads.append(threading.current_thread()) for t in plan.tasks})
    for _ in range(20):
        executor.launch().wait(60)
    assert threads == [threading.current_thread()] * 40
    executor.close()


def test_a_launch_makes_progress_although_nobody_waits() -> None:
    plan = line("source", "sink").plan()
    over = threading.Event()
    executor = Executor(plan, {plan.tasks[0].id: lambda turn: None, plan.tasks[1].id: lambda turn: over.set()})
    executor.launch()
    assert over.wait(60)
    executor.close()


def test_a_worker_source_is_held_back_by_its_copies() -> None:
    net = Net().stream("compute").stream("loader", "worker")
    net.node("data", stream="loader", kind="source", ahead=True).node("go", kind="source").node("chain")
    plan = net.wire("data", "chain", copies=3).wire("go", "chain").plan()
    log = Log(plan)
    full = threading.Event()

    def load(turn: Turn) -> None:
        log.said.append(("data", turn.act))
        if turn.act == 2:
            full.set()

    executor = Executor(plan, log.acts | {net.id("data"): load}, deadline=60)
    assert full.wait(60)
    assert log.of("data") == [0, 1, 2] and log.of("chain") == []
    executor.launch(5).wait()
    assert log.of("chain") == [0, 1, 2, 3, 4]
    executor.close()
    assert len(log.of("data")) <= 5 + 3


def test_registers_are_not_overwritten_while_read() -> None:
    """Version stamps: every reader sees the version that its act is due."""
    net = Net().stream("compute").stream("a", "worker").stream("b", "worker")
    net.node("source", stream="a", kind="source").node("left", stream="b").node("right").node("sink", kind="sink")
    net.wire("source", "left", "right", copies=2).wire("left", "sink", copies=3).wire("right", "sink")
    plan = net.plan()
    buffers = {r.id: [-1] * r.copies for r in plan.registers}

    def make(task: int) -> Callable[[Turn], None]:
        t = plan.task(task)

        def act(turn: Turn) -> None:
            seen = [buffers[p.register][s] for p, s in zip(t.consumes, turn.consumed, strict=True)]
            assert all(v == turn.act for v in seen), (t.name, turn, seen)
            for p, s in zip(t.produces, turn.produced, strict=True):
                buffers[p.register][s] = turn.act
            seen = [buffers[p.register][s] for p, s in zip(t.consumes, turn.consumed, strict=True)]
            assert all(v == turn.act for v in seen), (t.name, turn, seen)

        return act

    executor = Executor(plan, {t.id: make(t.id) for t in plan.tasks}, deadline=60)
    executor.launch(300).wait()
    executor.close()


def test_micro_batches() -> None:
    net = Net().node("batch").node("unpack", 4).node("forward", 4).node("update")
    net.wire("batch", "unpack", over=(1, 4)).wire("unpack", "forward").wire("forward", "update", over=(4, 1))
    plan = net.plan()
    log = Log(plan)
    executor = Executor(plan, log.acts, deadline=60)
    executor.launch(2).wait()
    executor.close()
    assert log.of("forward") == list(range(8)) and log.of("update") == [0, 1]


@pytest.mark.parametrize("stream", ["compute", "loader"])
def test_an_error_reaches_the_one_who_waits(stream: str) -> None:
    name = "chain" if stream == "compute" else "source"
    plan = WORKER_SOURCE.plan()
    executor = Executor(plan, Log(plan).acts | {WORKER_SOURCE.id(name): fail}, deadline=60)
    ticket = executor.launch()
    with pytest.raises(ValueError, match="no such kernel") as e:
        ticket.wait()
    assert e.value.__notes__[0] == f"in actor '{name}' of plan 'net', act 0"
    assert ticket.done
    with pytest.raises(GraphError, match="make the graph anew, on every rank"):
        executor.launch()
    executor.close()
    assert not any(t.name.startswith("weft-net") for t in threading.enumerate())


def test_another_can_break_it_off() -> None:
    plan = line("a", "b").plan()
    executor = Executor(plan, Log(plan).acts)
    executor.fail(RankError("rank 3 is gone"))
    with pytest.raises(GraphError, match="rank 3 is gone"):
        executor.launch()
    executor.close()


def test_a_stuck_run_says_who_waits_for_what() -> None:
    _, b = Net().node("a").node("b", rank=1).node("c", rank=1).wire("a", "b", name="x").wire("b", "c").plans()
    asked: list[tuple[int, ...]] = []
    executor = Executor(
        b,
        Log(b).acts,
        {0: FakeChannel()},
        watch=lambda needed: asked.append(needed),
        elsewhere=lambda: "; rank 0 spins",
    )
    with pytest.raises(DeadlineError) as e:
        executor.launch().wait(0.2)
    assert "after 0.2 s; rank 0 spins.\n" in str(e.value) and "waits for x from rank 0\n" in str(e.value)
    assert "c (0 acts" in str(e.value) and "waits for b_c from b" in str(e.value)
    assert asked[-1] == (0,)
    executor.fail(RankError("give up"))
    executor.close()


def test_what_watches_may_break_it_off() -> None:
    def watch(needed: tuple[int, ...]) -> None:
        raise RankError("rank 0 died in op matmul")

    _, b = Net().node("a").node("b", rank=1).wire("a", "b").plans()
    executor = Executor(b, Log(b).acts, {0: FakeChannel()}, watch=watch, deadline=60)
    with pytest.raises(RankError, match="matmul"):
        executor.launch().wait()
    executor.close()


def test_an_act_cannot_wait_for_its_own_plan() -> None:
    plan = line("a", "b").plan()
    acts = Log(plan).acts
    executor = Executor(plan, acts | {plan.tasks[1].id: lambda turn: executor.launch().wait()}, deadline=5)
    with pytest.raises(GraphError, match="waits for a launch of its own plan"):
        executor.launch().wait()
    executor.close()


def test_closing_finishes_what_was_launched() -> None:
    plan = WORKER_SOURCE.plan()
    log = Log(plan)
    executor = Executor(plan, log.acts, deadline=60)
    tickets = [executor.launch() for _ in range(20)]
    executor.close()
    executor.close()
    assert all(t.done for t in tickets) and log.of("sink") == list(range(20))
    with pytest.raises(GraphError, match="is closed"):
        executor.launch()


def test_no_thread_is_left() -> None:
    plan = WORKER_SOURCE.plan()
    before = threading.active_count()
    for _ in range(200):
        executor = Executor(plan, Log(plan).acts, deadline=60)
        executor.launch().wait()
        executor.close()
    assert threading.active_count() == before


def test_several_threads_may_wait() -> None:
    plan = WORKER_SOURCE.plan()
    executor = Executor(plan, Log(plan).acts, deadline=60)
    counts: list[int] = []

    def client() -> None:
        for _ in range(30):
            executor.launch().wait()
        counts.append(30)

    clients = [threading.Thread(target=client) for _ in range(3)]
    for c in clients:
        c.start()
    for c in clients:
        c.join(60)
    assert counts == [30] * 3 and executor.finished == 90
    executor.close()


def test_threads_are_of_the_rank_that_made_them() -> None:
    plan = WORKER_SOURCE.plan()
    seen: list[int] = []
    with ranks.enter(ranks.Rank(3, 4)):
        executor = Executor(
            plan, Log(plan).acts | {WORKER_SOURCE.id("source"): lambda t: seen.append(ranks.current().index)}
        )
        executor.launch().wait(60)
        executor.close()
    assert seen == [3]


def test_two_ranks() -> None:
    """There and back, two readers on the other rank; each rank waits in its own thread."""
    net = Net().node("a").node("b", rank=1).node("c", rank=1).node("d", rank=1).node("e")
    net.wire("a", "b", "c", name="x", copies=2).wire("b", "d").wire("c", "d").wire("d", "e", name="y", copies=2)
    plans = net.plans()
    channels = {0: FakeChannel(), 3: FakeChannel()}
    logs = [Log(p) for p in plans]
    errors: list[BaseException] = []

    def rank(i: int) -> None:
        try:
            executor = Executor(plans[i], logs[i].acts, channels, deadline=60)
            for _ in range(50):
                executor.launch().wait()
            executor.launch(10).wait()
            executor.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=rank, args=(i,)) for i in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors and not any(t.is_alive() for t in threads)
    assert logs[0].of("e") == logs[1].of("d") == list(range(60))


def test_what_is_sent_ahead_does_not_keep_a_rank_from_closing() -> None:
    net = Net().node("data", kind="source", ahead=True).node("go", rank=1, kind="source").node("use", rank=1)
    plans = net.wire("data", "use", copies=3).wire("go", "use").plans()
    channels = {0: FakeChannel()}
    executors = [Executor(p, Log(p).acts, channels, deadline=60) for p in plans]
    executors[0].launch(2)
    executors[1].launch(2)
    closing = [threading.Thread(target=e.close) for e in executors]
    for c in closing:
        c.start()
    for c in closing:
        c.join(60)
    assert not any(c.is_alive() for c in closing)
    assert all(e.error is None and e.finished >= 2 for e in executors)


def test_an_interrupt_ends_the_run() -> None:
    def interrupt(turn: Turn) -> None:
        raise KeyboardInterrupt

    plan = line("a", "b").plan()
    executor = Executor(plan, Log(plan).acts | {plan.tasks[1].id: interrupt})
    with pytest.raises(KeyboardInterrupt):
        executor.launch().wait(60)
    executor.close()


def test_tracing_names_every_act() -> None:
    plan = line("a", "b").plan()
    executor = Executor(plan, Log(plan).acts)
    seen: list[tuple[str, int]] = []
    executor.trace = lambda task, act, start, end: seen.append((task.name, act))
    executor.launch(2).wait(60)
    assert sorted(seen) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    executor.close()


def test_what_is_missing_is_named() -> None:
    a, _ = Net().node("a").node("b", rank=1).wire("a", "b", name="x").plans()
    with pytest.raises(GraphError, match="without an act: a"):
        Executor(a, {})
    with pytest.raises(GraphError, match="register x crosses ranks"):
        Executor(a, Log(a).acts)
