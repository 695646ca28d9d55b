"""Where small values lie, so that others need not be copied later.

    joined     the parts of a concatenation, each made where it belongs in the whole: nothing is left to concatenate
    ordered    a value whose transpose will be reshaped, laid out as the transpose wants it: the reshape is a view

Both concern values that are copied into the arena anyway, whose kernels can't be told where to write: a copy goes into
any strides. Kernels that read them take strides as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from weft.job.value import Node, Value
from weft.ops import OPS

Order = tuple[int, ...]


class Part(NamedTuple):
    """A slice of another value's memory."""

    whole: Value
    dim: int
    start: int


def joined(
    nodes: Sequence[Node], free: Callable[[Value], bool], placeable: Callable[[Sequence[Value]], bool],
    shape: Callable[[Value], Order],
) -> dict[Value, Part]:  # fmt: skip
    """The parts of `placeable` concatenations whose parts are all `free` to lie anywhere: in one whole only, and not
    looked at, since a view may want them in one piece."""
    found: dict[Value, Part] = {}
    looks = _looks(nodes)
    for n in nodes:
        if n.op != "cat" or not placeable(n.outputs):
            continue
        parts, dim = n.args
        dim %= len(shape(n.outputs[0]))
        alike = len(set(parts)) == len(parts) and all(v.dtype == parts[0].dtype for v in parts)
        if not alike or any(v in found or v in looks or not free(v) for v in parts):
            continue
        start = 0
        for v in parts:
            found[v] = Part(n.outputs[0], dim, start)
            start += shape(v)[dim]
    return found


def ordered(
    nodes: Sequence[Node], free: Callable[[Value], bool], shape: Callable[[Value], Order]
) -> dict[Value, Order]:
    """For a value, the order of its dimensions in memory."""
    found: dict[Value, Order] = {}
    maker = {v: n for n in nodes for v in n.outputs}
    looks = _looks(nodes)
    for n in nodes:
        if n.op != "reshape":
            continue
        v, turns = n.args[0], []
        while v in maker and maker[v].op in ("transpose", "permute") and looks[v] == 1:
            turns.append(maker[v])
            v = maker[v].args[0]
        if not turns or looks[v] > 1 or not free(v):
            continue
        order = tuple(range(len(shape(v))))
        for turn in reversed(turns):
            order = _turned(order, turn)
        if not _views(shape(v), order, shape(n.outputs[0])):
            found[v] = order
    return found


def _looks(nodes: Sequence[Node]) -> Counter[Value]:
    """By how many views each value is looked at."""
    return Counter(n.args[0] for n in nodes if n.op in OPS and OPS[n.op].view)


def _turned(order: Order, turn: Node) -> Order:
    """The order after one more transpose or permute."""
    if turn.op == "permute":
        return tuple(order[i] for i in turn.args[1])
    a, b = turn.args[1:]
    out = list(order)
    out[a], out[b] = out[b], out[a]
    return tuple(out)


def _views(shape: Order, order: Order, target: Order) -> bool:
    """Whether the reshape needs no copy as it is."""
    try:
        torch.empty(shape, device="meta").permute(order).view(target)
    except RuntimeError:
        return False
    return True


def arranged(flat: Callable[[Order], torch.Tensor], shape: Order, order: Order | None) -> torch.Tensor:
    """Memory as a tensor of this shape, its dimensions in this order; `flat` makes it of a contiguous shape."""
    if order is None:
        return flat(shape)
    back = sorted(range(len(order)), key=order.__getitem__)
    return flat(tuple(shape[i] for i in order)).permute(back)
