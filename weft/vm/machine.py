"""The virtual machine of a rank: it takes instructions in program order, and runs each as soon as its operands allow.

The dependency structure decides; this file holds the lock around it, schedules instructions on their streams, lets
callers wait, and propagates errors.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, Protocol

import torch

from weft.core.errors import DeadlineError, OpError, RankError
from weft.core.program_line import Line, line, warn
from weft.core.rank import Rank, current
from weft.plan.calls import Call, Result
from weft.plan.plan import Plan, Task
from weft.tensor.blob import Blob
from weft.transport.base import default_deadline
from weft.vm import dependency, ending
from weft.vm.dependency import Dependencies
from weft.vm.instruction import Instruction, Kind, Policy, Stream
from weft.vm.stream import POLICIES, STREAMS
from weft.vm.waiting import hold_back, pulse, wait_each, wait_for

GRACE = 4.0  # seconds for pending work when the rank ends by a failure
MAX_PENDING = 1024


class Recorder(Protocol):
    """An observer of every instruction that ends, and of graphs' acts and calls (`vm/trace.py`)."""

    def record(self, instruction: Instruction) -> None: ...
    def act(self, plan: str, task: Task, start: int, end: int) -> None: ...
    def calls(self, plan: Plan, forms: Mapping[str, Result], calls: Sequence[Call], times: Sequence[int]) -> None: ...


class VirtualMachine:
    """`deadline` bounds every wait, in seconds. `max_pending` bounds how far a program may run ahead of its workers."""

    def __init__(self, rank: Rank, *, deadline: float | None = None, max_pending: int = MAX_PENDING) -> None:
        self.rank = rank
        self.deadline = default_deadline() if deadline is None else deadline
        self.max_pending = max_pending
        self.lock = threading.Lock()
        self.recorders: tuple[Recorder, ...] = ()  # empty while nobody traces
        self.on_tracing_changed: list[Callable[[bool], object]] = []  # called when tracing starts and ends on this rank
        self._dependencies = Dependencies()
        self._streams: dict[str, Stream] = {}
        self._serial = self.driven = 0  # driven: the number of pending instructions with a `drive`
        self._failures: list[Instruction] = []  # not raised yet
        self.waits = self._failed = self._completed = self._peak = self._issued = 0
        self._cancelled: BaseException | None = None
        self._closed = self.refuses = False  # it refuses when closed or cancelled
        self._process = os.getpid()
        os.register_at_fork(after_in_child=partial(_renew_lock, weakref.ref(self)))

    # Submitting

    def stream(self, name: str, policy: Policy | None = None) -> Stream:
        """The stream of that name, made at first use."""
        if (found := self._streams.get(name)) is not None:
            if policy is None or policy == found.policy:
                return found
            raise OpError(f"stream {name!r} is {found.policy}: it can't become {policy}. Use another name")
        if (policy := policy or POLICIES.get(name.partition(":")[0])) is None:
            known = ", ".join(POLICIES)
            raise OpError(f"no policy is known for stream {name!r}: give one of {', '.join(STREAMS)}, or use {known}")
        with self.lock:
            return self._streams.setdefault(name, STREAMS[policy](name, self))

    def forget(self, name: str) -> None:
        """Remove a stream that is idle and won't be used again."""
        with self.lock:
            if (found := self._streams.get(name)) is not None and not found.queue:
                self._issued += self._streams.pop(name).issued

    def submit(
        self, kind: Kind, stream: str | Stream, action: Callable[[], object], const: Sequence[Blob] = (),
        mut: Sequence[Blob] = (), mut2: Sequence[Blob] = (), *, name: str = "",
        drive: Callable[[float], None] | None = None,
    ) -> Instruction:  # fmt: skip
        """Issue an instruction.

        `drive(seconds)` is called by a thread that waits for a started instruction: it does the work in that thread,
        and returns when that has ended, when another thread will end it, or after `seconds`.
        """
        instruction = Instruction(kind, action, const, mut, mut2, name)
        self.issue(instruction, stream, drive)
        return instruction

    def issue(
        self, instruction: Instruction, stream: str | Stream, drive: Callable[[float], None] | None = None
    ) -> None:
        """`submit`, for those whose `finish` must be known before the action is called: that may be at once, and
        another thread may end it before this returns."""
        if isinstance(stream, str):
            stream = self._streams.get(stream) or self.stream(stream)
        instruction.machine, instruction.stream = self, stream
        if self.recorders:
            instruction.queued_ns = time.perf_counter_ns()
        instruction.drive, instruction.lane = drive, stream.name
        instruction.remember_line()
        hold_back(self, self._dependencies.pending)
        try:
            with self.lock:
                if self.refuses:
                    self._refuse()
                if self._process != os.getpid():
                    raise RankError(
                        f"{instruction.story()}: this process was forked from rank {self.rank.index}, whose threads it "
                        "doesn't have. Start processes with multiprocessing.get_context('spawn')"
                    )
                instruction.serial = self._serial = self._serial + 1
                instruction.state = "queued"
                unmet = self._dependencies.submit(instruction)
                if instruction.queued_ns:
                    instruction.waited = tuple(sorted(i.serial for i in unmet))
                self._peak = max(self._peak, len(self._dependencies.pending))
                self.driven += drive is not None
                stream.issued += 1
                stream.enqueue(instruction)
        except BaseException:
            with self.lock:  # Ctrl-C between two of these lines: what is pending must be where it will be run
                pending = instruction.state == "queued" and instruction in self._dependencies.pending
                if pending and instruction not in stream.queue:
                    stream.enqueue(instruction)
            raise
        stream.pump()

    # Running: called by the streams

    def run(self, instruction: Instruction) -> None:
        """Run it in the calling thread."""
        try:
            if not self._begin(instruction):
                return
            assert instruction.action is not None
            instruction.action()
            instruction.check_made()
        except BaseException as error:
            self.complete(instruction, error)
        else:
            self.complete(instruction)

    def start(self, instruction: Instruction) -> None:
        """Call its action; another thread will finish it."""
        try:
            if not self._begin(instruction):
                return
            assert instruction.action is not None
            instruction.action()
            with self.lock:
                if not instruction.finished:
                    instruction.state, instruction.thread = "started", 0  # at once: Ctrl-C may come between two lines
                    pulse(instruction)
                cancelled = self._cancelled
        except BaseException as error:
            self.complete(instruction, error)
            if not isinstance(error, Exception):
                raise  # Ctrl-C, in the thread that happened to start it
            return
        if cancelled is not None:
            self.complete(instruction, cancelled)

    def _begin(self, instruction: Instruction) -> bool:
        with self.lock:
            root, cancelled = dependency.failure(instruction), self._cancelled
            runs = root is None and cancelled is None
            if runs:
                instruction.state, instruction.thread = "running", threading.get_ident()
        if instruction.queued_ns:
            instruction.started_ns = time.perf_counter_ns()
        if root is not None:
            self._leave(instruction, root)
        elif cancelled is not None:
            self.complete(instruction, cancelled)
        return runs

    def complete(self, instruction: Instruction, error: BaseException | None = None) -> None:
        """End an instruction. Its outputs are ready, or lost if there is an error."""
        if error is None:
            self._leave(instruction, None)
            return
        if error is not self._cancelled:
            note = f"in {instruction.story()}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
        self._leave(instruction, instruction, error)

    def _leave(self, instruction: Instruction, root: Instruction | None, error: BaseException | None = None) -> None:
        try:
            self._left(instruction, root, error)
        except BaseException:  # Ctrl-C between two of its lines: others wait for the rest
            self._left(instruction, root, error)
            raise

    def _left(self, instruction: Instruction, root: Instruction | None, error: BaseException | None) -> None:
        with self.lock:
            if instruction not in self._dependencies.pending:
                return
            if not instruction.finished:
                if error is not None:
                    instruction.error, instruction.traceback = error, error.__traceback__
                    if isinstance(error, Exception) and isinstance(error.__cause__, Exception | None):
                        self._failures.append(instruction)  # not what a Ctrl-C broke off: that was raised where it fell
                failed = root is not None or instruction.error is not None
                if failed:
                    instruction.root = root
                self._failed += failed
                self._completed += 1
                instruction.state = "failed" if failed else "done"
            if instruction.drive is not None:
                instruction.drive = None
                self.driven -= 1
            ready = self._dependencies.done(instruction, root)
            stream = instruction.stream
            assert stream is not None
            stream.left(instruction)
            if instruction.queued_ns:
                for recorder in self.recorders:
                    recorder.record(instruction)
            if instruction.event is not None:
                pulse(instruction)
            streams = {i.stream for i in ready if i.stream is not None}
            for woken in streams:
                woken.wake()
            # A reference to the instruction must not keep the tensors alive.
            instruction.const = instruction.mut = instruction.mut2 = instruction.dependants = ()
            instruction.action, instruction.thread = None, 0
            del self._dependencies.pending[instruction]
        for woken in streams:
            woken.pump()

    # Waiting

    def wait(self, instruction: Instruction, deadline: float | None = None) -> None:
        """Wait until it is done; raise what made it fail."""
        wait_for(self, instruction, self._limit(deadline))
        if instruction.state == "failed":
            self._raise(instruction.root or instruction)

    def wait_read(self, blob: Blob, deadline: float | None = None) -> torch.Tensor:
        """The value of a blob, once nothing pending writes it."""
        now = blob.now
        return now if now is not None else self._wait_blob(blob, False, False, deadline)

    def wait_write(self, blob: Blob, *, afresh: bool = False) -> torch.Tensor:
        """The memory of a blob, once nothing pending reads or writes it.

        `afresh`: its value will be replaced, so an earlier failure to make it doesn't matter.
        """
        return self._wait_blob(blob, True, afresh, None)

    def sync(self, deadline: float | None = None) -> None:
        """Wait for everything that is pending; raise the first failure that wasn't raised yet."""
        self.drain(deadline)
        with self.lock:
            failures, self._failures = self._failures, []
        if failures:
            self._raise(failures[0])

    def drain(self, deadline: float | None = None) -> None:
        """Wait for everything that is pending, whether it ends well or not."""
        limit, here = self._limit(deadline), threading.get_ident()
        with self.lock:
            pending = [i for i in self._dependencies.pending if i.thread != here]
        for instruction in pending:
            wait_for(self, instruction, limit)

    def _wait_blob(self, blob: Blob, write: bool, afresh: bool, deadline: float | None) -> torch.Tensor:
        limit = self._limit(deadline)
        while True:
            with self.lock:
                access, data = blob.access, blob.data
                if access is None:
                    break
                unmet = access.writers + access.readers if write else access.writers
                root = access.failed
                if not unmet:
                    if root is None:
                        break
                    if afresh:
                        dependency.heal(blob)
                        break
            if unmet:
                wait_each(self, unmet, limit)
            elif root is not None:
                self._raise(root)
        assert data is not None, "nothing pending writes this blob, yet it has no memory"
        return data

    # Inside

    def _limit(self, deadline: float | None) -> float:
        return time.monotonic() + (self.deadline if deadline is None else deadline)

    def _raise(self, root: Instruction) -> NoReturn:
        assert root.error is not None
        raised = (root.error, root.error.__cause__)
        with self.lock:
            self._failures = [i for i in self._failures if not any(i.error is e for e in raised)]
        raise root.error.with_traceback(root.traceback)  # it may be raised more than once, and each time adds to it

    # Ending

    def cancel(self, error: BaseException) -> None:
        """Fail whatever is queued or started elsewhere with `error`, and run nothing more. Running actions continue."""
        with self.lock:
            self._cancelled, self.refuses = error, True
            started = [i for i in self._dependencies.pending if i.state == "started"]
        for instruction in started:
            self.complete(instruction, error)

    def close(self, deadline: float | None = None) -> None:
        """Let pending work end, or cancel it at the deadline; end the threads."""
        with self.lock:
            if self._closed or self._process != os.getpid():
                return
            self._closed = self.refuses = True
        if deadline is None:
            deadline = min(self.deadline, GRACE) if self._failures or self._cancelled is not None else self.deadline
        atexit.unregister(self.at_exit)
        try:
            self.drain(deadline)
        except DeadlineError as late:
            self.cancel(RankError(f"rank {self.rank.index} was closed before its work had ended. {late}"))
        stuck = [s.name for s in self._streams.values() if not s.close(GRACE)]
        reported = (self._cancelled, ending.failed())  # the program ends with the latter
        lost = [i for i in self._failures if not any(i.error is e for e in reported)]
        if stuck:
            warn(f"rank {self.rank.index} leaves work behind that doesn't end, on {stuck}")
        for failed in lost[:1]:
            warn(
                f"rank {self.rank.index} ends with {len(lost)} failed instructions that nobody asked for, first "
                f"{failed.story()}: {failed.error!r}. Call sync() to have such errors raised"
            )

    def at_exit(self) -> None:
        if not self._closed and self._process == os.getpid() and not ending.failed():
            ending.last(lambda: self.sync(GRACE if self._failures else None))
        self.close(GRACE if ending.failed() else None)

    def _refuse(self) -> NoReturn:
        if self._cancelled is not None:
            raise RankError(f"rank {self.rank.index} runs nothing more: {self._cancelled}") from self._cancelled
        raise RankError(f"the virtual machine of rank {self.rank.index} is closed: it takes no more instructions")

    # Looking

    def statistics(self) -> dict[str, Any]:
        """Counts so far, and what is pending now."""
        with self.lock:
            return {
                "issued": self._issued + sum(s.issued for s in self._streams.values()),
                "completed": self._completed,
                "failed": self._failed,
                "pending": len(self._dependencies.pending),
                "peak_pending": self._peak,
                "waits": self.waits,  # how often a caller had to wait before issuing
                "streams": {s.name: s.statistics() for s in self._streams.values()},
            }

    def pending(self) -> list[str]:
        """Descriptions of everything that is pending, oldest first: for reports of a stuck run."""
        with self.lock:
            pending = list(self._dependencies.pending)
        return [i.story() for i in pending]


def issued_at(machine: VirtualMachine) -> Line | None:
    """The line of the program that this thread is at, or, in a thread of Weft's, that issued what it runs."""
    found = line()
    if found is None and (instruction := running(machine)) is not None:
        found = instruction.line
    return found


def running(machine: VirtualMachine) -> Instruction | None:
    """The instruction whose action this thread is inside."""
    thread = threading.get_ident()
    with machine.lock:
        return next((i for i in machine._dependencies.pending if i.thread == thread), None)


def _renew_lock(machine: weakref.ref[VirtualMachine]) -> None:
    """In a forked child: a thread of the parent may have held the lock."""
    found = machine()
    if found is not None:
        found.lock = threading.Lock()


def vm_of(rank: Rank | None = None) -> VirtualMachine:
    """The virtual machine of a rank, by default of the running thread's."""
    return (rank or current()).resource("vm", _make)


def _make(rank: Rank) -> VirtualMachine:
    machine = VirtualMachine(rank)
    atexit.register(machine.at_exit)  # daemon threads would be cut off in the middle of their work
    return machine
