"""Kernel fusion: find runs of a chain's nodes for one kernel, elementwise ops and the reductions around them. Pure.

A node joins the run that made the latest of its operands: the others existed when the run began. So runs grow across
nodes in between, such as matmuls and their gradients. Views are free, within a run and outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final

from weft.compiler.local_node import SMALL, local_call, refs
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.plan.calls import Call, Place, Ref, Result
from weft.plan.fused import fusable

Forms = Mapping[str, Result]
Faster = Callable[[Call, Forms], int | None]  # the bytes that a fused call allocates; None if its calls are faster

REDUCTIONS: Final = {  # ops that Inductor expands into loops; none that index, since the index would have to be checked
    "sum_to", "sum", "mean", "variance", "amax", "amin", "softmax", "softmax_grad", "log_softmax", "log_softmax_grad",
    "layer_norm", "layer_norm_grad", "rms_norm", "rms_norm_grad", "square_error", "square_error_grad", "bent_error",
    "bent_error_grad",
}  # fmt: skip
STANDALONE: Final = {  # ops that may be worth a kernel by themselves
    "gelu", "gelu_grad", "layer_norm", "layer_norm_grad", "mean", "softmax", "softmax_grad", "rms_norm", "rms_norm_grad"
}  # fmt: skip
FAR: Final = 8  # nodes by which a large value may be made earlier: it takes memory meanwhile


def fused(nodes: Sequence[Node], leaving: Container[Value], rank: int, faster: Faster) -> list[Node]:
    """The nodes, with one `fused` node for each run where that is `faster`; other chains read the values `leaving`."""
    reads: dict[Value, list[Node]] = {}
    for n in nodes:
        for v in n.operands():
            reads.setdefault(v, []).append(n)
    found: list[Node] = []
    for run in _runs(nodes, rank):
        if not _begins(run[0], rank) or (len(run) == 1 and run[0].op not in STANDALONE):
            found += run
        else:
            members = set(run)
            needed = {v for n in run for v in n.outputs if v in leaving or not members.issuperset(reads.get(v, ()))}
            found += _joined(run, needed, rank, faster)
    return found


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


def _joined(run: Sequence[Node], wanted: set[Value], rank: int, faster: Faster) -> list[Node]:
    """One node for a run, and the views of its results that others read; the run unchanged if fusing is no gain.
    `wanted` are the values that others read."""
    views: list[Node] = []
    for n in reversed(run):
        if OPS[n.op].view and not wanted.isdisjoint(n.outputs):
            views.append(n)
            wanted |= set(n.operands())
    outputs = tuple(v for n in run if not OPS[n.op].view for v in n.outputs if v in wanted)
    live, within = set(outputs), []
    for n in reversed(run):
        if not live.isdisjoint(n.outputs):
            within.append(n)
            live |= set(n.operands())
    within.reverse()
    if not within or sum(not OPS[n.op].view for n in within) < 1 + (within[0].op not in STANDALONE):
        return list(run)
    made = {v for n in within for v in n.outputs}
    inputs = tuple(dict.fromkeys(v for n in within for v in n.operands() if v not in made))
    head = Node(outputs[0].name, "fused", inputs, outputs, micro=run[0].micro, late=run[0].late)
    head.extra["calls"] = tuple(_calls(within, rank))
    results = tuple(Result(v.name, v.dtype.name, v.local_shape(rank), Place("made")) for v in outputs)
    forms = {v.name: Result(v.name, v.dtype.name, v.local_shape(rank), Place("variable")) for v in inputs}
    call = Call("fused", tuple(Ref(v.name) for v in inputs), results, name=head.name, calls=head.extra["calls"])
    size = faster(call, forms)
    if size:
        head.extra["options"] = (("scratch", size),)
    return [head, *reversed(views)] if size is not None else list(run)


def _calls(nodes: Sequence[Node], rank: int) -> Iterator[Call]:
    for n in nodes:
        results = tuple(Result(v.name, v.dtype.name, v.local_shape(rank), Place("inside")) for v in n.outputs)
        args, _ = local_call(n, rank)
        yield Call(n.op, refs(args), results, name=n.name, at=n.where)
