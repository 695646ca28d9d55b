"""Every backend's collectives, exchange and channels beside what they must give, computed plainly on each rank."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from weft.core.dtype import kept
from weft.core.errors import ArgumentError, DtypeError, PlacementError, RankError
from weft.core.rank import current
from weft.launch import spawn_threads
from weft.transport import Group, Transport, transport_of

DTYPES = (
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int16, torch.uint8, torch.bool,
    torch.complex64,
)  # fmt: skip
SHAPES = ((), (0,), (3,), (2, 0, 3), (5, 7), (20_011,), (1_100_003,))
FOLD = {"sum": torch.add, "avg": torch.add, "prod": torch.mul, "max": torch.maximum, "min": torch.minimum}
BITS = {"band": torch.bitwise_and, "bor": torch.bitwise_or, "bxor": torch.bitwise_xor}
FOLD |= BITS


def data(seed: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Small whole numbers: sums are exact in every dtype, in any order."""
    return drawn(seed, shape).to(dtype, copy=True)


@functools.cache
def drawn(seed: int, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randint(0, 3, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)


def fold(terms: list[torch.Tensor], reduce: str) -> torch.Tensor:
    result = terms[0].clone()
    for term in terms[1:]:
        result = FOLD[reduce](result, term)
    return result / len(terms) if reduce == "avg" else result


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    assert a.shape == b.shape and a.dtype == b.dtype
    assert torch.equal(a, b)


def strided(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(*shape[::-1], 2, dtype=dtype)[..., 1].permute(*range(len(shape))[::-1])


def all_reduces(group: Group) -> None:
    for shape, dtype in [((5, 7), d) for d in DTYPES] + [(s, torch.float32) for s in SHAPES]:
        for reduce in FOLD if shape == (5, 7) else ("sum",):
            if (reduce == "avg" and not dtype.is_floating_point) or (dtype.is_complex and reduce != "sum"):
                continue
            if reduce in BITS and (dtype.is_floating_point or dtype.is_complex):
                continue
            terms = [data(r, shape, dtype) for r in group.ranks]
            t = terms[group.index].clone()
            group.all_reduce(t, reduce)
            same(t, fold(terms, reduce))
    for dtype, shape in itertools.product(kept, ((5, 7), (1_100_003,))):
        terms = [data(r, shape, dtype.torch) for r in group.ranks]
        t = terms[group.index].clone()
        group.all_reduce(t)
        same(t.float(), fold([term.float() for term in terms], "sum"))
    for shape in ((5, 7), (1201, 1003)):
        terms = [data(r, shape, torch.float32) for r in group.ranks]
        t = strided(shape, torch.float32).copy_(terms[group.index])
        group.all_reduce(t)
        same(t, fold(terms, "sum"))


def gathers(group: Group) -> None:
    for dtype, lengths in itertools.product(
        (torch.float32, torch.bool, torch.bfloat16),
        ([3] * 4, [0, 5, 1, 0], [7, 0, 2, 3], [0] * 4, [2_100_000, 3, 0, 1]),
    ):
        whole = [data(i, (lengths[i], 2), dtype) for i in range(group.size)]
        outs = [torch.zeros_like(w) for w in whole]
        group.all_gather(outs, whole[group.index])
        for out, right in zip(outs, whole, strict=True):
            same(out, right)
    # Into the columns of one tensor, itself among them.
    widths = [2, 3, 0, 1][: group.size]
    table = torch.zeros(5, sum(widths))
    outs = list(table.split(widths, 1))
    group.all_gather(outs, data(group.index, (5, widths[group.index]), torch.float32))
    same(table, torch.cat([data(i, (5, w), torch.float32) for i, w in enumerate(widths)], 1))


def in_bytes(group: Group) -> None:
    """Of lengths that differ, and of none."""
    for lengths in ([3, 0, 70_001, 1], [0] * 4):
        sent = [bytes(i % 251 + me for i in range(lengths[me])) for me in range(group.size)]
        assert group.all_gather_bytes(sent[group.index]) == sent
        for root in range(group.size):
            assert group.broadcast_bytes(sent[group.index], root) == sent[root]


def scatters(group: Group) -> None:
    for dtype, reduce, lengths in itertools.product(
        (torch.float32, torch.int64, torch.bool), ("sum", "max"), ([4] * 4, [3, 0, 2, 5], [0] * 4, [700_001, 0, 1, 2])
    ):
        parts = [[data(7 * r + i, (lengths[i], 2), dtype) for i in range(group.size)] for r in range(group.size)]
        mine = [p.clone() for p in parts[group.index]]
        shape, right = mine[group.index].shape, fold([p[group.index] for p in parts], reduce)
        for out in (strided(shape, dtype), torch.empty(shape, dtype=dtype)):
            group.reduce_scatter(out, mine, reduce)
            same(out, right)
            for part, before in zip(mine, parts[group.index], strict=True):
                same(part, before)
        group.reduce_scatter(mine[group.index], mine, reduce)
        same(mine[group.index], right)
    for dtype in kept:
        mine = [data(7 * group.ranks[group.index] + i, (3,), dtype.torch) for i in range(group.size)]
        terms = [data(7 * r + group.index, (3,), dtype.torch).float() for r in group.ranks]
        group.reduce_scatter(mine[group.index], mine)
        same(mine[group.index].float(), fold(terms, "sum"))


def all_to_alls(group: Group) -> None:
    for dtype, scale in itertools.product((torch.float32, torch.bool), (1, 150_001)):
        rows = [[(r * i) % 4 * scale for i in range(group.size)] for r in range(group.size)]
        parts = [data(group.index * 5 + i, (rows[group.index][i], 2), dtype) for i in range(group.size)]
        outs = [strided((rows[i][group.index], 2), dtype) for i in range(group.size)]
        group.all_to_all(outs, parts)
        for i, out in enumerate(outs):
            same(out, data(i * 5 + group.index, (rows[i][group.index], 2), dtype))


def broadcasts(group: Group) -> None:
    for dtype, shape, root in itertools.product((torch.float32, torch.bool), SHAPES, range(group.size)):
        t = data(root, shape, dtype) if group.index == root else torch.zeros(shape, dtype=dtype)
        group.broadcast(t, root)
        same(t, data(root, shape, dtype))
    big = torch.zeros(2100, 1001).t()
    if group.index == 0:
        big.copy_(data(9, (1001, 2100), torch.float32))
    group.broadcast(big, 0)
    same(big, data(9, (1001, 2100), torch.float32))


def exchanges(transport: Transport) -> None:
    me, n = transport.rank, transport.world_size
    for scale in (1, 0, 333_333):
        sends = [
            (dst, data(me * 10 + dst + k, (scale * (k + 1), 2), torch.float32)) for dst in range(n) for k in (0, 1)
        ]
        takes = [(src, strided((scale * (k + 1), 2), torch.float32)) for src in reversed(range(n)) for k in (0, 1)]
        transport.exchange(sends, takes)
        for (src, got), k in zip(takes, itertools.cycle((0, 1))):
            same(got, data(src * 10 + me + k, (scale * (k + 1), 2), torch.float32))
    # A ring, where everyone sends first: more than any buffer holds must go through an exchange.
    token = torch.full((3,), float(me))
    transport.exchange([((me + 1) % n, token)], [((me - 1) % n, got := torch.empty(3))])
    same(got, torch.full((3,), float((me - 1) % n)))
    if n > 1 and me < 2:
        if me == 0:
            transport.send(token, 1)
            transport.recv(token, 1)
            same(token, torch.full((3,), 5.0))
        else:
            transport.recv(got, 0)
            transport.send(got + 5, 0)


def wait_until_more(transport: Transport, count: Callable[[], int], than: int, peer: int) -> None:
    transport.wait_until(lambda: count() > than, f"the neighbour, rank {peer}", (peer,))


def channels(transport: Transport) -> None:
    me, n = transport.rank, transport.world_size
    if n == 1:
        return
    for shape, dtype, copies in (((3,), torch.float32, 1), ((2, 2), torch.bool, 2), ((0,), torch.int64, 3)):
        out = transport.channel("ring", me, (me + 1) % n, shape, dtype, copies) if me % 2 else None
        into = transport.channel("ring", (me - 1) % n, me, shape, dtype, copies)
        out = out or transport.channel("ring", me, (me + 1) % n, shape, dtype, copies)
        for k in range(7):
            wait_until_more(transport, out.acknowledged, k - copies, (me + 1) % n)
            assert k - copies < out.acknowledged() <= k
            out.buffer(k % copies).copy_(data(me * 100 + k, shape, dtype))
            out.post()
            if k >= copies - 1:  # the neighbour holds back until this ring is full
                take = k - copies + 1
                wait_until_more(transport, into.arrived, take, (me - 1) % n)
                same(into.buffer(take % copies), data((me - 1) % n * 100 + take, shape, dtype))
                into.acknowledge()
        # A channel's messages are ordered among themselves only; a barrier's may come before the last of them.
        wait_until_more(transport, into.arrived, 6, (me - 1) % n)
        transport.group(range(n)).barrier()
        wait_until_more(transport, into.arrived, 6, (me - 1) % n)
        assert into.arrived() == 7


def mistakes(transport: Transport) -> None:
    n = transport.world_size
    group = transport.group(range(n))
    with pytest.raises(ArgumentError, match="sum, avg, prod, max, min"):
        group.all_reduce(torch.ones(1), "mean")
    with pytest.raises(DtypeError, match="no average"):
        group.all_reduce(torch.ones(1, dtype=torch.int64), "avg")
    with pytest.raises(ArgumentError, match="one tensor per member"):
        group.all_gather([torch.ones(1)] * (n + 1), torch.ones(1))
    with pytest.raises(ArgumentError, match="root"):
        group.broadcast(torch.ones(1), n)
    with pytest.raises(PlacementError, match="once"):
        transport.group((0, n))
    with pytest.raises(PlacementError, match=f"0 to {n - 1}"):
        transport.send(torch.ones(1), n)
    with pytest.raises(ArgumentError, match="channel"):
        transport.channel("x", transport.rank, transport.rank, (1,), torch.float32, 1)


def body() -> None:
    """Groups of 1, 2, 3 and 4 ranks, in other orders too, of one world."""
    transport = transport_of()
    me, n = current().index, current().world_size
    for ranks in sorted(
        {tuple(r for r in ranks if r < n) for ranks in ((0,), (0, 1), (2, 1, 0), (3, 1), (0, 1, 2, 3))}
    ):
        if me in ranks:
            group = transport.group(ranks) if ranks != tuple(range(n)) else transport.everyone()
            assert group is transport.group(ranks) and group.ranks == ranks and group.ranks[group.index] == me
            for part in (all_reduces, gathers, in_bytes, scatters, all_to_alls, broadcasts):
                part(group)
            group.barrier()
    exchanges(transport)
    channels(transport)
    mistakes(transport)
    if me == 0:
        transport.put("greeting", b"hello \x00")
    assert transport.get("greeting") == b"hello \x00"
    with pytest.raises(RankError, match="nothing"):
        transport.get("nothing", 0.05)
    transport.group(range(n)).barrier()
    print("all is well")


@pytest.mark.parametrize("n", [1, 4])
def test_local(n: int) -> None:
    spawn_threads(n, body, deadline=60)


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_processes(world: Any, transport: str) -> None:
    assert world("body", 4, transport, env={"WEFT_DEADLINE": "60"}).well() == ["all is well\n"] * 4


def impatient() -> None:
    """Ranks that look for circles at every wait find none."""
    transport = transport_of()
    transport.stuck_after = 0.0
    group = transport.group(tuple(range(transport.world_size)))
    for part in (gathers, all_to_alls, broadcasts):
        part(group)
    exchanges(transport)
    channels(transport)
    group.barrier()


@pytest.mark.parametrize("transport", ["local", "shm", "c10d"])
def test_no_wait_is_taken_for_a_circle(world: Any, transport: str) -> None:
    if transport == "local":
        spawn_threads(4, impatient, deadline=60)
    else:
        world("impatient", 4, transport, env={"WEFT_DEADLINE": "60"}).well()
