"""NCCL's process groups, by Gloo: each has a stream, which waits for the current one, and is waited for by `wait`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from tests.emulated.streams import Stream, current_stream
from tests.emulated.streams import touch as access
from tests.emulated.tensors import OnCuda, tensors

DTYPES = {
    torch.int8, torch.uint8, torch.bool, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.float8_e4m3fn, torch.float8_e5m2,
}  # fmt: skip


class _Work:
    def __init__(self, works: Sequence[Any], stream: Stream) -> None:
        self.works, self.stream = works, stream

    def is_completed(self) -> bool:
        return all(w.is_completed() for w in self.works)

    def wait(self, *_: Any) -> bool:
        with torch._C._DisableTorchDispatch():
            for w in self.works:
                w.wait()
        current_stream(self.stream.device_index).wait_stream(self.stream)
        return True


class Nccl:
    class Options:
        _timeout: Any = None

    def __init__(self, store: Any, index: int, size: int, options: Any) -> None:
        self.gloo: Any = dist.ProcessGroupGloo(store, index, size, options._timeout)
        self.streams: dict[int, Stream] = {}
        self.together: list[_Work] | None = None
        self.connected: set[int] = set()  # devices whose members have all met

    def _call(self, what: str, outs: Sequence[Any], given: Sequence[Any], start: Callable[[], Any]) -> Any:
        every = [*tensors([*outs, *given])]
        if not all(isinstance(t, OnCuda) for t in every):
            raise RuntimeError(f"No backend type associated with device type cpu, in {what}")
        if not all(t.is_contiguous() for t in every):
            raise ValueError("Tensors must be contiguous")
        if not DTYPES.issuperset(t.dtype for t in every):
            raise TypeError("Input tensor data type is not supported for NCCL process group")
        (index,) = {t.at for t in every}
        if self.together is not None:
            assert index in self.connected, "messages of some ranks can't connect all of them"
        stream = self.streams.setdefault(index, Stream(index))
        stream.wait_stream(current_stream(index))
        stream.step()
        for side, writes in ((given, False), (outs, True)):
            for t in tensors(list(side)):
                access(t, writes, stream, what)
        with torch._C._DisableTorchDispatch():
            work = _Work([start()], stream)
        if self.together is None:
            return work
        self.together.append(work)
        return None

    def allreduce(self, ts: Any, *options: Any) -> Any:
        if options and options[0].reduceOp in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
            raise ValueError(f"Cannot use {options[0].reduceOp} with NCCL")
        return self._call("allreduce", ts, (), lambda: self.gloo.allreduce(ts, *options))

    def allgather(self, outs: Any, ts: Any) -> Any:
        return self._call("allgather", outs, ts, lambda: self.gloo.allgather(outs, ts))

    def broadcast(self, ts: Any, options: Any) -> Any:
        return self._call("broadcast", ts, (), lambda: self.gloo.broadcast(ts, options))

    def send(self, ts: Any, peer: int, tag: int) -> Any:
        return self._call("send", (), ts, lambda: self.gloo.send(ts, peer, 0))

    def recv(self, ts: Any, peer: int, tag: int) -> Any:
        return self._call("recv", ts, (), lambda: self.gloo.recv(ts, peer, 0))

    def eager_connect_single_device(self, device: torch.device) -> None:
        self.gloo.barrier().wait()
        self.connected.add(device.index)

    def _start_coalescing(self) -> None:
        self.together = []

    def _end_coalescing(self) -> Any:
        works, self.together = self.together or [], None
        return _Work([w for each in works for w in each.works], works[0].stream) if works else None
