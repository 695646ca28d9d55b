"""Streams: queues on which instructions run. A policy says in which thread, and how they end."""

from __future__ import annotations

import threading

from weft.core.rank import enter
from weft.vm.instruction import Instruction, Machine, Policy, Stream


class WorkerStream(Stream):
    """Runs instructions in a separate thread, in order. The running instruction stays at the head of the queue."""

    policy = "worker"

    def __init__(self, name: str, machine: Machine) -> None:
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

    def __init__(self, name: str, machine: Machine) -> None:
        super().__init__(name, machine)
        self._starting: Instruction | None = None  # whose action is being called

    def enqueue(self, instruction: Instruction) -> None:
        self.queue.append(instruction)

    def wake(self) -> None: ...
    def left(self, instruction: Instruction) -> None: ...

    def pump(self) -> None:
        while True:
            instruction = None
            try:
                with self.machine.lock:
                    before = self._starting
                    if before is not None and before.state in ("queued", "running"):
                        return  # the actions are called in order: by one thread at a time
                    self._starting = None
                    if not self.head_is_ready():
                        return
                    instruction = self._starting = self.queue[0]
                    self.queue.popleft()
                self.machine.start(instruction)
            except BaseException as error:
                if instruction is not None and instruction.state == "queued":  # Ctrl-C, before it began
                    with self.machine.lock:
                        if self.queue and self.queue[0] is instruction:
                            self.queue.popleft()
                    self.machine.complete(instruction, error)
                raise

    def close(self, timeout: float) -> bool:
        return True


STREAMS: dict[Policy, type[Stream]] = {"worker": WorkerStream, "external": ExternalStream}

POLICIES: dict[str, Policy] = {  # by the name of the stream up to its first colon: "collective:0,1"
    "collective": "worker",  # these and files block
    "file": "worker",
    "graph": "external",  # a session's actors do the work
}
