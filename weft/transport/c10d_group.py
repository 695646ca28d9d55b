"""Collectives by c10d's process groups.

If members make different calls, Gloo misinterprets their bytes, or crashes. So every call begins with the same
handshake: an all-gather of frames, which say what each member calls. If the call's data fits into the frame, that is
the whole collective, and faster than Gloo's own all-reduce; larger ones follow once the frames agree.

On CUDA, where the host would have to wait for that at each call, only the first call of each form is compared.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from weft.core.fingerprints import Behind
from weft.transport import check, reduction
from weft.transport.base import Group, UnderWay
from weft.transport.c10d_connections import Connected, as_bytes
from weft.transport.check import Call, Diverged, differ, group_key, misfit
from weft.transport.hosts import until
from weft.transport.whole import collective

HEADER, WORD = 16, 8  # bytes; the header is a turn and a hash of the call
FRAME, FRAMES = 4096, 1 << 15  # limits in bytes of one frame, and of all members' together
LITTLE = 256  # bytes of data that fit into a frame of any group
KEPT = 4096  # views kept per group
SEGMENT = 1 << 20  # bytes that Gloo's ring sends at once, from memory of its own
DIRECT = 1 << 18  # bytes; larger parts are sent to each member: Gloo's gather copies, in memory of its own
OPS = {
    "sum": dist.ReduceOp.SUM,
    "avg": dist.ReduceOp.SUM,  # and a division at the end
    "prod": dist.ReduceOp.PRODUCT,
    "max": dist.ReduceOp.MAX,
    "min": dist.ReduceOp.MIN,
    "band": dist.ReduceOp.BAND,
    "bor": dist.ReduceOp.BOR,
    "bxor": dist.ReduceOp.BXOR,
}
# How often a member's bytes go over its link in a ring of n members, for the simulated link.
TIMES = {"allreduce": lambda n: 2 * (n - 1) / n, "allgather": lambda n: n - 1, "broadcast": lambda n: 1}


def frame_of(size: int) -> int:
    """The bytes of a member's frame: fewer in large groups, as every member gets all."""
    return max(HEADER + LITTLE, min(FRAME, FRAMES // size) // HEADER * HEADER)


def allocates(method: str, size: int, args: Sequence[Any], gloo: bool) -> int:
    """The bytes that a call of a group of so many members allocates, by itself and in Gloo."""
    room = frame_of(size) - HEADER if gloo else -1
    if method == "all_reduce":
        t: Tensor = args[0]
        work = t.numel() * reduction.WIDER.get(t.dtype, t.dtype).itemsize
        copied = work * (t.dtype in reduction.WIDER or not t.is_contiguous())
        segments = max(-(-work // SEGMENT), 2 * size)
        return copied + gloo * 2 * -(-work // (-(-segments // size) * size)) if t.nbytes > room else 0
    if method == "reduce_scatter":
        out, parts, _ = args
        apart = not any(out is p for p in parts)  # what is added first comes to where the sum will be
        return out.nbytes * (size - 2 * apart) if sum(p.nbytes for p in parts) > room else 0
    if method == "all_gather":
        outs, t = args
        strided = sum(o.nbytes for o in outs if not o.is_contiguous())
        if max(o.nbytes for o in outs) <= room:
            return 0
        if len({o.numel() for o in outs}) > 1 or t.nbytes > DIRECT:
            return strided - min(strided, t.nbytes)
        return strided + gloo * size * t.nbytes
    return 0


class C10dGroup(Group):
    def __init__(self, transport: Connected, ranks: tuple[int, ...], line: str) -> None:
        super().__init__(transport, ranks, line)
        self._agreed: set[Call] = set()  # on CUDA
        self._sums: deque[Sum] = deque()  # in flight, in the same order on all members
        self._length = frame = frame_of(self.size)
        self._room = frame - HEADER
        with torch.inference_mode(False):
            self._frame = torch.zeros(frame, dtype=torch.uint8)
            self._frames = torch.zeros(self.size * frame, dtype=torch.uint8)
        self._header, self._headers = (t.numpy().data.cast("q") for t in (self._frame, self._frames))
        self._numbers = range(1, self.size * frame // WORD, frame // WORD)  # the indices of the members' hashes
        self._views: dict[tuple[bool, int, torch.Size, torch.dtype], Tensor] = {}

    def calls_made(self) -> int:
        return self._turn

    # ---- agreeing ------------------------------------------------------------------------------------------

    def _meet(self, call: Call, *data: Tensor) -> None:
        """The handshake: gather the frames of all members, and check that all made the same call."""
        while self._sums:
            self._sums[-1].wait()
        carried = self._transport.carried(self.ranks, self._length * (self.size - 1))
        self._agree(call, self._send(call, data), self._fingerprints.behind)
        until(carried)

    def _send(self, call: Call, data: Sequence[Tensor] = (), word: int | None = None) -> Any:
        """Start the all-gather of frames, with `data` in this member's."""
        self._turn += 1
        word = self._fingerprints.now() if word is None else word
        self._header[0], self._header[1] = self._turn, call.number ^ word
        at = HEADER
        for t in data:
            if t.numel():
                self._view(self._frame, at, t).copy_(t)
                at += t.nbytes
        processes = self._transport.processes(self.ranks, "cpu", self._line, call)
        try:
            return processes._allgather_base(self._frames, self._frame)
        except RuntimeError as error:
            raise self._transport.explained(error, self._shown(call), self.ranks) from None

    def _agree(self, call: Call, work: Any, behind: Callable[[], Behind]) -> None:
        self._finish(call, work, False)
        headers, turn, number = self._headers, *self._header[:2]
        if any(headers[i] != number or headers[i - 1] != turn for i in self._numbers):
            key = f"diverged/{group_key(self.ranks, self._line)}/{self._turn}"
            raise differ(self._transport, key, self.ranks, self._turn, str(call), behind())

    def _finish(self, call: Call, work: Any, cuda: bool) -> None:
        transport, turn = self._transport, self._turn

        def shown() -> str:
            return self._shown(call)

        waiting = transport.group_waiting(self.ranks, self._line, turn, shown)
        transport.finish(work, shown, self.ranks, cuda, waiting)

    def _shown(self, call: Call) -> str:
        return f"{call} (call {self._turn} of group {self.ranks})"

    def _compare(self, call: Call, cuda: bool) -> None:
        """The handshake of a call whose data doesn't fit into the frame."""
        if not cuda or self._transport.check or call not in self._agreed:
            self._meet(call)
            if cuda:
                self._agreed.add(call)
                self._transport.processes(self.ranks, "cuda", self._line, call)  # also where there is nothing to move

    def _data(self, member: int, like: Tensor, at: int = 0) -> Tensor:
        """The data in a member's frame, as a tensor of this form."""
        return self._view(self._frames, member * self._length + HEADER + at, like)

    def _view(self, of: Tensor, start: int, like: Tensor) -> Tensor:
        key = (of is self._frame, start, like.shape, like.dtype)
        found = self._views.get(key)
        if found is None:
            if len(self._views) >= KEPT:
                self._views.clear()
            with torch.inference_mode(False):
                found = of[start : start + like.nbytes].view(like.dtype).view(like.shape)
            self._views[key] = found
        return found

    def _run(self, call: Call, t: Tensor, method: str, *arguments: Any) -> None:
        carried = self._transport.carried(self.ranks, t.nbytes * TIMES[method](self.size))
        processes = self._transport.processes(self.ranks, t.device.type, self._line, call)
        try:
            work = getattr(processes, method)(*arguments)
        except RuntimeError as error:
            raise self._transport.explained(error, self._shown(call), self.ranks) from None
        self._finish(call, work, t.is_cuda)
        until(carried)

    # ---- the collectives -----------------------------------------------------------------------------------

    @collective
    def all_reduce(self, t: Tensor, reduce: str = "sum") -> None:
        reduction.checked(reduce, t.dtype)
        if self.size == 1:
            return
        call = self._call(check.ALL_REDUCE, t.dtype, (t,), reduce)
        if t.nbytes <= self._room and not t.is_cuda:
            self._meet(call, t)
            if t.numel():
                reduction.into(t, [self._data(i, t) for i in range(self.size)], reduce)
            return
        if t.is_cuda and reduce in reduction.BITS:  # which NCCL can't
            outs = [torch.empty_like(t, memory_format=torch.contiguous_format) for _ in self.ranks]
            self._all_gather(outs, t)
            return reduction.into(t, outs, reduce)
        self._compare(call, t.is_cuda)
        work, by = reduction.reducible(t, reduce)
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp(OPS[by])
        self._run(call, t, "allreduce", [work], options)
        if reduce == "avg":
            work.div_(self.size)
        reduction.restore(t, work)

    def begin_all_reduce(self, t: Tensor) -> UnderWay:
        if self.size == 1:
            return UnderWay()
        if self.under_way:
            raise self._refused("all_reduce")
        begun = Sum(self, self._call(check.ALL_REDUCE, t.dtype, (t,), "sum"), t)
        self._sums.append(begun)
        begun.go_on()
        return begun

    def _all_gather(self, outs: Sequence[Tensor], t: Tensor) -> None:
        call = self._call(check.ALL_GATHER, t.dtype, outs)
        if max(o.nbytes for o in outs) <= self._room and not t.is_cuda:
            self._meet(call, t)
            for i, out in enumerate(outs):
                if i != self.index and out.numel():
                    out.copy_(self._data(i, out))
            return
        self._compare(call, t.is_cuda)
        if len({o.numel() for o in outs}) > 1 or (t.nbytes > DIRECT and not t.is_cuda):
            return self._exchange(outs, [t] * self.size)
        data = t.contiguous()
        into = [o if o.is_contiguous() else torch.empty_like(o, memory_format=torch.contiguous_format) for o in outs]
        self._run(call, t, "allgather", [[as_bytes(i) for i in into]], [as_bytes(data)])
        for out, i in zip(outs, into, strict=True):
            if out is not i:
                out.copy_(i)

    def _reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], reduce: str) -> None:
        own = parts[self.index]
        call = self._call(check.REDUCE_SCATTER, out.dtype, parts, reduce)
        if sum(p.nbytes for p in parts) <= self._room and not out.is_cuda:
            self._meet(call, *parts)
            before = sum(p.nbytes for p in parts[: self.index])
            terms = [self._data(i, own, before).view(out.shape) for i in range(self.size)] if own.numel() else []
        else:
            self._compare(call, out.is_cuda)
            # c10d wants equal parts, and Gloo lacks some dtypes; moved as bytes and added here, all work.
            apart = out.is_contiguous() and all(_apart(out, p) for p in parts)
            own, free = own.reshape(out.shape), [out] * apart  # what is added first may come to where the sum will be
            own = own if apart else own.clone()
            terms = [
                own if i == self.index else free.pop() if free else out.new_empty(out.shape) for i in range(self.size)
            ]
            self._exchange(terms, parts)
        if terms:
            reduction.into(out, terms, reduce)

    def _all_to_all(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        """Exchange what every member gives to each and expects of each; small parts are sent in the frame itself."""
        sizes = torch.tensor([[p.numel() for p in parts], [o.numel() for o in outs]])
        call, room = self._call(check.ALL_TO_ALL, parts[0].dtype, ()), self._room - sizes.nbytes
        if room < 0:  # messages of unexpected sizes have other tags
            self._meet(call)
            return self._exchange(outs, parts)
        room = -1 if parts[0].is_cuda else room // parts[0].itemsize
        self._meet(call, sizes, *(parts if sum(p.numel() for p in parts) <= room else ()))
        if parts[0].is_cuda:
            self._transport.processes(self.ranks, "cuda", self._line, call)
        every = torch.stack([self._data(i, sizes) for i in range(self.size)])
        given, wanted = every[:, 0], every[:, 1].t()
        for giver, taker in (given != wanted).nonzero().tolist()[:1]:
            raise Diverged(
                misfit(self.ranks[giver], self.ranks[taker], *(int(n[giver, taker]) for n in (given, wanted)))
            )
        gives = given.tolist()
        came = [sum(counts) <= room for counts in gives]
        for i, out in enumerate(outs):
            if came[i] and i != self.index and out.numel():
                before = sum(gives[i][: self.index]) * out.itemsize
                out.copy_(self._data(i, out, sizes.nbytes + before))
        if not all(came):
            self._exchange(outs, parts, came)

    def _exchange(self, outs: Sequence[Tensor], parts: Sequence[Tensor], came: Sequence[bool] = ()) -> None:
        """Send `parts[i]` to each other member i; sizes may differ. Skip members whose data `came` already."""
        others = [(i, r) for i, r in enumerate(self.ranks) if i != self.index]
        self._transport.exchange(
            [(r, parts[i]) for i, r in others if not (came and came[self.index])],
            [(r, outs[i]) for i, r in others if not (came and came[i])], self._line, self.ranks,
        )  # fmt: skip

    def _broadcast(self, t: Tensor, root: int) -> None:
        call = self._call(check.BROADCAST, t.dtype, (t,), root=root)
        if t.nbytes <= self._room and not t.is_cuda:
            self._meet(call, *[t] * (self.index == root))
            if self.index != root and t.numel():
                t.copy_(self._data(root, t))
            return
        self._compare(call, t.is_cuda)
        data = t.contiguous()
        options = dist.BroadcastOptions()
        options.rootRank = root
        self._run(call, t, "broadcast", [as_bytes(data)], options)
        if data is not t:
            t.copy_(data)

    @collective
    def barrier(self) -> None:
        if self.size > 1:
            self._meet(self._call(check.BARRIER, torch.uint8, ()))


def _apart(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors certainly have no memory in common; the first is contiguous."""
    if not b.is_contiguous():
        return a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr()
    return a.data_ptr() + a.nbytes <= b.data_ptr() or b.data_ptr() + b.nbytes <= a.data_ptr()


class Sum(UnderWay):
    """An asynchronous all-reduce: first the frames, then the data. Those of a group run one after another, since all
    members must call Gloo in the same order."""

    def __init__(self, group: C10dGroup, call: Call, t: Tensor) -> None:
        self._group, self._call, self._t = group, call, t
        self._word = group._fingerprints.now()  # of now: how soon it is sent is a matter of time
        self._behind = group._fingerprints.behind()
        self._frames: Any = None
        self._work: Any = None
        self._carried = 0.0

    def go_on(self) -> None:
        with self._whole():
            self._go_on()

    def wait(self) -> None:
        with self._whole():
            self._wait()

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._group.break_off(f"{self._call}", error)
            raise

    def _go_on(self) -> None:
        group = self._group
        if self._work is not None or group._sums[0] is not self:
            return
        if self._frames is None:
            if self._t.is_cuda and self._call in group._agreed and not group._transport.check:
                return self._start()
            self._frames = group._send(self._call, (), self._word)
        if self._frames.is_completed():
            self._start()

    def _start(self) -> None:
        """Start the data after the frames, waiting for these if need be."""
        group, t = self._group, self._t
        if self._frames is not None:
            group._agree(self._call, self._frames, lambda: self._behind)
            group._agreed.add(self._call)
        processes = group._transport.processes(group.ranks, t.device.type, group._line)
        self._carried = group._transport.carried(group.ranks, t.nbytes * TIMES["allreduce"](group.size))
        try:
            self._work = processes.allreduce([t])
        except RuntimeError as error:
            raise group._transport.explained(error, group._shown(self._call), group.ranks) from None
        group._sums.popleft()
        if group._sums:
            group._sums[0]._go_on()

    def _wait(self) -> None:
        while self._work is None:
            first = self._group._sums[0]
            first._go_on()
            if first._work is None:
                first._start()
        self._group._finish(self._call, self._work, self._t.is_cuda)
        until(self._carried)
