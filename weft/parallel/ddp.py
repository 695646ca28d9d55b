"""`DistributedDataParallel`: each rank trains the same module on its own data, and gradients are averaged.

On local tensors, as in PyTorch and OneFlow; a global tensor split along the batch needs none of this.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from zlib import crc32

import torch

from weft.autograd.graph import at_end_of_backward
from weft.core import dispatch, fingerprints
from weft.core.errors import ArgumentError, AutogradError, TraceError
from weft.core.idle import idle
from weft.core.rank import current
from weft.core.stored import stored
from weft.nn.module.members import BUFFER, PARAMETER, of_role
from weft.nn.module.module import Module
from weft.parallel.uneven import Join, JoinConfig, JoinHook, agree
from weft.parallel.unwrapped import is_unwrapped, mark, unwrapped, without_wrapper, wrapped
from weft.tensor.data import local_data
from weft.tensor.hook import RemovableHook
from weft.tensor.sparse import is_dense
from weft.tensor.tensor import Tensor, of_torch
from weft.transport import transport_of
from weft.transport.base import UnderWay
from weft.transport.c10d import joined
from weft.transport.check import Check, compare_data, every_steps, keep_alike

M = TypeVar("M", bound=Module)
BUCKET = 25_000_000  # bytes
AVERAGED = "the module that is averaged"  # a fingerprint
LINE = "gradients"  # a separate line, as asynchronous sums overlap with the program's own collectives


class _Kind(type):
    def __instancecheck__(cls, module: Any) -> bool:
        """Whether a module was wrapped: it keeps its type."""
        return isinstance(module, Module) and "no_sync" in stored(module) and not is_unwrapped(module)


class DistributedDataParallel(metaclass=_Kind):
    """Average a module's gradients over all ranks; returns the module itself, which keeps its type and its names.

    Parameters and buffers are broadcast from the first rank, buffers before each forward in training as well:
    `broadcast_buffers=False` leaves each rank its own, `forward_sync_buffers=False` after the start. Gradients are
    reduced in buckets of at most 25 MB (or `bucket_cap_mb`) and `bucket_size` parameters (`use_bucket=False`: one by
    one), overlapping with backward; the rest at its end. A parameter without a gradient on a rank counts as zero there;
    one that gets none on any rank keeps its `.grad`. `find_unused_parameters` isn't needed.
    `with module.no_sync():` averages nothing.

    PyTorch's other options are accepted: a module stays on its device; its `module` has its attributes, unwrapped. Its
    state's names have no `module.` before them; PyTorch's, which have, are loaded.
    """

    def __new__(
        cls, module: M, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
        init_sync: bool = True, process_group: Any = None, bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False, check_reduction: bool = False, gradient_as_bucket_view: bool = False,
        static_graph: bool = False, *, broadcast_parameters: bool = True, bucket_size: int | None = None,
        use_bucket: bool = True, forward_sync_buffers: bool | None = None,
    ) -> M:  # fmt: skip
        if not isinstance(module, Module):
            raise ArgumentError(f"DistributedDataParallel takes a module; got {type(module).__name__}")
        module = wrapped(module)
        if any(p.is_global for p in module.parameters()):
            raise ArgumentError(
                "DistributedDataParallel is for local parameters; these are global, and boxing sums their gradients: "
                "give the module a batch with sbp=flow.sbp.split(0)"
            )
        if process_group is not None and len(process_group) < current().world_size:
            raise ArgumentError(
                f"DistributedDataParallel averages over all {current().world_size} ranks; got {process_group!r}. For "
                "some of them, make the parameters global on a placement of these ranks, and split the batch"
            )
        idle("DistributedDataParallel(gradient_as_bucket_view)", gradient_as_bucket_view)
        limit = BUCKET if bucket_cap_mb is None else int(bucket_cap_mb * 2**20)
        most = sys.maxsize if bucket_size is None else bucket_size
        if not isinstance(module, DistributedDataParallel):
            module.register_load_state_dict_pre_hook(without_wrapper)
        calls = {"register_comm_hook": register_comm_hook, "join": join, "join_hook": Shadow}
        bound = {name: functools.partial(f, module) for name, f in calls.items()}
        mark(module, functools.partial(no_sync, module), module=unwrapped(module), **bound)
        stored(module).update(_join_config=JoinConfig(), join_process_group=None, join_device=torch.device("cpu"))
        if current().world_size > 1:
            before = _averagers().pop(module, None)
            averager = _averager(module, limit, most if use_bucket else 1)
            if init_sync:
                buffers = module.buffers() if broadcast_buffers or forward_sync_buffers is not None else ()
                averager.broadcast([*(module.parameters() if broadcast_parameters else ()), *buffers])
            if before is None:
                each = broadcast_buffers if forward_sync_buffers is None else forward_sync_buffers
                module.register_forward_pre_hook(functools.partial(_before_forward, each), prepend=True)
            else:  # wrapped again, perhaps with other parameters
                before.close()
        return module


def replicate(module: M, *, device_mesh: Any = None, **options: Any) -> M:
    """DistributedDataParallel from the first call on: until then parameters may be on the meta device."""
    group = None if device_mesh is None else device_mesh.get_group()

    def begin(*_: Any) -> None:
        first.remove()
        DistributedDataParallel(module, process_group=group, **options)
        if current().world_size > 1:
            _averager(module).before_forward(module, False)

    first = module.register_forward_pre_hook(begin)
    return module


def _before_forward(broadcast_buffers: bool, module: Module, *_: Any) -> None:
    """For a wrapped module, and for none that is a copy of what is inside, or that another world has read."""
    if "no_sync" in stored(module) and current().world_size > 1:
        _averager(module).before_forward(module, broadcast_buffers)


def _averagers() -> weakref.WeakKeyDictionary[Module, Averager]:
    return current().resource("averagers", lambda rank: weakref.WeakKeyDictionary())


def _averager(module: Module, limit: int = BUCKET, most: int = sys.maxsize) -> Averager:
    """A module's own. A copy of one that was wrapped gets one of its own here."""
    if (found := _averagers().get(module := wrapped(module))) is None:
        found = _averagers()[module] = Averager(module, limit, most)
    return found


@contextlib.contextmanager
def no_sync(module: Module) -> Iterator[None]:
    """Don't average gradients inside: they are accumulated locally, and join the next average."""
    if current().world_size == 1:
        yield
        return
    averager = _averager(module)
    before, averager.active = averager.active, False
    try:
        yield
    finally:
        averager.active = before


def join(
    module: Module, divide_by_initial_world_size: bool = True, enable: bool = True,
    throw_on_early_termination: bool = False,
) -> Join:  # fmt: skip
    """`with module.join():` around a loop over batches of which other ranks may have more or fewer."""
    options = {"divide_by_initial_world_size": divide_by_initial_world_size}
    return Join([module], enable, throw_on_early_termination, **options)


class Shadow(JoinHook):
    """A module's part of the averages of ranks that still have inputs: zeros. At the end it takes the parameters of the
    last of them. Means are over all ranks, or over those with inputs."""

    def __init__(self, module: Module, *, divide_by_initial_world_size: bool = True, **_: Any) -> None:
        self.module = module
        if current().world_size > 1:
            _averager(module).divides_by_all = divide_by_initial_world_size

    def main_hook(self) -> None:
        if current().world_size > 1:
            _averager(self.module).shadow(self.module)

    def post_hook(self, is_last_joiner: bool) -> None:
        if current().world_size > 1:
            source = agree([current().index if is_last_joiner else -1], "max")[0]
            averager = _averager(self.module)
            averager.divisor = current().world_size
            averager.broadcast([*self.module.parameters(), *self.module.buffers()], source)


def register_comm_hook(module: Module, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
    """Let `hook(state, bucket)` compute a bucket's gradients, in place of their mean over the ranks: it returns a
    tensor, or an object whose `wait()` or `value()` does. The hook communicates itself. PyTorch's own hooks, of
    `torch.distributed.algorithms.ddp_comm_hooks`, do so over torch's groups.

    >>> model = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(2, 1))
    >>> model.register_comm_hook(None, lambda state, bucket: bucket.buffer() * 0)
    >>> model(flow.ones(1, 2)).sum().backward(); model.weight.grad.tolist()
    [[0.0, 0.0]]
    """
    if not callable(hook):
        raise ArgumentError(
            f"register_comm_hook(state, hook): hook is called with the state and a bucket; got {hook!r}"
        )
    averager = _averager(module)
    if averager.hook is not None:
        raise ArgumentError("register_comm_hook(): the module has one already, and each gradient goes by one")
    if torchs(hook) and not joined():
        raise ArgumentError(
            f"register_comm_hook(): {getattr(hook, '__name__', hook)} sends over torch's groups, and there are none. "
            'Make them first, on all ranks: torch.distributed.init_process_group("gloo")'
        )
    averager.hook = functools.partial(hook, state)


def torchs(hook: Any) -> bool:
    """Whether a hook is torch's own, also where it wraps another (`fp16_compress_wrapper(hook)`)."""
    return str(getattr(hook, "__module__", "")).startswith("torch.")


class GradBucket:
    """A bucket of gradients, one after another in memory, for hooks of `register_comm_hook`."""

    def __init__(self, bucket: Bucket, index: int, count: int, torchs: bool = False) -> None:
        self._bucket, self._index, self._count = bucket, index, count
        self._given: Callable[[torch.Tensor], Any] = torch.Tensor.detach if torchs else of_torch
        assert bucket.flat is not None and bucket.used is not None
        self._buffer: Any = self._given(bucket.flat[: -len(bucket.used)])

    def buffer(self) -> Any:
        """All gradients as one tensor, over their memory."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Let `buffer()` be another tensor from now on, in a shorter dtype, say."""
        self._buffer = buffer

    def gradients(self) -> list[Any]:
        return list(map(self._given, self._bucket.views))

    def parameters(self) -> list[Any]:
        return [self._given(local_data(p, "parameters()")) for p in self._bucket.params]

    def index(self) -> int:
        return self._index

    def is_last(self) -> bool:
        return self._index == self._count - 1


def _result(given: Any) -> Any:
    """The tensor that a hook returned, or its future's."""
    tensors = (Tensor, torch.Tensor)
    for later in ("wait", "value"):
        if not isinstance(given, (*tensors, list, tuple)) and hasattr(given, later):
            found = getattr(given, later)()
            given = found if isinstance(found, (*tensors, list, tuple)) else given
    given = given[0] if isinstance(given, (list, tuple)) and given else given
    if not isinstance(given, tensors):
        raise ArgumentError(
            f"a hook of register_comm_hook gave {type(given).__name__}; it gives the gradients as a tensor of the form "
            "of bucket.buffer(), or what has a wait() or value() that gives it"
        )
    return given


class Bucket:
    """Parameters whose gradients are reduced together; behind these, for each, the number of ranks that have one."""

    def __init__(self) -> None:
        self.params: list[Tensor] = []
        self.waiting = 0
        self.flat: torch.Tensor | None = None
        self.views: list[torch.Tensor] = []
        self.used: torch.Tensor | None = None
        self.sum: UnderWay | None = None  # once it is started
        self.given: Any = None  # the hook's result

    def close(self) -> None:
        """Lay out the memory, once the members are known."""
        datas = [local_data(p, "gradients") for p in self.params]
        sizes = [d.numel() for d in datas]
        self.flat = torch.empty(sum(sizes) + len(sizes), dtype=datas[0].dtype, device=datas[0].device)
        *parts, self.used = self.flat.split([*sizes, len(sizes)])
        self.views = [part.view(d.shape) for part, d in zip(parts, datas, strict=True)]
        self.waiting = len(self.params)


def _refuse_graph() -> None:
    if dispatch.here.trace is not None:
        raise TraceError(
            "DistributedDataParallel averages gradients as they are computed; in a graph the job says that. Instead of "
            "wrapping the module make it global, model.to_global(placement=..., sbp=flow.sbp.broadcast), and give it a "
            "batch with sbp=flow.sbp.split(0)"
        )


class Averager:
    """Counts gradients as they become ready, and averages bucket after bucket, in one order on every rank."""

    def __init__(self, module: Module, limit: int, most: int) -> None:
        """A bucket has at most `limit` bytes, and `most` parameters."""
        self.names = {id(p): name for name, p in module.named_parameters()}
        self.active, self.joining = True, False
        self.divides_by_all, self.divisor = True, current().world_size
        self.hook: functools.partial[Any] | None = None
        self.follow = True  # whether the next forward broadcasts the buffers: it follows an average
        self.buckets: list[Bucket] = []
        self.place: dict[int, Bucket] = {}
        self.ready: set[int] = set()
        self.alone: set[int] = set()  # parameters with gradients under no_sync since the last average
        self.next = 0
        self.averages = 0
        self.every = every_steps() if transport_of().check == Check.FULL else 0
        forms = [f"{name} {t.dtype}{list(t.shape)}" for name, t in module.state_dict(keep_vars=True).items()]
        count = next(current().resource("modules that were wrapped", lambda _: itertools.count(1)))
        text = f"number {count}, {type(module).__name__}({', '.join(forms)})"
        self.number, self.shown = crc32(text.encode()), f"{text:.300}"
        self.hooks: list[RemovableHook] = []
        size = 0
        for p in reversed([p for p in module.parameters() if p.requires_grad]):  # backward reaches the last ones first
            bytes_of = p.numel() * p.element_size()
            last = self.buckets[-1] if self.buckets else None
            full = last is None or len(last.params) >= most or size + bytes_of > limit
            if last is None or full or last.params[0].dtype is not p.dtype:
                last, size = Bucket(), 0
                self.buckets.append(last)
            last.params.append(p)
            size += bytes_of
            self.place[id(p)] = last
            self.hooks.append(p.register_post_accumulate_grad_hook(self.arrived))
        for bucket in self.buckets:
            bucket.close()
        keep_alike(p for bucket in self.buckets for p in bucket.params)

    def close(self) -> None:
        for hook in self.hooks:
            hook.remove()

    @contextlib.contextmanager
    def marked(self) -> Iterator[None]:
        """Collectives inside compare which module they are for."""
        marks = fingerprints.of()
        marks.put(AVERAGED, self.number, self.shown)
        try:
            yield
        finally:
            marks.put(AVERAGED, 0, "none")

    def broadcast(self, tensors: list[Tensor], source: int = 0) -> None:
        _refuse_graph()
        with self.marked():
            _broadcast(tensors, source)

    def before_forward(self, module: Module, broadcast_buffers: bool) -> None:
        if self.ready:
            raise AutogradError(
                "the last backward was broken off amid the average of its gradients, which other ranks still wait for: "
                "this rank can't go on"
            )
        if not module.training:  # evaluation may run on one rank alone
            return
        parts = [*module.named_modules()]  # their own members, as torch's code, which may run now, sees stand-ins
        held = [(f"{path}.{n}".lstrip("."), p) for path, m in parts for n, p in of_role(m, PARAMETER) if p is not None]
        late = [name for name, p in held if p.requires_grad and id(p) not in self.place]
        if late:
            raise AutogradError(
                f"{', '.join(late)} came, or began to train, after DistributedDataParallel(module), so each rank would "
                "go its own way there. Wrap the module again, on all ranks: module = DistributedDataParallel(module)"
            )
        count, source = Join.notify_join_context(module), 0
        self.joining = stored(module)["_join_config"].enable
        if self.joining:
            source = agree(
                [self.active and dispatch.here.grad, broadcast_buffers and self.follow, current().index], "max"
            )[2]
            if count is not None and not self.divides_by_all:
                self.divisor = count
        if broadcast_buffers and self.follow:
            self.broadcast(_buffers(module), source)
        self.follow = self.active

    def shadow(self, module: Module) -> None:
        """Take part in an iteration of other ranks, without gradients."""
        averages, follows, source = agree([0, 0, -1], "max")
        if follows:
            self.broadcast(_buffers(module), source)
        if averages:
            params = [p for bucket in self.buckets for p in bucket.params]
            before = [p.grad for p in params]
            for p in params:
                p.grad = None
            self.finish()
            for p, grad in zip(params, before, strict=True):
                p.grad = grad

    def arrived(self, p: Tensor) -> None:
        _refuse_graph()
        if not self.active:
            self.alone.add(id(p))
            return
        if not self.ready:
            at_end_of_backward(self.finish, outermost=True)
        bucket = self.place[id(p)]
        if id(p) not in self.ready:
            self.ready.add(id(p))
            bucket.waiting -= 1
        elif bucket.sum is not None:
            raise AutogradError(
                f"{self.names[id(p)]} gets gradients twice in one backward, the second when the first is under way to "
                "the other ranks: it is used inside of a checkpoint and outside. Give checkpoint use_reentrant=False"
            )
        for sent in self.buckets[: self.next]:
            assert sent.sum is not None
            sent.sum.go_on()
        while self.next < len(self.buckets) and self.buckets[self.next].waiting <= 0:
            self.start(self.buckets[self.next])

    def start(self, bucket: Bucket) -> None:
        """Start the all-reduce of a bucket, which overlaps with backward."""
        assert bucket.flat is not None and bucket.used is not None
        self.next += 1
        here, views = [], []
        for p, view in zip(bucket.params, bucket.views, strict=True):
            if p.grad is None:
                view.zero_()
            else:
                here.append(local_data(p.grad, "gradients").to_dense())
                views.append(view)
        if views:
            torch._foreach_copy_(views, here)
        if self._all_have(bucket):
            bucket.used.fill_(1)
        else:
            has = [id(p) in self.ready or id(p) in self.alone for p in bucket.params]
            bucket.used.copy_(torch.tensor(has))
        transport = transport_of()
        transport.note("DistributedDataParallel: the average of gradients")
        # Over c10d the sum overlaps with backward; over shared memory it would take the kernels' cores, and is
        # synchronous (docs/decisions/0009).
        group = transport.everyone(LINE)
        with self.marked():
            if self.hook is not None:  # in program order, as its collectives are; then the counts
                bucket.given = self.hook(GradBucket(bucket, self.next - 1, len(self.buckets), torchs(self.hook.func)))
            bucket.sum = group.begin_all_reduce(bucket.flat if self.hook is None else bucket.used)

    def _all_have(self, bucket: Bucket) -> bool:
        return bucket.waiting <= 0

    def finish(self) -> None:
        """Reduce the remaining buckets, and write the averages into the gradients."""
        for bucket in self.buckets[self.next :]:
            self.start(bucket)
        for bucket in self.buckets:
            assert bucket.sum is not None and bucket.flat is not None and bucket.used is not None
            bucket.sum.wait()
            # If every gradient is there, the counts needn't be read; on CUDA, that waits for the device.
            used = [1] * len(bucket.params) if self._all_have(bucket) else bucket.used.real.tolist()
            if self.hook is None:
                bucket.flat.div_(self.divisor)
            else:
                GradBucket(bucket, 0, 1).buffer().copy_(_result(bucket.given))
                bucket.given = None
            places, views = [], []
            for p, view, uses in zip(bucket.params, bucket.views, used, strict=True):
                if not uses:
                    continue
                if p.grad is None or not is_dense(p.grad):
                    p.grad = of_torch(view.clone())
                else:
                    places.append(local_data(p.grad, "gradients"))
                    views.append(view)
            if views:
                torch._foreach_copy_(places, views)
            bucket.sum, bucket.waiting = None, len(bucket.params)
        self.next = 0
        self.ready.clear()
        self.alone.clear()
        self.averages += 1
        if self.every and self.averages % self.every == 0 and not self.joining:
            params = {self.names[id(p)]: local_data(p, "check") for b in self.buckets for p in b.params}
            compare_data(
                transport_of(), tuple(range(current().world_size)), params, "DistributedDataParallel's parameters"
            )


def _buffers(module: Module) -> list[Tensor]:
    """The modules' own, as torch's code, which may run now, sees stand-ins."""
    return [b for m in module.modules() for _, b in of_role(m, BUFFER) if b is not None]


def _broadcast(tensors: list[Tensor], source: int = 0) -> None:
    """Broadcast one rank's values."""
    transport_of().note("DistributedDataParallel: one rank's parameters and buffers")
    group = transport_of().everyone()
    together: dict[Any, list[torch.Tensor]] = {}
    for t in tensors:
        data = local_data(t, "broadcast")
        together.setdefault((data.dtype, data.device), []).append(data)
    for datas in together.values():
        flat = torch.cat([d.reshape(-1) for d in datas])
        group.broadcast(flat, source)
        parts = flat.split([d.numel() for d in datas])
        torch._foreach_copy_(datas, [part.view(d.shape) for part, d in zip(parts, datas, strict=True)])
