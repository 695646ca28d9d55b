"""A thread that waits for c10d's sends and receives in order, so that others can look without waiting.

Gloo's point-to-point work can only be waited for; it can't be asked whether it is complete.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from torch import Tensor

from weft.transport.hosts import SlowLink


class Waiter:
    """`kept` must outlive the thread: a process group that goes away under a wait takes the process with it. What is
    received comes over `link`, where that is imagined. `ring` is called when something is complete, and wakes whoever
    else waits for that."""

    def __init__(
        self, name: str, kept: object, ring: Callable[[], None] = lambda: None, link: SlowLink | None = None
    ) -> None:  # fmt: skip
        self._kept, self._ring, self._link = kept, ring, link
        self._bell = threading.Lock()
        self.started = 0
        self.done = 0  # how many works are complete; written by the thread alone
        self.error: RuntimeError | None = None
        self._works: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, work: Any, message: Tensor | None = None) -> None:
        """`message` is received; one whose last byte is zero is the sender's farewell, which counts no more."""
        self.started += 1
        self._works.put((work, message))

    def idle(self) -> bool:
        """Whether everything is complete, or nothing more will be."""
        return self.done >= self.started or self.error is not None

    def rest(self, seconds: float) -> None:
        """Until something is complete, or a while has passed. It may return early."""
        self._bell.acquire(timeout=seconds)

    def _tell(self) -> None:
        with contextlib.suppress(RuntimeError):  # it rings already
            self._bell.release()
        self._ring()

    def _run(self) -> None:
        while (next_work := self._works.get()) is not None:
            work, message = next_work
            try:
                work.wait()
                if message is not None and self._link is not None:
                    self._link.carry(message.nbytes)
                if message is not None and not message[-1].item():
                    return
            except RuntimeError as error:
                self.error = error
                return self._tell()
            self.done += 1
            self._tell()

    def close(self, patience: float) -> None:
        self._works.put(None)
        self._thread.join(patience)
