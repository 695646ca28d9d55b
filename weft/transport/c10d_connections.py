"""What groups, channels and exchanges over c10d are made of: process groups, transfers, the threads that wait for them.

Gloo's point-to-point work can only be waited for; it can't be polled for completion.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.transport.hosts import SlowLink
from weft.transport.rendezvous import Met
from weft.transport.stuck import Waiting

FIRST_TAG = 16  # below: the collectives' and the exchange's own
MESSAGES = 1 << 30  # tags of messages; those of channels are below
LEAVING = 1.0  # seconds that an end waits for what is under way
BREAKING = 0.001  # seconds after which a receive breaks its connections
BROKEN = 1.0  # seconds at most for those who wait on them to notice

Key = tuple[tuple[int, ...], str, str]  # ranks, type of device, line


class Connections:
    """The connections of a rank. `made` are its process groups; threads that wait in them must keep them alive."""

    def __init__(self, make: Callable[[tuple[int, ...], str, str], Any]) -> None:
        self._make = make
        self.made: list[Any] = []
        self._known: set[Key] = set()
        self._under_way: dict[Key, Future[Any]] = {}

    def connected(self, key: Key) -> bool:
        """Whether these ranks are connected. For CPU tensors a thread connects them, so that waiting for one rank
        doesn't delay another."""
        if key in self._known:
            return True
        if key[1] == "cuda":
            self._make(*key)
        else:
            future = self._under_way.get(key)
            if future is None:
                future = self._under_way[key] = Future()
                threading.Thread(target=self._run, args=(key, future), name="weft-connect", daemon=True).start()
            if not future.done():
                return False
            del self._under_way[key]
            self.made.append(future.result())
        self._known.add(key)
        return True

    def _run(self, key: Key, future: Future[Any]) -> None:
        try:
            future.set_result(self._make(*key))
        except BaseException as error:
            future.set_exception(error)


class Connected(Met):
    """A transport over process groups, and how calls of these begin and end."""

    @abstractmethod
    def processes(self, ranks: tuple[int, ...], device: str, line: str = "", what: object = "a message") -> Any:
        """The process group of these ranks for tensors on this type of device; `what` is the call that needs it."""

    @abstractmethod
    def explained(self, error: RuntimeError, what: str, ranks: Sequence[int]) -> RankError:
        """The error of a broken connection: the failure of the rank that caused it."""

    @abstractmethod
    def waiter(
        self, name: str, kept: object, ring: Callable[[], None] = lambda: None, link: SlowLink | None = None
    ) -> Waiter:
        """A new thread that waits, which ends with this transport."""

    @abstractmethod
    def exchange(
        self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str = "",
        among: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        """`among`: a group whose ranks all make this call. Without it, each pair has a separate connection."""

    def over_link(self, ranks: Sequence[int]) -> SlowLink | None:
        """The simulated link, if these ranks are on several hosts."""
        if self.link is None or not self.several_hosts:
            return None
        return self.link if len({self.host_of(r) for r in ranks}) > 1 else None

    def carried(self, ranks: Sequence[int], size: float) -> float:
        """The arrival time of so many bytes over the simulated link, on the monotonic clock; 0 without one."""
        link = self.over_link(ranks) if self.link is not None and size else None
        return 0.0 if link is None else link.arrival(size)

    def start(self, way: str, ranks: tuple[int, ...], t: Tensor, peer: int, tag: int = 1, line: str = "") -> Any:
        processes = self.processes(ranks, t.device.type, line)
        try:
            return getattr(processes, way)([as_bytes(t) if t.is_cuda else t], ranks.index(peer), tag)
        except RuntimeError as error:
            raise self.explained(error, f"a {way} with rank {peer}", (peer,)) from None

    def finish(
        self, work: Any, what: str | Callable[[], str], ranks: Sequence[int], cuda: bool = False,
        waiting: Waiting | None = None,
    ) -> None:  # fmt: skip
        """Wait for c10d's work; on CUDA only the stream waits."""
        try:
            if not cuda:
                self.wait_until(work.is_completed, what, ranks, waiting=waiting, rest=functools.partial(moment, work))
            work.wait()
        except RankError:
            raise
        except RuntimeError as error:
            raise self.explained(error, what if isinstance(what, str) else what(), ranks) from None


def as_bytes(t: Tensor) -> Tensor:
    """A contiguous tensor as NCCL and Gloo move it, which lack some dtypes."""
    return t.view(-1).view(torch.uint8)


class Coalesced:
    """Groups the messages of one connection for NCCL, where they would wait for each other otherwise."""

    def __init__(self, transport: Connected, key: Key) -> None:
        self._processes = transport.processes(*key)

    def __enter__(self) -> None:
        self._processes._start_coalescing()

    def __exit__(self, *_: object) -> None:
        work = self._processes._end_coalescing()
        if work is not None:
            work.wait()


class Waiter:
    """A thread that waits for works in order. `kept` must outlive it: destroying a process group during a wait crashes
    the process. `link` is the simulated link of received messages. `ring` is called when something is complete."""

    def __init__(
        self, name: str, kept: object, ring: Callable[[], None] = lambda: None, link: SlowLink | None = None
    ) -> None:
        self._kept, self._ring, self._link = kept, ring, link
        self._bell = threading.Lock()
        self.started = 0
        self.done = 0  # how many works are complete; written by the thread alone
        self.error: RuntimeError | None = None
        self._works: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, work: Any, message: Tensor | None = None) -> None:
        """Add a work. `message` is the received buffer; a last byte of zero is the sender's farewell, which isn't
        counted."""
        self.started += 1
        self._works.put((work, message))

    def idle(self) -> bool:
        """Whether everything is complete, or has failed."""
        return self.done >= self.started or self.error is not None

    def rest(self, seconds: float) -> None:
        """Sleep until something is complete, or a timeout. It may return early."""
        self._bell.acquire(timeout=seconds)

    def _tell(self) -> None:
        with contextlib.suppress(RuntimeError):  # already rung
            self._bell.release()
        self._ring()

    def _run(self) -> None:
        while (given := self._works.get()) is not None:
            work, message = given
            try:
                work.wait()
                if message is not None and self._link is not None:
                    self._link.carry(message.nbytes)
                if message is not None and not message[-1].item():
                    return
            except RuntimeError as error:
                self.error = error
                return self._tell()
            del given, work, message  # when others hear that it is complete, nothing here holds its memory
            self.done += 1
            self._tell()

    def end(self) -> None:
        """Once everything that was added is complete."""
        self._works.put(None)

    def ended(self, patience: float) -> bool:
        """Whether the thread ends in so many seconds."""
        self._thread.join(max(patience, 0.0))
        return not self._thread.is_alive()


def end(waiters: Sequence[Waiter], groups: Sequence[tuple[tuple[int, ...], Any]], rank: int, given_up: bool) -> None:
    """End the threads, at the end of a rank, and if calls were given up, their groups' connections: Gloo would wait
    until its timeout for ranks that live but come no more, or forget what a dead rank was sent. A thread that came
    back from Gloo when Python has ended would abort the process."""
    for waiter in waiters:
        waiter.end()
    given_up = given_up or any(waiter.error for waiter in waiters)
    if _ended(waiters, 0.0 if given_up else LEAVING) and not given_up:
        return
    nothing = torch.empty(1, dtype=torch.uint8)
    for ranks, group in groups:
        for peer in (i for i, r in enumerate(ranks) if r != rank):
            with contextlib.suppress(RuntimeError):  # a receive that is late breaks all of its group's connections
                group.recv([nothing], peer, MESSAGES - 1).wait(timedelta(seconds=BREAKING))
    _ended(waiters, BROKEN)


def _ended(waiters: Sequence[Waiter], patience: float) -> bool:
    """Whether all threads end in so many seconds."""
    until = time.monotonic() + patience
    return all([waiter.ended(until - time.monotonic()) for waiter in waiters])


def moment(work: Any, seconds: float) -> None:
    """Wait for a short time, without taking CPU time from Gloo's threads."""
    with contextlib.suppress(RuntimeError):  # not yet; or failed, which the last wait raises
        work.wait(timedelta(seconds=seconds))
