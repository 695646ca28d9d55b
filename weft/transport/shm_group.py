"""Collectives through shared memory.

Each member has a line of flags and two slots of staging memory, used in turn. A collective is one or more rounds of:
write into my slot, meet, read from the others' slots. One meeting per round is enough, because whoever writes the same
slot again has met everybody once more in between, and so knows that all have read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.transport import reduction
from weft.transport.base import SPINS, Group, checking
from weft.transport.memory import LINE, PAGE, WORD, Segment, publish

if TYPE_CHECKING:
    from weft.transport.shm import ShmTransport

SLOT = 1 << 22  # bytes
WHOLE = 1 << 16  # bytes; up to here everyone reduces everything, above everyone reduces its chunk
PIECE = 1 << 21  # bytes of a larger all-reduce on their way at a time, so that they are still in the caches when read
CACHED = 4096  # views kept per group

KINDS = ("barrier", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
BARRIER, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST = range(len(KINDS))
DTYPES = tuple(sorted({d for d in vars(torch).values() if isinstance(d, torch.dtype)}, key=str))
_dtype_code = {d: i for i, d in enumerate(DTYPES)}
_reduce_code = {r: i for i, r in enumerate(reduction.BINARY)}

# A member's flags, as words of its line: its latest turn; then, per side, what it calls and a number it passes on.
TURN, TAG, EXTRA = 0, 1, 3
TEXT, TEXT_SIZE = 512, 1024  # in checking mode: the call in words, per side


def bytes_needed(size: int) -> int:
    return size * (PAGE + 2 * SLOT)


class ShmGroup(Group):
    def __init__(self, transport: ShmTransport, ranks: tuple[int, ...], segment: Segment) -> None:
        self.ranks, self.index, self.size = ranks, ranks.index(transport.rank), len(ranks)
        self._transport, self._segment, self._words = transport, segment, segment.words
        self._turn = 0
        self._side = 0
        self._calls = 0
        self._base = self.index * PAGE // WORD
        self._others = tuple(i * PAGE // WORD for i in range(self.size) if i != self.index)
        self._views: dict[tuple[int, int, int, torch.Size, torch.dtype], Tensor] = {}
        self._small: dict[tuple[torch.Size, torch.dtype, str], tuple[int, Callable[..., object], list[list[Tensor]]]]
        self._small = {}
        self._checking = checking()

    def all_reduce(self, t: Tensor, reduce: str = "sum") -> None:
        key = (t.shape, t.dtype, reduce)
        plan = self._small.get(key)
        if plan is None:
            if self.size == 1:
                reduction.checked(reduce, t.dtype)
                return
            if t.nbytes > WHOLE:
                self._all_reduce_large(t, reduce)
                return
            plan = self._plan_small(t, reduce)
        tag, function, sides = plan
        if self._checking:
            self._say(ALL_REDUCE, t, reduce)
        side = self._side = 1 - self._side
        slots = sides[side]
        slots[self.index].copy_(t)
        self._meet(tag)
        if len(slots) == 2:
            function(slots[0], slots[1], out=t)
            if reduce == "avg":
                t.div_(2)
        else:
            reduction.into(t, slots, reduce)

    def _plan_small(self, t: Tensor, reduce: str) -> tuple[int, Callable[..., object], list[list[Tensor]]]:
        function = reduction.checked(reduce, t.dtype)
        sides = [[self._view(i, side, 0, t.shape, t.dtype) for i in range(self.size)] for side in (0, 1)]
        if len(self._small) >= CACHED:
            self._small.clear()
        plan = self._small[t.shape, t.dtype, reduce] = (_tag(ALL_REDUCE, t.dtype, t.nbytes, reduce), function, sides)
        return plan

    def _all_reduce_large(self, t: Tensor, reduce: str) -> None:
        function = reduction.checked(reduce, t.dtype)
        if self._checking:
            self._say(ALL_REDUCE, t, reduce)
        flat = t.reshape(-1)
        tag, n, me = _tag(ALL_REDUCE, t.dtype, t.nbytes, reduce), self.size, self.index
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
            mine[low:high].copy_(own)  # nobody has looked there yet, so the same slot serves
            self._meet(tag)
            for i in range(n):
                if i != me:
                    piece[bounds[i] : bounds[i + 1]].copy_(slots[i][bounds[i] : bounds[i + 1]])
        if not t.is_contiguous():
            t.copy_(flat.view(t.shape))

    def all_gather(self, outs: Sequence[Tensor], t: Tensor) -> None:
        self._counted("all_gather", len(outs))
        reduction.same_dtype("all_gather", t, outs)
        if self._checking:
            self._say(ALL_GATHER, t, "")
        if t.numel() != outs[self.index].numel():
            self._misfit("all_gather", self.index, t, outs[self.index])
        sizes = [out.numel() for out in outs]
        tag = _tag(ALL_GATHER, t.dtype, sum(sizes) * t.itemsize)
        self._rounds(tag, [(0, t)], [(i, 0, out) for i, out in enumerate(outs) if i != self.index], max(sizes), SLOT)
        if outs[self.index] is not t:
            outs[self.index].copy_(t.reshape(outs[self.index].shape))

    def reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], reduce: str = "sum") -> None:
        self._counted("reduce_scatter", len(parts))
        reduction.same_dtype("reduce_scatter", out, parts)
        function = reduction.checked(reduce, out.dtype)
        own = parts[self.index]
        if own.numel() != out.numel():
            self._misfit("reduce_scatter", self.index, own, out)
        if self._checking:
            self._say(REDUCE_SCATTER, out, reduce, [tuple(p.shape) for p in parts])
        lane = SLOT // self.size // LINE * LINE
        sizes = [part.numel() for part in parts]
        tag = _tag(REDUCE_SCATTER, out.dtype, sum(sizes) * out.itemsize, reduce)
        if out is not own:
            out.copy_(own.reshape(out.shape))
        puts = [(i * lane, part) for i, part in enumerate(parts) if i != self.index]
        takes = [(i, self.index * lane, out) for i in range(self.size) if i != self.index]
        self._rounds(tag, puts, takes, max(sizes), lane, function)
        if reduce == "avg":
            out.div_(self.size)

    def all_to_all(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        self._counted("all_to_all", len(outs))
        self._counted("all_to_all", len(parts))
        reduction.same_dtype("all_to_all", parts[0], (*outs, *parts))
        own, out = parts[self.index], outs[self.index]
        if own.numel() != out.numel():
            self._misfit("all_to_all", self.index, own, out)
        if self._checking:
            self._say(ALL_TO_ALL, None, "", parts[0].dtype)
        lane = SLOT // self.size // LINE * LINE
        puts = [(i * lane, part) for i, part in enumerate(parts) if i != self.index]
        takes = [(i, self.index * lane, o) for i, o in enumerate(outs) if i != self.index]
        # Nobody knows the sizes between two others, so the first meeting tells how many rounds there will be.
        longest = max(t.numel() for t in (*outs, *parts))
        self._rounds(_tag(ALL_TO_ALL, own.dtype, 0), puts, takes, longest, lane, agree=True)
        if out is not own:
            out.copy_(own.reshape(out.shape))

    def broadcast(self, t: Tensor, root: int) -> None:
        if self._checking:
            self._say(BROADCAST, t, "", f"root {root}")
        mine = self.index == self._root(root)
        tag = _tag(BROADCAST, t.dtype, t.nbytes) + (root & 15)
        self._rounds(tag, [(0, t)] if mine else [], [] if mine else [(root, 0, t)], t.numel(), SLOT)

    def barrier(self) -> None:
        if self._checking:
            self._say(BARRIER, None, "")
        self._meet(_tag(BARRIER, torch.uint8, 0))

    def _rounds(
        self,
        tag: int,
        puts: Sequence[tuple[int, Tensor]],
        takes: Sequence[tuple[int, int, Tensor]],
        longest: int,
        lane: int,
        function: Callable[..., object] | None = None,
        agree: bool = False,
    ) -> None:
        """Puts are (offset in my slot, tensor), takes (whose slot, offset in it, tensor); each through `lane` bytes.

        `longest` is the greatest number of elements of any of them on any member, unless they `agree` on it.
        """
        some = puts[0][1] if puts else takes[0][2] if takes else None
        if some is None:
            self._meet(tag)
            return
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
            self._meet(tag)
            if agree:
                rounds = max(self._words[i * PAGE // WORD + extra] for i in range(self.size))
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

    def _meet(self, tag: int) -> None:
        """Say that I have come, wait until everyone has, and see that all came for the same."""
        words, base = self._words, self._base
        turn = self._turn = self._turn + 1
        side = TAG + (turn & 1)
        words[base + side] = tag
        publish(words, base, turn)
        for other in self._others:
            if words[other] < turn:
                for _ in range(SPINS):
                    if words[other] >= turn:
                        break
                else:
                    self._transport.wait_until(
                        lambda other=other: words[other] >= turn, lambda: self._awaited(turn, tag), self.ranks
                    )
            if words[other + side] != tag:
                self._diverged(other, turn)
        if self._checking:
            self._compare(turn)

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

    def _awaited(self, turn: int, tag: int) -> str:
        late = [r for i, r in enumerate(self.ranks) if self._words[i * PAGE // WORD] < turn]
        return f"rank {', '.join(map(str, late))} in {_shown(tag)} (meeting {turn} of group {self.ranks})"

    def _diverged(self, other: int, turn: int) -> None:
        side = TAG + (turn & 1)
        mine, theirs = self._words[self._base + side], self._words[other + side]
        rank = self.ranks[other * WORD // PAGE]
        if self._checking:
            self._compare(turn)
        raise RankError(
            f"the ranks diverged at meeting {turn} of group {self.ranks}: rank {self._transport.rank} calls "
            f"{_shown(mine)} and rank {rank} calls {_shown(theirs)}. Every member must make the same calls in the "
            "same order; WEFT_CHECK=1 compares shapes too"
        )

    def _misfit(self, kind: str, member: int, given: Tensor, expected: Tensor) -> None:
        raise RankError(
            f"{kind}: member {member} gives {given.numel()} elements {tuple(given.shape)} where "
            f"{expected.numel()} {tuple(expected.shape)} are expected"
        )

    def _say(self, kind: int, t: Tensor | None, reduce: str, more: object = "") -> None:
        """In checking mode: write in words what this member calls."""
        self._calls += 1
        shape = "" if t is None else f" of {t.dtype}{'' if kind == ALL_GATHER else ' ' + str(tuple(t.shape))}"
        text = " ".join(filter(None, (f"call {self._calls}: {KINDS[kind]}", reduce, str(more)))) + shape
        data = text.encode()[: TEXT_SIZE - 1] + b"\0"
        start = self.index * PAGE + TEXT + ((self._turn + 1) & 1) * TEXT_SIZE
        self._segment.bytes[start : start + len(data)] = data
        self._said = self._turn + 1

    def _compare(self, turn: int) -> None:
        if self._said != turn:  # later rounds of a call
            return
        texts = []
        for i in range(self.size):
            start = i * PAGE + TEXT + (turn & 1) * TEXT_SIZE
            texts.append(self._segment.bytes[start : start + TEXT_SIZE].split(b"\0", 1)[0].decode(errors="replace"))
        for rank, text in zip(self.ranks, texts, strict=True):
            if text != texts[self.index]:
                raise RankError(
                    f"the ranks diverged in group {self.ranks}: rank {self._transport.rank} makes "
                    f"{texts[self.index]!r} and rank {rank} makes {text!r}"
                )


def _tag(kind: int, dtype: torch.dtype, nbytes: int, reduce: str = "sum") -> int:
    return (((kind << 6 | _dtype_code[dtype]) << 4 | _reduce_code[reduce]) << 48) | nbytes << 4


def _shown(tag: int) -> str:
    top, nbytes = tag >> 48, (tag & (1 << 48) - 1) >> 4
    kind, dtype, reduce = KINDS[top >> 10], DTYPES[top >> 4 & 63], tuple(reduction.BINARY)[top & 15]
    if kind == "barrier":
        return kind
    name = f"{kind} ({reduce})" if "reduce" in kind else kind
    return f"{name} of {str(dtype).removeprefix('torch.')}" + (f", {nbytes} bytes" if nbytes else "")
