"""`flow.explain()`: list the movements of eager global tensors, those of launches of graphs, and other collectives and
messages, with lines of the program and reasons; or, `strict`, refuse implicit movements, also while a graph is traced.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from weft.boxing import signature
from weft.boxing.network import links_of
from weft.boxing.planner import cost_of
from weft.boxing.routes import Route
from weft.boxing.steps import AxisStep, Exchange
from weft.core.amount import amount
from weft.core.dispatch import here
from weft.core.errors import SbpError
from weft.core.program_line import Line, line
from weft.core.rank import current
from weft.core.sbp import show
from weft.core.spec import Spec
from weft.ops.declaration import Op
from weft.plan.calls import Call, Result
from weft.plan.plan import Plan, Task
from weft.transport import transport_of
from weft.transport.watching import Sent, watched
from weft.vm.instruction import Instruction
from weft.vm.machine import issued_at, vm_of
from weft.vm.trace import MOVEMENTS, listening, of_a_whole, recording, sent


class Movement(NamedTuple):
    """One movement of a global tensor from a layout to another."""

    what: str  # the op, or to_global
    planned: bool  # whether the program asked for it
    route: Route
    moved: int  # bytes, by the rank that moves most
    line: Line | None
    seconds: float
    reason: Callable[[], str]

    @property
    def why(self) -> str:
        """Why it was moved, worked out when it is asked for."""
        return self.reason()

    @property
    def src(self) -> Spec:
        return self.route.src

    @property
    def dst(self) -> Spec:
        return self.route.dst

    @property
    def peers(self) -> tuple[int, ...]:
        """The ranks that communicate, this one included; empty if each rank works alone."""
        rank, found = current().index, set[int]()
        for step, before in zip(self.route.steps, self.route.states(), strict=False):
            if isinstance(step, AxisStep) and not step.local and rank in before.placement:
                found.update(before.placement.group(rank, step.axis))
            elif isinstance(step, Exchange):
                found.update(self.src.placement.members, self.dst.placement.members)
        return tuple(sorted(found))

    def __str__(self) -> str:
        src, dst = self.route.src, self.route.dst
        why = self.why
        form = f"{src.dtype.name}[{','.join(map(str, src.shape))}]"
        to = f"{show(dst.nd_sbp)}" if src.placement is dst.placement else f"{dst.placement} {show(dst.nd_sbp)}"
        return (
            f"{amount(self.moved):>9}  {form} {src.placement} {show(src.nd_sbp)} -> {to}: "
            f"{', '.join(map(str, self.route.steps)) or 'nothing moves'}, for {self.what}"
            + f", {why}" * bool(why) + (f"    # {self.line.brief}" if self.line is not None else "")
        )  # fmt: skip


# Layouts before and after; and the bytes that a ring of n members carries, of those that this one gives.
COLLECTIVES: Final[dict[str, tuple[str, Callable[[int], float]]]] = {
    "all_reduce": ("(P) -> (B)", lambda n: 2 * (n - 1) / n),
    "begin_all_reduce": ("(P) -> (B)", lambda n: 2 * (n - 1) / n),
    "all_gather": ("(S) -> (B)", lambda n: n - 1),
    "reduce_scatter": ("(P) -> (S)", lambda n: (n - 1) / n),
    "all_to_all": ("(S) -> (S)", lambda n: (n - 1) / n),
    "broadcast": ("one rank's -> (B)", lambda n: 1),
    "exchange": ("messages", lambda n: 1),
    "copy": ("message", lambda n: 1),  # to the next stage of a pipeline
}


class Collective(NamedTuple):
    """A collective or a message of local tensors, which the program, or a wrapper of its modules, asked for; or one in
    a launch of a graph."""

    what: str
    moved: int  # bytes
    peers: tuple[int, ...]  # the ranks that communicate, this one included
    line: Line | None
    why: str
    planned: bool = True

    def __str__(self) -> str:
        return (
            f"{amount(self.moved):>9}  ranks {', '.join(map(str, self.peers))} {COLLECTIVES[self.what][0]}: {self.what}"
            + f", for {self.why}" * bool(self.why) + (f"    # {self.line.brief}" if self.line is not None else "")
        )  # fmt: skip


class explain:
    """Record the movements of this rank's eager global tensors inside, and other collectives and messages; print it.
    With `strict`, implicit movements between ranks raise: only `to_global` moves.

    >>> P = flow.placement("cpu", ranks=[0])
    >>> x = flow.ones(4, 2, placement=P, sbp=flow.sbp.split(0))
    >>> with flow.explain() as moved:
    ...     y = x.to_global(sbp=flow.sbp.broadcast)
    >>> [(m.what, m.planned) for m in moved.movements]
    [('to_global', True)]
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.movements: list[Movement | Collective] = []
        self._inside = contextlib.ExitStack()

    def __enter__(self) -> explain:
        self._inside.enter_context(watched(transport_of(), self._sent))
        self._inside.enter_context(listening(current(), self))
        self._inside.enter_context(recording(vm_of(), self))
        return self

    def __exit__(self, *error: Any) -> None:
        self._inside.__exit__(*error)

    def heard(self, movement: Movement) -> None:
        self.movements.append(movement)

    def _sent(self, sent: Sent) -> None:
        if sent.size and not of_a_whole(sent):
            self._collective(sent.name, sent.size, sent.ranks, issued_at(vm_of()), sent.why)

    def _collective(self, name: str, size: int, ranks: tuple[int, ...], at: Line | None, why: str) -> None:
        if len(ranks) > 1:
            moved = round(size * COLLECTIVES[name][1](len(ranks)))
            self.movements.append(Collective(name, moved, ranks, at, why))

    def record(self, instruction: Instruction) -> None: ...
    def act(self, plan: str, task: Task, start: int, end: int) -> None: ...

    def calls(self, plan: Plan, forms: Mapping[str, Result], calls: Sequence[Call], times: Sequence[int]) -> None:
        """Note what moves in an act of a graph."""
        for call in calls:
            if peers := plan.peers(call):
                scope, _, place = call.at.rpartition(", ")
                file, _, number = place.rpartition(":")
                at = Line(file, int(number), scope) if number.isdecimal() else None
                why = f"{call.name} of graph {plan.name}"
                self._collective(call.op.removeprefix("box."), sent(plan, call, forms), peers, at, why)

    def __str__(self) -> str:
        total = sum(m.moved for m in self.movements)
        return "\n".join([f"{amount(total):>9}  moved by each rank, at most", *map(str, self.movements)])


def strict() -> bool:
    """Whether implicit movements are refused here."""
    return any(each.strict for each in current().resources.get(MOVEMENTS, ()))


def refuse(route: Route, what: str) -> None:
    """Raise if a route moves bytes between ranks. What a rank does alone, as taking its slice, costs no more than an
    op, and backward is full of it."""
    if not _bytes(route):
        return
    src, dst = route.src, route.dst
    raise SbpError(
        f"{what}: an operand {src} would be moved to {show(dst.nd_sbp)} of {dst.placement}, by "
        f"{', '.join(map(str, route.steps))}, and nothing in the program asks for that: "
        f"flow.explain(strict=True). Say it: x.to_global(placement={dst.placement!r}, sbp={list(dst.nd_sbp)!r})"
    )


def _bytes(route: Route) -> int:
    """The bytes that the rank moves which moves most."""
    return round(cost_of(route, links_of(current())).moved)


def moving(route: Route, what: str, planned: bool, args: tuple[Any, ...], op: Op | None, run: Callable[[], Any]) -> Any:
    """Move a tensor along a route, and report it to the observers."""
    open_now: list[Any] | None = current().resources.get(MOVEMENTS)
    if not open_now:
        return run()
    if not planned and strict():
        refuse(route, what)
    start = time.perf_counter()
    before, here.moving = here.moving, True
    try:
        result = run()
    finally:
        here.moving = before
    took = time.perf_counter() - start
    why = str if op is None else functools.partial(signature.reason, op, args, links_of(current()), None, here.backward)
    moved = Movement(what, planned, route, _bytes(route), line(), took, why)
    for each in open_now:
        each.heard(moved)
    return result
