"""Kernel fusion: find runs of a chain's nodes for one kernel, elementwise ops and the reductions around them. Pure.

A node joins the run that made the latest of its operands: the others existed when the run began. So runs grow across
nodes in between, such as matmuls and their gradients. Views are free, within a run and outside of it. A bias that a
product's kernel adds in a pass of its own is added in the run that reads the result.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.compiler.local_node import SMALL, local_call, refs, written
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.plan.calls import Call, Place, Ref, Result
from weft.plan.fused import fusable

Forms = Mapping[str, Result]
# the bytes that a fused call allocates, of which so many of the first calls add biases; None if its calls are faster
Faster = Callable[[Call, Forms, int], int | None]

REDUCTIONS: Final = {  # ops that Inductor expands into loops; none that index, since the index would have to be checked
    "sum_to", "sum", "mean", "variance", "amax", "amin", "softmax", "softmax_grad", "log_softmax", "log_softmax_grad",
    "layer_norm", "layer_norm_grad", "rms_norm", "rms_norm_grad", "square_error", "square_error_grad", "bent_error",
    "bent_error_grad",
}  # fmt: skip
STANDALONE: Final = {  # ops that may be worth a kernel by themselves
    "gelu", "gelu_grad", "layer_norm", "layer_norm_grad", "mean", "softmax", "softmax_grad", "rms_norm", "rms_norm_grad"
}  # fmt: skip
FAR: Final = 8  # nodes by which a large value may be made earlier: it takes memory meanwhile


def fused(
    nodes: Sequence[Node], leaving: Container[Value], rank: int, faster: Faster, biased: Container[Node] = ()
) -> list[Node]:
    """The nodes, with one `fused` node for each run where that is `faster`; other chains read the values `leaving`.
    `biased`: the products whose kernels add a bias in a pass of its own."""
    reads: dict[Value, list[Node]] = {}
    for n in nodes:
        for v in n.operands():
            reads.setdefault(v, []).append(n)
    products: dict[Value, Node] = {}  # made, not yet read, and no variable has been written since
    found: list[Node] = []
    without: dict[Node, Node] = {}
    for run in _runs(nodes, rank):
        if not _begins(run[0], rank) or (len(run) == 1 and run[0].op not in STANDALONE):
            joined = run
        else:
            members = set(run)
            parts = {products[v]: _parts(products[v]) for n in run for v in n.operands() if v in products}
            every = [*run, *(add for _, add in parts.values())]
            needed = {v for n in every for v in n.outputs if v in leaving or not members.issuperset(reads.get(v, ()))}
            joined = _joined(run, [add for _, add in parts.values()], needed, rank, faster) if parts else None
            if joined is not None:
                without.update((n, product) for n, (product, _) in parts.items())
            else:
                joined = _joined(run, [], needed, rank, faster) or run
        found += joined
        for n in run:
            for v in n.operands():
                products.pop(v, None)
            if written(n):
                products.clear()
            if n in biased:
                products.update(dict.fromkeys(n.outputs, n))
    return [without.get(n, n) for n in found]


def _parts(n: Node) -> tuple[Node, Node]:
    """A product without its bias, and the sum of both."""
    (y,), (x, weight, bias), chosen = n.outputs, n.args, n.signature
    between = Value(f"{y.name}-product", y.shape, y.dtype, y.spec, y.device)
    product, add = copy.copy(n), copy.copy(n)
    product.args, product.outputs = (x, weight, None), (between,)
    add.name, add.op, add.args = f"{n.name}-bias", "add", (between, bias)
    if chosen is not None:
        *inputs, last = chosen.inputs
        product.signature = replace(chosen, inputs=tuple(inputs))
        add.signature = replace(chosen, inputs=(*chosen.outputs, last), ranked=False)
    return product, add


def _runs(nodes: Sequence[Node], rank: int) -> list[list[Node]]:
    entries: list[list[Node]] = []
    last: dict[int, int] = {}  # from a run to the index of its last node
    at: dict[Value, int] = {}
    fixed = 0  # the latest write or movement of data: nothing is moved before it
    for i, n in enumerate(nodes):
        run = max((at.get(v, -1) for v in n.operands()), default=-1)
        if run >= fixed and run in last and _fits(n, rank) and (i - last[run] <= FAR or _small(n, rank)):
            entries[run].append(n)
            last[run] = i
        else:
            run = len(entries)
            entries.append([n])
            if _begins(n, rank):
                last[run] = i
            elif n.op not in OPS or OPS[n.op].writes:
                fixed = run
        at.update(dict.fromkeys(n.outputs, run))
    return entries


def _begins(n: Node, rank: int) -> bool:
    return _fits(n, rank) and not OPS[n.op].view


def _small(n: Node, rank: int) -> bool:
    return all(v.local_bytes(rank) <= SMALL for v in n.outputs)


def _fits(n: Node, rank: int) -> bool:
    if not fusable(n.op) or not n.outputs or n.ranked:
        return False
    op = OPS[n.op]
    if not (op.elementwise or op.view or n.op in REDUCTIONS):
        return False
    values = (*n.operands(), *n.outputs)
    types = {v.device_type for v in values}
    here = all(v.spec is None or rank in v.spec.placement for v in values)
    return (
        here
        and types in ({"cpu"}, {"cuda"})
        and not local_call(n, rank)[1]
        and all(v.local_bytes(rank) for v in values)
    )


def _joined(
    run: Sequence[Node], sums: Sequence[Node], wanted: Container[Value], rank: int, faster: Faster
) -> list[Node] | None:  # fmt: skip
    """One node for a run, and the views of its results that others read; None if fusing is no gain. `wanted` are the
    values that others read; `sums` add biases."""
    read, views = set[Value](), list[Node]()
    for n in reversed(run):
        if OPS[n.op].view and any(v in wanted or v in read for v in n.outputs):
            views.append(n)
            read |= set(n.operands())
    every = [*sums, *run]
    made = [v for n in (*run, *sums) if not OPS[n.op].view for v in n.outputs]
    outputs = tuple(v for v in made if v in wanted or v in read)
    live, within = set(outputs), []
    for n in reversed(every):
        if not live.isdisjoint(n.outputs):
            within.append(n)
            live |= set(n.operands())
    within.reverse()
    own = [n for n in within if n not in sums]
    if not own or sum(not OPS[n.op].view for n in own) < 1 + (own[0].op not in STANDALONE):
        return None
    inside = {v for n in within for v in n.outputs}
    inputs = tuple(dict.fromkeys(v for n in within for v in n.operands() if v not in inside))
    head = Node(outputs[0].name, "fused", inputs, outputs, micro=run[0].micro, late=run[0].late)
    head.extra["calls"] = tuple(_calls(within, rank))
    results = tuple(Result(v.name, v.dtype.name, v.local_shape(rank), Place("made")) for v in outputs)
    forms = {v.name: Result(v.name, v.dtype.name, v.local_shape(rank), Place("variable")) for v in inputs}
    call = Call("fused", tuple(Ref(v.name) for v in inputs), results, name=head.name, calls=head.extra["calls"])
    size = faster(call, forms, len(within) - len(own))
    if size:
        head.extra["options"] = (("scratch", size),)
    return [head, *reversed(views)] if size is not None else None


def _calls(nodes: Sequence[Node], rank: int) -> Iterator[Call]:
    for n in nodes:
        results = tuple(Result(v.name, v.dtype.name, v.local_shape(rank), Place("inside")) for v in n.outputs)
        args, _ = local_call(n, rank)
        yield Call(n.op, refs(args), results, name=n.name, at=n.where)
