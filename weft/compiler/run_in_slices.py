"""Compute a run of a job's nodes in slices: in the place of each node stands one for each slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from weft.core.sbp import Sbp
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.notation import Rule

Layout = dict[Node, tuple[Rule, ...]]  # how nodes are split: along one dimension, or two that follow each other


class Run(NamedTuple):
    """Nodes between the `first` and the `end` of the job to be computed in slices. The others there come before if they
    don't depend on these, else after. `held` is the estimate; the less the key, the better."""

    first: int
    end: int
    layout: Layout
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    counts: tuple[int, ...] = ()  # of the slices along each dimension
    held: float = 0
    key: tuple[float, ...] = ()


def compute(job: Job, r: Run, number: int) -> None:
    """Replace a run's nodes by those of its slices."""
    rest = (*r.after, *job.nodes[r.end :])
    read = {v for n in rest for v in n.operands()}
    found: dict[Value, list[Value]] = {v: [] for n in r.layout for v in n.outputs if v in read}  # of each slice; sums
    made: list[Node] = []
    adding = {op.adds: op.name for op in OPS.values() if op.adds}

    def add(like: Node, name: str, op: str, args: tuple[Any, ...], outputs: tuple[Value, ...], **extra: Any) -> Node:
        extra = {**like.extra, "slice": number, **extra}
        node = Node(name, op, args, outputs, like.scope, like.at, like.micro, False, like.stage, None, extra, like.late)
        made.append(node)
        return node

    def part(n: Node, v: Value, s: Sbp, k: int) -> Value:
        """The k-th slice of a value that is there."""
        for dim, start, length in _box(v, s, k, r.counts):
            shape = (*v.shape[:dim], length, *v.shape[dim + 1 :])
            narrow = _value(f"{v.name}.{number}.{dim}.{k}", v, shape)
            add(n, narrow.name, "narrow", (v, dim, start, length, 1), (narrow,))
            v = narrow
        return v

    for k in range(math.prod(r.counts)):
        table: dict[Value, Value] = {}  # to this slice's values
        parts: dict[tuple[Value, Sbp], Value] = {}
        for n, (rule, *_) in r.layout.items():
            for v, s in zip(n.operands(), rule.inputs, strict=True):
                if s.is_split and v not in table and (v, s) not in parts:
                    parts[v, s] = part(n, v, s, k)
            own = {v: parts[v, s] for v, s in zip(n.operands(), rule.inputs, strict=True) if (v, s) in parts}
            outputs = [_sliced(v, s, k, r.counts) for v, s in zip(n.outputs, rule.outputs, strict=True)]
            args = list(n.args)
            if OPS[n.op].shape_of:
                args[OPS[n.op].names.index(OPS[n.op].shape_of)] = outputs[0].shape
            piece = add(n, f"{n.name}.{k}", n.op, tuple(args), tuple(outputs))
            piece.replace_operands({**own, **table})
            for v, s, w in zip(n.outputs, rule.outputs, outputs, strict=True):
                table[v] = w
                if v in found:
                    sum_of = found[v][-1:] if s.is_partial else []
                    if sum_of and n.op in adding:
                        piece.op, piece.args = adding[n.op], (*sum_of, *piece.args)
                    elif sum_of:
                        w = _value(f"{w.name}.sum", w, w.shape)
                        add(n, w.name, "add", (*sum_of, table[v]), (w,))
                    found[v].append(w)
    sums = _joined(r, found, add)
    for n in rest:
        n.replace_operands(sums)
    job.rebuild([*job.nodes[: r.first], *r.before, *made, *rest])


def _joined(r: Run, found: Mapping[Value, list[Value]], add: Callable[..., Node]) -> dict[Value, Value]:
    """Put together what later nodes read: slices are concatenated, and of sums the last one is the whole."""
    sums: dict[Value, Value] = {}
    for n, (rule, *_) in r.layout.items():
        for v, s in zip(n.outputs, rule.outputs, strict=True):
            if v in found and s.is_partial:
                sums[v] = found[v][-1]
            elif v in found:
                dim = s.dim + len(r.counts) - 1
                length, outer = math.prod(v.shape[s.dim : dim + 1]), [1] * (dim - s.dim)
                shape = (*v.shape[: s.dim], *outer, length, *v.shape[dim + 1 :])
                whole = v if shape == v.shape else _value(f"{v.name}.slices", v, shape)
                add(n, f"{v.name}.joined", "cat", (tuple(found[v]), dim), (whole,), joined=dense(v, s))
                if whole is not v:
                    add(n, f"{v.name}.whole", "reshape", (whole, v.shape), (v,))
    return sums


def _box(v: Value, s: Sbp, k: int, counts: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """The k-th part of a value: the dimensions, where it starts, and its length."""
    for level, count in enumerate(counts):
        length = v.shape[s.dim + level] // count
        yield s.dim + level, k // math.prod(counts[level + 1 :]) % count * length, length


def _sliced(v: Value, s: Sbp, k: int, counts: tuple[int, ...]) -> Value:
    """What stands for a value in the k-th slice."""
    shape = list(v.shape)
    for dim, _, length in _box(v, s, k, counts) if s.is_split else ():
        shape[dim] = length
    return _value(f"{v.name}.{k}", v, tuple(shape))


def dense(v: Value, s: Sbp) -> bool:
    """Whether the parts of a value are contiguous, and lie side by side."""
    return math.prod(v.shape[: s.dim]) == 1


def _value(name: str, like: Value, shape: tuple[int, ...]) -> Value:
    return Value(name, shape, like.dtype, None, like.device)
