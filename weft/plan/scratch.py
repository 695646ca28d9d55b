"""The memory that a call takes while it runs: results that it allocates, and scratch memory.

On the CPU it is measured by running the call once, on made-up values: nothing else shows what kernels allocate inside.
Otherwise the call runs on meta tensors, and an op's `works_in` says the rest.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import torch
from torch._C import _autograd
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
from torch.utils._python_dispatch import TorchDispatchMode

from weft.core import dtype as dtypes
from weft.core import random
from weft.core.rank import Rank, current, enter
from weft.core.substitution import substituted
from weft.ops import OPS
from weft.plan.calls import Call, Ref, Result, root
from weft.plan.spans import contiguous


def meanwhile(call: Call, forms: Mapping[str, Result], run: bool = False, roomy: bool = False) -> int:
    """The peak of bytes that a call allocates, unplanned results included. `run`: by running it on the CPU, unless the
    program declared its op. `roomy`: where it may allocate more, to take less time."""
    op = OPS.get(call.op)
    if call.op == "fused":
        return call.option("scratch", 0) + sum(r.bytes for r in _turned(call, forms))
    if op is None or any(r.place.kind in ("constant", "view") for r in call.results) or op.view:
        return 0
    args = _forms(call, forms)
    outs = tuple((r.shape, r.dtype) for r in call.results if r.place.kind in ("register", "arena"))
    placed = len(outs) == len(call.results)
    straight = placed and op.out_kernel is not None and bool(outs) and call.option("where") is None and not op.random
    into = outs if straight else ()
    sliced = sum(r.bytes for r in call.results) if call.option("part") is not None else 0  # copied out of what is drawn
    try:
        if run and op.built_in:
            with contextlib.suppress(Exception):  # such values may be impossible
                return sliced + _measured(call.op, args, into, "cpu", torch.get_num_threads(), roomy)
        inside = op.workspace(*(_blank(a, "meta") for a in args)) if op.workspace is not None else 0
        return sliced + inside + _measured(call.op, args, into, "meta", 1, roomy)
    except Exception:  # a kernel that reads values doesn't run on meta tensors: only its results are counted
        return sum(r.bytes for r in call.results if not straight)


def _turned(call: Call, forms: Mapping[str, Result]) -> Iterator[Result]:
    """The operands that a fused call copies first, as its kernel was compiled for another order."""
    for i, name in enumerate(call.operands()):
        if (
            root(forms, name).place.kind == "made"
            and forms[name].strides is not None
            and i not in call.option("channels_last", ())
        ):
            yield forms[name]


def with_strides(call: Call, forms: Mapping[str, Result]) -> dict[str, Result]:
    """The results that are views of non-contiguous memory, with their strides: kernels may copy them."""
    op = OPS.get(call.op)
    if op is None or not call.results or any(r.place.kind != "view" for r in call.results):
        return {}
    try:
        found = _viewed(call.op, _forms(call, forms))
    except Exception:  # of a part of a value, say
        return {}
    given = zip(call.results, found, strict=False)
    return {r.name: msgspec.structs.replace(r, strides=strides) for r, (shape, strides) in given if r.shape == shape}


class _Form(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None


def _forms(call: Call, forms: Mapping[str, Result]) -> tuple[Any, ...]:
    """The call's arguments with forms in place of values."""

    def form(v: Ref) -> _Form:
        r = forms[v.name]
        return _Form(r.shape, r.dtype, r.strides)

    return substituted(call.args, Ref, form)


def _blank(a: Any, device: str, known: dict[_Form, torch.Tensor] | None = None) -> Any:
    """An operand of this form: ones, more on the diagonal, so that it can be inverted; zeros for integers, which may
    be indices. One that is known is taken."""
    known = {} if known is None else known
    if isinstance(a, _Form):
        if a in known:
            return known[a]
        dtype = dtypes.named(a.dtype).torch
        strides = contiguous(a.shape) if a.strides is None else a.strides
        made = torch.empty_strided(a.shape, strides, dtype=dtype, device=device)
        known[a] = made.fill_(dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)
        if made.dim() > 1 and (dtype.is_floating_point or dtype.is_complex):
            made.diagonal(dim1=-2, dim2=-1).fill_(made.shape[-1] + 1)
        return made
    return [_blank(v, device, known) for v in a] if isinstance(a, tuple) and any(isinstance(v, _Form) for v in a) else a


@functools.lru_cache(maxsize=4096)
def _viewed(name: str, args: tuple[Any, ...]) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    found = OPS[name].compute([_blank(a, "meta") for a in args])
    return tuple((tuple(t.shape), t.stride()) for t in _tensors(found))


@functools.lru_cache(maxsize=4096)
def _measured(
    name: str, args: tuple[Any, ...], outs: tuple[tuple[tuple[int, ...], str], ...], device: str, threads: int,
    roomy: bool,
) -> int:  # fmt: skip
    op = OPS[name]
    alike: dict[_Form, torch.Tensor] = {}  # one tensor for all operands of one form: nobody looks at the results
    given = [_blank(a, device, alike) for a in args]
    into = [_blank(_Form(shape, dtype, None), device) for shape, dtype in outs]
    run: Callable[[], Any]
    requests = op.requests(into, given, roomy) if into or not op.returns else []
    if requests:
        run = lambda: [function(*positional, **keywords) for function, positional, keywords in requests]  # noqa: E731
    elif into:
        assert op.out_kernel is not None
        run = functools.partial(op.out_kernel, into[0] if len(into) == 1 else tuple(into), *given)
    else:
        run = functools.partial(op.compute, given)

    def draw() -> Any:
        with random.seeded(0):  # the program's own sequence of draws stays where it is
            return run()

    if device == "cpu":
        return peak(draw)
    with Watch() as watch:
        made = draw()
    del made
    return watch.most


def peak(run: Callable[[], Any]) -> int:
    """The most bytes that a thread holds of what it allocates meanwhile: this one, or, if the program's profiler counts
    what this one does, another."""
    if not _autograd._profiler_enabled():
        return _peak(run)
    found: list[int | BaseException] = []

    def measure(rank: Rank) -> None:
        try:
            with enter(rank):
                found.append(_peak(run))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=measure, args=(current(),), name="weft-measures")
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


@torch.no_grad()
def _peak(run: Callable[[], Any]) -> int:
    config = ProfilerConfig(ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig())
    _autograd._enable_profiler_legacy(config)
    try:
        run()
    finally:
        events = _autograd._disable_profiler_legacy()
    sizes = (e.cpu_memory_usage() for e in itertools.chain(*events) if e.kind() == "memory_alloc")
    return max(itertools.accumulate(sizes), default=0)


class Watch(TorchDispatchMode):
    """Counts the bytes of tensors that calls make, until they are freed."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or the first call imports torch._dynamo, which takes seconds

    def __init__(self) -> None:
        super().__init__()
        self.held = self.most = 0
        self._users: dict[int, int] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        known = {t.untyped_storage()._cdata for t in _tensors((args, tuple(kwargs.values())))}
        made = function(*args, **kwargs)
        for t in _tensors(made):
            storage = t.untyped_storage()
            key = storage._cdata
            if key in known and key not in self._users:
                continue
            if key not in self._users:
                self._users[key] = 0
                self.held += storage.nbytes()
                self.most = max(self.most, self.held)
            self._users[key] += 1
            weakref.finalize(t, self._gone, key, storage.nbytes())
        return made

    def _gone(self, key: int, bytes: int) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key]
            self.held -= bytes


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
