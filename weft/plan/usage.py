"""The memory of a rank's plan: registers, the chains' arenas, and what each act allocates besides.

Kernels without `out` allocate their results; some need scratch memory, too. How much is measured by running them on
meta tensors.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from weft.core import dtype as dtypes
from weft.core import random
from weft.ops import OPS
from weft.plan import ids
from weft.plan.calls import Call, Ref, Result, Step
from weft.plan.plan import Plan


class Part(NamedTuple):
    """The memory of one task. `allocated` is the peak of an act's allocations, in the call `at`."""

    name: str
    arena: int
    constants: int
    allocated: int
    at: Call | None


class Usage(NamedTuple):
    """A plan's memory in bytes. Tasks of one stream don't act at once, so of their arenas and allocations the maximum
    counts, not the sum."""

    variables: int
    places: dict[str, int]  # of registers, by device
    parts: tuple[Part, ...]
    streams: tuple[int, ...]

    @property
    def registers(self) -> int:
        return sum(self.places.values())

    @property
    def arenas(self) -> int:
        return self._of_streams([p.arena for p in self.parts])

    @property
    def allocated(self) -> int:
        return self._of_streams([p.allocated for p in self.parts])

    def _of_streams(self, each: list[int]) -> int:
        most: dict[int, int] = {}
        for bytes, stream in zip(each, self.streams, strict=True):
            most[stream] = max(most.get(stream, 0), bytes)
        return sum(most.values())

    @property
    def total(self) -> int:
        """All except the variables, which exist without the graph, too."""
        return self.registers + self.arenas + sum(p.constants for p in self.parts) + self.allocated

    def __str__(self) -> str:
        lines = [
            f"{show(self.total)} beside {show(self.variables)} of variables",
            *(f"{show(n):>10}  registers{f' on {at}' * bool(at)}, all copies" for at, n in self.places.items()),
        ]
        for p in self.parts:
            if not p.arena + p.constants + p.allocated:
                continue
            lines.append(f"{show(p.arena):>10}  arena of {p.name}")
            if p.constants:
                lines.append(f"{show(p.constants):>10}  constants of {p.name}")
            if p.allocated and p.at is not None:
                where = f"{p.at.name}, {p.at.at}" if p.at.at else p.at.name
                lines.append(f"{show(p.allocated):>10}  that an act of {p.name} allocates, most in {p.at.op} ({where})")
        return "\n".join(lines)


def show(n: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"


def usage(plan: Plan) -> Usage:
    variables: dict[str, int] = {}
    parts, streams = [], []
    for t in plan.tasks:
        if t.step.calls:
            parts.append(_part(t.name, t.step))
            streams.append(t.id >> ids.BITS["task"])  # of a device
            variables |= {r.name: r.bytes for r in _results(t.step) if r.place.kind == "variable"}
    places = {"": 0}
    for r in plan.registers:
        places[r.device] = places.get(r.device, 0) + r.bytes * r.copies * (not r.offsets)
    places[plan.shared_on] += plan.shared
    return Usage(sum(variables.values()), places, tuple(parts), tuple(streams))


def _results(step: Step) -> Iterator[Result]:
    return (r for c in step.calls for r in c.results)


def _part(name: str, step: Step) -> Part:
    forms = {r.name: r for r in _results(step)}
    last: dict[str, int] = {}
    for i, call in enumerate(step.calls):
        for operand in call.operands():
            last[operand] = i
        for r in call.results:
            last.setdefault(r.name, i)
    for r in reversed(list(forms.values())):
        if r.place.kind == "view":
            last[r.place.of] = max(last[r.place.of], last[r.name])
    ending: dict[int, int] = {}
    held = most = constants = 0
    where = None
    for i, call in enumerate(step.calls):
        made = sum(r.bytes for r in call.results if r.place.kind == "made")
        if not (call.op in OPS and OPS[call.op].view):
            constants += sum(r.bytes for r in call.results if r.place.kind == "constant")
        beyond = held + max(made, meanwhile(call, forms))
        if beyond > most:
            most, where = beyond, call
        held += made
        for r in call.results:
            if r.place.kind == "made":
                ending[last[r.name]] = ending.get(last[r.name], 0) + r.bytes
        held -= ending.pop(i, 0)
    return Part(name, step.arena, constants, most, where)


def meanwhile(call: Call, forms: dict[str, Result]) -> int:
    """The peak of bytes that a call allocates, unplanned results included."""
    op = OPS.get(call.op)
    if op is None or any(r.place.kind in ("constant", "view") for r in call.results) or op.view:
        return 0
    args = tuple(_form(a, forms) for a in call.args)
    outs = tuple((r.shape, r.dtype) for r in call.results if r.place.kind in ("register", "arena"))
    placed = len(outs) == len(call.results)
    straight = placed and op.out_kernel is not None and bool(outs) and call.option("where") is None and not op.random
    try:
        inside = op.workspace(*map(_meta, args)) if op.workspace is not None else 0
        return inside + _measured(call.op, args, outs if straight else ())
    except Exception:  # a kernel that reads values doesn't run on meta tensors: only its results are counted
        return sum(r.bytes for r in call.results if not straight)


class _Form(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None


def _form(a: Any, forms: dict[str, Result]) -> Any:
    if isinstance(a, Ref):
        r = forms[a.name]
        return _Form(r.shape, r.dtype, r.strides)
    return tuple(_form(v, forms) for v in a) if isinstance(a, tuple) else a


def _meta(a: Any) -> Any:
    if isinstance(a, _Form):
        dtype = dtypes.named(a.dtype).torch
        if a.strides is None:
            return torch.empty(a.shape, dtype=dtype, device="meta")
        return torch.empty_strided(a.shape, a.strides, dtype=dtype, device="meta")
    return [_meta(v) for v in a] if isinstance(a, tuple) and any(isinstance(v, _Form) for v in a) else a


@functools.lru_cache(maxsize=4096)
def _measured(name: str, args: tuple[Any, ...], outs: tuple[tuple[tuple[int, ...], str], ...]) -> int:
    op = OPS[name]
    given = [_meta(a) for a in args]
    into = [_meta(_Form(shape, dtype, None)) for shape, dtype in outs]
    run: Callable[[], Any]
    if op.prepare is not None and (into or not op.returns):
        found = op.prepare(*into, *given)
        requests = found if isinstance(found, list) else [found] if found else []
        if requests:
            with Watch() as watch:
                for function, positional, keywords in requests:
                    function(*positional, **keywords)
            return watch.most
    if into:
        assert op.out_kernel is not None
        out = into[0] if len(into) == 1 else tuple(into)
        run = functools.partial(op.out_kernel, out, *given)
    else:
        run = functools.partial(op.compute, given)
    with random.seeded(0), Watch() as watch:  # the program's own sequence of draws stays where it is
        made = run()
    del made
    return watch.most


class Watch(TorchDispatchMode):
    """Counts the bytes of tensors that calls make, until they are freed."""

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
