"""Collectives through shared memory.

Each member has a line of flags and two slots of staging memory, used alternately. A collective is one or more rounds
of: write into my slot, synchronize, read the others' slots. One barrier per round is enough, because a member that
writes the same slot again has passed another barrier in between, after which all have read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.transport import check, reduction
from weft.transport.base import SPINS, Group, Transport
from weft.transport.check import Call, Diverged, differ, group_key, misfit
from weft.transport.memory import LINE, PAGE, WORD, Segment, publish
from weft.transport.whole import collective

SLOT = 1 << 22  # bytes
WHOLE = 1 << 16  # bytes; up to here everyone reduces everything, above everyone reduces its chunk
PIECE = 1 << 21  # bytes of a larger all-reduce per round, so that they are still in the caches when read
CACHED = 4096  # views kept per group

# A member's flags, as words of its line: its latest turn; then, per slot, the hash of its call, an extra number and, in
# an all-to-all, how many elements it gives to each member and expects of it.
TURN, TAG, EXTRA, SIZES = 0, 1, 3, 8
MOST = (PAGE // WORD - SIZES) // 4  # members up to which sizes are compared


def bytes_needed(size: int) -> int:
    return size * (PAGE + 2 * SLOT)


def allocates(method: str, size: int, args: Sequence[Any], gloo: bool) -> int:
    """The bytes that a call of a group allocates: what takes several rounds is made contiguous first."""
    if method != "all_gather" or max(o.nbytes for o in args[0]) <= SLOT:
        return 0
    strided = sum(o.nbytes for o in args[0] if not o.is_contiguous())
    return strided - min(strided, args[1].nbytes)


class ShmGroup(Group):
    def __init__(self, transport: Transport, ranks: tuple[int, ...], segment: Segment, line: str = "") -> None:
        super().__init__(transport, ranks, line)
        self._segment, self._words = segment, segment.words
        self._side = self._met = 0  # the slot in use, and that of the latest barrier
        self._base = self.index * PAGE // WORD
        self._others = tuple(i * PAGE // WORD for i in range(self.size) if i != self.index)
        self._views: dict[tuple[int, int, int, torch.Size, torch.dtype], Tensor] = {}
        self._small: dict[tuple[torch.Size, torch.dtype, str], tuple[Call, Callable[..., object], list[list[Tensor]]]]
        self._small = {}
        self._called = self._barrier = Call(transport.check, check.BARRIER)

    def calls_made(self) -> int:
        return self._turn

    def _undo(self) -> None:
        self._side = self._met

    def _tag(self, *call: Any, **more: Any) -> int:
        """The hash by which a call is compared."""
        self._called = self._call(*call, **more)
        return self._called.number ^ self._fingerprints.now()

    def all_reduce(self, t: Tensor, reduce: str = "sum") -> None:
        plan = self._small.get((t.shape, t.dtype, reduce))
        if plan is None:
            if self.size == 1 or t.nbytes > WHOLE:
                return self._all_reduce(t, reduce)
            plan = self._plan_small(t, reduce)
        if self._began >= 0:  # inlined `collective`: the wrapper would cost a tenth of the call
            raise self._refused("all_reduce")
        self._began = self._turn
        try:
            self._called, function, sides = plan
            side = self._side = 1 - self._side
            slots = sides[side]
            slots[self.index].copy_(t)
            self._meet(self._called.number ^ self._fingerprints.now())
            if len(slots) == 2:
                function(slots[0], slots[1], out=t)
                if reduce == "avg":
                    t.div_(2)
            else:
                reduction.into(t, slots, reduce)
        except BaseException as error:
            self._broken_off("all_reduce", (t,), error)
            raise
        self._began = -1

    def _plan_small(self, t: Tensor, reduce: str) -> tuple[Call, Callable[..., object], list[list[Tensor]]]:
        function = reduction.checked(reduce, t.dtype)
        sides = [[self._view(i, side, 0, t.shape, t.dtype) for i in range(self.size)] for side in (0, 1)]
        if len(self._small) >= CACHED:
            self._small.clear()
        called = self._call(check.ALL_REDUCE, t.dtype, (t,), reduce)
        plan = self._small[t.shape, t.dtype, reduce] = (called, function, sides)
        return plan

    @collective
    def _all_reduce(self, t: Tensor, reduce: str) -> None:
        function = reduction.checked(reduce, t.dtype)
        if self.size == 1:
            return
        flat = t.reshape(-1)
        tag, n, me = self._tag(check.ALL_REDUCE, t.dtype, (t,), reduce), self.size, self.index
        count, step = flat.numel(), PIECE // t.itemsize
        for start in range(0, count, step):
            piece = flat[start : start + step]
            length = piece.numel()
            bounds = [length * i // n for i in range(n + 1)]
            low, high = bounds[me], bounds[me + 1]
            slots = self._flat(self._other_side(), length, t.dtype)
            mine = slots[me]
            mine[:low].copy_(piece[:low])
            mine[high:].copy_(piece[high:])
            self._meet(tag)
            own = piece[low:high]
            others = [slots[i][low:high] for i in range(n) if i != me]
            function(own, others[0], out=own)
            for other in others[1:]:
                function(own, other, out=own)
            if reduce == "avg":
                own.div_(n)
            mine[low:high].copy_(own)  # not read by the others yet, so the same slot can be used
            self._meet(tag)
            for i in range(n):
                if i != me:
                    piece[bounds[i] : bounds[i + 1]].copy_(slots[i][bounds[i] : bounds[i + 1]])
        if not t.is_contiguous():
            t.copy_(flat.view(t.shape))

    def _all_gather(self, outs: Sequence[Tensor], t: Tensor) -> None:
        sizes = [out.numel() for out in outs]
        tag = self._tag(check.ALL_GATHER, t.dtype, outs)
        self._rounds(tag, [(0, t)], [(i, 0, out) for i, out in enumerate(outs) if i != self.index], max(sizes), SLOT)

    def _reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], reduce: str) -> None:
        function, own = reduction.function_of(reduce, out.dtype), parts[self.index]
        lane = SLOT // self.size // LINE * LINE
        sizes = [part.numel() for part in parts]
        tag = self._tag(check.REDUCE_SCATTER, out.dtype, parts, reduce)
        if out is not own:
            out.copy_(own.reshape(out.shape))
        puts = [(i * lane, part) for i, part in enumerate(parts) if i != self.index]
        takes = [(i, self.index * lane, out) for i in range(self.size) if i != self.index]
        self._rounds(tag, puts, takes, max(sizes), lane, function)
        if reduce == "avg":
            out.div_(self.size)

    def _all_to_all(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        lane = SLOT // self.size // LINE * LINE
        puts = [(i * lane, part) for i, part in enumerate(parts) if i != self.index]
        takes = [(i, self.index * lane, o) for i, o in enumerate(outs) if i != self.index]
        # A member doesn't know the sizes between two others, so the first barrier passes on the number of rounds.
        longest = max(t.numel() for t in (*outs, *parts))
        tag = self._tag(check.ALL_TO_ALL, parts[0].dtype, ())
        self._rounds(tag, puts, takes, longest, lane, agree=(outs, parts))

    def _broadcast(self, t: Tensor, root: int) -> None:
        mine = self.index == root
        tag = self._tag(check.BROADCAST, t.dtype, (t,), root=root)
        self._rounds(tag, [(0, t)] if mine else [], [] if mine else [(root, 0, t)], t.numel(), SLOT)

    @collective
    def barrier(self) -> None:
        self._called = self._barrier
        self._meet(self._called.number ^ self._fingerprints.now())

    def _rounds(
        self, tag: int, puts: Sequence[tuple[int, Tensor]], takes: Sequence[tuple[int, int, Tensor]], longest: int,
        lane: int, function: Callable[..., object] | None = None,
        agree: tuple[Sequence[Tensor], Sequence[Tensor]] | None = None,
    ) -> None:  # fmt: skip
        """Puts are (offset in my slot, tensor), takes (whose slot, offset in it, tensor); each through `lane` bytes.

        `longest` is the greatest number of elements of any of them on any member, unless they `agree` on it, and on the
        sizes that they expect of each other and give.
        """
        some = puts[0][1] if puts else takes[0][2] if takes else None
        if some is None and not agree:
            self._meet(tag)
            return
        some = agree[0][0] if some is None else some  # type: ignore[index]
        step = lane // some.itemsize
        if longest <= step and not agree:
            side = self._other_side()
            for offset, t in puts:
                self._view(self.index, side, offset, t.shape, t.dtype).copy_(t)
            self._meet(tag)
            for member, offset, t in takes:
                theirs = self._view(member, side, offset, t.shape, t.dtype)
                if function is None:
                    t.copy_(theirs)
                else:
                    function(t, theirs, out=t)
            return
        flat_puts = [(offset, t.reshape(-1)) for offset, t in puts]
        # Several takes may lead into one tensor.
        flats = {id(t): (t, t.reshape(-1)) for _, _, t in takes}
        flat_takes = [(member, offset, flats[id(t)][1]) for member, offset, t in takes]
        rounds, done = max(1, -(-longest // step)), 0
        while done < rounds:
            side, start = self._other_side(), done * step
            for offset, t in flat_puts:
                piece = t[start : start + step]
                self._view(self.index, side, offset, piece.shape, t.dtype).copy_(piece)
            extra = EXTRA + (self._turn + 1 & 1)
            if agree:
                self._words[self._base + extra] = rounds
                if not done:
                    self._tell_sizes(*agree)
            self._meet(tag)
            if agree:
                rounds = max(self._words[i * PAGE // WORD + extra] for i in range(self.size))
                if not done:
                    self._compare_sizes(*agree, Diverged if rounds == 1 else RankError)
            for member, offset, t in flat_takes:
                piece = t[start : start + step]
                theirs = self._view(member, side, offset, piece.shape, t.dtype)
                if function is None:
                    piece.copy_(theirs)
                else:
                    function(piece, theirs, out=piece)
            done += 1
        for t, flat in flats.values():
            if not t.is_contiguous():
                t.copy_(flat.view(t.shape))

    def _tell_sizes(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        if self.size <= MOST:
            start = self._base + SIZES + (self._turn + 1 & 1) * 2 * self.size
            for i, (part, out) in enumerate(zip(parts, outs, strict=True)):
                self._words[start + i], self._words[start + self.size + i] = part.numel(), out.numel()

    def _compare_sizes(self, outs: Sequence[Tensor], parts: Sequence[Tensor], kind: type[RankError]) -> None:
        """Compare sizes: only the giver and the taker see a difference; the others finish all rounds."""
        if self.size > MOST:
            return
        words, me = self._words, self._transport.rank
        for i, (rank, part, out) in enumerate(zip(self.ranks, parts, outs, strict=True)):
            start = i * PAGE // WORD + SIZES + (self._turn & 1) * 2 * self.size + self.index
            gives, expects = words[start], words[start + self.size]
            if gives != out.numel():
                raise kind(misfit(rank, me, gives, out.numel()))
            if expects != part.numel():
                raise kind(misfit(me, rank, part.numel(), expects))

    def _meet(self, tag: int) -> None:
        """A barrier that also checks that all members made the same call."""
        words, base = self._words, self._base
        turn = self._turn = self._turn + 1
        self._met = self._side
        side = TAG + (turn & 1)
        words[base + side] = tag
        publish(words, base, turn)
        unlike = False
        for other in self._others:
            if words[other] < turn:
                for _ in range(SPINS):
                    if words[other] >= turn:
                        break
                else:
                    transport = self._transport
                    transport.wait_until(
                        lambda other=other: words[other] >= turn,
                        lambda: f"{self._late(turn)} in {self._shown(turn)}",
                        self.ranks,
                        waiting=transport.group_waiting(self.ranks, self._line, turn, lambda: self._shown(turn)),
                    )
            if words[other + side] != tag:
                unlike = True
        if unlike:
            key = f"diverged/{group_key(self.ranks, self._line)}/{turn}"
            raise differ(self._transport, key, self.ranks, turn, str(self._called), self._fingerprints.behind())

    def _other_side(self) -> int:
        self._side = 1 - self._side
        return self._side

    def _view(self, member: int, side: int, offset: int, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        key = (member, side, offset, shape, dtype)
        found = self._views.get(key)
        if found is None:
            if len(self._views) >= CACHED:
                self._views.clear()
            start = self.size * PAGE + (2 * member + side) * SLOT + offset
            found = self._views[key] = self._segment.tensor(start, shape, dtype)
        return found

    def _flat(self, side: int, length: int, dtype: torch.dtype) -> list[Tensor]:
        shape = torch.Size((length,))
        return [self._view(i, side, 0, shape, dtype) for i in range(self.size)]

    def _late(self, turn: int) -> str:
        late = [r for i, r in enumerate(self.ranks) if self._words[i * PAGE // WORD] < turn]
        return f"rank {', '.join(map(str, late))}"

    def _shown(self, turn: int) -> str:
        return f"{self._called} (meeting {turn} of group {self.ranks})"
