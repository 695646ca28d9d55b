"""A memory budget: forward values are recomputed in backward, the cheapest first, until the peak fits.

A rank's memory is estimated node by node from the lifetimes of values. In each round, values that are live at the peak,
and read by backward only after it, are marked for `recompute`, by seconds per byte freed. It ends when the estimate is
within the budget, or nothing helps any more; the caller checks the plan, and asks for less if that takes more
(`graph.budget`).

Without a budget the same is done for large values, at a negligible share of the step's time; but not where Inductor is
asked for speed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import torch

from weft.compiler import inductor
from weft.compiler.local_node import SMALL, local_call, refs
from weft.compiler.options import Options
from weft.compiler.passes.early_updates import divisible, large
from weft.compiler.passes.layouts import work
from weft.compiler.passes.recompute_activations import repeatable
from weft.core.amount import amount
from weft.job.job import SPECIAL, Job
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.plan.calls import Call, Place, Result
from weft.plan.overwriting import overwrites
from weft.plan.scratch import meanwhile

SHARE: Final = 0.015  # of a step's estimated time (measured: up to 0.03), for recompute without a budget
LARGE: Final = 1 << 18  # least bytes of a value recomputed without a budget
STEP: Final = 32  # within a budget, a round lowers what is held by one in so many parts at most
MOST: Final = 8  # nodes recomputed together
CALL: Final = 5e-6  # seconds of overhead of a call


def budget_of(options: Options) -> int:
    """The budget in bytes; 0 if there is none."""
    return options.memory_budget


def run(job: Job, options: Options) -> None:
    budget = budget_of(options)
    if not budget and (inductor.asked(options) or len(ranks(job)) > 1 or not _worthwhile(job)):
        return
    marked, models = asked(job), [Model(job, rank) for rank in ranks(job)]
    left = math.inf if budget else SHARE * total(job.nodes, _threads(job))
    before, model = _most(models, marked)
    now, best = before, (before.bytes, marked)
    step = before.bytes / STEP if budget else math.inf
    while now.bytes > budget and (found := model.chosen(now, marked, budget, left, step)):
        marked = marked | found
        left -= total(found)
        now, model = _most(models, marked)
        best = min(best, (now.bytes, marked), key=lambda pair: pair[0])
    again, job.held = best[1] - asked(job), best[0]
    for n in again:
        n.extra["checkpoint"] = True
    if again:
        job.reasons.append(
            f"{len(again)} nodes are computed again in backward, some {total(again) * 1e3:.2f} ms: a rank "
            f"would hold {amount(before.bytes)} (in {before.nodes[0].name}), and holds {amount(best[0])}"
        )


def estimate(job: Job) -> int:
    """The estimated peak of the rank that holds most, with the nodes marked so far."""
    return _most([Model(job, rank) for rank in ranks(job)], asked(job))[0].bytes


def asked(job: Job) -> set[Node]:
    """The nodes that the program marked for recompute."""
    return {n for n in repeatable(job) if n.extra.get("checkpoint")}


def ranks(job: Job) -> list[int]:
    """One rank of each placement: all members hold about the same."""
    return sorted({v.spec.placement.members[0] for n in job.nodes for v in n.outputs if v.spec is not None}) or [0]


def _worthwhile(job: Job) -> bool:
    """Whether there is a large value, and a backward that could recompute it."""
    made = (v for n in job.nodes if n.op in OPS and not OPS[n.op].view for v in n.outputs)
    return any(n.extra.get("backward") for n in job.nodes) and any(v.bytes > LARGE for v in made)


def seconds(n: Node, threads: int = 1) -> float:
    return work(n, n.signature, threads) + CALL * (not OPS[n.op].view) if n.op in OPS else 0.0


def total(nodes: Iterable[Node], threads: int = 1) -> float:
    """Their seconds, added exactly: each rank has them in another order, and all must choose alike."""
    return math.fsum(seconds(n, threads) for n in nodes)


def _threads(job: Job) -> int:
    """The threads that share products on the CPU: one if other ranks, which may have others, must choose alike."""
    values = [v for n in job.nodes for v in n.outputs]
    own = all(v.spec is None and v.device_type == "cpu" for v in values)
    return torch.get_num_threads() if own else 1


def _most(models: list[Model], marked: set[Node]) -> tuple[Peak, Model]:
    return max(((m.peak(marked), m) for m in models), key=lambda found: found[0].bytes)


class Peak(NamedTuple):
    """The peak of memory, and the values held then for later. Planned values are in the arena all the time, so their
    peak and the peak of what acts allocate besides add up."""

    bytes: int
    nodes: tuple[Node, Node]  # at the peak of planned memory, and of allocated
    live: Mapping[Value, int]  # forward values that are read after that, and their bytes


class Model:
    """The lifetimes of a job's values on one rank. Values on other ranks take no memory here."""

    def __init__(self, job: Job, rank: int = 0, copied: int = SMALL, like: Model | None = None) -> None:
        self.job, self.nodes, self.rank, self.copied = job, job.nodes, rank, copied
        self.cut = next((i for i, n in enumerate(job.nodes) if n.extra.get("backward")), len(job.nodes))
        self.maker = {v: n for n in job.nodes for v in n.outputs}
        self.root: dict[Value, Value] = {}
        self._needs: dict[Node, int] = {} if like is None else like._needs  # of nodes, whose forms don't change
        self._sizes: dict[Value, int] = {} if like is None else like._sizes
        self.fixed = {v for n in job.nodes if n.op in ("variable", "input", "source", "host") for v in n.outputs}
        for n in job.nodes:
            if n.op == "unpack" or n.view:
                base: Any = n.args[0]
                base = self.root.get(base, base)
                self.root.update((v, base) for v in n.outputs)
        self.looking: dict[Value, set[Node]] = {}  # the views of each value
        for v, root in self.root.items():
            self.looking.setdefault(root, set()).add(self.maker[v])
        self.kept = sum(map(self.bytes, self.fixed))
        self.early = {n: {n.args[1][i] for i in large(n)} for n in job.nodes if divisible(n, job)}

    @functools.cached_property
    def lasting(self) -> set[Node]:
        return repeatable(self.job)

    def bytes(self, v: Value) -> int:
        if v not in self._sizes:
            there = v.spec is None or self.rank in v.spec.placement
            self._sizes[v] = v.local_bytes(self.rank) if there else 0
        return self._sizes[v]

    def timeline(self, marked: set[Node]) -> list[tuple[Node, list[tuple[Value, bool]], list[tuple[Value, bool]]]]:
        """The nodes in the order in which they run, with what they read and make: (value, whether made again)."""
        again: set[Value] = set()
        known = {v: n for n in marked for v in n.outputs}
        found = []

        def reads(n: Node) -> list[tuple[Value, bool]]:
            early = self.early.get(n, ())
            return [(v, v in again) for v in n.operands() if v not in early]

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
            over = any(last[k] == i and self._own(k) == new for k in map(self._memory, overwrites(node.op, reads)))
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
        """Whether its results are allocated in each act."""
        if n.op in SPECIAL or OPS[n.op].out_kernel is not None:
            return False
        return any(self.bytes(v) > self.copied for v in n.outputs) or not n.outputs

    def transient(self, n: Node) -> int:
        """What a kernel allocates besides results that stay."""
        if n.op in SPECIAL or OPS[n.op].view:
            return 0
        return max(0, self._meanwhile(n) - self.allocates(n) * sum(map(self.bytes, n.outputs)))

    def forget(self, n: Node) -> None:
        """Measure a node anew, whose arguments have changed."""
        self._needs.pop(n, None)

    def _meanwhile(self, n: Node) -> int:
        """The scratch memory of a kernel that allocates its results."""
        if n not in self._needs:
            self._needs[n] = 0
            if sum(map(self.bytes, (*n.operands(), *n.outputs))) > (0 if OPS[n.op].random else SMALL):
                made, planned = Place("made"), Place("made" if self.allocates(n) else "arena")
                forms = {v.name: self._result(v, made) for v in n.operands()}
                args, options = local_call(n, self.rank)
                results = tuple(self._result(v, planned) for v in n.outputs)
                self._needs[n] = meanwhile(Call(n.op, refs(args), results, options), forms)
        return self._needs[n]

    def _result(self, v: Value, place: Place) -> Result:
        return Result(v.name, v.dtype.name, v.local_shape(self.rank), place)

    def _memory(self, key: tuple[Value, bool]) -> tuple[Value, bool]:
        """The value in whose memory a value lies: itself, or the base of a view."""
        v, again = key
        return (self.root.get(v, v), again) if self.root.get(v, v) not in self.fixed else (self.root.get(v, v), False)

    def _own(self, key: tuple[Value, bool]) -> int:
        v, _ = key
        return 0 if v in self.fixed or v in self.root else self.bytes(v)

    def chosen(self, now: Peak, marked: set[Node], budget: int, left: float, most: float) -> set[Node]:
        """The nodes to recompute besides, so that the peak comes down to the budget within the seconds left, by so much
        at most; empty if there is no choice."""
        rows = []
        for v, size in now.live.items():
            n = self.maker[v]
            if n.extra.get("backward") or not self._repeatable(n, marked):
                continue
            longer = sum(self._own((w, False)) for w in self._missing(n, now, marked))
            for freed, nodes in ((size - longer, {n}), (size, self._anew(n, now, marked))):
                if freed > (0 if math.isinf(left) else LARGE) and nodes:
                    rows.append((total(nodes) / freed, freed, n.name, nodes))
        found: set[Node] = set()
        excess = min(now.bytes - budget, most)
        for _, freed, _, nodes in sorted(rows, key=lambda row: row[:3]):
            cost = total(nodes - found)
            if excess <= 0:
                break
            if nodes - found and cost <= left:
                found.update(*({n, *self._views(n)} for n in nodes))
                excess -= freed
                left -= cost
        return found

    def _repeatable(self, n: Node, marked: set[Node]) -> bool:
        """Whether a node may be recomputed: movements between ranks may not."""
        return n not in marked and n.op not in SPECIAL and n in self.lasting and bool(n.outputs)

    def _missing(self, n: Node, now: Peak, marked: set[Node]) -> dict[Value, None]:
        """The operands of a node that would be freed by the time of recompute."""
        roots = {self.root.get(w, w): self.maker[w] for w in n.operands()}
        return {
            w: None for w, maker in roots.items() if w not in now.live and w not in self.fixed and maker not in marked
        }

    def _anew(self, n: Node, now: Peak, marked: set[Node]) -> set[Node]:
        """A node and its producers to be recomputed with it, so that nothing is kept longer; empty if these are many,
        or can't be repeated."""
        found, todo = set[Node](), [n]
        while todo:
            n = todo.pop()
            if n in found:
                continue
            if len(found) == MOST or not self._repeatable(n, marked):
                return set()
            found.add(n)
            todo += (self.maker[w] for w in self._missing(n, now, marked))
        return found

    def _views(self, n: Node) -> set[Node]:
        """The views of a node's results, which are remade with them."""
        mine = {w for v in n.outputs for w in self.looking.get(v, ())}
        return {w for w in mine if not w.extra.get("backward")}
