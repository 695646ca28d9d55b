"""How a chain moves data: one rank's boxing, as calls. Pure.

box.same, box.slice             a view
box.copy                        a copy: into a register that others read, or of a small input to the arena
box.joined                      a concatenation whose parts were written in place
box.merge                       the pieces received from other ranks, combined
box.all_reduce and the others   a step of `boxing.lowering`, run by `boxing.execute`; its scratch memory is a result
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from weft.boxing.execute import act, together
from weft.boxing.lowering import LocalStep, Slices, Transfers, lower
from weft.boxing.two_level import Call as Request
from weft.boxing.two_level import Levels, New
from weft.compiler.arena import aligned
from weft.compiler.layout import Chain, Packet, sliced
from weft.core import dtype as dtypes
from weft.core import shard
from weft.job.value import Node, Value
from weft.plan.calls import Call, Place, Ref, Result
from weft.transport import ALLOCATES

BLANK: Final = {"ranks": (), "index": 0, "dim": -1, "from_dim": -1, "reduce": "", "fill": "", "device": "cpu"}
Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Move:
    """A boxing node within one chain; with several values where all-reduces are fused."""

    kind: str
    options: Options
    several: bool
    step: LocalStep | None

    @staticmethod
    def of(node: Node, rank: int) -> Move:
        several = isinstance(node.args[0], tuple)
        step = next(iter(lower(node.route, rank, node.extra.get("hosts"))), None)
        if step is None or step.kind == "relabel" or (step.kind == "to_partial" and not step.fill):
            return Move("same", (), several, step)
        if step.kind == "slice":
            assert step.before is not None
            start, stop = shard.part(step.before[step.dim], len(step.ranks), step.index)
            return Move("slice", (("dim", step.dim), ("start", start), ("stop", stop)), several, step)
        return Move(step.kind, options_of(step), several, step)

    @property
    def in_row(self) -> bool:
        """Whether it runs over one contiguous buffer that holds all its values."""
        return self.several and self.kind == "all_reduce"

    @property
    def is_view(self) -> bool:
        """Whether its result is a view of its operand."""
        return self.kind in ("same", "slice")

    def view(self, base: torch.Tensor) -> list[torch.Tensor]:
        return [as_view(self.kind, dict(self.options), base)]

    def takes(
        self, given: Sequence[torch.Tensor], outs: Sequence[torch.Tensor], backend: str
    ) -> tuple[int, int]:  # fmt: skip
        """The bytes of scratch memory, and the most that the transport allocates meanwhile, given meta tensors with the
        strides of operands and results."""
        if self.step is None:
            return 0, 0
        total = most = 0

        def new(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
            nonlocal total
            total += aligned(math.prod(shape) * dtype.itemsize)
            return torch.empty(tuple(shape), dtype=dtype, device="meta")

        step = self.step
        if self.in_row:
            step = replace(step, before=tuple(outs[0].shape), shape=tuple(outs[0].shape))
        for r in requests(step, given, outs, new):
            if r.ranks:
                most = max(most, ALLOCATES[backend](r.method, len(r.ranks), r.args, step.device == "cpu"))
        return total, most


def requests(
    step: LocalStep, given: Sequence[torch.Tensor], outs: Sequence[torch.Tensor], new: New
) -> Iterator[Request]:
    """The requests of a step: for one value, for several, or for one contiguous buffer of several."""
    if step.kind == "all_reduce" or len(outs) == 1:
        yield from act(step, given[0], out=outs[0], new=new)
    else:
        yield from together(step, given, outs, new)


def as_view(kind: str, options: dict[str, Any], base: torch.Tensor) -> torch.Tensor:
    if kind == "same":
        return base.view(base.shape)
    return base.narrow(options["dim"], options["start"], options["stop"] - options["start"])


def options_of(step: LocalStep) -> Options:
    """A step of a route as a call's options; its form follows from operand and result."""
    found = [(key, getattr(step, key)) for key, blank in BLANK.items() if getattr(step, key) != blank]
    if step.levels is not None:
        found.append(("hosts", step.levels.hosts))
    if step.transfers is not None:
        t = step.transfers
        found += [("sends", t.sends), ("receives", t.receives), ("reduces", t.reduces)]
    return tuple(found)


def step_of(call: Call, rank: int, before: tuple[int, ...] | None) -> LocalStep:
    """The inverse: the step of a call, given the local shape of its operand."""
    options, out = dict(call.options), call.results[0]
    given = {key: options.get(key, blank) for key, blank in BLANK.items()}
    levels = Levels(given["ranks"], options["hosts"]) if "hosts" in options else None
    transfers = None
    if "sends" in options:
        transfers = Transfers(options["sends"], options["receives"], options["reduces"])
    kind = call.op.removeprefix("box.")
    return LocalStep(
        kind, rank, dtypes.named(out.dtype), before=before, shape=out.shape, levels=levels, transfers=transfers, **given
    )


# ---- from one chain to another -----------------------------------------------------------------------


def merges(chain: Chain, n: Node) -> bool:
    """Whether the pieces received at a crossing must be combined; else the value is read in the register."""
    return _arrives(chain, n) and not _straight(chain, n)


def _arrives(chain: Chain, n: Node) -> bool:
    part, out = chain.crossings[n], n.outputs[0]
    if part.receives and not any((n, r) in chain.arrivals for _, ranks in part.receives for r in ranks):
        return False  # at the other chain
    return out.spec is not None and chain.rank in out.spec.placement


def _straight(chain: Chain, n: Node) -> bool:
    part = chain.crossings[n]
    if len(part.receives) != 1 or len(part.receives[0][1]) != 1 or part.fill:
        return False
    return chain.arrivals[n, part.receives[0][1][0]].entries[n.outputs[0]] == part.shape


def crossing(chain: Chain, n: Node, place: Place, at: str) -> Iterator[Call]:
    """This chain's end of an exchange between two chains: it writes what it sends, or reads what arrived."""
    part, out = chain.crossings[n], n.outputs[0]
    for rank, where in part.sends:
        packet = chain.departures.get((n, rank))
        if packet is not None:
            yield _sent(f"{out.name}.to.{rank}", n, packet, where, chain, at)
    if not _arrives(chain, n):
        return
    if _straight(chain, n):
        packet = chain.arrivals[n, part.receives[0][1][0]]
        yield Call("read", results=(_entry(out.name, out, packet),), name=n.name, at=at)
        return
    pieces: dict[int, str] = {}
    for rank in dict.fromkeys(r for _, ranks in part.receives for r in ranks):
        pieces[rank] = f"{out.name}.from.{rank}"
        yield Call("read", results=(_entry(pieces[rank], out, chain.arrivals[n, rank]),), name=pieces[rank], at=at)
    order = list(pieces)
    options: list[tuple[str, Any]] = [
        ("receives", tuple((where, tuple(map(order.index, ranks))) for where, ranks in part.receives)),
        ("reduces", part.reduces),
    ]
    if part.fill:
        options.append(("fill", part.fill))
    result = Result(out.name, out.dtype.name, part.shape, place)
    yield Call("box.merge", tuple(map(Ref, pieces.values())), (result,), tuple(options), n.name, at)


def _sent(name: str, n: Node, packet: Packet, where: Slices, chain: Chain, at: str) -> Call:
    shape = chain.shape(n.args[0])
    whole = sliced(shape, where) == shape
    options = () if whole else (("where", where),)
    return Call("box.copy", (Ref(n.args[0].name),), (_entry(name, n.outputs[0], packet),), options, name, at)


def _entry(name: str, v: Value, packet: Packet) -> Result:
    return Result(name, v.dtype.name, packet.entries[v], Place("register", packet.offset(v), packet.id))
