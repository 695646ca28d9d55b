"""Rows: values that are adjacent in the arena, so that one call may treat them as one tensor.

    fused      the operands of a fused all-reduce, which runs over one contiguous buffer
    gradients  the small gradients of an update, which is elementwise (see `coalesce`)

A member that is computed in the chain is computed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, NamedTuple

from weft.compiler.arena import aligned
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.plan.calls import Call

MOST: Final = 1 << 16  # bytes of a gradient: a longer one keeps a kernel busy by itself


class Row(NamedTuple):
    """`members` are the values computed in place; `offsets` are those of all values in the row."""

    members: tuple[Value, ...]
    outputs: tuple[Value, ...]
    offsets: Mapping[Value, int]
    bytes: int


def fused(
    nodes: Sequence[Node], wanted: Callable[[Node], bool], bytes_of: Callable[[Value], int],
    in_place: Callable[[Value, int], bool],
) -> dict[Node, Row]:  # fmt: skip
    """The rows of fused all-reduces. `in_place(value, i)`: whether a value, last read by the i-th node, may be computed
    there."""
    found: dict[Node, Row] = {}
    for i, n in enumerate(nodes):
        if not wanted(n):
            continue
        offsets: dict[Value, int] = {}
        members, at = [], 0
        for v, out in zip(n.args[0], n.outputs, strict=True):
            offsets[out] = at
            if v not in offsets and in_place(v, i):
                offsets[v] = at
                members.append(v)
            at += bytes_of(v)
        found[n] = Row(tuple(members), n.outputs, offsets, aligned(at))
    return found


def lists_of(n: Node | Call) -> list[tuple[Any, ...]]:
    """A node's or a call's non-empty lists of tensors, over which it is elementwise."""
    op = OPS.get(n.op)
    if op is None or not op.elementwise_lists:
        return []
    return [a for i, a in enumerate(n.args) if op.params[i].kind == "tensors" and a]


def gradients(
    nodes: Sequence[Node], bytes_of: Callable[[Value], int], placeable: Callable[[Node], bool], taken: Container[Value]
) -> dict[Node, Row]:
    """For each update, a row of the small gradients computed in this chain."""
    found: dict[Node, Row] = {}
    makers = {v: n for n in nodes for v in n.outputs}
    inside: set[Value] = set()
    for n in nodes:
        offsets: dict[Value, int] = {}
        at = 0
        for v in dict.fromkeys(v for values in lists_of(n) for v in values):
            if v in makers and placeable(makers[v]) and v not in taken and v not in inside and bytes_of(v) <= MOST:
                offsets[v] = at
                at += aligned(bytes_of(v))
        if len(offsets) > 1:
            found[n] = Row(tuple(offsets), (), offsets, at)
            inside.update(offsets)
    return found
