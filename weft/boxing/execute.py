"""Running a route on one rank.

What a step does is a generator that yields calls for the transport and returns the new shard; so the same code runs
through a real transport here and through an imagined one, all ranks in lock-step, in `simulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import torch

from weft.boxing import two_level
from weft.boxing.lowering import HostOf, LocalStep, lower
from weft.boxing.part import own_device
from weft.boxing.routes import Route
from weft.boxing.two_level import Call, Calls
from weft.core import shard
from weft.core.errors import ShapeError
from weft.transport.base import Transport
from weft.transport.line import Line


def run(
    route: Route, data: torch.Tensor | None, rank: int, transport: Transport | Line, hosts: HostOf | None = None
) -> torch.Tensor:
    """Take this rank's shard along the route. A rank outside the target gets an empty tensor; one outside of both ends
    does nothing else. The shard given is never written; it is the result itself only where no step touches the data.
    """
    calls = along(route, data, rank, hosts)
    try:
        while True:
            perform(next(calls), transport)
    except StopIteration as end:
        return end.value


def execute(
    step: LocalStep, data: torch.Tensor | None, transport: Transport | Line, owned: bool = False
) -> torch.Tensor:
    """One step of a lowered route; `owned` allows it to write into the shard given."""
    calls = act(step, data, owned)
    try:
        while True:
            perform(next(calls), transport)
    except StopIteration as end:
        return end.value


def perform(call: Call, transport: Transport | Line) -> None:
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


def act(step: LocalStep, data: torch.Tensor | None, owned: bool = False) -> Calls:
    """The calls of one step on one rank."""
    if step.before is not None and (data is None or tuple(data.shape) != step.before):
        has = "none" if data is None else f"one of shape {tuple(data.shape)}"
        raise ShapeError(f"rank {step.rank} should hold a shard of shape {step.before} before {step}, but holds {has}")
    return _ACTIONS[step.kind](step, data, owned)


def _new(step: LocalStep) -> torch.Tensor:
    device = own_device(step.device).torch
    if step.fill:
        return torch.full(step.shape, neutral(step.fill, step.dtype.torch), dtype=step.dtype.torch, device=device)
    return torch.empty(step.shape, dtype=step.dtype.torch, device=device)


def neutral(reduce: str, dtype: torch.dtype) -> float | int | bool:
    """What a reduction takes in without changing."""
    if reduce == "sum":
        return 0
    if dtype == torch.bool:
        return reduce == "min"
    if dtype.is_floating_point:
        return float("-inf") if reduce == "max" else float("inf")
    info = torch.iinfo(dtype)
    return info.min if reduce == "max" else info.max


def combine(a: torch.Tensor, b: torch.Tensor, reduce: str) -> torch.Tensor:
    return _COMBINE[reduce](a, b)


_COMBINE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add, "max": torch.maximum, "min": torch.minimum,
}  # fmt: skip


def _own(data: torch.Tensor, owned: bool) -> torch.Tensor:
    return data if owned and data.is_contiguous() else data.clone(memory_format=torch.contiguous_format)


def _split(data: torch.Tensor, dim: int, parts: int) -> tuple[torch.Tensor, ...]:
    return data.split(list(shard.sizes(data.shape[dim], parts)), dim)


def _packed(parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [p.contiguous() for p in parts]


def _all_reduce(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    out = _own(data, owned)
    if step.levels is not None:
        yield from two_level.all_reduce(step.levels, step.rank, out, step.reduce)
    else:
        yield Call("all_reduce", step.ranks, (out, step.reduce))
    return out


def _reduce_scatter(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    out, parts = _new(step), _packed(_split(data, step.dim, len(step.ranks)))
    if step.levels is not None:
        yield from two_level.reduce_scatter(step.levels, step.rank, out, parts, step.reduce)
    else:
        yield Call("reduce_scatter", step.ranks, (out, parts, step.reduce))
    return out


def _all_gather(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    out = _new(step)
    outs = _split(out, step.dim, len(step.ranks))
    if step.levels is not None:
        yield from two_level.all_gather(step.levels, step.rank, outs, data)
    else:
        yield Call("all_gather", step.ranks, (outs, data.contiguous()))
    return out


def _all_to_all(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    out = _new(step)
    views, parts = (_split(t, d, len(step.ranks)) for t, d in ((out, step.from_dim), (data, step.dim)))
    outs = [v if v.is_contiguous() else torch.empty_like(v, memory_format=torch.contiguous_format) for v in views]
    yield Call("all_to_all", step.ranks, (outs, _packed(parts)))
    for view, got in zip(views, outs, strict=True):
        if got is not view:
            view.copy_(got)
    return out


def _slice(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    yield from ()
    start, stop = shard.part(data.shape[step.dim], len(step.ranks), step.index)
    return data.narrow(step.dim, start, stop - start).clone(memory_format=torch.contiguous_format)


def _to_partial(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    yield from ()
    return _new(step) if step.fill else _own(data, owned)


def _split_to_partial(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    yield from ()
    out = _new(step)
    _split(out, step.dim, len(step.ranks))[step.index].copy_(data)
    return out


def _relabel(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    yield from ()
    return data


def _copy(step: LocalStep, data: torch.Tensor, owned: bool) -> Calls:
    yield from ()
    return data.to(own_device(step.device).torch)


def _exchange(step: LocalStep, data: torch.Tensor | None, owned: bool) -> Calls:
    assert step.transfers is not None
    out = _new(step)
    sends, kept = [], None
    for rank, where in step.transfers.sends:
        assert data is not None
        if rank == step.rank:
            kept = data[where]
        else:
            sends.append((rank, data[where].contiguous()))
    receives: list[tuple[int, torch.Tensor]] = []
    pieces: list[tuple[torch.Tensor, list[torch.Tensor]]] = []
    for where, ranks in step.transfers.receives:
        view = out[where]
        arriving = []
        for rank in ranks:
            if rank == step.rank:
                assert kept is not None
                arriving.append(kept)
                continue
            straight = len(ranks) == 1 and view.is_contiguous()
            buffer = view if straight else torch.empty_like(view, memory_format=torch.contiguous_format)
            receives.append((rank, buffer))
            arriving.append(buffer)
        pieces.append((view, arriving))
    if sends or receives:
        yield Call("exchange", (), (sends, receives))
    for view, arriving in pieces:
        whole = _reduced(arriving, step.transfers.reduces)
        if whole is not view:
            view.copy_(whole)
    return out


def _reduced(contributions: list[torch.Tensor], reduces: tuple[tuple[int, str], ...]) -> torch.Tensor:
    """Nested: the innermost partial axis first."""
    for count, reduce in reversed(reduces):
        groups = (contributions[i : i + count] for i in range(0, len(contributions), count))
        contributions = [_folded(group, reduce) for group in groups]
    return contributions[0]


def _folded(group: list[torch.Tensor], reduce: str) -> torch.Tensor:
    total = group[0]
    for other in group[1:]:
        total = combine(total, other, reduce)
    return total


_ACTIONS: dict[str, Callable[..., Generator[Call, None, torch.Tensor]]] = {
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
