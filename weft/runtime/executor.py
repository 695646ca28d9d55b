"""The executor: run a plan's actors on threads, one per worker stream, and one event loop (the drive) for all others.

The caller that waits for a launch runs the drive itself: a thread switch would cost more than a small step. If launches
are in flight and no caller waits, a background thread takes over within a few milliseconds. The drive also polls the
channels to other ranks. One thread at a time holds it, by a lock.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final

from weft.core import rank as ranks
from weft.core.errors import DeadlineError, GraphError, RankError
from weft.plan.plan import Plan, Task
from weft.runtime import report
from weft.runtime.actor import DONE, Actor, Turn
from weft.runtime.bus import Bus, Channel, Mailbox
from weft.runtime.message import END, FOREVER, LAUNCH, NONE, Message
from weft.runtime.station import Station

LOOKS: Final = 64  # polls of the channels in a round of spinning, yielding the core in between
ROUNDS: Final = 8  # rounds of spinning before sleeping
LOOK: Final = 0.05  # seconds between a waiting caller's checks of the other ranks and the clock
NAP: Final = 0.001  # seconds between the background thread's checks while launches are in flight
SHORT: Final = 0.00005  # seconds of a waiting caller's first nap; later ones are a hundredth of the wait, up to NAP
NAPS: Final = 32  # checks without a launch after which it sleeps

Trace = Callable[[Task, int, int, int], None]  # task, act, start and end by time.perf_counter_ns


class Ticket:
    """A handle of a launch in flight."""

    __slots__ = ("_executor", "until")

    def __init__(self, executor: Executor, until: int) -> None:
        self._executor, self.until = executor, until

    @property
    def done(self) -> bool:
        """Finished, or failed."""
        return self._executor.finished >= self.until or self._executor.error is not None

    def wait(self, deadline: float | None = None) -> None:
        """Wait until every act of the launch is over on this rank; meanwhile this thread may drive the actors."""
        if self._executor.finished < self.until:
            self._executor.wait(self.until, deadline)


class Executor:
    """Runs one rank's plan. `acts` are the tasks' functions; `channels` lead to other ranks, by register id.

    `watch` is called periodically while waiting, with the ranks that are waited for, and may raise: it checks whether
    the others are alive. `elsewhere` says what the others do, for the error of a wait that took too long.
    """

    def __init__(
        self, plan: Plan, acts: Mapping[int, Callable[[Turn], None]], channels: Mapping[int, Channel] | None = None,
        *, deadline: float = 300.0, watch: Callable[[tuple[int, ...]], None] | None = None,
        elsewhere: Callable[[], str] = str,
    ) -> None:  # fmt: skip
        self.plan, self.deadline, self.watch, self.elsewhere = plan, deadline, watch, elsewhere
        self.trace: Trace | None = None
        self.error: BaseException | None = None
        self.launched = self.finished = 0
        self._left = 0  # launches whose callers went on: the background thread looks after these
        self.closing = self._closed = False
        self._guard = threading.Lock()  # guards launched, finished, waiters, error
        self._drive_lock = threading.Lock()
        self._driver = self._waiters = 0
        self._alarm = threading.Event()
        self._sleeping = False

        if missing := [t.name for t in plan.tasks if t.id not in acts]:
            raise GraphError(f"plan {plan.name!r} has tasks without an act: {', '.join(missing)}; give acts[task.id]")
        self._main = Mailbox()
        workers = {s.index: Mailbox() for s in plan.streams if s.policy == "worker"}
        registers = {r.id: r for r in plan.registers}
        self._boxes = {t.id: workers.get(t.stream, self._main) for t in plan.tasks}
        self._stations = {t.id: Station(Actor(t, registers), acts[t.id], self._boxes[t.id]) for t in plan.tasks}
        self.bus = Bus(plan, self._boxes, channels or {})
        self.bus.wake(self._main)
        self._foreseen = chain.from_iterable(s.actor.foresee() for s in self._stations.values())
        self._place(plan)
        self._sources = [t for t in plan.tasks if not t.consumes]
        self._launch = [(self._boxes[t.id], Message(LAUNCH, t.id, NONE, t.acts)) for t in self._sources if not t.ahead]

        self._rank = ranks.current()
        own = [s for s in plan.streams if s.policy == "worker"]
        todo = {s.name: functools.partial(self._work, workers[s.index]) for s in own} | {"background": self._background}
        self._threads = [
            threading.Thread(target=run, name=f"weft-{plan.name}-{name}", daemon=True) for name, run in todo.items()
        ]
        for t in self._sources:
            if t.ahead:
                self._boxes[t.id].put(Message(LAUNCH, t.id, NONE, FOREVER))
        for thread in self._threads:
            thread.start()

    def _place(self, plan: Plan) -> None:
        for r in plan.registers:
            followed = [c for c in r.consumers if c in self._boxes] if not r.full else []
            if r.producer in self._stations and followed:
                self._stations[r.producer].last = True  # inverted below: it has a successor
        followed_by = {id for id, s in self._stations.items() if s.last}
        last = [s for id, s in self._stations.items() if id not in followed_by] or list(self._stations.values())
        for s in self._stations.values():
            s.last = s in last
            ends = {e for p in (*s.actor.task.consumes, *s.actor.task.produces) for e in self._ends(p.register)}
            s.local = all(self._boxes.get(e) is s.box for e in ends)
        self._last = last

    def _ends(self, register: int) -> tuple[int, ...]:
        r = self.plan.register(register)
        return (r.producer, *r.consumers)

    # --- launching and waiting ---

    def launch(self, n: int = 1) -> Ticket:
        """Let every source act for n launches more. Returns at once."""
        if n < 1:
            raise GraphError(f"launch({n}): at least 1")
        if self.error is not None or self.closing:
            raise GraphError(f"plan {self.plan.name!r} {self._why_not()}") from self.error
        until = self._take_in(n)
        with self._guard:
            self._left = max(self._left, until)
        if self._sleeping:
            self._alarm.set()
        return Ticket(self, until)

    def launch_if_idle(self) -> int | None:
        """Launch if none is in flight: returns the number of launches to wait for, or None."""
        if self.finished != self.launched or self.error is not None or self.closing:
            return None
        return self._take_in(1)

    def _take_in(self, n: int) -> int:
        try:
            with self._guard:
                self.launched = until = self.launched + n
                if not self._last:
                    self.finished = until
                for box, message in self._launch:
                    box.put(message if n == 1 else message._replace(slot=message.slot * n))
            return until
        except BaseException as error:  # Ctrl-C: it is counted, and not every source may have been told
            self.fail(error)
            raise

    def _why_not(self) -> str:
        broken = f"was broken off in an earlier launch: {self.error!r}; make the graph anew, on every rank"
        return "is closed" if self.error is None else broken

    def wait(self, until: int, deadline: float | None = None) -> None:
        """Wait until so many launches have finished."""
        if self._driven(until) and self.finished >= until:
            return
        self._wait_on(lambda: self.finished >= until, until, self.deadline if deadline is None else deadline)

    def until(self, over: Callable[[], bool]) -> None:
        """Drive the actors until a condition holds that they, or others, bring about."""
        if not over():
            self._wait_on(over, FOREVER, self.deadline)

    def _wait_on(self, over: Callable[[], bool], until: int, deadline: float) -> None:
        """The slow path of waiting: drive if nobody else does, poll the channels, sleep, check the deadline."""
        if self._driver == threading.get_ident():
            raise GraphError(
                f"plan {self.plan.name!r}: an act waits for a launch of its own plan, which waits for the act"
            )
        start = watched = idle_since = time.monotonic()
        spins = 0
        needed: tuple[int, ...] = ()
        with self._guard:
            self._waiters += 1
        try:
            while not over():
                if self.error is not None:
                    raise self.error
                if self._closed:
                    raise GraphError(f"plan {self.plan.name!r} was closed while this launch was in flight")
                if self._drive_lock.acquire(timeout=NAP):
                    try:
                        moved = self._drive(until)
                        needed = ()
                        if not moved and not over() and self.error is None:
                            spins += 1
                            self._idle(spins, idle_since)
                            if time.monotonic() - watched > LOOK:
                                needed = report.needed([s.actor for s in self._stations.values()], self.launched)
                        elif moved:
                            spins, idle_since = 0, time.monotonic()
                    finally:
                        self._driver = 0
                        self._drive_lock.release()
                now = time.monotonic()
                if now - watched > LOOK:
                    watched = now
                    self._note(now)
                    if self.watch is not None:
                        self._guarded(lambda needed=needed: self._look(needed))
                if now - start > deadline:
                    raise DeadlineError(
                        f"plan {self.plan.name!r}, rank {self.plan.rank}: launch {until} of {self.launched} has not "
                        f"finished after {deadline:g} s{self.elsewhere()}.\n{self.report()}"
                    )
        finally:
            with self._guard:
                self._waiters -= 1

    def _look(self, needed: tuple[int, ...]) -> None:
        assert self.watch is not None
        try:
            self.watch(needed)
        except RankError:
            # A rank that has ended may have sent the awaited data just before.
            if not needed or not self._arrived():
                raise

    def _arrived(self) -> bool:
        with self._drive_lock:
            return self.bus.poll() or bool(self._main.messages)

    def _idle(self, spins: int, since: float) -> None:
        """Idle: spin, as another rank may answer within microseconds, then sleep until a thread of this one rings."""
        if not self.bus.silent:
            self._main.wait(0.02)
        elif spins > ROUNDS:
            self._main.wait(min(max(SHORT, (time.monotonic() - since) / 100), NAP))
        else:
            for look in range(LOOKS):
                if self.bus.poll() or self._main.messages:
                    return
                next(self._foreseen, None)
                if look % 8 == 7:
                    os.sched_yield()

    # --- driving ---

    def _driven(self, until: int, yielding: bool = False) -> bool:
        """Drive, unless another thread does it already."""
        if not self._drive_lock.acquire(False):
            return False
        try:
            self._drive(until, yielding)
        finally:
            self._driver = 0
            self._drive_lock.release()
        return True

    def _drive(self, until: int, yielding: bool = False) -> bool:
        """Do all pending work, up to the end of launch `until`. The caller holds the drive lock."""
        self._driver = threading.get_ident()
        moved = False
        while True:
            if self.bus.remote:
                try:
                    self.bus.poll()
                except BaseException as error:  # a channel whose peer is gone
                    self.fail(error)
                    return True
            if not self._main.messages:
                return moved
            moved = True
            if not self._run(self._main, until, yielding):
                return True

    def _run(self, box: Mailbox, until: int, yielding: bool = False) -> bool:
        """Deliver the mailbox's messages and run the ready actors. False if it stopped before the mailbox was empty."""
        messages, stations, send = box.messages, self._stations, self.bus.send
        trace, actor = self.trace, None
        try:
            while messages:
                if self.finished >= until or self.error is not None or (yielding and self._waiters):
                    return False
                message = messages.popleft()
                station = stations[message[1]]
                actor = station.actor
                said = actor.on_message(message)
                if said:
                    send(said, box)
                while not actor.blocked:
                    turn = actor.begin()
                    if trace is None:
                        station.act(turn)
                    else:
                        start = time.perf_counter_ns()
                        station.act(turn)
                        trace(actor.task, turn.act, start, time.perf_counter_ns())
                    said = actor.finish()
                    if station.local:
                        messages.extend(said)
                    else:
                        send(said, box)
                    if station.last:
                        self._count(station)
        except BaseException as error:
            if actor is not None:
                error.add_note(f"in actor {actor.task.name!r} of plan {self.plan.name!r}, act {actor.acts}")
            self.fail(error)
            return False
        return True

    def _count(self, station: Station) -> None:
        if station.actor.acts % station.actor.task.acts:
            return
        with self._guard:
            station.launches += 1
            self.finished = min([s.launches for s in self._last]) if len(self._last) > 1 else station.launches
        if self._main.asleep:
            self._main.ring()

    def _work(self, box: Mailbox) -> None:
        """The main loop of a worker stream's thread."""
        with ranks.enter(self._rank):
            while not self._closed and self.error is None:
                self._run(box, FOREVER)
                box.wait(1.0)

    def _background(self) -> None:
        """The main loop of the background thread: drive if no caller does."""
        with ranks.enter(self._rank):
            seen = quiet = 0
            while not self._closed and self.error is None:
                if self.finished >= self._left:
                    quiet += 1
                    if quiet > NAPS:
                        self._sleeping = True
                        if self.finished >= self._left and not self._closed:
                            self._alarm.wait(1.0)
                        self._sleeping = False
                        self._alarm.clear()
                        continue
                else:
                    quiet = 0
                late, seen = seen > self.finished, self._left  # only what was in flight a nap ago
                if late and not self._waiters:
                    self._driven(FOREVER, yielding=True)
                time.sleep(NAP)

    # --- failing and ending ---

    def fail(self, error: BaseException) -> None:
        """Fail: every wait raises this error, and nothing more is run. Thread-safe."""
        with self._guard:
            if self.error is None:
                self.error = error
        self._wake()

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            self.fail(error)
            raise

    def _wake(self) -> None:
        self._alarm.set()
        for box in {id(b): b for b in (self._main, *self._boxes.values())}.values():
            box.ring()

    def locked(self) -> bool:
        """Whether `close` would have to wait for a lock, which the calling thread may hold."""
        return self._guard.locked()

    def close(self, deadline: float | None = None) -> None:
        """Finish the launches, send END to all actors, and wait until they are done."""
        with self._guard:
            if self.closing or self._driver == threading.get_ident():  # inside an act it can't wait for that act to end
                return
            self.closing = True
        limit, patience = self.deadline if deadline is None else deadline, 1.0  # seconds for threads stuck in an act
        try:
            if self.error is None:
                self._wait_on(lambda: self.finished >= self.launched, self.launched, limit)
                for t in self._sources:
                    self._boxes[t.id].put(Message(END, t.id, NONE, 0))
                self.bus.end()
                self._wait_on(self._drained, FOREVER, limit)
                patience = limit
        finally:
            self._closed = True
            self._wake()
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join(patience)

    def _drained(self) -> bool:
        for o in self.bus.outgoing.values():
            o.forgive(self.launched, self._boxes[o.register.producer])
        return all(s.actor.state is DONE for s in self._stations.values())

    # --- reporting ---

    def _note(self, now: float) -> None:
        """Record when actors last acted; called only while waiting."""
        for s in self._stations.values():
            if s.seen != s.actor.acts:
                s.seen, s.since = s.actor.acts, now

    def report(self) -> str:
        """Which actors wait for which registers, and since when, as text."""
        if self.finished >= self.launched:
            self._driven(FOREVER)  # messages from the end of a launch may still be in the mailbox
        now = time.monotonic()
        self._note(now)
        head = f"{self.finished} of {self.launched} launches have finished; since they last acted:"
        reports = (report.lines(s.actor, now - s.since, self.plan) for s in self._stations.values())
        return "\n".join([head, *(line for lines in reports for line in lines)])
