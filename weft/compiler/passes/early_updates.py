"""Update large parameters as soon as their gradients are there and nobody reads them any more, so that gradients
needn't all be held at once. Where all are needed together, as for clipping by their norm, they still are.

Gradients that are reduced on streams of their own come in buckets, and what has come is used: so there is one call for
the parameters of each bucket.
"""

from __future__ import annotations

import copy
import itertools
from bisect import bisect_left
from dataclasses import replace
from typing import Any, Final

import torch

from weft.compiler import inductor
from weft.compiler.calls.rows import MOST
from weft.compiler.options import Options
from weft.compiler.streams import device_of
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops import OPS

PIECE: Final = 1 << 19  # least bytes of parameters for a call of their own
FAST: Final = 1 << 22  # the same where speed is asked for: each call drives out of the caches what the next ones read
ALL: Final = 1 << 62  # the same there with several threads: one call
ON_CUDA: Final = 1 << 26  # the same there: fewer don't occupy the device


def run(job: Job, options: Options) -> None:
    _by_bucket(job, options)
    updates = {n: i for i, n in enumerate(job.nodes) if divisible(n, job) and large(n)}
    if not updates:
        return
    heads, numbers = set[Node](), set[Value]()
    for n in job.nodes:  # available before anything runs, or computed from the host's numbers
        if n.op in ("variable", "host") or (n.op in OPS and n.operands() and numbers.issuperset(n.operands())):
            heads.add(n)
            numbers.update(() if n.op == "variable" else n.outputs)
    made = {v: -1 if n in heads else i for i, n in enumerate(job.nodes) for v in n.outputs}
    used = _used(job)
    pieces = {n: _pieces(n, at, made, used, _least(n, options)) for n, at in updates.items()}
    after: dict[int, list[Node]] = {}
    for found in pieces.values():
        for at, piece in found:
            after.setdefault(at, []).append(piece)
    if after:
        first = [n for n in job.nodes if n in heads]
        job.arrange({0: first}, after, heads.union(n for n, found in pieces.items() if found))


def _least(n: Node, options: Options) -> int:
    if options.tight:
        return MOST
    if n.args[0][0].device_type == "cuda":
        return ON_CUDA
    alone = all(v.spec is None or v.spec.placement.size == 1 for v in n.args[0])  # ranks decide alike
    shared = alone and not options.limited and torch.get_num_threads() > 1
    # what one core has just written comes slowly to another one
    return (PIECE, FAST, ALL)[inductor.asked(options) + shared]


def _by_bucket(job: Job, options: Options) -> None:
    """Split updates whose gradients come from different collectives that have streams of their own."""
    apart = {n for n in job.nodes if not n.micro and device_of(n, options)}
    if not apart:
        return
    last: dict[Value, int] = {}  # of the collectives that a value depends on
    nodes: list[Node] = []
    for i, n in enumerate(job.nodes):
        before = max((last.get(v, -1) for v in n.operands()), default=-1)
        last.update(dict.fromkeys(n.outputs, i if n in apart else before))
        groups: dict[int, list[int]] = {}
        for k, v in enumerate(_gradients(n)):
            groups.setdefault(last[v], []).append(k)
        nodes += [_piece(n, groups[c], k) for k, c in enumerate(sorted(groups))] if len(groups) > 1 else [n]
    if len(nodes) > len(job.nodes):
        job.rebuild(nodes)


def divisible(n: Node, job: Job) -> bool:
    """Whether an update may be split into calls for some parameters each as they are computed: not if gradients are
    summed over ranks or micro-batches, as these arrive together."""
    grads = _gradients(n)
    return bool(grads) and all(job.producer[v].op in OPS and not job.producer[v].micro for v in grads)


def _gradients(n: Node) -> tuple[Value, ...]:
    """The gradients that an update reads; empty if it can't be split."""
    op = OPS.get(n.op)
    names = [p.name for p in op.params] if op is not None and op.elementwise_lists else []
    if "grads" not in names or ("step" in names and "counted" not in names):
        return ()
    if n.signature is not None and any(v.spec is not s for v, s in zip(n.operands(), n.signature.inputs, strict=True)):
        return ()
    return n.args[names.index("grads")]


def large(n: Node) -> dict[int, int]:
    """The parameters of an update that are large enough: their indices in its lists, and their bytes."""
    sizes = {}
    for i, v in enumerate(n.args[0]):
        size = v.local_bytes(v.spec.placement.members[0] if v.spec is not None else 0)
        if size > MOST:
            sizes[i] = size
    return sizes


def _used(job: Job) -> dict[Value, list[int]]:
    """The indices of the nodes that use each variable, directly or by a view or a moved part."""
    root = {v: v for n in job.nodes if n.op == "variable" for v in n.outputs}
    found: dict[Value, list[int]] = {v: [-1] for v in root}
    for i, n in enumerate(job.nodes):
        if n.op not in OPS or OPS[n.op].view:
            bases = [root.get(v) for v in n.operands()]
            root.update((v, r) for v, r in zip(n.outputs, itertools.cycle(bases), strict=False) if r is not None)
        for v in n.operands():
            if v in root:
                found[root[v]].append(i)
    return found


def _pieces(
    n: Node, at: int, made: dict[Value, int], used: dict[Value, list[int]], least: int
) -> list[tuple[int, Node]]:  # fmt: skip
    """An update split into calls, each with the index of the node that it may follow; empty if one call is enough."""
    lists = [a for a in n.args if isinstance(a, tuple) and a and isinstance(a[0], Value)]
    shared = [a for a in n.args if isinstance(a, Value)]

    def ready(values: list[Value]) -> int:
        return max(used[v][bisect_left(used[v], at) - 1] if v in used else made[v] for v in values)

    when = [ready([*shared, *column]) for column in zip(*lists, strict=True)]
    found: list[tuple[int, list[int]]] = []
    members: list[int] = []
    sizes = large(n)
    for i in sorted(sizes, key=when.__getitem__):
        members.append(i)
        if sum(sizes[m] for m in members) >= least and when[i] < max(when):
            found.append((when[i], members))
            members = []
    if not found:
        return []
    rest = set(range(len(when))).difference(*(members for _, members in found))
    if rest:
        found.append((ready([*shared, *(a[i] for a in lists for i in rest)]), sorted(rest)))
    return [(at, _piece(n, members, k)) for k, (at, members) in enumerate(found)]


def _piece(n: Node, members: list[int], number: int) -> Node:
    """The update of some of the parameters; the first call counts the step."""
    op = OPS[n.op]
    specs = iter(n.signature.inputs if n.signature is not None else ())
    args: list[Any] = []
    kept: list[Any] = []
    for p, a in zip(op.params, n.args, strict=True):
        here = [next(specs, None) for v in (a if isinstance(a, tuple) else (a,)) if isinstance(v, Value)]
        if p.kind == "tensors" and a:
            a, here = tuple(a[i] for i in members), [here[i] for i in members]
        args.append(a or number > 0 if p.name == "counted" else a)
        kept += here
    piece = copy.copy(n)
    piece.name, piece.args, piece.extra = f"{n.name}.{number}", tuple(args), dict(n.extra)
    if n.signature is not None:
        piece.signature = replace(n.signature, inputs=tuple(kept))
    return piece
