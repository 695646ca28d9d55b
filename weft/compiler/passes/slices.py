"""Within a budget, compute the nodes at the peak in slices: a run of them goes over a part of a dimension at a time, as
a rank would that has this part. What a slice makes for itself is gone before the next one begins.

The ops' rules of layout say what can be split. A value that is split all through a run is made in slices that lie side
by side; a partial sum, such as a weight's gradient, is added up. Runs are chosen at the peak, by an estimate, until
that is within the budget or no run lowers it. What is held all through a run and can be computed again is let go.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from weft.boxing.signature import replaced
from weft.compiler.avoid_copies import Part
from weft.compiler.local_node import PLACED, SMALL, written
from weft.compiler.options import Options
from weft.compiler.passes import memory_budget
from weft.compiler.passes.memory_budget import Model
from weft.compiler.passes.recompute_activations import copied, once
from weft.compiler.run_in_slices import Layout, Run, compute, dense
from weft.core.amount import amount
from weft.core.sbp import Sbp, partial_sum, split
from weft.job.job import SPECIAL, Job
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.notation import Rule
from weft.plan.overwriting import overwrites
from weft.plan.spans import Strided, Use, contiguous, needed

COUNTS: Final = (2, 4, 8, 16)  # of slices
REACH: Final = 48  # nodes on each side of the peak that a run may have
ROOM: Final = 16  # the part of what is held beside parameters that is left for what kernels allocate
SPARING: Final = "sparing"  # the argument by which a kernel works in smaller parts
TRIES: Final = 8  # peaks that no run lowers, before it is given up


def applies(job: Job) -> bool:
    """Whether its values are local: parts of a rank's part of a global value aren't described by its layout."""
    return all(v.spec is None for n in job.nodes for v in n.outputs)


def run(job: Job, options: Options) -> None:
    budget = options.slices_budget
    if not budget or not applies(job):
        return
    computed, most, tried = 0, 0, set[Node]()
    held = Held(job, budget, 0)
    before = held.most
    whole = [a for n, a in zip(job.nodes, held.allocated, strict=True) if not (_pure(n, n) and held.rules(n))]
    room = max((budget - held.model.kept) // ROOM, *whole)
    held.spare(room)
    held = held.anew(job, room)
    for number in itertools.count():
        at = max((i for i, n in enumerate(job.nodes) if n not in tried), key=held.live.__getitem__)
        if held.live[at] <= budget or len(tried) == TRIES:
            break
        found = list(candidates(held, at, budget))
        best = min(found, default=None, key=lambda r: r.key)
        if best is not None and (less := let_go(job, held, best, budget)) is not held:
            held = less
            continue
        best = min(found, default=None, key=lambda r: (max(r.held, budget), r.key))
        if best is not None and best.held < held.live[at]:
            computed, most = computed + len(best.layout), max(most, math.prod(best.counts))
            compute(job, best, number)
        elif not remake(job, held, *_there(job, at)):
            tried.add(job.nodes[at])
            continue
        held = held.anew(job)
        tried.clear()
    job.held = math.ceil(max(held.live))
    if computed:
        job.reasons.append(
            f"{computed} nodes are computed in up to {most} slices: a rank would hold {amount(before)}, and holds "
            f"{amount(held.most)}"
        )


class Held:
    """The lifetimes of a job's values, and the bytes held while each node runs.

    What kernels allocate adds to the peak of what is planned, whenever it is. So within a budget, each node is to leave
    `room` for that, and may allocate so much itself.
    """

    def __init__(self, job: Job, budget: int, room: int, like: Held | None = None) -> None:
        self.job, self.nodes, self.budget, self.room = job, job.nodes, budget, room
        self.model = Model(job, copied=PLACED, like=like and like.model)
        self._rules: dict[Node, list[Rule]] = {} if like is None else like._rules
        self._forms: dict[tuple[Value, Value], Strided] = {} if like is None else like._forms
        self.joined = self._joined()
        self.root = self.model.root | {v: part.whole for v, part in self.joined.items()}
        within = {
            v: (part.whole, part.start * self._form(v).strides[part.dim] * v.dtype.itemsize)
            for v, part in self.joined.items()
        }
        for v, root in self.root.items():
            while root in self.root:
                root = self.root[root]
            self.root[v] = root
        self.read = {v: i for i, n in enumerate(self.nodes) for v in n.operands()}  # last, views apart
        lifetimes = needed(map(self._use, self.nodes), self._form, within)
        self.pieces = {v: pieces for v, pieces in lifetimes.items() if pieces}  # empty values have none
        self.first = {v: min(p.first for p in ps) for v, ps in self.pieces.items()}
        self.last = {v: max(p.last for p in ps) for v, ps in self.pieces.items()}
        begin, end = ([[0] * len(self.nodes) for _ in range(2)] for _ in range(2))
        for v, pieces in self.pieces.items():
            pool = int(self.model.allocates(job.producer[v]))
            for p in pieces:
                begin[pool][p.first] += p.end - p.begin
                end[pool][p.last] += p.end - p.begin
        now, made = self.model.kept, 0
        self.entering, planned = [now + room], list[int]()  # before each node, with that room
        self.allocated, self.scratch = list[int](), list[int]()  # with what a kernel takes that works in parts anyway
        for i, n in enumerate(self.nodes):
            planned.append(now + begin[0][i] * (not self._overwrites(n, i)))
            needs = self.model.transient(n)
            self.allocated.append(made + begin[1][i] + needs)
            self.scratch.append(needs if _in_parts(n) else 0)
            now, made = now + begin[0][i] - end[0][i], made + begin[1][i] - end[1][i]
            self.entering.append(now + room)
        self.live = [max(p + room, self.beside(a)) for p, a in zip(planned, self.allocated, strict=True)]
        self.most = max(planned) + max(self.allocated)

    @cached_property
    def place(self) -> dict[Node, int]:
        return {n: i for i, n in enumerate(self.nodes)}

    @cached_property
    def readers(self) -> dict[Value, list[int]]:
        """The places of the nodes that read what lies in a value's memory."""
        found = defaultdict[Value, list[int]](list)
        for i, n in enumerate(self.nodes):
            for root in {self.rooted(v) for v in n.operands()}:
                found[root].append(i)
        return found

    @cached_property
    def lying(self) -> dict[Value, list[Value]]:
        """What nodes make that lies in a value's memory."""
        found = defaultdict[Value, list[Value]](list)
        for n in self.nodes:
            for v in n.outputs:
                found[self.rooted(v)].append(v)
        return found

    @cached_property
    def changed(self) -> dict[Value, int]:
        """The first place where a variable is overwritten."""
        return {v: i for i, n in reversed([*enumerate(self.nodes)]) for v in written(n)}

    def anew(self, job: Job, room: int | None = None) -> Held:
        """The same for the job as it is now."""
        return Held(job, self.budget, self.room if room is None else room, self)

    def spare(self, room: int) -> None:
        """Let kernels that allocate more than there is room for work in smaller parts, if they can."""
        for n, allocated in zip(self.nodes, self.allocated, strict=True):
            if allocated > room and _in_parts(n):
                at = OPS[n.op].names.index(SPARING)
                n.args = (*n.args[:at], True, *n.args[at + 1 :])
                self.model.forget(n)

    def beside(self, allocated: float) -> float:
        """What is held if a node allocates so much, and all that may be planned is planned."""
        return allocated + self.budget - self.room

    def _use(self, n: Node) -> Use:
        early = self.model.early.get(n, ())
        makes = [v for v in n.outputs if v not in self.model.fixed]
        reads = [v for v in n.operands() if v not in early]
        return Use(n.op, n.args, reads, makes, not self.model.root.keys().isdisjoint(n.outputs))

    def _joined(self) -> dict[Value, Part]:
        """The parts of concatenations that will be written in place: slices, and what kernels write anywhere."""
        found, loose = dict[Value, Part](), set[Value]()
        count = Counter(v for n in self.nodes for v in n.operands())
        for n in self.nodes:
            loose.update(n.outputs if n.op in OPS and OPS[n.op].strided else ())
            if n.op != "cat":
                continue
            parts, dim = n.args
            anywhere = all(v in loose and count[v] == 1 and v.dtype is parts[0].dtype for v in parts)
            if not anywhere and not n.extra.get("joined"):
                continue
            loose.update(n.outputs if anywhere else ())
            starts = itertools.accumulate((v.shape[dim] for v in parts), initial=0)
            found |= {v: Part(n.outputs[0], dim % len(v.shape), at) for v, at in zip(parts, starts, strict=False)}
        return found

    def _form(self, v: Value) -> Strided:
        whole = v
        while whole in self.joined:
            whole = self.joined[whole].whole
        if (v, whole) not in self._forms:
            shape, of = (w.local_shape(self.model.rank) for w in (v, whole))
            self._forms[v, whole] = Strided(shape, contiguous(of), v.dtype.itemsize)
        return self._forms[v, whole]

    def rooted(self, v: Value) -> Value:
        """The value in whose memory a value lies."""
        return self.root.get(v, v)

    def _overwrites(self, n: Node, i: int) -> bool:
        over = map(self.rooted, overwrites(n.op, n.operands()))
        return any(self.last.get(w) == i and self.model.bytes(w) == self.model.bytes(n.outputs[0]) for w in over)

    def rules(self, n: Node) -> list[Rule]:
        """The ways to split a node."""
        if n not in self._rules:
            self._rules[n] = _rules(n)
        return self._rules[n]

    def past(self, at: int, low: int, high: int) -> Iterator[tuple[Value, int, int]]:
        """The large values that are held while a node runs, and not read by it; each with the last node before, and the
        first one after, that makes or reads it, as far as these lie between `low` and `high`."""
        before = {self.rooted(v): i for i in range(low, at + 1) for v in self.nodes[i].operands()}
        after = {self.rooted(v): i for i in range(high - 1, at, -1) for v in self.nodes[i].operands()}
        for v, made in self.first.items():
            if made < at < self.last[v] and before.get(v) != at and self.model.bytes(v) > SMALL:
                yield v, max(made, before.get(v, made)), min(self.last[v], after.get(v, self.last[v]))

    def through(self, first: int, end: int) -> list[Value]:
        """The large values that are held while some nodes run, and not read by them."""
        return [v for v, _, read in self.past(first, first, end) if read >= end]


# ---- choosing a run --------------------------------------------------------------------------------------


def candidates(held: Held, at: int, budget: int) -> Iterator[Run]:
    """The runs around a node, with what would be held then."""
    nodes, low, high = held.nodes, at, at + 1
    if not _pure(nodes[at], nodes[at]):
        return
    while low > max(0, at - REACH) and _pure(nodes[low - 1], nodes[at]):
        low -= 1
    while high < min(len(nodes), at + REACH) and _pure(nodes[high], nodes[at]):
        high += 1
    rules = {n: held.rules(n) for n in nodes[low:high]}
    near = {v for n in nodes[max(low, at - 2) : at + 3] for v in (*n.outputs, *n.operands())} - held.model.fixed
    ranges = list(itertools.product(_lower(held, range(at, low - 1, -1)), _lower(held, range(at + 1, high + 1))))
    past = [
        (held.model.bytes(v), *reads) for v, *reads in held.past(at, low, high) if _repeatable(held.job.producer[v])
    ]
    again = {
        (first, end): sum(size for size, before, after in past if before < first and after >= end)
        for first, end in ranges
    }
    seen: list[Layout] = []
    for seed in sorted(near, key=lambda v: (-held.model.bytes(v), v.name))[:4]:
        lays = [_layout(nodes[low:high], rules, {seed: split(dim)}) for dim in range(len(seed.shape))]
        deeper = [
            {n: a[n] + b[n] for n in a if n in b and _nested(a[n][0], b[n][0])} for a, b in itertools.pairwise(lays)
        ]
        for layout in (*lays, *deeper):
            if nodes[at] not in layout or layout in seen:
                continue
            seen.append(layout)
            for first, end in ranges:
                found = _run(nodes, first, end, layout)
                if nodes[at] in found.layout:
                    always, within = _bytes(held, found)
                    inside = [i for i in range(first, end) if nodes[i] in found.layout]
                    allocated = {(held.allocated[i] - held.scratch[i], held.scratch[i]) for i in inside}
                    scattered = any(
                        s.is_split and not dense(v, s)
                        for n, (rule, *_) in found.layout.items()
                        for v, s in _said(n, rule)
                    )
                    for counts in _counts(found.layout):
                        count = math.prod(counts)
                        besides = max(results / count + scratch for results, scratch in allocated)
                        most = max(always + within / count, held.beside(besides))
                        held_then = max(most - again[first, end], budget), max(most, budget)
                        key = *held_then, count * (1 + scattered), first - end, first  # kernels copy what is scattered
                        yield found._replace(counts=counts, held=most, key=key)


def _pure(n: Node, like: Node) -> bool:
    """Whether a node may be moved among its neighbours, and isn't in slices yet."""
    alike = (n.micro, n.stage, n.late) == (like.micro, like.stage, like.late)
    return alike and "slice" not in n.extra and n.op not in SPECIAL and not once(n) and not n.ranked and bool(n.outputs)


def _in_parts(n: Node) -> bool:
    """Whether a kernel works in parts, which can be made smaller."""
    return n.op in OPS and SPARING in OPS[n.op].names


def _repeatable(n: Node) -> bool:
    return _pure(n, n) and (n.extra.get("again") or not n.extra.get("backward"))


def _lower(held: Held, places: range) -> list[int]:
    """The places between nodes, from the peak on, where less is held than anywhere nearer."""
    found = [places[0]]
    for i in places:
        if held.entering[i] < held.entering[found[-1]]:
            found.append(i)
    return found


def _rules(n: Node) -> list[Rule]:
    """The ways to split a node."""
    shapes, outputs = tuple(v.shape for v in n.operands()), tuple(v.shape for v in n.outputs)
    return [
        r for r in OPS[n.op].rules(replaced(OPS[n.op], n.args, lambda v: v.shape), shapes, outputs)
        if not r.ranked and any(s.is_split for s in r.inputs) and not any(s.is_partial for s in r.inputs)
        and all(s is partial_sum or s.is_split for s in r.outputs)
    ]  # fmt: skip


def _said(n: Node, rule: Rule) -> Iterator[tuple[Value, Sbp]]:
    return zip((*n.operands(), *n.outputs), (*rule.inputs, *rule.outputs), strict=True)


def _layout(nodes: list[Node], rules: Mapping[Node, list[Rule]], lies: dict[Value, Sbp]) -> Layout:
    """The nodes that can be computed in slices if a value lies so, and how: from it on, forwards and backwards."""
    found: Layout = {}
    makers = {v: n for n in nodes for v in n.outputs}
    before = -1
    while before < len(found):
        before = len(found)
        for n in (*reversed(nodes), *nodes):
            if n in found or lies.keys().isdisjoint((*n.operands(), *n.outputs)):
                continue
            for r in rules[n]:
                said = list(_said(n, r))
                if all(lies.get(v, s) is s for v, s in said) and any(v in lies and s.is_split for v, s in said):
                    found[n] = (r,)
                    lies.update((v, s) for v, s in said if s.is_split or v in makers)
                    break
    return {n: found[n] for n in nodes if n in found}


def _nested(a: Rule, b: Rule) -> bool:
    """Whether the second rule splits what the first does, along the next dimension."""
    both = zip((*a.inputs, *a.outputs), (*b.inputs, *b.outputs), strict=True)
    return all(s.kind == t.kind and (not s.is_split or t.dim == s.dim + 1) for s, t in both)


def _counts(layout: Layout) -> Iterator[tuple[int, ...]]:
    """Into how many parts of one size all can be split; of two dimensions, the first into single indices."""
    sizes = [
        {v.shape[s.dim] for n, rs in layout.items() for v, s in _said(n, rs[level]) if s.is_split}.union(
            *(rs[level].even for rs in layout.values())
        )
        for level in range(len(next(iter(layout.values()))))
    ]
    *outer, inner = sizes
    if all(len(s) == 1 and min(s) > 1 for s in outer):
        above = tuple(map(min, outer))
        for count in COUNTS:
            if all(size % count == 0 for size in inner) and math.prod(above) * count <= COUNTS[-1]:
                yield *above, count


def _run(nodes: list[Node], first: int, end: int, layout: Layout) -> Run:
    """The nodes of a range that can run in slices one after the other: none needs the whole of what another makes."""
    inside: Layout = {}
    before, after = list[Node](), list[Node]()
    made, whole = set[Value](), set[Value]()  # in slices; only when all of them are done
    for n in nodes[first:end]:
        late = not whole.isdisjoint(n.operands())
        if n in layout and not late:
            inside[n] = layout[n]
            made.update(n.outputs)
            whole.update(v for v, s in zip(n.outputs, layout[n][0].outputs, strict=True) if s.is_partial)
        elif late or not made.isdisjoint(n.operands()):
            after.append(n)
            whole.update(n.outputs)
        else:
            before.append(n)
    return Run(first, end, inside, tuple(before), tuple(after))


def _bytes(held: Held, r: Run) -> tuple[float, float]:
    """The bytes held all the time while a run goes on, and those that are shared by its slices."""
    bytes_of, order = held.model.bytes, list(r.layout)
    lies = {v: s for n, (rule, *_) in r.layout.items() for v, s in zip(n.outputs, rule.outputs, strict=True)}
    after = {w for n in r.after for w in n.operands()}
    whole = {v for v, s in lies.items() if s.is_partial or held.read.get(v, 0) >= r.end or v in after}
    own = {v for v in lies if v not in whole and v not in held.root}
    always = held.entering[r.first] + sum(bytes_of(v) for n in r.before for v in n.outputs if v not in held.root)
    always += sum(bytes_of(v) * (2 - (lies[v].is_partial or dense(v, lies[v]))) for v in whole)
    passing = min(_consumed(held, r), sum(bytes_of(v) for v in whole if lies[v].is_split and dense(v, lies[v])))
    return always - passing, _peak(held, order, own) + passing


def _consumed(held: Held, r: Run) -> int:
    """The bytes that are there before a run and given back slice by slice."""
    apart, read = set[Value](), {held.rooted(v) for n in (*r.before, *r.after) for v in n.operands()}
    for n, (rule, *_) in r.layout.items():
        for v, s in zip(n.operands(), rule.inputs, strict=True):
            (apart if s.is_split and dense(v, s) else read).add(held.rooted(v))
    mine = (v for v in apart - read if v in held.first and held.first[v] < r.first and held.last[v] < r.end)
    return sum(map(held.model.bytes, mine))


def _peak(held: Held, nodes: list[Node], own: set[Value]) -> int:
    """The most bytes of some values that are held while their nodes run one after the other."""
    last = {held.rooted(v): i for i, n in enumerate(nodes) for v in (*n.operands(), *n.outputs)}
    ending = [0] * len(nodes)
    for v in own:
        ending[last[v]] += held.model.bytes(v)
    most = now = 0
    for i, n in enumerate(nodes):
        new = sum(held.model.bytes(v) for v in n.outputs if v in own)
        over = any(w in own and last[w] == i for w in map(held.rooted, overwrites(n.op, n.operands())))
        most = max(most, now + new * (not over))
        now += new - ending[i]
    return most


# ---- making again ----------------------------------------------------------------------------------------


def _there(job: Job, at: int) -> tuple[int, int]:
    """The run in slices that a node is in; the node alone, if it is in none."""
    first, end, number = at, at + 1, job.nodes[at].extra.get("slice")
    while number is not None and job.nodes[first - 1].extra.get("slice") == number:
        first -= 1
    while number is not None and job.nodes[end].extra.get("slice") == number:
        end += 1
    return first, end


def let_go(job: Job, held: Held, r: Run, budget: int) -> Held:
    """Let go of what is held all through a run, one value after another, until the run fits; the lifetimes then."""
    most = r.held
    while most > budget and (freed := remake(job, held, r.first, r.end)):
        most, held = most - freed, held.anew(job)
    return held


def remake(job: Job, held: Held, first: int, end: int) -> int:
    """Let go of a value that is held all through a run: make it again when it is read. Its bytes; 0 if none can be."""
    limit, rows = max(held.live[first:end]), []
    for v in held.through(first, end):
        if (found := _makers(held, v, end, limit)) is not None:
            size = held.model.bytes(v)
            rows.append((memory_budget.total(found[1]) / size, v.name, size, *found))
    if not rows:
        return 0
    _, _, size, at, makers = min(rows, key=lambda row: row[:2])
    table, known = dict[Value, Value](), list[Node]()
    for n in makers:
        known.append(copied(n, f".{at}", table))
        table.update(zip(n.outputs, known[-1].outputs, strict=True))
    nodes = [*held.nodes[:at], *known]
    for n in held.nodes[at:]:
        n.replace_operands(table)
        same = next((m for m in known if (m.op, m.args) == (n.op, n.args)), None)
        if same is None or "slice" in n.extra:
            nodes.append(n)
        else:
            table.update(zip(n.outputs, same.outputs, strict=True))
    job.rebuild(nodes)
    return size


def _makers(held: Held, v: Value, end: int, limit: float) -> tuple[int, list[Node]] | None:
    """Where a value is first read after a run, and the nodes to be repeated there, in order; None if it can't be."""
    nodes, readers = held.nodes, held.readers[v]
    at = readers[bisect_left(readers, end)]
    while "slice" in nodes[at].extra and nodes[at - 1].extra.get("slice") == nodes[at].extra["slice"]:
        at -= 1
    if at < end:
        return None
    made = {w for w in held.lying[v] if held.place[held.job.producer[w]] < at}
    later = (nodes[i] for i in readers[bisect_left(readers, at) :])
    found, todo = set[Node](), [w for n in later for w in n.operands() if w in made]
    while todo:
        w = todo.pop()
        n, root = held.job.producer[w], held.rooted(w)
        there = root in held.model.fixed or (root is not v and held.first.get(root, at) < at <= held.last[root])
        if there or n in found:
            continue
        if not _repeatable(n) or n.micro != nodes[at].micro or n.stage != nodes[at].stage or len(found) > REACH:
            return None
        found.add(n)
        todo += n.operands()
    makers = [nodes[i] for i in sorted(held.place[n] for n in found) if i < at]
    own = {w for n in makers for w in n.outputs if w not in held.root}
    changed = any(held.changed.get(w, at) < at for n in found for w in (*n.operands(), *n.outputs))
    if changed or held.entering[at] + _peak(held, makers, own) >= limit:
        return None
    return at, makers
