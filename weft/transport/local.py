"""The transport for ranks as threads of one process: they synchronize by a condition and read each other's tensors."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.core.program_line import line_of_thread
from weft.transport import reduction
from weft.transport.base import Channel, Group, PeerFailed, Transport, group_key
from weft.transport.check import PROGRAM, Diverged, differ, misfit, unlike
from weft.transport.stuck import LOOK, Need, Waiting
from weft.transport.whole import collective

LEND = 1 << 15  # bytes; larger tensors aren't copied: others read them directly, and the owner waits for that


class LocalWorld:
    """The shared state of the ranks of one process."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = threading.Condition()
        self.store: dict[str, bytes] = {}
        self.mail: dict[tuple[int, int, str], deque[tuple[Tensor, Marks]]] = {}
        self.tables: dict[tuple[tuple[int, ...], str], _Table] = {}
        self.rings: dict[tuple[str, int, int, int], _Ring] = {}  # with only one end open
        self.notes: list[str] = [""] * size
        self.programs: dict[int, int] = {}  # the threads that run them
        self.failed: dict[int, str] = {}
        self.ended: set[int] = set()

    def fail(self, rank: int, why: str) -> None:
        """Record that `rank` has failed, and wake the others."""
        with self.changed:
            self.failed.setdefault(rank, why)
            self.changed.notify_all()

    def end(self, rank: int) -> None:
        with self.changed:
            self.ended.add(rank)
            self.changed.notify_all()


class _Table:
    """A group's meeting place: what each member provided at its two latest calls."""

    def __init__(self, size: int) -> None:
        self.turns = [0] * size
        self.offers: list[list[_Offer | None]] = [[None] * size, [None] * size]


class _Offer:
    __slots__ = ("tag", "tensors", "lent", "word", "wanted", "made", "read")

    def __init__(
        self, tag: tuple[object, ...], tensors: Sequence[Tensor], lent: bool, word: int, wanted: Sequence[Tensor]
    ) -> None:
        self.tag, self.lent, self.word = tag, lent, word
        self.tensors: Sequence[Tensor] = tensors
        self.wanted = [t.numel() for t in wanted]  # of each member, in an all-to-all
        self.made = _marks(tensors)
        self.read: Marks = []  # after what the member has read of the others' tensors


Marks = list[tuple[torch.device, Any]]  # with an event each


def _marks(tensors: Sequence[Tensor]) -> Marks:
    """For each CUDA device of these tensors, an event after all that this thread has queued on it."""
    return [(d, torch.cuda.current_stream(d).record_event()) for d in {t.device for t in tensors if t.is_cuda}]


def _wait_for(marks: Marks, tensors: Sequence[Tensor] = ()) -> None:
    """Let this thread's streams wait for another's; these tensors of the other's are read until then."""
    for device, event in marks:
        stream = torch.cuda.current_stream(device)
        stream.wait_event(event)
        for t in tensors:
            if t.device == device:
                t.record_stream(stream)


class LocalTransport(Transport):
    backend = "local"

    def __init__(self, world: LocalWorld, rank: int, deadline: float | None = None) -> None:
        super().__init__(rank, world.size, deadline)
        self.world = world
        self._sent: Counter[tuple[int, str]] = Counter()
        self._received: Counter[tuple[int, str]] = Counter()

    def _make_group(self, ranks: tuple[int, ...], line: str) -> Group:
        with self.world.changed:
            table = self.world.tables.setdefault((ranks, line), _Table(len(ranks)))
        return LocalGroup(self, ranks, table, line)

    def promises(self, line: str) -> dict[str, int]:
        lines = PROGRAM if line in PROGRAM else (line,)
        sent = {f"sent to {dst} {on}": n for (dst, on), n in list(self._sent.items()) if on in lines}
        return super().promises(line) | sent

    def exchange(
        self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str = ""
    ) -> None:
        with self.moving(sends, receives, line):
            self._exchange(sends, receives, line)

    def _exchange(self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str) -> None:
        mail, changed = self.world.mail, self.world.changed
        if sends:
            copies = [(dst, copy, _marks([copy])) for dst, copy in ((dst, t.clone()) for dst, t in sends)]
            with changed:
                for dst, copy, marks in copies:
                    mail.setdefault((self.rank, dst, line), deque()).append((copy, marks))
                    self._sent[dst, line] += 1
                changed.notify_all()
        for src, t in receives:
            with changed:
                box = mail.setdefault((src, self.rank, line), deque())
            if not box:
                what = f"recv of {t.dtype}{list(t.shape)} from rank {src}"
                need = Need(src, f"sent to {self.rank} {line}", self._received[src, line] + 1)
                self.wait(
                    lambda box=box: box, f"a tensor from rank {src}", (src,),
                    waiting=lambda what=what, need=need: (line, what, [need], self.promises(line)),
                )  # fmt: skip
            got, marks = box.popleft()
            self._received[src, line] += 1
            if got.shape != t.shape or got.dtype != t.dtype:
                raise RankError(unlike(src, self.rank, (got.dtype, got.shape), (t.dtype, t.shape)))
            _wait_for(marks, [got])
            t.copy_(got)

    def channel(self, key: str, src: int, dst: int, shape: Sequence[int], dtype: torch.dtype, copies: int) -> Channel:
        name = (key, src, dst, self._opens(key, src, dst, copies))
        with self.world.changed:
            ring = self.world.rings.pop(name, None)
            if ring is None:
                ring = self.world.rings[name] = _Ring(tuple(shape), dtype, copies)
        ring.check(key, tuple(shape), dtype, copies)
        made = LocalChannel(ring)
        self._channels.add(made)
        return made

    def put(self, key: str, value: bytes) -> None:
        with self.world.changed:
            self.world.store[key] = bytes(value)
            self.world.changed.notify_all()

    def get(self, key: str, timeout: float | None = None) -> bytes:
        store = self.world.store
        self.wait(lambda: key in store, f"the value of {key!r}", deadline=timeout)
        return store[key]

    def note(self, what: str) -> None:
        self.world.notes[self.rank] = what

    def whereabouts(self, rank: int) -> str:
        return line_of_thread(self.world.programs.get(rank, 0))

    def look_around(self, needed: Sequence[int]) -> None:
        world = self.world
        for rank, why in list(world.failed.items()):
            if rank != self.rank:
                note = world.notes[rank]
                raise PeerFailed(f"rank {rank} {why}" + (f", at {note}" if note else ""))
        for rank in needed:
            if rank in world.ended and rank != self.rank:
                note = world.notes[rank]
                raise PeerFailed(f"rank {rank} has ended" + (f", at {note}" if note else ""))

    def wait(
        self, ready: Callable[[], object], what: str | Callable[[], str], needed: Sequence[int] = (),
        deadline: float | None = None, waiting: Waiting | None = None,
    ) -> None:  # fmt: skip
        """`wait_until`, for changes that notify the world's condition: no polling."""
        world, others = self.world, {*needed} - {self.rank}
        end = time.monotonic() + (self.deadline if deadline is None else deadline)

        def rest(_: float) -> bool:
            with world.changed:
                if not (ready() or world.failed.keys() - {self.rank} or world.ended & others):
                    world.changed.wait(min(LOOK, max(0.0, end - time.monotonic())))
            return True

        self.wait_until(ready, what, needed, deadline, waiting, rest)

    def give_way(self) -> None:
        time.sleep(20e-6)  # threads of one process need the interpreter more than the core

    def fail(self, why: str, followed: bool = False) -> None:
        if not (followed and self.world.failed):
            self.world.fail(self.rank, why)

    def close(self) -> None:
        self.world.end(self.rank)


def allocates(method: str, size: int, args: Sequence[Any], gloo: bool) -> int:
    """The bytes that a call of a group allocates: sums, and what is small enough to be copied rather than lent."""
    sums = {"all_reduce": args[0], "reduce_scatter": args[0]}.get(method)
    given = {"all_gather": args[1:2], "reduce_scatter": args[1], "all_to_all": args[1]}.get(method, ())
    total = sum(t.nbytes for t in given)
    return (0 if sums is None else sums.nbytes) + total * (total <= LEND)


class LocalGroup(Group):
    def __init__(self, transport: LocalTransport, ranks: tuple[int, ...], table: _Table, line: str) -> None:
        super().__init__(transport, ranks, line)
        self._table = table

    def calls_made(self) -> int:
        return self._table.turns[self.index]

    def _meet(
        self, tag: tuple[object, ...], tensors: Sequence[Tensor] = (), wanted: Sequence[Tensor] = ()
    ) -> list[_Offer]:
        """Provide tensors, wait for the others, return what each provided."""
        lent = sum(t.nbytes for t in tensors) > LEND
        table, transport = self._table, self._transport
        turn = table.turns[self.index] + 1
        # Two buffers suffice: a member that is two calls ahead has seen all others finish the call before.
        side = table.offers[turn & 1]
        word = self._fingerprints.now()
        given = tensors if lent else [t.clone() for t in tensors]
        side[self.index] = _Offer(tag, given, lent, word, wanted)
        self._arrive(turn, tag)
        offers = [one for one in side if one is not None]
        if any(one.tag != tag or one.word != word for one in offers):
            key = f"diverged/{group_key(self.ranks, self._line)}/{turn}"
            raise differ(transport, key, self.ranks, turn, _shown(tag), self._fingerprints.behind())
        for one in offers:
            _wait_for(one.made, one.tensors)
        return offers

    def _arrive(self, turn: int, tag: tuple[object, ...]) -> None:
        turns, transport = self._table.turns, self._transport
        self._turn = turn
        with transport.world.changed:
            turns[self.index] = turn
            if min(turns) >= turn:
                transport.world.changed.notify_all()
                return
        call = f"{_shown(tag)} (call {turn} of group {self.ranks})"
        waiting = transport.group_waiting(self.ranks, self._line, turn, lambda: call)
        transport.wait(lambda: min(turns) >= turn, lambda: f"{self._late(turn)} in {call}", self.ranks, waiting=waiting)

    def _late(self, turn: int) -> str:
        late = [r for r, t in zip(self.ranks, self._table.turns, strict=True) if t < turn]
        return f"rank {', '.join(map(str, late))}"

    def _wait_for_readers(self, offers: list[_Offer], tag: tuple[object, ...]) -> None:
        """Wait until all have read the lent tensors, which their owners may change afterwards."""
        if any(one.lent for one in offers):
            mine = offers[self.index]
            mine.read = _marks([t for one in offers for t in one.tensors])
            self._arrive(self._table.turns[self.index] + 1, tag)
            for one in offers:
                _wait_for(one.read)
            mine.tensors = ()

    @collective
    def all_reduce(self, t: Tensor, reduce: str = "sum") -> None:
        reduction.checked(reduce, t.dtype)
        tag = ("all_reduce", reduce, tuple(t.shape), t.dtype)
        offers = self._meet(tag, (t.clone() if t.nbytes > LEND else t,))
        reduction.into(t, [one.tensors[0] for one in offers], reduce)
        self._wait_for_readers(offers, tag)

    def _all_gather(self, outs: Sequence[Tensor], t: Tensor) -> None:
        tag = ("all_gather", tuple(o.numel() for o in outs), t.dtype)
        offers = self._meet(tag, (t,))
        for i, (out, one) in enumerate(zip(outs, offers, strict=True)):
            if i != self.index:
                out.copy_(one.tensors[0].reshape(out.shape))
        self._wait_for_readers(offers, tag)

    def _reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], reduce: str) -> None:
        tag = ("reduce_scatter", reduce, tuple(tuple(p.shape) for p in parts), out.dtype)
        offers = self._meet(tag, parts)
        # Into a new tensor first: `out` may be one of the lent parts.
        result = torch.empty_like(parts[self.index])
        reduction.into(result, [one.tensors[self.index] for one in offers], reduce)
        self._wait_for_readers(offers, tag)
        out.copy_(result.view_as(out))

    def _all_to_all(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        tag = ("all_to_all", parts[0].dtype)
        offers = self._meet(tag, parts, outs)
        for (i, giver), (j, taker) in itertools.product(enumerate(offers), repeat=2):
            if giver.tensors[j].numel() != taker.wanted[i]:
                raise Diverged(misfit(self.ranks[i], self.ranks[j], giver.tensors[j].numel(), taker.wanted[i]))
        for out, one in zip(outs, offers, strict=True):
            out.copy_(one.tensors[self.index].reshape(out.shape))
        self._wait_for_readers(offers, tag)

    def _broadcast(self, t: Tensor, root: int) -> None:
        tag = ("broadcast", root, tuple(t.shape), t.dtype)
        given: list[Tensor] = [t] if self.index == root else []
        offers = self._meet(tag, given)
        if self.index != root:
            t.copy_(offers[root].tensors[0])
        self._wait_for_readers(offers, tag)

    @collective
    def barrier(self) -> None:
        self._meet(("barrier",))


class _Ring:
    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, copies: int) -> None:
        self.shape, self.dtype, self.copies = shape, dtype, copies
        with torch.inference_mode(False):
            self.buffers = [torch.empty(shape, dtype=dtype) for _ in range(copies)]
        self.posts = 0
        self.acknowledgements = 0

    def check(self, key: str, shape: tuple[int, ...], dtype: torch.dtype, copies: int) -> None:
        here, there = (shape, dtype, copies), (self.shape, self.dtype, self.copies)
        if here != there:
            raise RankError(f"the two ends of channel {key!r} differ in (shape, dtype, copies): {here} and {there}")


class LocalChannel(Channel):
    def __init__(self, ring: _Ring) -> None:
        self._ring = ring
        self.shape, self.dtype, self.copies = ring.shape, ring.dtype, ring.copies

    def buffer(self, slot: int) -> Tensor:
        return self._ring.buffers[slot]

    def post(self) -> None:
        self._ring.posts += 1

    def arrived(self) -> int:
        return self._ring.posts

    def acknowledge(self) -> None:
        self._ring.acknowledgements += 1

    def acknowledged(self) -> int:
        return self._ring.acknowledgements


def _shown(tag: tuple[object, ...]) -> str:
    name, *rest = tag
    return f"{name}({', '.join(map(str, rest))})" if rest else str(name)
