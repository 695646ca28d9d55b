"""`DistributedDataParallel`: each rank trains the same module on its own data, and gradients are averaged.

On local tensors, as in PyTorch and OneFlow; a global tensor split along the batch needs none of this.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import torch

from weft.autograd import is_grad_enabled
from weft.autograd.call import edge
from weft.autograd.node import Slot
from weft.core.errors import ArgumentError, AutogradError
from weft.core.rank import current
from weft.nn.module import Module
from weft.tensor.tensor import Tensor, of_torch
from weft.transport import transport_of
from weft.transport.c10d import C10dTransport

M = TypeVar("M", bound=Module)
LINE = "gradients"  # sums under way are ordered among themselves only: forward may broadcast, and users may compute


class _Kind(type):
    def __instancecheck__(cls, module: Any) -> bool:
        """Whether a module's gradients are averaged: it stays of its own type."""
        return isinstance(module, Module) and "no_sync" in module.__dict__


class DistributedDataParallel(metaclass=_Kind):
    """Make a module's gradients the mean over all ranks; gives the module itself, which keeps its type and its names.

    Parameters and buffers begin as the first rank's. Gradients travel together, `bucket_size` bytes at a time, as soon
    as backward has made them, while it goes on. With `find_unused_parameters` a parameter that a forward doesn't use
    counts as zero on that rank; one that no rank uses keeps its gradient. `with module.no_sync():` averages nothing.

    PyTorch's other options are taken: a module stays on the device where it is, and has itself as its `module`.
    """

    def __new__(
        cls, module: M, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
        init_sync: bool = True, process_group: Any = None, bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False, check_reduction: bool = False, gradient_as_bucket_view: bool = False,
        static_graph: bool = False, *, broadcast_parameters: bool = True, bucket_size: int = 25_000_000,
    ) -> M:  # fmt: skip
        if not isinstance(module, Module):
            raise ArgumentError(f"DistributedDataParallel takes a module; got {type(module).__name__}")
        if any(p.is_global for p in module.parameters()):
            raise ArgumentError(
                "DistributedDataParallel is for local parameters; these are global, and boxing sums their gradients: "
                "give the module a batch with sbp=flow.sbp.split(0)"
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise ArgumentError("DistributedDataParallel is not needed when a module has no parameter to train")
        if process_group is not None and len(process_group) < current().world_size:
            raise ArgumentError(
                f"DistributedDataParallel averages over all {current().world_size} ranks; got {process_group!r}. For "
                "some of them, make the parameters global on a placement of these ranks, and split the batch"
            )
        if bucket_cap_mb is not None:
            bucket_size = int(bucket_cap_mb * 2**20)
        if not hasattr(module, "module"):
            module.__dict__["module"] = module
        module.no_sync = functools.partial(no_sync, module)  # type: ignore[assignment]
        if current().world_size > 1:
            start = [*module.parameters()] if broadcast_parameters and init_sync else []
            _broadcast(start + [*module.buffers()] if init_sync else [])
            _averagers()[module] = averager = Averager(module, bucket_size)
            buffers = [*module.buffers()] if broadcast_buffers else []
            module.register_forward_pre_hook(lambda m, args: averager.before_forward(m.training, buffers), prepend=True)
            if find_unused_parameters:
                module.register_forward_hook(lambda m, args, outputs: averager.find_unused(outputs))
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
        self.finish: Callable[[], None] = _nothing  # returns when the sum that is under way is there

    def close(self) -> None:
        """Lay out the memory, once the members are known."""
        datas = [p._local("gradients") for p in self.params]
        self.flat = torch.empty(sum(d.numel() for d in datas), dtype=datas[0].dtype, device=datas[0].device)
        parts = self.flat.split([d.numel() for d in datas])
        self.views = [part.view(d.shape) for part, d in zip(parts, datas, strict=True)]
        self.waiting = len(self.params)


def _nothing() -> None: ...


class Averager:
    """Counts gradients as they are ready, and averages bucket after bucket, in one order on every rank."""

    def __init__(self, module: Module, bucket_size: int) -> None:
        self.names = {id(p): name for name, p in module.named_parameters()}
        self.active = True
        self.follow = True  # buffers begin as the first rank's when a forward comes after one that was averaged
        self.buckets: list[Bucket] = []
        self.place: dict[int, Bucket] = {}
        self.ready: set[int] = set()
        self.unused: set[int] | None = None  # by the last forward, as far as anybody looked
        self.alone: set[int] = set()  # what backward has reached under no_sync since the last average
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
                "require no gradient before DistributedDataParallel, or pass it find_unused_parameters=True"
            )
        if not training:  # perhaps on one rank alone
            return
        if buffers and self.follow:
            _broadcast(buffers)
        self.follow = self.active

    def find_unused(self, outputs: Any) -> None:
        """Parameters that backward from these outputs can't reach are ready as they are."""
        if self.active and is_grad_enabled():
            self._reset()
            self.unused = {*self.place} - reached(outputs)
            for key in self.unused:
                self.place[key].waiting -= 1

    def arrived(self, p: Tensor) -> None:
        if not self.active:
            self.alone.add(id(p))
            return
        self.ready.add(id(p))
        self.place[id(p)].waiting -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].waiting <= 0:
            self.start(self.buckets[self.next])
            self.next += 1
        if self.next == len(self.buckets):
            self.finish()
            self.alone.clear()
            self._reset()

    def _reset(self) -> None:
        self.next, self.unused = 0, None
        self.ready.clear()
        for bucket in self.buckets:
            bucket.waiting = len(bucket.params)

    def start(self, bucket: Bucket) -> None:
        """Send a bucket on its way; backward goes on meanwhile."""
        assert bucket.flat is not None
        here, views = [], []
        for p, view in zip(bucket.params, bucket.views, strict=True):
            if p.grad is None:
                view.zero_()
            else:
                here.append(p.grad._local("gradients"))
                views.append(view)
        if views:
            torch._foreach_copy_(views, here)
        bucket.finish = _sum(bucket.flat)

    def finish(self) -> None:
        """Put the averages in the gradients' places."""
        used = self._used_anywhere()
        for bucket in self.buckets:
            bucket.finish()
            assert bucket.flat is not None
            bucket.flat.div_(current().world_size)
            places, views = [], []
            for p, view in zip(bucket.params, bucket.views, strict=True):
                if used is not None and id(p) not in used:
                    continue
                if p.grad is None:
                    p.grad = of_torch(view.clone())
                else:
                    places.append(p.grad._local("gradients"))
                    views.append(view)
            if views:
                torch._foreach_copy_(places, views)

    def _used_anywhere(self) -> set[int] | None:
        """The parameters that some rank used since the last average; None where all were."""
        if self.unused is None:
            return None
        keys = [*self.place]
        used = torch.tensor([key not in self.unused or key in self.alone for key in keys], dtype=torch.int32)
        transport_of().group(tuple(range(current().world_size))).all_reduce(used, "max")
        return {key for key, u in zip(keys, used.tolist(), strict=True) if u}


def _sum(flat: torch.Tensor) -> Callable[[], None]:
    """Begin to sum over the ranks; what it gives returns when the sum is there.

    Over c10d the sum proceeds beside backward. Over shared memory it is the kernels' own cores that would do it, and it
    is done at once (docs/decisions/0009).
    """
    transport, ranks = transport_of(), tuple(range(current().world_size))
    transport.note("DistributedDataParallel: the average of gradients")
    if not isinstance(transport, C10dTransport):
        transport.group(ranks, LINE).all_reduce(flat)
        return _nothing
    processes = transport.processes(ranks, flat.device.type, LINE)
    try:
        work = processes.allreduce([flat])
    except RuntimeError as error:
        raise transport.explained(error, "the average of gradients", ranks) from None
    return lambda: transport.finish(work, "the average of gradients", ranks, flat.is_cuda)


def reached(outputs: Any) -> set[int]:
    """The leaves, by id, that backward from some outputs comes to."""
    leaves: set[int] = set()
    todo = [edge(t) for t in _tensors(outputs) if t.requires_grad]
    seen: set[Any] = set()
    while todo:
        e = todo.pop()
        if isinstance(e, Tensor):
            leaves.add(id(e))
        elif e is not None:
            node = e.node if isinstance(e, Slot) else e
            if node not in seen:
                seen.add(node)
                todo.extend(node.edges)
    return leaves


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif dataclasses.is_dataclass(value):
        yield from _tensors(list(vars(value).values()))


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
