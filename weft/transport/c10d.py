"""Ranks anywhere, through torch's c10d: Gloo for CPU tensors, NCCL for CUDA tensors.

The process groups are made directly over a store of their own, so torch.distributed's default group stays the user's.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from weft.core.errors import ArgumentError, DtypeError, RankError
from weft.core.rank import Rank
from weft.transport import reduction
from weft.transport.base import Channel, Group, PeerFailed, Transport, checking
from weft.transport.c10d_channel import FIRST_TAG, C10dChannel
from weft.transport.rendezvous import Meeting
from weft.transport.waiter import Waiter
from weft.transport.watch import SETTLE, Watch

MOMENT = timedelta(milliseconds=5)  # that a look at work under way takes at most
OPS = {
    "sum": dist.ReduceOp.SUM,
    "avg": dist.ReduceOp.SUM,  # and a division at the end
    "prod": dist.ReduceOp.PRODUCT,
    "max": dist.ReduceOp.MAX,
    "min": dist.ReduceOp.MIN,
}
# What Gloo and NCCL can't add up, and the dtype in which they can; every value fits.
WIDER = {torch.int16: torch.int32, torch.bool: torch.uint8, torch.uint16: torch.int32, torch.uint32: torch.int64}
OF_BOOL = {"sum": "max", "prod": "min", "max": "max", "min": "min"}  # or, and


class C10dTransport(Transport):
    def __init__(self, rank: Rank, meeting: Meeting, deadline: float | None = None) -> None:
        super().__init__(rank.index, rank.world_size, deadline)
        self._meeting = meeting
        self._processes: dict[tuple[tuple[int, ...], str, str], Any] = {}
        self._watch = Watch(meeting, rank, self.deadline)
        self._closed = False
        self._waiters: list[Waiter] = []
        self._channels: list[C10dChannel] = []
        self._kept: list[object] = []
        self._exchanging: dict[str, Waiter] = {}
        self._to_myself: defaultdict[str, deque[Tensor]] = defaultdict(deque)

    def processes(self, ranks: tuple[int, ...], device: str, line: str = "") -> Any:
        """The process group of these ranks for tensors on this type of device."""
        found = self._processes.get((ranks, device, line))
        if found is None:
            prefix = f"{device}/{','.join(map(str, ranks))}" + f"/{line}" * bool(line)
            self._gather(prefix, ranks)
            found = self._processes[ranks, device, line] = self._connected(prefix, ranks, device)
        return found

    def _connected(self, prefix: str, ranks: tuple[int, ...], device: str) -> Any:
        """A new process group. Where a rank, or the store, dies meanwhile, c10d waits out its deadline or several: the
        caller does not."""
        made: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def connect() -> None:
            try:
                make = self._nccl if device == "cuda" else self._gloo
                made.put(make(self._meeting.under(prefix), ranks.index(self.rank), len(ranks)))
            except Exception as error:
                made.put(error)

        threading.Thread(target=connect, name=f"weft-connecting-{self.rank}", daemon=True).start()
        what = f"connecting ranks {ranks}"
        self.wait_until(lambda: not made.empty(), what, ranks)
        found = made.get()
        if isinstance(found, RuntimeError):  # c10d's errors are such
            raise self.explained(found, what, ranks) from None
        if isinstance(found, Exception):
            raise found
        return found

    def _gather(self, what: str, ranks: tuple[int, ...]) -> None:
        """Wait until all have come to connect: c10d itself would wait on for a rank that has failed before."""
        self._meeting.put(f"come/{what}/{self.rank}", b"1")
        for rank in ranks:
            self._meeting.get(f"come/{what}/{rank}", self.deadline, lambda: self.look_around(ranks))

    def _gloo(self, store: Any, index: int, size: int) -> Any:
        options = dist.ProcessGroupGloo._Options()  # pyright: ignore[reportAttributeAccessIssue]  (missing in torch's stubs)
        # By itself c10d takes what the host's name stands for, which often is the host's own loopback.
        interface = os.environ.get("GLOO_SOCKET_IFNAME")
        if interface:
            known = [name for _, name in socket.if_nameindex()]
            if interface.partition(":")[0] not in known:
                raise ArgumentError(f"GLOO_SOCKET_IFNAME={interface} names no interface of this host; it has {known}")
            device = dist.ProcessGroupGloo.create_device(interface=interface)
        else:
            device = dist.ProcessGroupGloo.create_device(hostname=self._meeting.own_address())
        # Gloo's own end of a wait tells nothing and breaks its connections: ours is to come first.
        options._devices, options._timeout = [device], timedelta(seconds=self.deadline + SETTLE)
        return dist.ProcessGroupGloo(store, index, size, options)

    def _nccl(self, store: Any, index: int, size: int) -> Any:
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timedelta(seconds=self.deadline)
        return dist.ProcessGroupNCCL(store, index, size, options)

    def _make_group(self, ranks: tuple[int, ...], line: str) -> Group:
        return C10dGroup(self, ranks, line)

    def finish(self, work: Any, what: str, ranks: Sequence[int], cuda: bool = False) -> None:
        """Wait for c10d's work; on CUDA only the stream waits."""
        try:
            if not cuda:
                self.wait_until(lambda: _over(work), what, ranks)
            work.wait()
        except RankError:
            raise
        except RuntimeError as error:
            raise self.explained(error, what, ranks) from None

    def explained(self, error: RuntimeError, what: str, ranks: Sequence[int]) -> RankError:
        """A broken connection, as the failure of a rank behind it."""
        try:
            self._watch.settle(ranks)
        except PeerFailed as failure:
            return PeerFailed(f"{failure}; rank {self.rank} was in {what}")
        return RankError(f"rank {self.rank} in {what} over ranks {tuple(ranks)}: {str(error).splitlines()[0]}")

    def exchange(
        self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str = ""
    ) -> None:
        for dst, t in sends:
            if self._peer(dst, "send to") == self.rank:
                self._to_myself[line].append(t.clone())
        everyone = tuple(range(self.world_size))
        works: list[tuple[int, Any, bool]] = []
        keep: list[Tensor] = []
        back: list[tuple[Tensor, Tensor]] = []
        with Coalesced(self, everyone, [t for _, t in (*sends, *receives)], line):
            for src, t in receives:
                if self._peer(src, "receive from") != self.rank and t.numel():
                    flat = t if t.is_contiguous() else torch.empty_like(t, memory_format=torch.contiguous_format)
                    if flat is not t:
                        back.append((t, flat))
                    works.append((src, self.start("recv", everyone, flat, src, line=line), t.is_cuda))
            for dst, t in sends:
                if dst != self.rank and t.numel():
                    flat = t.contiguous()
                    keep.append(flat)
                    works.append((dst, self.start("send", everyone, flat, dst, line=line), t.is_cuda))
        self._finish_exchange(works, line)
        for t, flat in back:
            t.copy_(flat)
        for src, t in receives:
            if src == self.rank:
                if not self._to_myself[line]:
                    raise RankError(f"rank {src} receives from itself what it has not sent; send first")
                t.copy_(self._to_myself[line].popleft().view(t.shape))

    def _finish_exchange(self, works: Sequence[tuple[int, Any, bool]], line: str) -> None:
        peers = tuple({peer for peer, _, _ in works})
        what = f"an exchange with rank {', '.join(map(str, peers))}"
        if any(not cuda for _, _, cuda in works):
            waiter = self._exchanging.get(line)
            if waiter is None:
                waiter = self._exchanging[line] = self.waiter("exchange", tuple(range(self.world_size)), line)
            for _, work, cuda in works:
                if not cuda:
                    waiter.add(work)
            self.wait_until(waiter.idle, what, peers)
            if waiter.error is not None:
                raise self.explained(waiter.error, what, peers)
        for _, work, cuda in works:
            if cuda and work is not None:
                self.finish(work, what, peers, cuda)

    def start(self, way: str, ranks: tuple[int, ...], t: Tensor, peer: int, tag: int = 1, line: str = "") -> Any:
        processes = self.processes(ranks, t.device.type, line)
        try:
            return getattr(processes, way)([t], ranks.index(peer), tag)
        except RuntimeError as error:
            raise self.explained(error, f"a {way} with rank {peer}", (peer,)) from None

    def channel(self, key: str, src: int, dst: int, shape: Sequence[int], dtype: torch.dtype, copies: int) -> Channel:
        name = f"channel/{src}/{dst}/{key}/{self._opens(key, src, dst, copies)}"
        layout = repr((tuple(shape), dtype, copies)).encode()
        if self._meeting.claim(name):
            tag = FIRST_TAG + 2 * self._meeting.add("tags")
            self._meeting.put(name, f"{tag} ".encode() + layout)
        number, _, found = self._meeting.get(name, self.deadline, lambda: self.look_around((src, dst))).partition(b" ")
        if found != layout:
            raise RankError(
                f"the two ends of channel {key!r} differ in (shape, dtype, copies): {layout.decode()} here, "
                f"{found.decode()} there"
            )
        made = C10dChannel(self, src, dst, (tuple(shape), dtype, copies), int(number))
        self._channels.append(made)
        return made

    def waiter(self, name: str, ranks: tuple[int, ...], line: str = "") -> Waiter:
        made = Waiter(f"weft-{name}-{self.rank}", self.processes(ranks, "cpu", line))
        self._waiters.append(made)
        return made

    def put(self, key: str, value: bytes) -> None:
        self._meeting.put(f"user/{key}", bytes(value))

    def get(self, key: str, timeout: float | None = None) -> bytes:
        patience = self.deadline if timeout is None else timeout
        return self._meeting.get(f"user/{key}", patience, lambda: self.look_around(()))

    def note(self, what: str) -> None:
        self._watch.note = what

    def look_around(self, needed: Sequence[int]) -> None:
        self._watch.look_around(needed)

    def fail(self, why: str, followed: bool = False) -> None:
        self._watch.leave(why, followed)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._watch.leave()
        self._groups.clear()
        for channel in self._channels:
            self._kept += channel.farewell()
        for waiter in self._waiters:
            waiter.close(1.0)
        self._processes.clear()


def _over(work: Any) -> bool:
    """Whether it is complete, after a moment's wait in which this thread takes no time from Gloo's."""
    if not work.is_completed():
        with contextlib.suppress(RuntimeError):  # not yet; or failed, as the last wait will say
            work.wait(MOMENT)
    return work.is_completed()


class Coalesced:
    """NCCL must see the sends and receives of one exchange as one, or they wait for each other; Gloo needs nothing."""

    def __init__(self, transport: C10dTransport, ranks: tuple[int, ...], tensors: Sequence[Tensor], line: str) -> None:
        self._processes: Any = None
        if any(t.is_cuda for t in tensors):
            self._processes = transport.processes(ranks, "cuda", line)

    def __enter__(self) -> None:
        if self._processes is not None:
            self._processes._start_coalescing(torch.device("cuda"))

    def __exit__(self, *_: object) -> None:
        if self._processes is not None:
            work = self._processes._end_coalescing(torch.device("cuda"))
            if work is not None:
                work.wait()


class C10dGroup(Group):
    def __init__(self, transport: C10dTransport, ranks: tuple[int, ...], line: str) -> None:
        self.ranks, self.index, self.size = ranks, ranks.index(transport.rank), len(ranks)
        self._transport, self._line = transport, line
        self._calls = 0
        self._checking = checking()

    def _run(self, what: str, t: Tensor, method: str, *arguments: Any) -> None:
        processes = self._transport.processes(self.ranks, t.device.type, self._line)
        try:
            work = getattr(processes, method)(*arguments)
        except RuntimeError as error:
            raise self._transport.explained(error, what, self.ranks) from None
        self._transport.finish(work, what, self.ranks, t.is_cuda)

    def all_reduce(self, t: Tensor, reduce: str = "sum") -> None:
        reduction.checked(reduce, t.dtype)
        self._check("all_reduce", reduce, tuple(t.shape), t.dtype)
        if self.size == 1 or not t.numel():
            return
        work, by = _reducible(t, reduce)
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp(OPS[by])
        self._run("all_reduce", t, "allreduce", [work], options)
        if reduce == "avg":
            work.div_(self.size)
        _restore(t, work)

    def all_gather(self, outs: Sequence[Tensor], t: Tensor) -> None:
        self._counted("all_gather", len(outs))
        reduction.same_dtype("all_gather", t, outs)
        self._check("all_gather", [o.numel() for o in outs], t.dtype)
        if len({o.numel() for o in outs}) > 1:
            return self._exchange("all_gather", outs, [t] * self.size)
        if t.numel():
            data = t.contiguous()
            into = [
                o if o.is_contiguous() else torch.empty_like(o, memory_format=torch.contiguous_format) for o in outs
            ]
            self._run("all_gather", t, "allgather", [[i.view(-1) for i in into]], [data.view(-1)])
            for out, i in zip(outs, into, strict=True):
                if out is not i:
                    out.copy_(i)

    def reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], reduce: str = "sum") -> None:
        self._counted("reduce_scatter", len(parts))
        reduction.same_dtype("reduce_scatter", out, parts)
        reduction.checked(reduce, out.dtype)
        self._check("reduce_scatter", reduce, [tuple(p.shape) for p in parts], out.dtype)
        # c10d wants equal parts, and Gloo lacks the dtypes; moved as bytes and added here, any will do.
        here = torch.empty((self.size, *out.shape), dtype=out.dtype, device=out.device)
        self._exchange("reduce_scatter", list(here.unbind(0)), parts)
        reduction.into(out, here.unbind(0), reduce)

    def all_to_all(self, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        self._counted("all_to_all", len(outs))
        self._counted("all_to_all", len(parts))
        reduction.same_dtype("all_to_all", parts[0], (*outs, *parts))
        self._check("all_to_all", parts[0].dtype)
        self._exchange("all_to_all", outs, parts)

    def _exchange(self, what: str, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        """Member i gets `parts[i]`; sizes are as they are."""
        for out, part in zip(outs[self.index : self.index + 1], parts[self.index : self.index + 1], strict=True):
            if out.numel() != part.numel():
                raise RankError(f"{what}: {tuple(part.shape)} is given where {tuple(out.shape)} is expected")
            if out is not part:
                out.copy_(part.reshape(out.shape))
        others = [(i, r) for i, r in enumerate(self.ranks) if i != self.index]
        self._transport.exchange([(r, parts[i]) for i, r in others], [(r, outs[i]) for i, r in others], self._line)

    def broadcast(self, t: Tensor, root: int) -> None:
        self._check("broadcast", self._root(root), tuple(t.shape), t.dtype)
        if self.size == 1 or not t.numel():
            return
        data = t.contiguous()
        options = dist.BroadcastOptions()
        options.rootRank = root
        as_bytes = data.view(-1).view(torch.uint8)
        self._run("broadcast", t, "broadcast", [as_bytes], options)
        if data is not t:
            t.copy_(data)

    def barrier(self) -> None:
        self._check("barrier")
        if self.size > 1:
            self._run("barrier", torch.empty(0), "barrier")

    def _check(self, *call: object) -> None:
        """In checking mode: compare the call with the first member's."""
        if not self._checking or self.size == 1:
            return
        self._calls += 1
        text = " ".join(map(str, (f"call {self._calls}:", *call)))
        key = f"check/{','.join(map(str, self.ranks))}/{self._line}/{self._calls}/"
        transport = self._transport
        transport.put(key + str(self.index), text.encode())
        for i, rank in enumerate(self.ranks):
            other = transport.get(key + str(i)).decode()
            if other != text:
                raise RankError(
                    f"the ranks diverged in group {self.ranks}: rank {transport.rank} makes {text!r} and rank {rank} "
                    f"makes {other!r}"
                )


def _reducible(t: Tensor, reduce: str) -> tuple[Tensor, str]:
    """`t` in a dtype that c10d can reduce, contiguous; and the reduction that means the same there."""
    if t.is_complex():
        if reduce not in ("sum", "avg"):
            raise DtypeError(f"c10d can't reduce {t.dtype} by {reduce}; WEFT_TRANSPORT=shm can, on one host")
        return torch.view_as_real(t.contiguous()), reduce
    by = OF_BOOL[reduce] if t.dtype == torch.bool else reduce
    return t.to(WIDER.get(t.dtype, t.dtype)).contiguous(), by


def _restore(t: Tensor, work: Tensor) -> None:
    if work is t:
        return
    t.copy_(torch.view_as_complex(work) if t.is_complex() else work)
