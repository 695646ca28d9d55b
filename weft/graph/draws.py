"""The random draws of a compiled graph on one rank: the same numbers as in the eager program.

If one chain makes all the draws of the job, it draws directly from the generators. Otherwise (several stages, or draws
in several chains) the source of a launch advances the generators past all draws in program order, for every
micro-batch, and records the state at each; this rank's draws are made later from these states.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from weft.boxing.part import device_of, pass_over
from weft.compiler import chains
from weft.compiler.local_node import local_call
from weft.compiler.lower import Lowered
from weft.compiler.options import Options
from weft.compiler.streams import streams_of
from weft.core import random
from weft.core.errors import CompileError
from weft.core.random import Launched, Source
from weft.core.rank import Rank
from weft.job.job import Job
from weft.job.memory_order import alike, lies
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.plan.calls import Call, Step
from weft.tensor.blob import Blob

if TYPE_CHECKING:
    from weft.runtime.actor import Turn

Point = tuple[int, Node]  # a draw of a micro-batch


def steps_of(job: Job) -> list[Node]:
    """The nodes that draw, seed and fork, in program order."""
    return [n for n in job.nodes if n.op == "steer" or n.draws]


def check(job: Job, world_size: int, options: Options) -> None:
    """Refuse draws by rejection, which advance the generator by an amount that depends on data, unless all ranks make
    them, in one chain."""
    drawing = [n for n in steps_of(job) if n.op != "steer"]
    by_data = [n for n in drawing if OPS[n.op].rejection]
    if not by_data:
        return

    def keys(streams: Mapping[Node, str]) -> set[chains.Key]:
        chains_of = chains.assign(job, streams)
        return {chains_of[n][0] for n in drawing}

    places = [k.placement for k in keys({})]
    if len(places) > 1 or any(p is not None and len(p.members) < world_size for p in places):
        why = (
            "not every rank of the graph sees that data when it is to draw, so that ranks would go on from different "
            "places"
        )
        otherwise = "on one placement of all ranks, in one stage"
    elif len(keys(streams_of(job, options))) > 1:
        why = (
            "among the draws of the graph lies a collective between hosts, or a copy to a device, beside which others "
            "run: they would come in another order than in the program"
        )
        otherwise = "before it, or all behind it"
    else:
        return
    raise CompileError(
        f"graph {job.name}: {by_data[0].name} takes as many random numbers as its data asks for, and {why}. Draw "
        f"outside of the graph (x = flow.{by_data[0].op}(...)) and give it to build(), or let all draws of the graph "
        f"lie {otherwise}"
    )


class Draws:
    """`ahead`: generators are advanced when a launch begins, and draws are made from the recorded states."""

    def __init__(self, lowered: Lowered, rank: Rank) -> None:
        job, self.rank = lowered.job, rank
        self.steps, self.phases = steps_of(job), job.micro_batches
        self.sources: list[Source] = list(dict.fromkeys(n.extra["source"] for n in self.steps))
        self.pending = tuple(map(_pending, self.sources))  # a launch writes them: later draws wait for it
        self.effects = {s: self._effect(s) for s in self.sources}
        self.together = any(v.spec is not None for n in self.steps for v in n.outputs)
        drawing = [n for n in self.steps if n.op != "steer"]
        here = [
            {c.name for c in t.step.calls} for t in lowered.plan.tasks
            if any(c.op in OPS and OPS[c.op].random for c in t.step.calls)
        ]  # fmt: skip
        self.named = {n.name: n for n in drawing}
        self.ahead = bool(self.steps) and not (len(here) == 1 and {n.name for n in drawing} <= here[0])
        self.last = self.steps[-1] if self.steps else None
        self.beside: dict[Node, tuple[list[Node], list[Node]]] = {}  # what steers before each draw, after the last one
        steers: list[Node] = []
        for n in self.steps:
            steers.append(n)
            if n.op != "steer":
                self.beside[n], steers = (steers[:-1], []), []
        if drawing:
            self.beside[drawing[-1]][1].extend(steers)
        self.mine = {n for n in drawing if any(n.name in names for names in here)}
        self.calls = {n: self._call(n) for n in drawing}
        self.own = Launched(random.of(rank).on)
        self.states: collections.deque[dict[Point, torch.Tensor]] = collections.deque()  # of the launches under way
        self.first = 0  # the number of the first of these launches
        self.turn = (0, 0)  # the launch, counted from there, and the micro-batch of the chain that is running
        self.forks: list[tuple[int, dict[torch.device, torch.Tensor]]] = []

    def _call(self, n: Node) -> tuple[Callable[[], None], Source, torch.device]:
        """How to advance past a draw, its source and its device."""
        args, _ = local_call(n, self.rank.index)
        y, source = n.outputs[0], n.extra["source"]
        device = y.device.torch if y.spec is None else device_of(y.spec.placement).torch
        source.on(device)  # made while its seed is what it is
        return partial(pass_over, OPS[n.op], args, [(v.shape, v.dtype) for v in n.operands()], device), source, device

    def _effect(self, source: Source) -> tuple[int | None, int]:
        """A launch's effect on a source: the last seed that it sets, if any, and the number of draws since."""
        seed, draws = None, 0
        before: list[tuple[int | None, int]] = []
        for n in [n for n in self.steps if n.extra["source"] is source] * self.phases:
            verb, value = n.args if n.op == "steer" else ("draw", None)
            if verb == "draw":
                draws += 1
            elif verb == "seed":
                seed, draws = value % 2**64, 0
            elif verb == "fork":
                before.append((seed, draws))
            else:
                seed, draws = before.pop()
        return seed, draws

    # ---- launching -------------------------------------------------------------------------------------

    def launched(self) -> None:
        """Count a launch's draws when it is called, as eager ones are counted."""
        if self.together:
            random.of(self.rank).met = self.sources[0].fingerprint
        for source, (seed, draws) in self.effects.items():
            if seed is None:
                source.draws += draws
            else:
                source.seed, source.draws = seed, draws

    def begin(self) -> None:
        """A launch begins, in order: record the states of its draws."""
        if self.ahead:
            self.states.append(self._passed_over())

    def end(self) -> None:
        if self.ahead:
            self.states.popleft()
            self.first += 1

    def _passed_over(self) -> dict[Point, torch.Tensor]:
        found: dict[Point, torch.Tensor] = {}
        for phase in range(self.phases):
            for n in self.steps:
                if n.op == "steer":
                    self._steer(n)
                    continue
                call, source, device = self.calls[n]
                if n in self.mine:
                    found[phase, n] = source.on(device).get_state()
                with random.drawing_from(Launched(source.on)):
                    call()
        return found

    # ---- in chains -------------------------------------------------------------------------------------

    def chain(self, act: Callable[[Turn], None], acts: int) -> Callable[[Turn], None]:
        """Wrap the act of a chain that draws."""

        def drawing(turn: Turn) -> None:
            self.turn = turn.act // acts - self.first, turn.act % acts
            with random.drawing_from(self.own):
                act(turn)

        return drawing

    def kernel(self, call: Call, kernel: Callable[..., Any], known: Mapping[str, torch.Tensor]) -> Callable[..., Any]:
        """A draw's kernel, with operands in their eager memory order."""
        n = self.named[call.name]
        strides = n.extra["strides"]
        given = [v.name for v in n.operands()]
        if all(s is None or (v in known and lies(known[v], s)) for v, s in zip(given, strides, strict=True)):
            return kernel
        places = [i for i, a in enumerate(n.args) if isinstance(a, Value)]
        apart = [
            alike(v.shape, [v.meta.new_empty_strided(v.shape, s)]) for v, s in zip(n.operands(), strides, strict=True)
        ]

        def ordered(*args: Any, **options: Any) -> Any:
            given = list(args)
            for i, s, own in zip(places, strides, apart, strict=True):
                if not lies(given[i], s):
                    given[i] = given[i].new_empty_strided(given[i].shape, own).copy_(given[i])
            return kernel(*given, **options)

        return ordered

    def generators(self, step: Step, device: torch.device) -> list[torch.Generator] | None:
        """The generators from which a chain draws; None if they are set to other states in between."""
        calls = [c for c in step.calls if c.op in OPS and OPS[c.op].random]
        if any(self._around(self.named[c.name]) is not None for c in calls):
            return None
        return [random.of(self.rank).on(device)] if calls else []

    def text(self, name: Callable[[str, Any], str], call: Call, text: str) -> str:
        """The source text of a draw: it draws the whole, and keeps a copy of this rank's slice."""
        around, part = self._around(self.named[call.name]), call.option("part")
        if around is not None:
            text = f"{name('draw', around)}(lambda: {text})"
        return text if part is None else f"{text}[{name('part', part)}].clone()"

    def _around(self, n: Node) -> Callable[[Callable[[], Any]], Any] | None:
        source, device = self.calls[n][1:]
        if self.ahead:
            return partial(self._again, n, torch.Generator(device))
        before, after = self.beside[n]
        if not (before or after) and source is random.of(self.rank):
            return None
        return partial(self._among, before, Launched(source.on), after)

    def _among(self, before: list[Node], source: Launched, after: list[Node], make: Callable[[], Any]) -> Any:
        for n in before:
            self._steer(n)
        with random.drawing_from(source):
            made = make()
        for n in after:
            self._steer(n)
        return made

    def _again(self, n: Node, scratch: torch.Generator, make: Callable[[], Any]) -> Any:
        launch, phase = self.turn
        scratch.set_state(self.states[launch][phase, n])
        with random.drawing_from(Launched(lambda device: scratch)):
            return make()

    def _steer(self, n: Node) -> None:
        (verb, seed), source = n.args, n.extra["source"]
        if verb == "seed":
            source.reseed(seed)
        elif verb == "fork":
            self.forks.append((source.seed, source.states()))
        else:
            source.set_states(*self.forks.pop())


def _pending(source: Source) -> Blob:
    if source.pending is None:
        source.pending = Blob(torch.empty(0))
    return source.pending
