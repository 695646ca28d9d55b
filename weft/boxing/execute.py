"""Run a route on one rank.

A step is a generator that yields calls for the transport and returns the new shard. So the same code runs through a
real transport here, and in tests through a simulated one, all ranks in lock-step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final, NamedTuple

import torch

from weft.boxing import two_level
from weft.boxing.lowering import HostOf, LocalStep, lower
from weft.boxing.part import own_device
from weft.boxing.routes import Route
from weft.boxing.segments import cut, segments
from weft.boxing.two_level import LOCAL, Call, Calls, New, copy
from weft.core import shard
from weft.core.errors import ShapeError
from weft.transport.base import Transport
from weft.transport.line import Line


def run(
    route: Route, data: torch.Tensor | None, rank: int, transport: Transport | Line, hosts: HostOf | None = None
) -> torch.Tensor:
    """Move this rank's shard along the route. A rank outside the target gets an empty tensor. The given shard is never
    written; it is returned itself only if no step changes the data.
    """
    return _performed(along(route, data, rank, hosts), transport)


def execute(
    step: LocalStep, data: torch.Tensor | None, transport: Transport | Line, owned: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """Run one step of a lowered route, into `out` if it is given; `owned` allows it to overwrite the given shard."""
    return _performed(act(step, data, owned, out), transport)


def _performed(calls: Calls, transport: Transport | Line) -> torch.Tensor:
    try:
        while True:
            perform(next(calls), transport)
    except StopIteration as end:
        return end.value


def perform(call: Call, transport: Transport | Line | None = None) -> None:
    """Perform a call. One that isn't local needs a transport."""
    if call.local:
        LOCAL[call.method](*call.args)
        return
    assert transport is not None
    if call.ranks:
        getattr(transport.group(call.ranks), call.method)(*call.args)
    else:
        transport.exchange(*call.args)


def along(route: Route, data: torch.Tensor | None, rank: int, hosts: HostOf | None = None) -> Calls:
    """The calls of the whole route on one rank."""
    given = data
    for step in lower(route, rank, hosts):
        data = yield from act(step, data, owned=data is not given)
    if rank in route.dst.placement and data is not None:
        return data
    device = own_device(route.dst.placement.type).torch
    return torch.empty(route.dst.local_shape(rank), dtype=route.dtype.torch, device=device)


def act(
    step: LocalStep, data: torch.Tensor | None, owned: bool = False, out: torch.Tensor | None = None,
    new: New | None = None,
) -> Calls:  # fmt: skip
    """The calls of one step on one rank. They don't depend on values: given `out`, memory for the result, and `new`, an
    allocator of scratch memory, they can be kept and repeated."""
    if step.before is not None and (data is None or tuple(data.shape) != step.before):
        has = "none" if data is None else f"one of shape {tuple(data.shape)}"
        raise ShapeError(f"rank {step.rank} should hold a shard of shape {step.before} before {step}, but holds {has}")
    return _ACTIONS[step.kind](Work(step, owned, out, new), data)


class Work(NamedTuple):
    """A step, and the memory for it."""

    step: LocalStep
    owned: bool
    out: torch.Tensor | None
    new: New | None

    def make(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        if self.new is not None:
            return self.new(shape, dtype)
        return torch.empty(tuple(shape), dtype=dtype, device=own_device(self.step.device).torch)

    def result(self) -> torch.Tensor:
        return self.make(self.step.shape, self.step.dtype.torch) if self.out is None else self.out

    def filled(self) -> Calls:
        """The result, filled with the reduction's neutral element."""
        out = self.result()
        if self.step.fill:
            yield Call("fill", (), (out, neutral(self.step.fill, out.dtype)))
        return out

    def copied(self, data: torch.Tensor) -> Calls:
        """The data as the result, in writable memory."""
        if self.out is None and self.owned and data.is_contiguous():
            return data
        out = self.result()
        yield copy(out, data)
        return out

    def packed(self, parts: Sequence[torch.Tensor]) -> Generator[Call, None, list[torch.Tensor]]:
        """The parts, each contiguous."""
        found = []
        for p in parts:
            if not p.is_contiguous():
                whole = self.make(p.shape, p.dtype)
                yield copy(whole, p)
                p = whole
            found.append(p)
        return found


def neutral(reduce: str, dtype: torch.dtype) -> float | int | bool:
    """The neutral element of a reduction."""
    if reduce == "sum":
        return 0
    if dtype == torch.bool:
        return reduce == "min"
    if dtype.is_floating_point:
        return float("-inf") if reduce == "max" else float("inf")
    info = torch.iinfo(dtype)
    return info.min if reduce == "max" else info.max


def _all_reduce(w: Work, data: torch.Tensor) -> Calls:
    out, step = (yield from w.copied(data)), w.step
    if step.levels is not None:
        yield from two_level.all_reduce(step.levels, step.rank, out, step.reduce, w.make)
    else:
        yield Call("all_reduce", step.ranks, (out, step.reduce))
    return out


def _reduce_scatter(w: Work, data: torch.Tensor) -> Calls:
    out, step = w.result(), w.step
    parts = yield from w.packed(cut(data, step.dim, len(step.ranks)))
    if step.levels is not None:
        yield from two_level.reduce_scatter(step.levels, step.rank, out, parts, step.reduce, w.make)
    else:
        yield Call("reduce_scatter", step.ranks, (out, parts, step.reduce))
    return out


def _all_gather(w: Work, data: torch.Tensor) -> Calls:
    out, step = w.result(), w.step
    outs = cut(out, step.dim, len(step.ranks))
    if step.levels is not None:
        yield from two_level.all_gather(step.levels, step.rank, outs, data, w.make)
    else:
        (mine,) = yield from w.packed([data])
        yield Call("all_gather", step.ranks, (outs, mine))
    return out


def _all_to_all(w: Work, data: torch.Tensor) -> Calls:
    out, step = w.result(), w.step
    views, parts = (cut(t, d, len(step.ranks)) for t, d in ((out, step.from_dim), (data, step.dim)))
    outs = [v if v.is_contiguous() else w.make(v.shape, v.dtype) for v in views]
    packed = yield from w.packed(parts)
    yield Call("all_to_all", step.ranks, (outs, packed))
    for view, got in zip(views, outs, strict=True):
        if got is not view:
            yield copy(view, got)
    return out


def _slice(w: Work, data: torch.Tensor) -> Calls:
    out = w.result()
    start, stop = shard.part(data.shape[w.step.dim], len(w.step.ranks), w.step.index)
    yield copy(out, data.narrow(w.step.dim, start, stop - start))
    return out


def _to_partial(w: Work, data: torch.Tensor) -> Calls:
    return (yield from w.filled() if w.step.fill else w.copied(data))


def _split_to_partial(w: Work, data: torch.Tensor) -> Calls:
    out = yield from w.filled()
    yield copy(cut(out, w.step.dim, len(w.step.ranks))[w.step.index], data)
    return out


def _relabel(w: Work, data: torch.Tensor) -> Calls:
    yield from ()
    return data


def _copy(w: Work, data: torch.Tensor) -> Calls:
    if w.out is None:
        yield from ()
        return data.to(own_device(w.step.device).torch)
    yield copy(w.out, data)
    return w.out


def _exchange(w: Work, data: torch.Tensor | None) -> Calls:
    step, transfers = w.step, w.step.transfers
    assert transfers is not None
    out = yield from w.filled()
    sends, kept = [], None
    for rank, where in transfers.sends:
        assert data is not None
        if rank == step.rank:
            kept = data[where]
        else:
            (piece,) = yield from w.packed([data[where]])
            sends.append((rank, piece))
    receives: list[tuple[int, torch.Tensor]] = []
    pieces: list[tuple[torch.Tensor, list[torch.Tensor]]] = []
    for where, ranks in transfers.receives:
        view = out[where]
        arriving = []
        for rank in ranks:
            if rank == step.rank:
                assert kept is not None
                arriving.append(kept)
                continue
            straight = len(ranks) == 1 and view.is_contiguous()
            buffer = view if straight else w.make(view.shape, view.dtype)
            receives.append((rank, buffer))
            arriving.append(buffer)
        pieces.append((view, arriving))
    if sends or receives:
        yield Call("exchange", (), (sends, receives))
    for view, arriving in pieces:
        yield from reduced(view, arriving, transfers.reduces, w.make)
    return out


def reduced(
    into: torch.Tensor, contributions: list[torch.Tensor], reduces: tuple[tuple[int, str], ...], make: New
) -> Generator[Call, None, None]:
    """Reduce several ranks' contributions into one piece. Nested: the innermost partial axis first."""
    for count, reduce in reversed(reduces):
        groups = [contributions[i : i + count] for i in range(0, len(contributions), count)]
        contributions = []
        for group in groups:
            total = group[0]
            for n, other in enumerate(group[1:]):
                whole = len(groups) == 1
                held = into if whole else total if n else make(into.shape, into.dtype)
                yield Call("combine", (), (held, total, other, reduce))
                total = held
            contributions.append(total)
    if contributions[0] is not into:
        yield copy(into, contributions[0])


def together(step: LocalStep, given: Sequence[torch.Tensor], outs: Sequence[torch.Tensor], new: New) -> Iterator[Call]:
    """The calls of one step for several values at once: `given` into `outs`, through one contiguous buffer."""
    gathers = step.kind == "all_gather"
    wholes = [tuple(t.shape) for t in (outs if gathers else given)]
    between = new((sum(map(math.prod, wholes)),), outs[0].dtype)
    found = segments(between, wholes, step.dim, len(step.ranks))
    mine, flats = found[step.index], [s.flat for s in found]
    by_value = [[s.parts[i] for s in found] for i in range(len(outs))]
    if gathers:
        yield Call("copy_each", (), (mine.parts, list(given)))
        yield Call("all_gather", step.ranks, (flats, mine.flat))
        places = [part for out in outs for part in cut(out, step.dim, len(found))]
        yield Call("copy_each", (), (places, [p for parts in by_value for p in parts]))
    else:
        for parts, t in zip(by_value, given, strict=True):
            yield Call("copy_each", (), (parts, list(cut(t, step.dim, len(found)))))
        yield Call("reduce_scatter", step.ranks, (mine.flat, flats, step.reduce))
        yield Call("copy_each", (), (list(outs), mine.parts))


def execute_together(
    step: LocalStep, given: Sequence[torch.Tensor], outs: Sequence[torch.Tensor], transport: Transport | Line
) -> None:
    for call in together(step, given, outs, lambda shape, dtype: outs[0].new_empty(tuple(shape), dtype=dtype)):
        perform(call, transport)


_ACTIONS: Final[dict[str, Callable[..., Calls]]] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "slice": _slice,
    "to_partial": _to_partial,
    "split_to_partial": _split_to_partial,
    "relabel": _relabel,
    "copy": _copy,
    "exchange": _exchange,
}
