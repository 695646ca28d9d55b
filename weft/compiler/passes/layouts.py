"""Auto parallel: choose the layouts of all nodes together, for `config.enable_auto_parallel()`.

While tracing, each call takes the layout that is cheapest for its own operands. Here a cost model of the whole job is
minimised: what a rank computes, and what moves between a node and its readers. Layouts of inputs, variables, outputs,
`to_global` and values written in place are fixed.

It is an integer program: one candidate for each node, one movement for each edge. Readers that want a value in the same
layout share its movement. HiGHS solves it, mostly at once, as its relaxation tends to be integral; beyond `LARGEST`
unknowns a local search improves the layouts of the trace node by node instead. Beyond `TOGETHER` unknowns, the axes of
a grid are chosen one after the other: together they have so many layouts of the same cost that it takes minutes.

Of choices that are about as fast, within `SLACK`, the one that holds least is taken: the mean of what a rank holds
while the nodes run one after another.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from weft.boxing import planner
from weft.boxing.links import COMPUTE, MEMORY, ONE_HOST, Links
from weft.boxing.signature import Signature, candidates, flatten, replaced
from weft.compiler.local_node import signature_of
from weft.compiler.options import Options
from weft.compiler.passes.dead_code import written
from weft.core.amount import amount
from weft.core.idle import idle
from weft.core.spec import Spec
from weft.job.job import SPECIAL, Job
from weft.job.value import Node, Value, specs
from weft.ops import OPS
from weft.ops.infer import freeze

LARGEST: Final = 30_000  # unknowns of the program
TOGETHER: Final = 3_000  # unknowns up to which all axes of a grid are chosen together: in seconds
SLACK: Final = 0.03  # of the least time
BRANCHES: Final = 1000  # limit of the search, after which the best solution is taken: the same on every rank


def run(job: Job, options: Options) -> None:
    if not options.auto_parallel:
        return
    idle("config.enable_auto_parallel()", all(v.spec is None for n in job.nodes for v in n.outputs))
    problem = Problem.of(job, options.links)
    before = problem.traced()
    after = problem.solve()
    if (problem.seconds(after), problem.held(after)) < (problem.seconds(before), problem.held(before)):
        apply(job, problem, before, after)


Choice = list[int]  # the index of each free node's candidate


@dataclass(eq=False)
class Free:
    """A node whose layout is to be chosen."""

    node: Node
    candidates: tuple[Signature, ...]
    seconds: tuple[float, ...]  # computing time of each candidate
    reads: tuple[Value, ...]

    def narrowed(self, kept: list[int]) -> Free:
        """With these candidates alone."""
        some = tuple(self.candidates[c] for c in kept)
        return replace(self, candidates=some, seconds=tuple(self.seconds[c] for c in kept))


class Edge(NamedTuple):
    """A value and its reader: an operand of a free node, or a fixed layout."""

    value: Value
    reader: int  # a number in `Problem.free`, or -1
    operand: int
    wanted: Spec | None


@dataclass(eq=False)
class Problem:
    free: list[Free] = field(default_factory=list)
    maker: dict[Value, tuple[int, int]] = field(default_factory=dict)  # of free nodes: number, output
    edges: list[Edge] = field(default_factory=list)
    links: Links = ONE_HOST
    spans: dict[Value, tuple[float, float]] = field(default_factory=dict)  # lifetimes of values, and of copies of them

    @staticmethod
    def of(job: Job, links: Links = ONE_HOST) -> Problem:
        found = Problem(links=links)
        for node in job.nodes:  # a job that was read from text has no candidates
            lacks = node.signature is None and node.op in OPS and node.op not in SPECIAL
            if lacks and any(v.spec is not None for v in node.operands()):
                node.signature = signature_of(node, links)
        held = _held(job)
        for node in job.nodes:
            if node.signature is None or node in held:
                found.fixed(node)
                continue
            frozen = freeze(specs(node.args))
            signatures = candidates(node.op, frozen)
            number = len(found.free)
            reads = tuple(flatten(OPS[node.op], node.args))
            found.free.append(Free(node, signatures, tuple(work(node, s) for s in signatures), reads))
            found.maker.update((v, (number, i)) for i, v in enumerate(node.outputs))
            found.edges += [Edge(v, number, i, None) for i, v in enumerate(reads)]
        found.spans = _spans(job)
        return found

    def fixed(self, node: Node) -> None:
        if node.signature is not None:
            wanted = node.signature.inputs
        elif node.op == "to_global":
            wanted = tuple(v.spec for v in node.outputs)
        else:
            wanted = tuple(v.spec for v in node.operands())
        for v, spec in zip(node.operands(), wanted, strict=True):
            if v.spec is not None:
                self.edges.append(Edge(v, -1, 0, spec))

    def traced(self) -> Choice:
        return [f.candidates.index(_alike(f)) for f in self.free]

    # ---- what a choice costs ---------------------------------------------------------------------------

    def made(self, v: Value, choice: Choice) -> Spec:
        known = self.maker.get(v)
        if known is None:
            assert v.spec is not None
            return v.spec
        number, output = known
        return self.free[number].candidates[choice[number]].outputs[output]

    def wanted(self, edge: Edge, choice: Choice) -> Spec:
        if edge.wanted is not None:
            return edge.wanted
        return self.free[edge.reader].candidates[choice[edge.reader]].inputs[edge.operand]

    def seconds(self, choice: Choice) -> float:
        """The cost: computing time, and movements, each counted once however many readers share it."""
        return self._total((f.seconds[c] for f, c in zip(self.free, choice, strict=True)), self.edges, choice)

    def _total(self, work: Iterable[float], edges: Iterable[Edge], choice: Choice) -> float:
        """Exact, as each rank adds in another order, and all must find the same."""
        moves = {(e.value, self.made(e.value, choice), self.wanted(e, choice)) for e in edges}
        return math.fsum(itertools.chain(work, (_moving(a, b, self.links) for _, a, b in moves)))

    def room(self, v: Value, spec: Spec, copied: bool = False) -> float:
        """The mean bytes that a rank holds of a value in this layout, made so or copied for its readers."""
        return spec.bytes / _ways(spec) * self.spans[v][copied]

    def held(self, choice: Choice) -> float:
        """The mean of what a rank holds."""
        made = (self.room(v, self.made(v, choice)) for v in self.maker)
        moves = {(e.value, self.made(e.value, choice), self.wanted(e, choice)) for e in self.edges}
        return math.fsum(itertools.chain(made, (self.room(v, b, True) for v, a, b in moves if a is not b)))

    # ---- the least -------------------------------------------------------------------------------------

    def solve(self) -> Choice:
        if self.unknowns <= TOGETHER:
            return self.together(self.traced())
        choice, grids = self.traced(), {f.candidates[0].placement.shape for f in self.free}
        axes = dict.fromkeys(axis for grid in sorted(grids) for axis, ranks in enumerate(grid) if ranks > 1)
        for axis in axes:
            kept = [_along(axis, f.candidates, c) for f, c in zip(self.free, choice, strict=True)]
            part = replace(self, free=list(map(Free.narrowed, self.free, kept)))
            start = [numbers.index(c) for numbers, c in zip(kept, choice, strict=True)]
            choice = [numbers[c] for numbers, c in zip(kept, part.together(start), strict=True)]
        return choice

    @property
    def unknowns(self) -> int:
        edges = sum(len(self.states(e.value)) * len(self.wishes(e)) for e in self.edges)
        return sum(len(f.candidates) for f in self.free) + edges

    def together(self, choice: Choice) -> Choice:
        """The best choice of all candidates, from this one on."""
        return self.improved(choice) if self.unknowns > LARGEST else _Program(self).solved(choice)

    def states(self, v: Value) -> list[Spec]:
        """The layouts in which a value may be made."""
        known = self.maker.get(v)
        if known is None:
            assert v.spec is not None
            return [v.spec]
        number, output = known
        return list(dict.fromkeys(s.outputs[output] for s in self.free[number].candidates))

    def wishes(self, edge: Edge) -> list[Spec]:
        """The layouts that a reader may want."""
        if edge.wanted is not None:
            return [edge.wanted]
        return list(dict.fromkeys(s.inputs[edge.operand] for s in self.free[edge.reader].candidates))

    def improved(self, choice: Choice) -> Choice:
        """Local search: each node in turn takes its cheapest candidate given its neighbours, until none changes."""
        readers: dict[Value, list[Edge]] = defaultdict(list)
        for e in self.edges:
            readers[e.value].append(e)

        def around(number: int) -> float:
            f = self.free[number]
            near = (e for v in (*f.reads, *f.node.outputs) for e in readers[v])
            return self._total([f.seconds[choice[number]]], near, choice)

        for _ in range(20):
            before = list(choice)
            for number in (*range(len(choice)), *reversed(range(len(choice)))):
                f, costs = self.free[number], []
                for c, s in enumerate(f.candidates):
                    choice[number] = c
                    room = math.fsum(map(self.room, f.node.outputs, s.outputs))
                    costs.append((around(number), room, c))
                choice[number] = min(costs)[-1]
            if choice == before:
                break
        return choice


class _Program:
    """The integer program. A column is a candidate of a node, or a movement of a value between two layouts."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.costs: list[float] = []
        self.rooms: list[float] = []
        self.whole: list[int] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []  # coefficients, least, most
        self.first = []
        for f in problem.free:
            self.first.append(len(self.costs))
            rooms = [math.fsum(map(problem.room, f.node.outputs, s.outputs)) for s in f.candidates]
            columns = [self.column(s, 1, room) for s, room in zip(f.seconds, rooms, strict=True)]
            self.rows.append((dict.fromkeys(columns, 1.0), 1.0, 1.0))
        shared: dict[tuple[Value, Spec, Spec], int] = {}
        readers: dict[Value, int] = defaultdict(int)
        for e in problem.edges:
            readers[e.value] += 1
        for e in problem.edges:
            states, wishes = problem.states(e.value), problem.wishes(e)
            alone = readers[e.value] == 1
            flow = {}
            for a in states:
                for b in wishes:
                    seconds = _moving(a, b, problem.links)
                    column = flow[a, b] = self.column(seconds if alone else 0.0)
                    if not alone and seconds:
                        if (e.value, a, b) not in shared:
                            shared[e.value, a, b] = self.column(seconds, 0, problem.room(e.value, b, True))
                        self.rows.append(({shared[e.value, a, b]: 1.0, column: -1.0}, 0.0, np.inf))
            for a in states:
                self.balance([flow[a, b] for b in wishes], self.making(e.value, a))
            for b in wishes:
                self.balance([flow[a, b] for a in states], self.wanting(e, b))

    def column(self, cost: float, whole: int = 0, room: float = 0.0) -> int:
        self.costs.append(cost)
        self.rooms.append(room)
        self.whole.append(whole)
        return len(self.costs) - 1

    def making(self, v: Value, spec: Spec) -> list[int] | None:
        """The columns of candidates that make a value in this layout; None if it is fixed."""
        known = self.problem.maker.get(v)
        if known is None:
            return None
        number, output = known
        signatures = self.problem.free[number].candidates
        return [self.first[number] + c for c, s in enumerate(signatures) if s.outputs[output] is spec]

    def wanting(self, e: Edge, spec: Spec) -> list[int] | None:
        if e.wanted is not None:
            return None
        signatures = self.problem.free[e.reader].candidates
        return [self.first[e.reader] + c for c, s in enumerate(signatures) if s.inputs[e.operand] is spec]

    def balance(self, flow: list[int], chosen: list[int] | None) -> None:
        """A constraint: the flow from or to a layout equals the candidates chosen there."""
        row = dict.fromkeys(flow, 1.0) | dict.fromkeys(chosen or (), -1.0)
        total = 1.0 if chosen is None else 0.0
        self.rows.append((row, total, total))

    def solved(self, traced: Choice) -> Choice:
        if not self.costs:
            return traced
        found = self.least(np.array(self.costs))
        if found is None:
            return self.problem.improved(traced)
        seconds, held = self.problem.seconds(found), self.problem.held(found)
        if not seconds or not held:
            return found
        row = dict(enumerate(self.costs))
        self.rows.append((row, 0.0, seconds * (1 + SLACK)))
        smaller = self.least(np.array(self.costs) / seconds + np.array(self.rooms) / held)
        if smaller is None or self.problem.held(smaller) >= held:
            return found
        return smaller if self.problem.seconds(smaller) <= seconds * (1 + SLACK) * 1.001 else found

    def least(self, costs: np.ndarray[Any, Any]) -> Choice | None:
        """The choice that costs least, or close to that; None if none was found."""
        optimize = importlib.import_module("scipy.optimize")  # here: `import weft` would take twice as long
        sparse = importlib.import_module("scipy.sparse")
        scales = [max(map(abs, row.values())) or 1.0 for row, _, _ in self.rows]
        data = [c / scale for (row, _, _), scale in zip(self.rows, scales, strict=True) for c in row.values()]
        places = [i for row, _, _ in self.rows for i in row]
        ends = np.cumsum([0, *(len(row) for row, _, _ in self.rows)])
        matrix = sparse.csr_array((data, places, ends), shape=(len(self.rows), len(costs)))
        low, high = (np.array([r[i] for r in self.rows]) / scales for i in (1, 2))
        found = optimize.milp(
            costs / (costs.max() or 1.0), integrality=np.array(self.whole), bounds=optimize.Bounds(0.0, 1.0),
            constraints=optimize.LinearConstraint(matrix, low, high),
            options={"node_limit": BRANCHES, "mip_rel_gap": 1e-3},
        )  # fmt: skip
        if found.x is None:
            return None
        ends = [*self.first, self.first[-1] + len(self.problem.free[-1].candidates)] if self.first else []
        return [int(np.argmax(found.x[a:b])) for a, b in itertools.pairwise(ends)]


# ---- doing it ------------------------------------------------------------------------------------------


def apply(job: Job, problem: Problem, before: Choice, after: Choice) -> None:
    """Give the nodes their layouts. Fixed readers keep theirs, behind a movement."""
    table: dict[Value, Value] = {}  # to the value in its new layout
    for f, old, new in zip(problem.free, before, after, strict=True):
        if old == new:
            continue
        chosen, was = f.candidates[new], f.candidates[old]
        f.node.signature, f.node.ranked = chosen, chosen.ranked
        job.reasons.append(
            f"%{f.node.name}: {_shown(chosen)}, traced as {_shown(was)}" + f"    # {f.node.at}" * bool(f.node.at)
        )
        for v, spec in zip(f.node.outputs, chosen.outputs, strict=True):
            if v.spec is not spec:
                table[v] = Value(v.name, v.shape, v.dtype, spec, v.device)
    job.reasons.append(
        f"estimated {problem.seconds(before):.3g} s a step as traced, {problem.seconds(after):.3g} s so, and "
        f"{amount(round(problem.held(before)))} held in the mean, {amount(round(problem.held(after)))} so"
    )
    movable = {n for n in job.nodes if n.signature is not None or n.op == "to_global"}
    fixed = {v for n in job.nodes if n not in movable for v in n.operands()}
    free = {f.node for f in problem.free}
    nodes: list[Node] = []
    for node in job.nodes:
        if node in movable:
            node.replace_operands(table)
        nodes.append(node)
        if node not in free:
            continue
        made = node.outputs
        node.outputs = tuple(table.get(v, v) for v in made)
        for v in made:
            if v in table and v in fixed:  # under its old name, for readers of the old layout
                now = table[v]
                now.name += ".chosen"
                assert v.spec is not None
                args = (now, v.spec.placement, v.spec.nd_sbp)
                back = Node(v.name, "to_global", args, (v,), node.scope, node.at, node.micro, stage=node.stage)
                back.extra.update(node.extra)
                nodes.append(back)
                if node.name == v.name:
                    node.name = now.name
    job.rebuild(nodes)


def _shown(s: Signature) -> str:
    def each(specs: tuple[Spec, ...]) -> str:
        return ", ".join("(" + ", ".join(map(str, spec.nd_sbp)) + ")" for spec in specs)

    return f"{each(s.inputs)} -> {each(s.outputs)}"


# ---- what is what --------------------------------------------------------------------------------------


def _held(job: Job) -> set[Node]:
    """Nodes that keep the layout of the trace: they write in place, or their results are written in place."""
    pinned: set[Value] = set()
    held: set[Node] = set()
    for node in reversed(job.nodes):
        pinned |= written(node)
        if node.signature is None:
            continue
        if written(node) or not pinned.isdisjoint(node.outputs):
            held.add(node)
            if OPS[node.op].view:
                pinned.update(node.operands())
    return held


def _spans(job: Job) -> dict[Value, tuple[float, float]]:
    """How long each value lives, as a part of all nodes, and a copy of it: from its first reader to the last."""
    made, first, last = dict[Value, int](), dict[Value, int](), dict[Value, int]()
    for i, n in enumerate(job.nodes):
        made.update(dict.fromkeys(n.outputs, i))
        for v in n.operands():
            first.setdefault(v, i)
            last[v] = i
    views = {v for n in job.nodes if n.view for v in n.outputs}
    return {
        v: ((v not in views) * (last.get(v, i) + 1 - i) / len(job.nodes),
            (last.get(v, i) + 1 - first.get(v, i)) / len(job.nodes))
        for v, i in made.items()
    }  # fmt: skip


def _along(axis: int, every: tuple[Signature, ...], chosen: int) -> list[int]:
    """The numbers of those that are as the chosen one on all other axes."""

    def others(s: Signature) -> list[Any]:
        return [(*spec.nd_sbp[:axis], *spec.nd_sbp[axis + 1 :]) for spec in (*s.inputs, *s.outputs)]

    return [c for c, s in enumerate(every) if others(s) == others(every[chosen])]


def _alike(f: Free) -> Signature:
    """The candidate that the trace chose."""
    chosen = f.node.signature
    assert chosen is not None
    return next(s for s in f.candidates if s.inputs == chosen.inputs and s.outputs == chosen.outputs)


def _moving(a: Spec, b: Spec, links: Links) -> float:
    """Seconds from one layout to another."""
    return 0.0 if a is b else planner.cost(a.shape, a.dtype, a.placement, a.nd_sbp, b.placement, b.nd_sbp, links)


def work(node: Node, s: Signature | None, threads: int = 1, products: int | None = None) -> float:
    """Estimated computing time of a rank: of its share of memory traffic, or of multiplications, which so many threads
    share. The operands of a node without a signature are local."""
    op = OPS[node.op]
    if op.view:
        return 0.0
    values, products = [*node.operands(), *node.outputs], multiplications(node) if products is None else products
    if s is None:
        passing = sum(v.bytes for v in values)
        type, shared = values[0].device.type if values else "cpu", 1
    else:
        specs = (*s.inputs, *s.outputs)
        type, passing = s.placement.type, sum(spec.bytes / _ways(spec) for spec in specs)
        split = [any(spec.nd_sbp[axis].is_split for spec in specs) for axis in range(s.placement.ndim)]
        shared = math.prod(n for n, on in zip(s.placement.shape, split, strict=True) if on)
    return max(passing / MEMORY[type].speed, products / shared / threads / COMPUTE[type])


def multiplications(node: Node) -> int:
    """In matrix products, or else elements; none in elementwise ops, which are bound by memory traffic."""
    op = OPS[node.op]
    if op.elementwise:
        return 0
    shapes, outputs = (tuple(v.shape for v in values) for values in (node.operands(), node.outputs))
    return op.products(replaced(op, node.args, lambda v: v.shape), shapes, outputs)


def _ways(spec: Spec) -> int:
    return math.prod(n for n, sbp in zip(spec.placement.shape, spec.nd_sbp, strict=True) if sbp.is_split)
