"""`DistributedDataParallel`: each rank trains the same module on its own data, and gradients are averaged.

On local tensors, as in PyTorch and OneFlow; a global tensor split along the batch needs none of this.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

import torch

from weft.core.errors import ArgumentError, AutogradError
from weft.core.rank import current
from weft.nn.module import Module
from weft.tensor.tensor import Tensor
from weft.transport import transport_of

M = TypeVar("M", bound=Module)


def DistributedDataParallel(
    module: M, *, broadcast_parameters: bool = True, broadcast_buffers: bool = True, bucket_size: int = 25_000_000,
) -> M:  # fmt: skip
    """Make a module's gradients the mean over all ranks; gives the module itself, which keeps its type and its names.

    Parameters and buffers begin as the first rank's. Gradients travel together, `bucket_size` bytes at a time, in the
    order in which backward makes them.
    """
    if not isinstance(module, Module):
        raise ArgumentError(f"DistributedDataParallel takes a module; got {type(module).__name__}")
    if any(p.is_global for p in module.parameters()):
        raise ArgumentError(
            "DistributedDataParallel is for local parameters; these are global, and boxing sums their gradients: "
            "give the module a batch with sbp=flow.sbp.split(0)"
        )
    if not any(p.requires_grad for p in module.parameters()):
        raise ArgumentError("DistributedDataParallel is not needed when a module has no parameter to train")
    if current().world_size > 1:
        start = [*module.parameters()] if broadcast_parameters else []
        _broadcast(start + [*module.buffers()])
        _averagers()[module] = averager = Averager(module, bucket_size)
        buffers = [*module.buffers()] if broadcast_buffers else []
        module.register_forward_pre_hook(lambda m, args: averager.before_forward(m.training, buffers), prepend=True)
    return module


def _averagers() -> weakref.WeakKeyDictionary[Module, Averager]:
    return current().resource("averagers", lambda rank: weakref.WeakKeyDictionary())


@contextlib.contextmanager
def no_sync(module: Module) -> Iterator[None]:
    """Gradients inside stay this rank's own, and join the next average: for accumulating over several batches."""
    averager = _averagers().get(module)
    if averager is None:
        yield
        return
    before, averager.active = averager.active, False
    try:
        yield
    finally:
        averager.active = before


class Bucket:
    """Parameters whose gradients travel as one."""

    def __init__(self) -> None:
        self.params: list[Tensor] = []
        self.waiting = 0
        self.flat: torch.Tensor | None = None
        self.views: list[torch.Tensor] = []

    def close(self) -> None:
        """Lay out the memory, once the members are known."""
        datas = [p._local("gradients") for p in self.params]
        self.flat = torch.empty(sum(d.numel() for d in datas), dtype=datas[0].dtype, device=datas[0].device)
        parts = self.flat.split([d.numel() for d in datas])
        self.views = [part.view(d.shape) for part, d in zip(parts, datas, strict=True)]
        self.waiting = len(self.params)


class Averager:
    """Counts gradients as they are ready, and averages bucket after bucket, in one order on every rank."""

    def __init__(self, module: Module, bucket_size: int) -> None:
        self.names = {id(p): name for name, p in module.named_parameters()}
        self.group = transport_of().group(tuple(range(current().world_size)))
        self.active = True
        self.buckets: list[Bucket] = []
        self.place: dict[int, Bucket] = {}
        self.ready: set[int] = set()
        self.next = 0
        size = 0
        for p in reversed([p for p in module.parameters() if p.requires_grad]):  # backward comes by the last ones first
            bytes_of = p.numel() * p.element_size()
            last = self.buckets[-1] if self.buckets else None
            if last is None or last.params[0].dtype is not p.dtype or size + bytes_of > bucket_size:
                last, size = Bucket(), 0
                self.buckets.append(last)
            last.params.append(p)
            size += bytes_of
            self.place[id(p)] = last
            p.register_post_accumulate_grad_hook(self.arrived)
        for bucket in self.buckets:
            bucket.close()

    def before_forward(self, training: bool, buffers: list[Tensor]) -> None:
        if self.ready:
            missing = [name for key, name in self.names.items() if key in self.place and key not in self.ready]
            shown = ", ".join(missing[:5]) + ", ..." * (len(missing) > 5)
            raise AutogradError(
                f"the last backward made gradients for {len(self.ready)} parameters but none for {shown}, so they "
                "could not be averaged over the ranks. Use every parameter in forward, or let those that you don't use "
                "require no gradient before DistributedDataParallel"
            )
        if training and buffers and self.active:
            _broadcast(buffers)

    def arrived(self, p: Tensor) -> None:
        if not self.active:
            return
        self.ready.add(id(p))
        self.place[id(p)].waiting -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].waiting <= 0:
            self.average(self.buckets[self.next])
            self.next += 1
        if self.next == len(self.buckets):
            self.next = 0
            self.ready.clear()
            for bucket in self.buckets:
                bucket.waiting = len(bucket.params)

    def average(self, bucket: Bucket) -> None:
        grads = [p.grad._local("gradients") for p in bucket.params if p.grad is not None]
        assert bucket.flat is not None and len(grads) == len(bucket.params), "a gradient went away during backward"
        torch._foreach_copy_(bucket.views, grads)
        self.group.all_reduce(bucket.flat)
        bucket.flat.div_(self.group.size)
        torch._foreach_copy_(grads, bucket.views)


def _broadcast(tensors: list[Tensor]) -> None:
    """Everybody takes the first rank's values."""
    group = transport_of().group(tuple(range(current().world_size)))
    together: dict[Any, list[torch.Tensor]] = {}
    for t in tensors:
        data = t._local("broadcast")
        together.setdefault((data.dtype, data.device), []).append(data)
    for datas in together.values():
        flat = torch.cat([d.reshape(-1) for d in datas])
        group.broadcast(flat, 0)
        parts = flat.split([d.numel() for d in datas])
        torch._foreach_copy_(datas, [part.view(d.shape) for part, d in zip(parts, datas, strict=True)])
