"""Choose the memory of small values so that later copies aren't needed.

    joined     the parts of a concatenation, each written into its slice of the whole: nothing is left to concatenate
    ordered    a value that is transposed and then reshaped, stored in transposed order: the reshape is a view

Both apply to values that are copied into the arena anyway: a copy writes any strides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from weft.job.value import Node, Value

Order = tuple[int, ...]


class Part(NamedTuple):
    """A slice of another value's memory."""

    whole: Value
    dim: int
    start: int


def joined(
    nodes: Sequence[Node], free: Callable[[Value], bool], written: Callable[[Value], bool],
    placeable: Callable[[Sequence[Value]], bool], shape: Callable[[Value], Order],
) -> dict[Value, Part]:  # fmt: skip
    """The parts of `placeable` concatenations whose parts are all `free` to lie anywhere, or `written` where they are
    contiguous. Each is in one concatenation only, and has no views, which might need it contiguous. What consists of
    free parts is free, too."""
    found: dict[Value, Part] = {}
    views, loose = _view_counts(nodes), set[Value]()
    for n in nodes:
        if n.op != "cat" or not placeable(n.outputs):
            continue
        parts, dim = n.args
        dim %= len(shape(n.outputs[0]))
        alike = len(set(parts)) == len(parts) and all(v.dtype == parts[0].dtype for v in parts)
        dense = math.prod(shape(n.outputs[0])[:dim]) == 1
        anywhere = {v for v in parts if v not in views and (free(v) or (v in loose and written(v)))}
        if not alike or any(v in found or not (v in anywhere or (dense and written(v))) for v in parts):
            continue
        if anywhere.issuperset(parts):
            loose.add(n.outputs[0])
        start = 0
        for v in parts:
            found[v] = Part(n.outputs[0], dim, start)
            start += shape(v)[dim]
    return found


def ordered(
    nodes: Sequence[Node], free: Callable[[Value], bool], shape: Callable[[Value], Order]
) -> dict[Value, Order]:
    """The order in memory of the dimensions of values that a transpose and a reshape read."""
    found: dict[Value, Order] = {}
    maker = {v: n for n in nodes for v in n.outputs}
    views = _view_counts([n for n in nodes if n.op != "narrow"])  # a slice may have any strides
    for n in nodes:
        if n.op != "reshape":
            continue
        v, permutes = n.args[0], []
        while v in maker and maker[v].op in ("transpose", "permute") and views[v] == 1:
            permutes.append(maker[v])
            v = maker[v].args[0]
        if not permutes or views[v] > 1 or not free(v):
            continue
        order = tuple(range(len(shape(v))))
        for permute in reversed(permutes):
            order = _permuted(order, permute)
        if not _is_view(shape(v), order, shape(n.outputs[0])):
            found[v] = order
    return found


def _view_counts(nodes: Sequence[Node]) -> Counter[Value]:
    """The number of views of each value."""
    return Counter(n.args[0] for n in nodes if n.view)


def _permuted(order: Order, permute: Node) -> Order:
    """The order after one more transpose or permute."""
    if permute.op == "permute":
        return tuple(order[i] for i in permute.args[1])
    a, b = permute.args[1:]
    out = list(order)
    out[a], out[b] = out[b], out[a]
    return tuple(out)


def _is_view(shape: Order, order: Order, target: Order) -> bool:
    """Whether the reshape is a view without reordering."""
    try:
        torch.empty(shape, device="meta").permute(order).view(target)
    except RuntimeError:
        return False
    return True


def arranged(flat: Callable[[Order], torch.Tensor], shape: Order, order: Order | None) -> torch.Tensor:
    """A tensor of this shape whose dimensions lie in memory in this order; `flat` makes a contiguous one."""
    if order is None:
        return flat(shape)
    back = sorted(range(len(order)), key=order.__getitem__)
    return flat(tuple(shape[i] for i in order)).permute(back)
