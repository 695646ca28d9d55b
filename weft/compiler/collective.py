"""Boxing inside a chain: each local step as lines of the chain's function, over memory that is there already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from weft.boxing.execute import combine, execute, neutral
from weft.boxing.lowering import LocalStep, Slices, lower
from weft.compiler.layout import typed
from weft.compiler.memory import aligned
from weft.core import shard
from weft.job.value import Node, Value

if TYPE_CHECKING:
    from weft.compiler.program import Program
    from weft.compiler.writer import Writer

ALIASES = ("slice", "relabel")  # only look at what they are given
INTO = ("all_reduce", "all_gather", "reduce_scatter", "to_partial", "split_to_partial", "copy")


def local_step(node: Node, rank: int) -> LocalStep | None:
    """What this rank does in a boxing node; None for nothing."""
    route = node.extra["route"] if "route" in node.extra else node.extra["routes"][0]
    steps = lower(route, rank)
    return steps[0] if steps else None


def aliases(node: Node, rank: int) -> bool:
    if isinstance(node.args[0], tuple):
        return False
    step = local_step(node, rank)
    return step is None or step.kind in ALIASES or (step.kind == "to_partial" and not step.fill)


def writes_into(node: Node, rank: int) -> bool:
    """Whether its output wants memory of the arena."""
    if isinstance(node.args[0], tuple) or aliases(node, rank):
        return False
    step = local_step(node, rank)
    return step is not None and step.kind in INTO


@dataclass
class Bucket:
    """Memory in which values lie side by side, for a fused all-reduce or an update: its members' places in it. A
    member that is made here is made right there."""

    members: list[Value]  # inputs that can be made in place
    outputs: tuple[Value, ...]
    offsets: dict[Value, int]
    bytes: int


def buckets(program: Program) -> dict[Node, Bucket]:
    found: dict[Node, Bucket] = {}
    looked_at = set(program.root.values())
    for i, n in enumerate(program.nodes):
        if n.op != "boxing" or not isinstance(n.args[0], tuple):
            continue
        offsets: dict[Value, int] = {}
        members, at = [], 0
        for v, out in zip(n.args[0], n.outputs, strict=True):
            offsets[out] = at
            made = program.made_at.get(v)
            alone = made is not None and program.planned(program.nodes[made]) and program.last_read.get(v) == i
            if alone and v not in looked_at and not program.exports.get(v) and v not in offsets:
                offsets[v] = at
                members.append(v)
            at += program.bytes(v)
        found[n] = Bucket(members, n.outputs, offsets, aligned(at))
    return found


def emit(w: Writer, n: Node) -> None:
    """The lines of a boxing node that stays within its chain."""
    if isinstance(n.args[0], tuple):
        _fused(w, n)
        return
    source, out = n.args[0], n.outputs[0]
    step = local_step(n, w.program.rank)
    if step is None or step.kind == "relabel" or (step.kind == "to_partial" and not step.fill):
        _same(w, source, out)
    elif step.kind == "slice":
        start, stop = shard.part(w.program.shape(source)[step.dim], len(step.ranks), step.index)
        if source in w.static:
            w.static[out] = w.static[source].narrow(step.dim, start, stop - start)
        else:
            w.lines.append(f"{w.variable(out)} = {w.expression(source)}.narrow({step.dim}, {start}, {stop - start})")
    elif step.kind in _INTO and (memory := w.memory_for(out)) is not None:
        _INTO[step.kind](w, step, source, memory)
        w.static[out] = memory
    else:
        run = w.name("box", execute)
        arguments = f"{w.name('step', step)}, {w.expression(source)}, {w.name('line', w.run.line)}"
        w.lines.append(f"{w.variable(out)} = {run}({arguments})")


def _same(w: Writer, source: Value, out: Value) -> None:
    if source in w.static:
        w.static[out] = w.static[source]
    else:
        w.names[out] = w.names[source]


def _group(w: Writer, ranks: tuple[int, ...]) -> str:
    return w.name("group_" + "_".join(map(str, ranks[:4])), w.run.line.group(ranks))


def _all_reduce(w: Writer, step: LocalStep, source: Value, memory: torch.Tensor) -> None:
    out = w.name(f"{source.name}_whole", memory)
    w.lines.append(f"{out}.copy_({w.expression(source)})")
    w.lines.append(f"{_group(w, step.ranks)}.all_reduce({out}, {step.reduce!r})")


def _all_gather(w: Writer, step: LocalStep, source: Value, memory: torch.Tensor) -> None:
    parts = list(memory.split(list(shard.sizes(memory.shape[step.dim], len(step.ranks))), step.dim))
    contiguous = source in w.static and w.static[source].is_contiguous()
    mine = w.expression(source) + ("" if contiguous else ".contiguous()")
    w.lines.append(f"{_group(w, step.ranks)}.all_gather({w.name(f'{source.name}_parts', parts)}, {mine})")


def _reduce_scatter(w: Writer, step: LocalStep, source: Value, memory: torch.Tensor) -> None:
    shape = w.program.shape(source)
    sizes = list(shard.sizes(shape[step.dim], len(step.ranks)))
    group, out = _group(w, step.ranks), w.name(f"{source.name}_mine", memory)
    if source in w.static:
        parts = list(w.static[source].split(sizes, step.dim))
        if all(p.is_contiguous() for p in parts):
            w.lines.append(f"{group}.reduce_scatter({out}, {w.name(f'{source.name}_parts', parts)}, {step.reduce!r})")
            return
    parts_text = f"[p.contiguous() for p in {w.expression(source)}.split({sizes}, {step.dim})]"
    w.lines.append(f"{group}.reduce_scatter({out}, {parts_text}, {step.reduce!r})")


def _to_partial(w: Writer, step: LocalStep, source: Value, memory: torch.Tensor) -> None:
    w.lines.append(f"{w.name(f'{source.name}_part', memory)}.fill_({w.expression(neutral(step.fill, memory.dtype))})")


def _split_to_partial(w: Writer, step: LocalStep, source: Value, memory: torch.Tensor) -> None:
    _to_partial(w, step, source, memory)
    mine = memory.split(list(shard.sizes(memory.shape[step.dim], len(step.ranks))), step.dim)[step.index]
    w.lines.append(f"{w.name(f'{source.name}_mine', mine)}.copy_({w.expression(source)})")


def _copy(w: Writer, step: LocalStep, source: Value, memory: torch.Tensor) -> None:
    w.lines.append(f"{w.name(f'{source.name}_copy', memory)}.copy_({w.expression(source)})")


_INTO: dict[str, Any] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "to_partial": _to_partial,
    "split_to_partial": _split_to_partial,
    "copy": _copy,
}


def _fused(w: Writer, n: Node) -> None:
    """One all-reduce over memory in which its members lie side by side."""
    p = w.program
    bucket, step = p.buckets[n], local_step(n, p.rank)
    assert step is not None
    base = p.memory.offsets[p.blocks[n]]
    itemsize = n.outputs[0].dtype.itemsize
    size = sum(p.bytes(v) for v in n.outputs)
    flat = w.arena[base : base + size].view(n.outputs[0].dtype.torch)
    for v, out in zip(n.args[0], n.outputs, strict=True):
        place = typed(w.arena, base + bucket.offsets[out], p.shape(out), out.dtype)
        w.static[out] = place
        if v not in bucket.members:
            w.lines.append(f"{w.name(out.name, place)}.copy_({w.expression(v)})")
    assert flat.element_size() == itemsize
    w.lines.append(f"{_group(w, step.ranks)}.all_reduce({w.name('bucket', flat)}, {step.reduce!r})")


# ---- from one placement to another -------------------------------------------------------------------


def cross(w: Writer, n: Node) -> None:
    """An exchange whose two ends are different chains: this chain writes what it sends, or reads what arrived."""
    p = w.program
    part = p.crossings[n]
    source, out = n.args[0], n.outputs[0]
    for rank, where in part.sends:
        packet = p.departures.get((n, rank))
        if packet is not None:
            target = packet.view(w.slots[packet.id], source)
            w.lines.append(f"{w.name(f'{source.name}_to_{rank}', target)}.copy_({_sliced(w, source, where)})")
    if part.receives and not any((n, r) in p.arrivals for _, ranks in part.receives for r in ranks):
        return  # they arrive at the other chain
    if out.spec is None or p.rank not in out.spec.placement:
        return
    if len(part.receives) == 1 and len(part.receives[0][1]) == 1 and not part.fill:
        piece = _piece(w, n, part.receives[0][1][0])
        if tuple(piece.shape) == part.shape:
            w.static[out] = piece  # what the other rank wrote is read where it lies
            return
    whole = torch.empty(part.shape, dtype=out.dtype.torch, device=w.arena.device)
    name = w.name(out.name, whole)
    if part.fill:
        w.lines.append(f"{name}.fill_({w.expression(neutral(part.fill, whole.dtype))})")
    for where, ranks in part.receives:
        pieces = [w.name(f"{source.name}_from_{r}", _piece(w, n, r)) for r in ranks]
        target = w.name(f"{out.name}_part", whole[where])
        reduced = pieces[0]
        for count, reduce in reversed(part.reduces):
            if count > 1:
                assert len(part.reduces) == 1 or len({r for _, r in part.reduces}) == 1, "mixed partials cross in steps"
                for other in pieces[1:]:
                    reduced = f"{w.name('combine', combine)}({reduced}, {other}, {reduce!r})"
                break
        w.lines.append(f"{target}.copy_({reduced})")
    w.static[out] = whole


def _piece(w: Writer, n: Node, rank: int) -> torch.Tensor:
    packet = w.program.arrivals[n, rank]
    source = n.args[0]
    return packet.view(w.slots[packet.id], source)


def _sliced(w: Writer, v: Value, where: Slices) -> str:
    if v in w.static:
        return w.name(f"{v.name}_piece", w.static[v][where])
    return f"{w.expression(v)}[{w.name('where', where)}]"
