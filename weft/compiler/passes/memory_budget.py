"""A budget of memory: forward values are computed again in backward, the cheapest first, until the rest fits.

What a rank holds is estimated node by node, over the lifetimes of values: with each round, those that lie there at the
peak, and are read by backward only after it, are marked for `recompute` by the seconds that it costs per byte that it
frees. It ends when the estimate keeps to the budget, or nothing helps any more;
whoever asked looks at the plan, and asks for less where that holds more (`graph.budget`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from weft.compiler.layout import local_shape
from weft.compiler.local import SMALL, local_call, refs
from weft.compiler.options import Options
from weft.compiler.passes.layouts import work
from weft.compiler.passes.recompute import once
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.plan.call import Call, Place, Result, overwrites
from weft.plan.usage import meanwhile, show


def run(job: Job, options: Options) -> None:
    if not options.memory_budget:
        return
    model = Model(job)
    marked = {n for n in job.nodes if n.extra.get("checkpoint") and not once(n)}
    before = now = model.peak(marked)
    best = now.bytes, set(marked)
    while now.bytes > options.memory_budget and (found := model.chosen(now, marked, options.memory_budget)):
        marked |= found
        now = model.peak(marked)
        best = min(best, (now.bytes, set(marked)), key=lambda pair: pair[0])
    marked = best[1]
    again = [n for n in marked if not n.extra.get("checkpoint")]
    for n in again:
        n.extra["checkpoint"] = True
    if again:
        seconds = sum(work(n, n.signature) for n in again)
        job.reasons.append(
            f"{len(again)} nodes are computed again in backward, some {seconds * 1e3:.2f} ms: a rank would hold "
            f"{show(before.bytes)} (in {before.nodes[0].name}), and holds {show(best[0])}"
        )


def estimate(job: Job) -> int:
    """What a rank holds with what is marked already."""
    return Model(job).peak({n for n in job.nodes if n.extra.get("checkpoint") and not once(n)}).bytes


class Peak(NamedTuple):
    """The most that is held at once, and what of it is there for later. What has its place in the plan lies in the
    arena all along, so that its peak and that of what acts allocate beside it add up."""

    bytes: int
    nodes: tuple[Node, Node]  # of what has its place, and of what is made anew
    live: Mapping[Value, int]  # forward values that are read after that, and their bytes


class Model:
    """The lifetimes of a job's values on the rank that holds most: any of the first placement."""

    def __init__(self, job: Job) -> None:
        self.nodes = job.nodes
        self.cut = next((i for i, n in enumerate(job.nodes) if n.extra.get("backward")), len(job.nodes))
        self.maker = {v: n for n in job.nodes for v in n.outputs}
        self.root: dict[Value, Value] = {}
        self._needs: dict[Node, int] = {}
        self.fixed = {v for n in job.nodes if n.op in ("variable", "input", "source", "host") for v in n.outputs}
        for n in job.nodes:
            if n.op == "unpack" or (n.op in OPS and OPS[n.op].view):
                base: Any = n.args[0]
                base = self.root.get(base, base)
                self.root.update((v, base) for v in n.outputs)
        self.looking: dict[Value, set[Node]] = {}  # views, by whose memory they are in
        for v, root in self.root.items():
            self.looking.setdefault(root, set()).add(self.maker[v])
        self.kept = sum(map(self.bytes, self.fixed))

    def bytes(self, v: Value) -> int:
        return math.prod(self._shape(v)) * v.dtype.itemsize

    def timeline(self, marked: set[Node]) -> list[tuple[Node, list[tuple[Value, bool]], list[tuple[Value, bool]]]]:
        """The nodes in the order in which they run, with what they read and make: (value, whether made again)."""
        again: set[Value] = set()
        known = {v: n for n in marked for v in n.outputs}
        found = []

        def reads(n: Node) -> list[tuple[Value, bool]]:
            return [(v, v in again) for v in n.operands()]

        for i, node in enumerate(self.nodes):
            if i >= self.cut:
                todo = [v for v in node.operands() if v in known and v not in again]
                while todo:
                    maker = known[todo[-1]]
                    missing = [v for v in maker.operands() if v in known and v not in again]
                    if missing:
                        todo += missing
                        continue
                    todo.pop()
                    if maker.outputs[0] not in again:
                        found.append((maker, reads(maker), [(v, True) for v in maker.outputs]))
                        again.update(maker.outputs)
            found.append((node, reads(node), [(v, False) for v in node.outputs]))
        return found

    def peak(self, marked: set[Node]) -> Peak:
        steps = self.timeline(marked)
        last: dict[tuple[Value, bool], int] = {}
        for i, (_, reads, makes) in enumerate(steps):
            for key in (*reads, *makes):
                last[self._memory(key)] = i
        ending: dict[int, list[tuple[Value, bool]]] = {}
        for key, i in last.items():
            ending.setdefault(i, []).append(key)
        held, most, at = [0, 0], [0, 0], [0, 0]
        for i, (node, reads, makes) in enumerate(steps):
            pool = int(self.allocates(node))
            new = sum(self._own(key) for key in makes)
            over = overwrites(node.op) and any(last[k] == i and self._own(k) == new for k in map(self._memory, reads))
            now = held[pool] + (max(new, self._meanwhile(node)) if pool else new * (not over))
            if now > most[pool]:
                most[pool], at[pool] = now, i
            held[pool] += new
            for key in ending.get(i, ()):
                held[int(self.allocates(self.maker[key[0]]))] -= self._own(key)
        live: dict[Value, int] = {}
        for n in self.nodes[: self.cut]:
            for v in n.outputs:
                gone = last.get((v, False), 0)
                if v not in self.root and gone > at[int(self.allocates(n))]:
                    live[v] = self._own((v, False))
        return Peak(self.kept + sum(most), (steps[at[0]][0], steps[at[1]][0]), live)

    def allocates(self, n: Node) -> bool:
        """Whether its results are made anew in each act."""
        if n.op not in OPS or OPS[n.op].out_kernel is not None:
            return False
        return any(self.bytes(v) > SMALL for v in n.outputs) or not n.outputs

    def _meanwhile(self, n: Node) -> int:
        """What a kernel that makes its own results needs while it runs."""
        if n not in self._needs:
            self._needs[n] = 0
            if OPS[n.op].random or sum(map(self.bytes, (*n.operands(), *n.outputs))) > SMALL:
                forms = {v.name: Result(v.name, v.dtype.name, self._shape(v), Place("made")) for v in n.operands()}
                made = tuple(Result(v.name, v.dtype.name, self._shape(v), Place("made")) for v in n.outputs)
                args, options = local_call(n, self._rank(n))
                self._needs[n] = meanwhile(Call(n.op, refs(args), made, options), forms)
        return self._needs[n]

    def _rank(self, n: Node) -> int:
        return next((v.spec.placement.members[0] for v in (*n.operands(), *n.outputs) if v.spec is not None), 0)

    def _shape(self, v: Value) -> tuple[int, ...]:
        return local_shape(v, v.spec.placement.members[0] if v.spec is not None else 0)

    def _memory(self, key: tuple[Value, bool]) -> tuple[Value, bool]:
        """Whose memory a value is in."""
        v, again = key
        return (self.root.get(v, v), again) if self.root.get(v, v) not in self.fixed else (self.root.get(v, v), False)

    def _own(self, key: tuple[Value, bool]) -> int:
        v, _ = key
        return 0 if v in self.fixed or v in self.root else self.bytes(v)

    def chosen(self, now: Peak, marked: set[Node], budget: int) -> set[Node]:
        """What to compute again besides, for what is held at the peak to come down to the budget; nothing if there is
        nothing to choose from."""
        rows = []
        for v, size in now.live.items():
            n = self.maker[v]
            if n in marked or n.extra.get("backward") or once(n) or n.op not in OPS or not n.outputs:
                continue
            longer = sum(
                self._own((self.root.get(w, w), False)) for w in dict.fromkeys(n.operands())
                if self.root.get(w, w) not in now.live and self.maker[w] not in marked
            )  # fmt: skip
            freed = size - longer
            if freed > 0:
                rows.append((work(n, n.signature) / freed, freed, n))
        found: set[Node] = set()
        excess = now.bytes - budget
        for _, freed, n in sorted(rows, key=lambda row: row[:2]):
            if excess <= 0:
                break
            found |= {n, *self._views(n)}
            excess -= freed
        return found

    def _views(self, n: Node) -> set[Node]:
        """What looks at a node's results: it is made again with them."""
        mine = {w for v in n.outputs for w in self.looking.get(v, ())}
        return {w for w in mine if not w.extra.get("backward")}
