"""Collectives through shared memory.

Each member has a line of flags and two slots of staging memory, used alternately. A collective is one or more rounds
of: write into my slot, synchronize, read the others' slots. One barrier per round is enough, because a member that
writes the same slot again has passed another barrier in between, after which all have read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.transport import reduction
from weft.transport.base import SPINS, Group, Transport
from weft.transport.check import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    REDUCE_SCATTER,
    Call,
    Diverged,
    differ,
    group_key,
    misfit,
    words,
)  # fmt: skip
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


class ShmGroup(Group):
    def __init__(self, transport: Transport, ranks: tuple[int, ...], segment: Segment, line: str = "") -> None:
        self.ranks, self.index, self.size = ranks, ranks.index(transport.rank), len(ranks)
        self._transport, self._segment, self._words = transport, segment, segment.words
        self._turn = 0
        self._side = self._met = 0  # the slot in use, and that of the latest barrier
        self._base = self.index * PAGE // WORD
        self._others = tuple(i * PAGE // WORD for i in range(self.size) if i != self.index)
        self._views: dict[tuple[int, int, int, torch.Size, torch.dtype], Tensor] = {}
        self._small: dict[tuple[torch.Size, torch.dtype, str], tuple[Call, Callable[..., object], list[list[Tensor]]]]
        self._small = {}
        self._line, self._words_of_all = line, words(ranks, line)
        self._called = Call(transport.check, BARRIER)
        self._calls: dict[tuple[object, ...], Call] = {}
        self._barrier = self._called

    def came(self) -> int:
        return self._turn

    def _undo(self) -> None:
        self._side = self._met

    def _call(self, kind: int, dtype: torch.dtype, tensors: Sequence[Tensor], reduce: str = "", root: int = -1) -> int:
        """The hash by which a call is compared."""
        key = (kind, dtype, reduce, root, *[t.shape for t in tensors])
        found = self._calls.get(key)
        if found is None:
            if len(self._calls) >= CACHED:
                self._calls.clear()
            shapes = [tuple(t.shape) for t in tensors]
            found = self._calls[key] = Call(self._transport.check, kind, reduce, dtype, shapes, root)
        self._called = found
        return found.number ^ self._words_of_all.now()

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
            self._meet(self._called.number ^ self._words_of_all.now())
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
        self._call(ALL_REDUCE, t.dtype, (t,), reduce)
        plan = self._small[t.shape, t.dtype, reduce] = (self._called, function, sides)
        return plan

    @collective
    def _all_reduce(self, t: Tensor, reduce: str) -> None:
        function = reduction.checked(reduce, t.dtype)
        if self.size == 1:
            return
        flat = t.reshape(-1)
        tag, n, me = self._call(ALL_REDUCE, t.dtype, (t,), reduce), self.size, self.index
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

    @collective
    def all_gather(self, outs: Sequence[Tensor], t: Tensor) -> None:
        self._counted("all_gather", len(outs))
        reduction.same_dtype("all_gather", t, outs)
        if t.numel() != outs[self.index].numel():
            self._misfit("all_gather", self.index, t, outs[self.index])
        sizes = [out.numel() for out in outs]
        tag = self._call(ALL_GATHER, t.dtype, outs)
        self._rounds(tag, [(0, t)], [(i, 0, out) for i, out in enumerate(outs) if i != self.index], max(sizes), SLOT)
        if outs[self.index] is not t:
            outs[self.index].copy_(t.reshape(outs[self.index].shape))

    @collective
    def reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], reduce: str = "sum") -> None:
        self._counted("reduce_scatter", len(parts))
        reduction.same_dtype("reduce_scatter", out, parts)
        function = reduction.checked(reduce, out.dtype)
        own = parts[self.index]
        if own.numel() != out.numel():
            self._misfit("reduce_scatter", self.index, own, out)
        lane = SLOT // self.size // LINE * LINE
        sizes = [part.numel() for part in parts]
        tag = self._call(REDUCE_SCATTER, out.dtype, parts, reduce)
        if out is not own:
            out.copy_(own.reshape(out.shape))
        puts = [(i * lane, part) for i, part in enumerate(parts) if i != self.index]
        takes = [(i, self.index * lane, out) for i in range(self.size) if i != self.index]
        self._rounds(tag, puts, takes, max(sizes), lane, function)
        if reduce == "avg":
            out.div_(self.size)

    @collective
    def all_to_all(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        self._counted("all_to_all", len(outs))
        self._counted("all_to_all", len(parts))
        reduction.same_dtype("all_to_all", parts[0], (*outs, *parts))
        own, out = parts[self.index], outs[self.index]
        if own.numel() != out.numel():
            self._misfit("all_to_all", self.index, own, out)
        lane = SLOT // self.size // LINE * LINE
        puts = [(i * lane, part) for i, part in enumerate(parts) if i != self.index]
        takes = [(i, self.index * lane, o) for i, o in enumerate(outs) if i != self.index]
        # A member doesn't know the sizes between two others, so the first barrier passes on the number of rounds.
        longest = max(t.numel() for t in (*outs, *parts))
        self._rounds(self._call(ALL_TO_ALL, own.dtype, ()), puts, takes, longest, lane, agree=(outs, parts))
        if out is not own:
            out.copy_(own.reshape(out.shape))

    @collective
    def broadcast(self, t: Tensor, root: int) -> None:
        mine = self.index == self._root(root)
        tag = self._call(BROADCAST, t.dtype, (t,), root=root)
        self._rounds(tag, [(0, t)] if mine else [], [] if mine else [(root, 0, t)], t.numel(), SLOT)

    def barrier(self) -> None:
        if self._began >= 0:
            raise self._refused("barrier")
        self._began = self._turn
        try:
            self._called = self._barrier
            self._meet(self._called.number ^ self._words_of_all.now())
        except BaseException as error:
            self._broken_off("barrier", (), error)
            raise
        self._began = -1

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
            raise differ(self._transport, key, self.ranks, turn, str(self._called), self._words_of_all)

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

    def _misfit(self, kind: str, member: int, given: Tensor, expected: Tensor) -> None:
        raise RankError(
            f"{kind}: member {member} gives {given.numel()} elements {tuple(given.shape)} where "
            f"{expected.numel()} {tuple(expected.shape)} are expected"
        )
