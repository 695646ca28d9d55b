"""Before a graph's first launch, ranks compare what they compiled, and verify that all their plans together can run."""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
from collections.abc import Sequence
from typing import Final, cast

import torch
from msgspec import json

from weft.compiler.fold import bare, fold
from weft.compiler.lower import Lowered
from weft.core.errors import CompileError, RankError
from weft.core.rank import current
from weft.graph.lines import FREE_LINES, lines
from weft.job.text import show, without_places
from weft.plan.ids import rank_of
from weft.plan.plan import Plan, parse
from weft.plan.verify import Written, check_arrivals, sent, verify
from weft.transport import Group, Transport, transport_of
from weft.transport.check import decoded

SIZE: Final = 8  # bytes of the length of a rank's plan as text,
KIND: Final = 16  # and of a hash of the plan without ranks, and of whether it sends: equal plans are of one kind
HEAD: Final = FREE_LINES + SIZE + KIND


def agree(lowered: Lowered) -> int:
    """Check that every rank traced the same job (a mismatch names the first line that differs), and that their plans
    fit together. Returns the graph lines that are free on all ranks, as bits."""
    rank, free = current(), lines().free()
    if rank.world_size == 1:
        return free
    transport, plan = transport_of(), bare(lowered.plan)
    transport.note(f"compiling graph {plan.name}")
    group = transport.everyone()
    text = str(plan).encode()
    crosses = any(rank_of(e) != rank.index for r in plan.registers for e in (r.producer, *r.consumers))
    kind = hashlib.sha256(f"{crosses} {fold([plan])[0]}".encode()).digest()[:KIND]
    mine = _tensor(free.to_bytes(FREE_LINES, "little") + len(text).to_bytes(SIZE, "little") + kind + plan.hash.encode())
    outs = [torch.empty_like(mine) for _ in range(rank.world_size)]
    group.all_gather(outs, mine)
    received = [t.numpy().tobytes() for t in outs]
    if others := [r for r, t in enumerate(received) if t[HEAD:] != received[0][HEAD:]]:
        raise RankError(_difference(lowered, transport, others))
    first: dict[bytes, int] = {}
    for r, t in enumerate(received):
        first.setdefault(t[FREE_LINES + SIZE : HEAD], r)
    if len(first) > 1 or crosses:
        sizes = {r: int.from_bytes(received[r][FREE_LINES : FREE_LINES + SIZE], "little") for r in first.values()}
        _prove(plan, text, transport, group, sizes)
    return functools.reduce(operator.and_, (int.from_bytes(t[:FREE_LINES], "little") for t in received))


def agree_on_messages(plan: Plan) -> None:
    """Check that what each rank reads of the others is what they write, as values of that dtype and size. Plans that
    were compiled here need no such check; those that were loaded may have been edited."""
    if current().world_size == 1:
        return
    group, why = transport_of().everyone(), ""
    texts = group.all_gather_bytes(json.encode(sent(plan)))
    every = cast(list[list[Written]], [decoded(text, list[Written], "what a rank writes") for text in texts])
    try:
        check_arrivals(plan, {w for written in every for w in written})
    except CompileError as error:
        why = str(error)
    for rank, text in enumerate(group.all_gather_bytes(why.encode())):
        if text:
            raise CompileError(f"of the plan of rank {rank}, {text.decode(errors='replace')}")


def _prove(plan: Plan, text: bytes, transport: Transport, group: Group, sizes: dict[int, int]) -> None:
    """Rank 0 verifies one plan of each kind (`sizes` in bytes), and broadcasts the result."""
    me, why = transport.rank, b""
    came = {r: torch.empty(size, dtype=torch.uint8) for r, size in sizes.items() if r != 0} if me == 0 else {}
    transport.exchange([(0, _tensor(text))] if me != 0 and me in sizes else [], [(r, t) for r, t in came.items()])
    if me == 0:
        why = together([plan, *(parse(t.numpy().tobytes().decode(errors="replace")) for t in came.values())]).encode()
    if why := group.broadcast_bytes(why, 0):
        raise CompileError(why.decode(errors="replace"))


def together(plans: Sequence[Plan]) -> str:
    """Why the plans of these ranks, and of all ranks of their kinds, can't run together; empty if they can."""
    try:
        verify(fold(plans))
    except CompileError as error:
        ranks = ", ".join(str(p.rank) for p in plans)
        return f"graph {plans[0].name}: the plans of its ranks, here {ranks}, don't go together: {error}"
    return ""


def _difference(lowered: Lowered, transport: Transport, others: list[int]) -> str:
    rank, name = transport.rank, lowered.plan.name
    other = rank if rank in others else others[0]
    if rank in (0, *others):
        transport.put(f"job/{name}/{rank}", show(lowered.job).encode())
    a, b = (transport.get(f"job/{name}/{r}").decode(errors="replace").splitlines() for r in (0, other))
    pairs = itertools.zip_longest(a, b, fillvalue="(nothing)")
    unlike = ((n, pair) for n, pair in enumerate(pairs, 1) if len({*map(without_places, pair)}) > 1)
    n, (a, b) = next(unlike, (0, ("", "")))
    if not n:
        return f"rank {other} loaded the plan of another {name} than rank 0; all ranks must load what one run saved"
    return (
        f"rank {other} traced another {name} than rank 0; the first difference is line {n} of the job:\n"
        f"  rank 0: {a}\n  rank {other}: {b}\nEvery rank must build the same graph"
    )


def _tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)
