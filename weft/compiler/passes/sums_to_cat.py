"""Rewrite a sum of adjacent slices padded with zeros, such as the gradient of chunk, as a concatenation."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.boxing.signature import Signature
from weft.compiler.options import Options
from weft.job.job import Job
from weft.job.value import Node, Value


class Part(NamedTuple):
    """A value padded with zeros to a shape, at an offset along one dimension."""

    value: Value
    shape: tuple[int, ...]
    dim: int
    start: int
    length: int


def run(job: Job, options: Options) -> None:
    readers = job.readers()
    parts: dict[Value, list[Part]] = {}  # of sums that consist of such parts only
    inside: dict[Value, list[Node]] = {}  # the nodes of each such sum
    gone: set[Node] = set()
    for node in job.nodes:
        found = _parts(node, parts)
        if found is None:
            continue
        y = node.outputs[0]
        parts[y] = found
        terms = [a for a in node.args if isinstance(a, Value)] if node.op == "add" else []  # what is padded stays
        inside[y] = [*(n for a in terms for n in inside[a]), node]
        if not _whole(found):
            continue
        others = inside[y][:-1]
        if any(reader not in inside[y] for n in others for reader in readers[n.outputs[0]]):
            continue  # a part of the sum has other readers
        ordered = sorted(found, key=lambda p: p.start)
        node.op, node.args = "cat", (tuple(p.value for p in ordered), ordered[0].dim)
        if y.spec is not None:
            specs = tuple(p.value.spec for p in ordered if p.value.spec is not None)
            node.signature = Signature(y.spec.placement, specs, (y.spec,), False)
        gone.update(others)
        del parts[y]
    if gone:
        job.rebuild([n for n in job.nodes if n not in gone])


def _parts(node: Node, parts: dict[Value, list[Part]]) -> list[Part] | None:
    """The parts of which a node's output is the sum, if it is one, and all are in one layout."""
    if node.op not in ("narrow_scatter_zeros", "add") or not _stays(node):
        return None
    if node.op == "narrow_scatter_zeros":
        x, shape, dim, start, length, step = node.args
        dim %= len(shape)
        cut = any(s.dim == dim for s in node.outputs[0].spec.nd_sbp) if node.outputs[0].spec is not None else False
        return [Part(x, tuple(shape), dim, start, length)] if step == 1 and not cut else None
    if node.op == "add":
        a, b = (parts.get(v) if isinstance(v, Value) else None for v in node.args[:2])
        if a is not None and b is not None and _same(a[0], b[0]):
            return [*a, *b]
    return None


def _stays(node: Node) -> bool:
    """Whether every operand is read in its own layout, which is the output's too."""
    spec = node.outputs[0].spec
    if spec is None:
        return True
    held = [v.spec for v in node.operands()]
    alike = all(s is not None and s.nd_sbp == spec.nd_sbp and s.placement is spec.placement for s in held)
    return alike and (node.signature is None or list(node.signature.inputs) == held)  # None: read from text


def _same(a: Part, b: Part) -> Any:
    return a.shape == b.shape and a.dim == b.dim and a.value.dtype is b.value.dtype


def _whole(found: list[Part]) -> bool:
    """Whether the parts cover the dimension exactly once."""
    at = 0
    for p in sorted(found, key=lambda p: p.start):
        if p.start != at:
            return False
        at += p.length
    return len(found) > 1 and at == found[0].shape[found[0].dim]
