"""An instruction: one piece of work on a stream, and the blobs it touches; and what it knows of stream and machine."""

from __future__ import annotations

import abc
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import CodeType, TracebackType
from typing import Any, Literal, Protocol

from weft.core.program_line import Line, line_of, place
from weft.core.rank import Rank
from weft.tensor.blob import Blob

Kind = Literal["op", "collective", "file", "launch"]  # of flow.asyncs, all_reduce(async_op=True), save, a graph

State = Literal[
    "new",  # not submitted yet
    "queued",  # on its stream, behind others or waiting for its operands
    "running",  # a thread is inside its action
    "started",  # its action was called; another thread will call `finish`
    "done",
    "failed",
]

Policy = Literal["worker", "external"]

_NONE: frozenset[Instruction] = frozenset()


class Instruction:
    """`const` are the blobs it reads, `mut` those it writes, `mut2` those it replaces: their old values don't count.

    `action` does the work. It reads and writes `blob.data`; for `mut2` it may set it.
    """

    __slots__ = (
        "kind", "action", "const", "mut", "mut2", "name", "_code", "_offset", "state", "thread", "machine", "stream",
        "serial", "lane", "unmet", "dependants", "event", "drive", "driving", "error", "traceback", "root", "queued_ns",
        "started_ns", "waited", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, kind: Kind, action: Callable[[], object] | None = None, const: Sequence[Blob] = (),
        mut: Sequence[Blob] = (), mut2: Sequence[Blob] = (), name: str = "",
    ) -> None:  # fmt: skip
        self.kind: Kind = kind
        self.action = action
        self.const, self.mut, self.mut2 = const, mut, mut2
        self.name = name or kind
        self.state: State = "new"
        self.thread = 0  # the thread inside the action
        self.machine: Machine | None = None
        self.stream: Stream | None = None
        self.serial = 0  # counts the instructions of a machine in the order of the program
        self.lane: str | None = None  # instructions of one lane keep their order by themselves, without edges
        self.unmet: set[Instruction] | frozenset[Instruction] = _NONE
        self.dependants: tuple[Instruction, ...] = ()
        self.event: threading.Event | None = None  # made by the first thread that waits
        self.drive: Callable[[float], None] | None = None
        self.driving = False
        self.error: BaseException | None = None
        self.traceback: TracebackType | None = None
        self.root: Instruction | None = None  # the failure that its own comes from: an earlier one's, or itself
        self.queued_ns = self.started_ns = 0  # only while tracing
        self.waited: tuple[int, ...] = ()  # likewise: the serials of what it had to wait for
        self._code: CodeType | None = None

    def remember_line(self) -> None:
        """Record the line of user code that issues it."""
        found = place(2)
        if found is not None:
            self._code, self._offset = found

    @property
    def line(self) -> Line | None:
        """The line of user code that issued it; None if that isn't known, as in Weft's own threads."""
        code = self._code
        return None if code is None or code.co_filename == threading.__file__ else line_of(code, self._offset)

    @property
    def finished(self) -> bool:
        return self.state == "done" or self.state == "failed"

    def check_made(self) -> None:
        """Assert that its action has made the memory of its `mut2` operands."""
        for blob in self.mut2:
            assert blob.data is not None, f"{self.name!r} was to make the memory of its mut2 operands, and didn't"

    def finish(self, error: BaseException | None = None) -> None:
        """Report the end of work that runs elsewhere. Only the first call counts."""
        assert self.machine is not None and self.state not in ("new", "queued"), "only what was started can end"
        self.machine.complete(self, error)

    def wait(self, deadline: float | None = None) -> None:
        """Wait until it is done; raise what made it fail."""
        assert self.machine is not None, "an instruction is waited for on the machine it was submitted to"
        self.machine.wait(self, deadline)

    def story(self) -> str:
        """Its name, state and origin, as text for errors."""
        where = f" on stream {self.stream.name!r}" if self.stream is not None else ""
        kind = f" ({self.kind})" if self.kind != self.name else ""
        line = self.line
        return f"{self.name!r}{kind}{where}, {self.state}" + (f", issued at {line}" if line is not None else "")

    def __repr__(self) -> str:
        return f"<instruction {self.serial} {self.story()}>"


class Machine(Protocol):
    """The part of the virtual machine that instructions, streams and waits use. Its lock guards the queues as well.
    `driven` counts pending instructions that waiters may have to drive."""

    rank: Rank
    lock: threading.Lock
    driven: int
    deadline: float
    max_pending: int
    waits: int

    def run(self, instruction: Instruction) -> None: ...
    def start(self, instruction: Instruction) -> None: ...
    def complete(self, instruction: Instruction, error: BaseException | None = None) -> None: ...
    def wait(self, instruction: Instruction, deadline: float | None = None) -> None: ...


class Stream(abc.ABC):
    """A queue, which keeps the order of its instructions."""

    policy: Policy

    def __init__(self, name: str, machine: Machine) -> None:
        self.name, self.machine = name, machine
        self.issued = 0
        self.queue: deque[Instruction] = deque()

    @abc.abstractmethod
    def enqueue(self, instruction: Instruction) -> None:
        """Add an instruction. The caller holds the lock, here as in `wake` and `left`."""

    @abc.abstractmethod
    def wake(self) -> None:
        """The instruction at the head may have become ready."""

    @abc.abstractmethod
    def left(self, instruction: Instruction) -> None:
        """Remove an instruction that has ended."""

    @abc.abstractmethod
    def pump(self) -> None:
        """Start instructions that are ready and need no separate thread. The caller doesn't hold the lock."""

    @abc.abstractmethod
    def close(self, timeout: float) -> bool:
        """End its thread; returns whether it ended in time."""

    def head_is_ready(self) -> bool:
        return bool(self.queue) and not self.queue[0].unmet and self.queue[0].state == "queued"

    def statistics(self) -> dict[str, Any]:
        return {"policy": self.policy, "issued": self.issued, "queued": len(self.queue)}
