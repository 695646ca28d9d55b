"""What every transport offers: a rank group's collectives, point-to-point exchange, and one-way channels."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from weft.core.errors import ArgumentError, DeadlineError, PlacementError, RankError
from weft.transport import check, reduction
from weft.transport.check import PROGRAM, Call, Diverged, checking, group_key
from weft.transport.forked import refuse_in_children
from weft.transport.hosts import SlowLink, imagined
from weft.transport.stuck import STUCK, Need, Waiting, Watcher, say, waits_of
from weft.transport.whole import PeerEnded, PeerFailed, at_once, broken, broken_message, collective, flat, form

SPINS = 60  # polls before the first yield: the other side usually is microseconds away
YIELDING = 0.002  # seconds of yielding the core between polls; then naps, so that a slow peer costs nothing
NAP, LONGEST_NAP = 50e-6, 2e-3  # seconds
LOOK_AROUND = 0.005  # seconds between checks for dead peers and the deadline: torchrun ends all 0.1 s after the first
ARRIVING = 2.0  # seconds for what a rank sent before it ended
LONGEST = 1e9  # seconds, or 31 years: what locks and c10d can wait
SPEAK = 5.0  # seconds between messages about absent ranks
CALLS = 4096  # descriptions of calls kept per group


def default_deadline() -> float:
    given = os.environ.get("WEFT_DEADLINE", "300")
    try:
        return bounded(float(given), "WEFT_DEADLINE")
    except (ValueError, ArgumentError):
        raise RankError(f"WEFT_DEADLINE is how many seconds any wait may take, like 300; got {given!r}") from None


def bounded(given: object, name: str) -> float:
    """Check a timeout in seconds."""
    if isinstance(given, int | float) and 0 < given < LONGEST:
        return given
    raise ArgumentError(f"{name} is how many seconds a wait may take, a number above 0 like 300; got {given!r}")


class Channel(ABC):
    """A one-way ring of `copies` preallocated registers; the same calls exist at both ends."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    copies: int

    @abstractmethod
    def buffer(self, slot: int) -> Tensor:
        """Register `slot`: the producer writes it, the consumer reads it."""

    @abstractmethod
    def post(self) -> None:
        """Producer: the next slot in ring order is readable."""

    @abstractmethod
    def arrived(self) -> int:
        """Consumer: how many posts so far. Never waits."""

    @abstractmethod
    def acknowledge(self) -> None:
        """Consumer: the oldest unacknowledged slot is free again."""

    @abstractmethod
    def acknowledged(self) -> int:
        """Producer: how many acknowledgements so far. Never waits."""

    def rings(self, bell: Callable[[], None]) -> bool:
        """Whether `bell` is called from now on when something has arrived, so that polling isn't needed."""
        return False


class UnderWay:
    """An asynchronous all-reduce in flight."""

    def go_on(self) -> None:
        """Make progress without waiting."""

    def wait(self) -> None:
        """Wait until the sum is there."""


class Group(ABC):
    """Collectives of some ranks. Every member makes the same calls in the same order."""

    ranks: tuple[int, ...]
    index: int
    size: int
    _turn = 0  # synchronizations so far
    _began = -1  # the turn at which the current, or broken, call began
    _broken: BaseException | None = None  # the error of all later calls

    def __init__(self, transport: Any, ranks: tuple[int, ...], line: str) -> None:
        self.ranks, self.index, self.size = ranks, ranks.index(transport.rank), len(ranks)
        self._transport, self._line = transport, line
        self._fingerprints = check.words(ranks, line)
        self._calls: dict[tuple[object, ...], Call] = {}

    def _call(self, kind: int, dtype: torch.dtype, tensors: Sequence[Tensor], reduce: str = "", root: int = -1) -> Call:
        """The description of a call, made once."""
        key = (kind, dtype, reduce, root, *[t.shape for t in tensors])
        found = self._calls.get(key)
        if found is None:
            if len(self._calls) >= CALLS:
                self._calls.clear()
            shapes = [tuple(t.shape) for t in tensors]
            found = self._calls[key] = Call(self._transport.check, kind, reduce, dtype, shapes, root)
        return found

    @abstractmethod
    def all_reduce(self, t: Tensor, reduce: str = "sum") -> None:
        """Reduce `t` over the members, in place; every member gets the same bits."""

    @collective
    def all_gather(self, outs: Sequence[Tensor], t: Tensor) -> None:
        """`outs[i]` becomes member i's `t`; sizes may differ."""
        own = self._own("all_gather", outs)
        reduction.same_dtype("all_gather", t, outs)
        self._fits("all_gather", t, own)
        if self.size > 1:
            self._all_gather(outs, t)
        if own is not t:
            own.copy_(t.reshape(own.shape))

    @collective
    def reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], reduce: str = "sum") -> None:
        """`out` becomes the reduction of every member's `parts[index]`."""
        own = self._own("reduce_scatter", parts)
        reduction.same_dtype("reduce_scatter", out, parts)
        reduction.checked(reduce, out.dtype)
        self._fits("reduce_scatter", own, out)
        if self.size == 1:
            return reduction.into(out, [own.reshape(out.shape)], reduce)
        self._reduce_scatter(out, parts, reduce)

    @collective
    def all_to_all(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        """`outs[i]` becomes member i's `parts[index]`."""
        out, own = self._own("all_to_all", outs), self._own("all_to_all", parts)
        reduction.same_dtype("all_to_all", own, (*outs, *parts))
        self._fits("all_to_all", own, out)
        if self.size > 1:
            self._all_to_all(outs, parts)
        if out is not own:
            out.copy_(own.reshape(out.shape))

    @collective
    def broadcast(self, t: Tensor, root: int) -> None:
        """`t` becomes that of member `root`, an index in the group."""
        if not 0 <= root < self.size:
            raise ArgumentError(
                f"root is an index in the group of ranks {self.ranks}: 0 to {self.size - 1}, got {root}"
            )
        if self.size > 1:
            self._broadcast(t, root)

    # Of several members, with arguments that fit; a member's own part of the first and the third is copied above.

    def _all_gather(self, outs: Sequence[Tensor], t: Tensor) -> None:
        raise NotImplementedError

    def _reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], reduce: str) -> None:
        raise NotImplementedError

    def _all_to_all(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        raise NotImplementedError

    def _broadcast(self, t: Tensor, root: int) -> None:
        raise NotImplementedError

    def broadcast_bytes(self, data: bytes, root: int) -> bytes:
        """The bytes of member `root`, of any length."""
        length = torch.tensor([len(data)])
        self.broadcast(length, root)
        found = _bytes(data) if self.index == root else torch.empty(int(length), dtype=torch.uint8)
        if len(found):
            self.broadcast(found, root)
        return found.numpy().tobytes()

    def all_gather_bytes(self, data: bytes) -> list[bytes]:
        """Every member's bytes, of any lengths."""
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in self.ranks]
        self.all_gather(lengths, torch.tensor([len(data)]))
        found = [torch.empty(int(n), dtype=torch.uint8) for n in lengths]
        self.all_gather(found, _bytes(data))
        return [t.numpy().tobytes() for t in found]

    @abstractmethod
    def barrier(self) -> None:
        """Return when every member has called it."""

    def begin_all_reduce(self, t: Tensor) -> UnderWay:
        """Start an all-reduce of `t` that overlaps with the caller; synchronous where overlap would be no faster."""
        self.all_reduce(t)
        return UnderWay()

    @property
    def under_way(self) -> bool:
        """Whether a call has begun and not ended, or was broken off."""
        return self._began >= 0

    def calls_made(self) -> int:
        """The number of calls that this member has made, for deadlock detection. Without a count it seems to have made
        all: then no cycle of waits is found, rather than a false one."""
        return 1 << 62

    def _broken_off(self, name: str, given: Sequence[object], error: BaseException) -> None:
        if isinstance(error, Diverged) or self._turn == self._began:  # raised on all members, before any data moved
            self._undo()
            self._began = -1
            return
        self.break_off(name + next((f" of {form(t)}" for t in flat(given) if isinstance(t, Tensor)), ""), error)

    def break_off(self, call: str, error: BaseException) -> None:
        self._began = self._turn
        self._broken = broken(f"{call} (call {self._turn} of group {self.ranks})", error, "this group")

    def _undo(self) -> None:  # noqa: B027  (most need nothing)
        """Undo the count of a call that didn't synchronize, or that all members gave up together."""

    def _refused(self, name: str) -> BaseException:
        return self._broken or RankError(
            f"{name} in group {self.ranks} while another call of this rank is under way there, in another thread or "
            "below this one: their order would not be the same on all ranks. Make a group's calls in one thread, one "
            "after another"
        )

    def _own(self, what: str, given: Sequence[Tensor]) -> Tensor:
        """This member's of tensors, of which there is one per member."""
        if len(given) != self.size:
            raise ArgumentError(
                f"{what} takes one tensor per member: {self.size} for ranks {self.ranks}, got {len(given)}"
            )
        return given[self.index]

    def _fits(self, what: str, given: Tensor, expected: Tensor) -> None:
        if given.numel() != expected.numel():
            raise RankError(
                f"{what}: member {self.index} gives {given.numel()} elements {tuple(given.shape)} where "
                f"{expected.numel()} {tuple(expected.shape)} are expected"
            )


class Transport(ABC):
    """One rank's connection to the others. `overlaps`: transfers leave the program's thread free, so that an
    asynchronous collective overlaps with computation."""

    overlaps = False
    rank: int
    world_size: int
    deadline: float
    backend = ""  # its name among BACKENDS
    link: SlowLink | None = None  # the simulated link between hosts

    def __init__(self, rank: int, world_size: int, deadline: float | None = None) -> None:
        self.rank, self.world_size = rank, world_size
        self._imagined = imagined(world_size)
        self.several_hosts = len(set(self._imagined or (0,))) > 1  # or there may be
        self.deadline = default_deadline() if deadline is None else deadline
        self.check = checking()
        self.stuck_after = STUCK
        self.lines: set[str] = set()  # besides the program's own
        self._groups: dict[tuple[tuple[int, ...], str], Group] = {}
        self._opened: dict[tuple[str, int, int], int] = {}
        self._ways: dict[tuple[int, int, str], BaseException | None] = {}  # see `moving`
        self._channels: weakref.WeakSet[Channel] = weakref.WeakSet()
        refuse_in_children(self)

    def host_of(self, rank: int) -> Hashable:
        """An identifier of a rank's host, equal for ranks of one host. May wait for the rank to join."""
        return 0 if self._imagined is None else self._imagined[rank]

    def held(self) -> Iterable[object]:
        """The objects of this transport to which others may hold references."""
        return (*self._groups.values(), *self._channels)

    def group(self, ranks: Sequence[int], line: str = "") -> Group:
        """The collectives of these ranks, of which this rank is one.

        Calls on different lines are ordered independently: two threads that communicate need one line each.
        """
        key = tuple(ranks)
        found = self._groups.get((key, line))
        if found is None:
            outside = [r for r in key if not 0 <= r < self.world_size]
            if outside or len(set(key)) < len(key):
                raise PlacementError(
                    f"a group names each of its ranks once, from 0 to {self.world_size - 1}; got {key}"
                )
            if self.rank not in key:
                raise PlacementError(f"rank {self.rank} asked for the group {key}; only its members may")
            found = self._groups[key, line] = self._make_group(key, line)
        return found

    def everyone(self, line: str = "") -> Group:
        """The collectives of all ranks."""
        return self.group(range(self.world_size), line)

    @abstractmethod
    def _make_group(self, ranks: tuple[int, ...], line: str) -> Group: ...

    @abstractmethod
    def exchange(
        self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str = ""
    ) -> None:
        """Send each tensor to its rank, fill each tensor from its rank; in order per pair and line, self included."""

    @contextlib.contextmanager
    def moving(
        self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str
    ) -> Iterator[None]:
        """Guard an exchange: if it is interrupted, later ones on its connections are refused, as for groups."""
        me = self.rank
        ways: set[tuple[int, int, str]]
        ways = {(me, dst, line) for dst, _ in sends if self._peer(dst, "send to") != me}
        ways |= {(src, me, line) for src, _ in receives if self._peer(src, "receive from") != me}
        for way in ways & self._ways.keys():
            raise self._ways[way] or at_once(*way[:2])
        self._ways.update(dict.fromkeys(ways))
        try:
            yield
        except BaseException as error:
            self._ways.update((way, broken_message(*way[:2], error)) for way in ways)
            raise
        for way in ways:
            del self._ways[way]

    def send(self, t: Tensor, dst: int) -> None:
        """Send `t`; may wait until `dst` receives."""
        self.exchange(((dst, t),), ())

    def recv(self, t: Tensor, src: int) -> None:
        """Fill `t` with the next tensor from `src`."""
        self.exchange((), ((src, t),))

    @abstractmethod
    def channel(self, key: str, src: int, dst: int, shape: Sequence[int], dtype: torch.dtype, copies: int) -> Channel:
        """This rank's end of the channel that both ends call `key`."""

    @abstractmethod
    def put(self, key: str, value: bytes) -> None:
        """Set `key` in the store, for every rank to read."""

    @abstractmethod
    def get(self, key: str, timeout: float | None = None) -> bytes:
        """The value of `key`; waits until some rank has put it."""

    def peek(self, key: str) -> bytes | None:
        """The value of `key`, or None if it isn't set yet."""
        try:
            return self.get(key, 0.0)
        except PeerFailed:
            raise
        except DeadlineError:
            return None

    @abstractmethod
    def note(self, what: str) -> None:
        """Say what this rank is doing; the others read it if this rank dies."""

    def whereabouts(self, rank: int) -> str:
        """The line of code at which a rank's program is, or was a moment ago; empty if unknown."""
        return ""

    @abstractmethod
    def look_around(self, needed: Sequence[int]) -> None:
        """Raise PeerFailed if a rank failed, or if one of `needed` ended. Never waits."""

    def missing(self, needed: Sequence[int] = ()) -> str:
        """Which of these ranks, or of all, haven't joined yet, as text."""
        return ""

    @abstractmethod
    def fail(self, why: str, followed: bool = False) -> None:
        """Tell the others that this rank ends because of an error; `followed`: because another rank did."""

    @abstractmethod
    def close(self) -> None: ...

    def wait_until(
        self, ready: Callable[[], object], what: str | Callable[[], str], needed: Sequence[int] = (),
        deadline: float | None = None, waiting: Waiting | None = None, rest: Callable[[float], object] | None = None,
    ) -> None:  # fmt: skip
        """Wait until `ready()`; meanwhile check the deadline, the other ranks, and for a cycle of waits (`waiting` says
        for what this one waits, see stuck.py). `rest` sleeps for a limited time, and wakes when it may be ready;
        it returns whether to check at once. Without it, this thread polls."""
        if rest is not None and not ready():
            rest(LOOK_AROUND)
        for _ in range(SPINS if rest is None else 1):
            if ready():
                return
        with self.watched(waiting) as watcher:
            self._wait(ready, what, needed, self.deadline if deadline is None else deadline, watcher, rest)

    @contextlib.contextmanager
    def watched(self, waiting: Waiting | None) -> Iterator[Watcher]:
        """A watcher for the duration of a wait."""
        watcher = Watcher(self, waiting)
        try:
            yield watcher
        except BaseException:
            if not watcher.found:
                with contextlib.suppress(RankError):
                    watcher.over()
            raise
        watcher.over()

    def promises(self, line: str) -> dict[str, int]:
        """This rank's progress, by key: the number of calls of each group on the lines of this one's order."""
        lines = PROGRAM if line in PROGRAM else (line,)
        return {group_key(ranks, on): g.calls_made() for (ranks, on), g in list(self._groups.items()) if on in lines}

    def group_waiting(self, ranks: tuple[int, ...], line: str, turn: int, what: Callable[[], str]) -> Waiting:
        """A wait for the other members of a group to make its call."""
        key = group_key(ranks, line)
        return lambda: (line, what(), [Need(r, key, turn) for r in ranks if r != self.rank], self.promises(line))

    def _wait(
        self, ready: Callable[[], object], what: str | Callable[[], str], needed: Sequence[int], limit: float,
        watcher: Watcher, rest: Callable[[float], object] | None,
    ) -> None:  # fmt: skip
        start = looked = spoke = time.monotonic()
        nap, at_once = NAP, False
        while not ready():
            now = time.monotonic()
            if at_once or now - looked > LOOK_AROUND:
                looked = now
                try:
                    self.look_around(needed)
                    watcher.look()
                except PeerFailed as failure:
                    until = now + min(ARRIVING, limit) * isinstance(failure, PeerEnded)
                    while not (arrived := ready()) and time.monotonic() < until:
                        time.sleep(NAP)
                    if arrived:  # it was sent before the peer's end
                        return
                    raise PeerFailed(f"{failure}; rank {self.rank} was waiting for {_said(what)}") from None
                if now - start > limit and not ready():
                    alive = "all ranks are alive, so some rank is slow, or is not making the matching call"
                    alive += waits_of(self, needed or range(self.world_size)) if limit else ""  # else it was a look
                    why = self.missing(needed) or watcher.elsewhere() or alive
                    raise DeadlineError(
                        f"rank {self.rank} waited {limit:g} s for {_said(what)}; {why}. "
                        "WEFT_DEADLINE=seconds sets how long a wait may take"
                    )
                if now - spoke > SPEAK:
                    spoke = now
                    if why := self.missing(needed) or watcher.elsewhere():
                        say(f"rank {self.rank} waits for {_said(what)}; {why}")
            if rest is not None:
                at_once = bool(rest(LOOK_AROUND))
            elif now - start < YIELDING:
                self.give_way()
            else:
                time.sleep(nap)
                nap = min(nap * 1.5, LONGEST_NAP)

    def give_way(self) -> None:
        """Let other threads and processes run, for as short as possible."""
        os.sched_yield()

    def _peer(self, rank: int, doing: str) -> int:
        if not 0 <= rank < self.world_size:
            raise PlacementError(f"can't {doing} rank {rank}: ranks go from 0 to {self.world_size - 1}")
        return rank

    def _opens(self, key: str, src: int, dst: int, copies: int) -> int:
        """Check a channel's ends; returns how often this end has opened one of that name, which distinguishes them."""
        if self.rank not in (src, dst) or src == dst or copies < 1:
            raise ArgumentError(
                f"a channel leads from one rank to another, and only these two open it, with one copy or more; "
                f"rank {self.rank} opens {key!r} from {src} to {dst} with copies={copies}"
            )
        self._peer(src, "receive from")
        self._peer(dst, "send to")
        times = self._opened[key, src, dst] = self._opened.get((key, src, dst), 0) + 1
        return times


def _bytes(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)


def _said(what: str | Callable[[], str]) -> str:
    return what if isinstance(what, str) else what()
