"""A model checker: try every order in which messages arrive and acts begin and end, with the runtime's actors.

Messages from one actor to another keep their order; nothing else is assumed, no streams and no clock. In every
reachable state three invariants are checked, by counting acts alone: no copy is written that may still be read, none is
read before it is written, and copies are used in ring order. And from every state the run ends: all is launched,
finished and drained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from weft.core.errors import CompileError
from weft.plan.plan import Plan, Register, Task
from weft.runtime.actor import ACTING, DONE, DRAINING, Actor, Turn
from weft.runtime.message import END, FOREVER, KINDS, LAUNCH, NONE, Message

Make = Callable[[Task, Mapping[int, Register]], Actor]
_OUTSIDE = -1


class Explored(NamedTuple):
    """How much was explored."""

    states: int
    steps: int


class _World:
    """A state: the actors, and the messages in flight between them."""

    def __init__(
        self, actors: dict[int, Actor], queues: dict[tuple[int, int], tuple[Message, ...]], closed: bool
    ) -> None:
        self.actors, self.queues, self.closed = actors, queues, closed

    def key(self) -> object:
        counts = tuple((a.acts, a.snapshot()) for a in self.actors.values())
        return counts, tuple(sorted((k, q) for k, q in self.queues.items() if q)), self.closed

    def say(self, sender: int, messages: Iterable[Message]) -> None:
        for m in messages:
            self.queues[sender, m.to] = (*self.queues.get((sender, m.to), ()), m)


def explore(plans: Plan | Iterable[Plan], *, launches: int = 1, limit: int = 100_000, make: Make = Actor) -> Explored:
    """Raise CompileError with the path there if an order breaks an invariant or deadlocks; `limit` caps the states."""
    given = (plans,) if isinstance(plans, Plan) else tuple(plans)
    registers = {r.id: r for p in given for r in p.registers}
    tasks = {t.id: t for p in given for t in p.tasks}
    invariants = _Invariants(tasks, registers)

    def fork(world: _World, *changing: int) -> _World:
        actors = dict(world.actors)
        for id in changing:
            actors[id] = make(tasks[id], registers)
            actors[id].assume(world.actors[id])
        return _World(actors, dict(world.queues), world.closed)

    first = _World({id: make(t, registers) for id, t in tasks.items()}, {}, False)
    for t in tasks.values():
        if not t.consumes:
            first.say(_OUTSIDE, [Message(LAUNCH, t.id, NONE, FOREVER if t.ahead else launches * t.acts)])
    came: dict[object, tuple[object, str]] = {first.key(): (None, "")}
    stack, steps = [first], 0

    def story(key: object, last: str) -> str:
        way = [last] if last else []
        while (step := came[key])[0] is not None:
            way.append(step[1])
            key = step[0]
        return "; ".join(reversed(way))

    while stack:
        world = stack.pop()
        key = world.key()
        steps_here = list(_steps(world, tasks, launches))
        if not steps_here and not all(a.state is DONE for a in world.actors.values()):
            lacks = [f"{a.task.name} lacks {r.name}" for a in world.actors.values() for r, _ in a.waits_for()]
            raise CompileError(f"it stands still, {', '.join(lacks) or 'not drained'}. The way there: {story(key, '')}")
        for what, changing in steps_here:
            steps += 1
            following = fork(world, *changing)
            try:
                said = _do(following, what, changing, invariants)
            except AssertionError as error:
                raise CompileError(f"{error}. The way there: {story(key, _described(what, tasks))}") from error
            for sender, messages in said:
                following.say(sender, messages)
            reached = following.key()
            if reached not in came:
                if len(came) >= limit:
                    raise CompileError(f"more than {limit} states; raise the limit, or check a smaller plan")
                came[reached] = (key, _described(what, tasks))
                stack.append(following)
    return Explored(len(came), steps)


Step = Message | int | str  # a message that arrives, an actor that begins or ends its act, or "close"


def _described(what: tuple[int, Step], tasks: Mapping[int, Task]) -> str:
    _, step = what
    if isinstance(step, str):
        return step
    if isinstance(step, Message):
        kind = KINDS[step.kind]
        return f"{kind} {step.register if step.register != NONE else ''} reaches {tasks[step.to].name}".replace(
            "  ", " "
        )
    return f"{tasks[step].name} goes on"


def _steps(
    world: _World, tasks: Mapping[int, Task], launches: int
) -> Iterable[tuple[tuple[int, Step], tuple[int, ...]]]:
    """The possible next steps, each with the actors that it changes."""
    for (sender, to), queue in world.queues.items():
        if queue:
            yield (sender, queue[0]), (to,)
    for id, actor in world.actors.items():
        enough = tasks[id].ahead and actor.acts >= (launches + 2) * tasks[id].acts  # else the search would never end
        if actor.state is ACTING or not (actor.blocked or enough):
            yield (_OUTSIDE, id), (id,)
    if not world.closed and all(a.acts >= launches * tasks[id].acts for id, a in world.actors.items()):
        yield (_OUTSIDE, "close"), ()


def _do(
    world: _World, what: tuple[int, Step], changing: tuple[int, ...], invariants: _Invariants
) -> list[tuple[int, Iterable[Message]]]:
    sender, step = what
    if isinstance(step, str):
        world.closed = True
        sources = [a.id for a in world.actors.values() if not a.task.consumes]
        return [(_OUTSIDE, [Message(END, id, NONE, 0)]) for id in sources]
    actor = world.actors[changing[0]]
    if isinstance(step, Message):
        world.queues[sender, step.to] = world.queues[sender, step.to][1:]
        said = actor.on_message(step)
    elif actor.state is ACTING:
        said = actor.finish()
    else:
        invariants.check(world.actors, actor.task, actor.begin())
        said = ()
    actor.validate()
    return [(actor.id, said)]


class _Invariants:
    """The invariants of an act's copies, computed from the numbers of acts only, not from the actors' state."""

    def __init__(self, tasks: Mapping[int, Task], registers: Mapping[int, Register]) -> None:
        self.tasks, self.registers = tasks, registers
        self.writes = {p.register: p for t in tasks.values() for p in t.produces}
        self.reads = {(p.register, t.id): p for t in tasks.values() for p in t.consumes}

    def check(self, actors: Mapping[int, Actor], task: Task, turn: Turn) -> None:
        for port, slot in zip(task.consumes, turn.consumed, strict=True):
            if port.at and not port.begins(turn.act, task.acts):
                continue
            r = self.registers[port.register]
            item = port.item(turn.act, task.acts)
            written = r.full + self.writes[r.id].item(actors[r.producer].acts, self.tasks[r.producer].acts)
            assert item < written, f"{task.name} reads item {item} of {r.name} before it is written"
            assert slot == item % r.copies, f"{task.name} reads copy {slot} of {r.name}, item {item} is elsewhere"
        for port, slot in zip(task.produces, turn.produced, strict=True):
            if port.at and not port.begins(turn.act, task.acts):
                continue
            r = self.registers[port.register]
            item = r.full + port.item(turn.act, task.acts)
            assert slot == item % r.copies, f"{task.name} writes copy {slot} of {r.name}, item {item} goes elsewhere"
            for c in r.consumers:
                if actors[c].state in (DRAINING, DONE):  # it reads no more, and returns copies unread
                    continue
                released = self.reads[r.id, c].item(actors[c].acts, self.tasks[c].acts)
                assert item - r.copies < released, (
                    f"{task.name} writes item {item} of {r.name} over item {item - r.copies}, "
                    f"which {self.tasks[c].name} may still read"
                )
