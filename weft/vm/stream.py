"""Streams: queues on which instructions run. A policy says in which thread, and how they end."""

from __future__ import annotations

import abc
import threading
from collections import deque
from typing import Any, Literal, Protocol

from weft.core.rank import Rank, enter
from weft.vm.instruction import Instruction

Policy = Literal["inline", "worker", "external"]


class Runs(Protocol):
    """The part of the machine that its streams use. Its lock guards the queues as well."""

    rank: Rank
    lock: threading.Lock

    def run(self, instruction: Instruction) -> None: ...
    def start(self, instruction: Instruction) -> None: ...


class Stream(abc.ABC):
    """`lane` is its name if it keeps the order of its instructions by itself."""

    policy: Policy

    def __init__(self, name: str, machine: Runs) -> None:
        self.name, self.machine = name, machine
        self.lane: str | None = name
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


class InlineStream(Stream):
    """Runs instructions in the submitting thread, which waits for the operands itself: it has no queue."""

    policy = "inline"

    def __init__(self, name: str, machine: Runs) -> None:
        super().__init__(name, machine)
        self.lane = None  # several threads may submit; only the operands order them

    def enqueue(self, instruction: Instruction) -> None:
        raise AssertionError("an inline instruction runs at once")

    def wake(self) -> None: ...
    def left(self, instruction: Instruction) -> None: ...
    def pump(self) -> None: ...
    def close(self, timeout: float) -> bool:
        return True


class WorkerStream(Stream):
    """Runs instructions in a separate thread, in order. The running instruction stays at the head of the queue."""

    policy = "worker"

    def __init__(self, name: str, machine: Runs) -> None:
        super().__init__(name, machine)
        self._work = threading.Condition(machine.lock)
        self._thread: threading.Thread | None = None
        self._closing = False

    def enqueue(self, instruction: Instruction) -> None:
        self.queue.append(instruction)
        if self._thread is None:
            name = f"weft rank {self.machine.rank.index} {self.name}"
            self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
            self._thread.start()
        self.wake()

    def wake(self) -> None:
        if self.head_is_ready():
            self._work.notify()

    def left(self, instruction: Instruction) -> None:
        assert self.queue[0] is instruction
        self.queue.popleft()

    def pump(self) -> None: ...

    def close(self, timeout: float) -> bool:
        with self._work:
            self._closing = True
            self._work.notify()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _loop(self) -> None:
        with enter(self.machine.rank):
            while True:
                with self._work:
                    while not self.head_is_ready():
                        if self._closing and not self.queue:
                            return
                        self._work.wait()
                    instruction = self.queue[0]
                self.machine.run(instruction)
                del instruction


class ExternalStream(Stream):
    """Calls the actions in order, each as soon as its operands are ready; they are finished by other threads.

    Several may be in flight. The thread that makes the head ready calls its action, so actions here must be short.
    """

    policy = "external"

    def __init__(self, name: str, machine: Runs) -> None:
        super().__init__(name, machine)
        self._pumping = False

    def enqueue(self, instruction: Instruction) -> None:
        self.queue.append(instruction)

    def wake(self) -> None: ...
    def left(self, instruction: Instruction) -> None: ...

    def pump(self) -> None:
        while True:
            with self.machine.lock:
                if self._pumping or not self.head_is_ready():
                    return
                self._pumping = True  # the actions are called in order: by one thread at a time
                instruction = self.queue.popleft()
            try:
                self.machine.start(instruction)
            finally:
                with self.machine.lock:
                    self._pumping = False

    def close(self, timeout: float) -> bool:
        return True


STREAMS: dict[Policy, type[Stream]] = {"inline": InlineStream, "worker": WorkerStream, "external": ExternalStream}

POLICIES: dict[str, Policy] = {  # by the name of the stream up to its first colon: "collective:0,1"
    "compute": "inline",
    "collective": "worker",  # these and files block
    "file": "worker",
    "graph": "external",  # a session's actors do the work
}
