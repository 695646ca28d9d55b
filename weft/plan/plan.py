"""A plan is what one rank runs: tasks, the registers between them, and the streams they run on. It prints and parses.

plan train, rank 0 of 2, hash 5d41402a
stream 0 compute, caller
stream 1 loader, worker

register 0 batch: int64[8, 33], 2 copies, batch@0.cpu.0.1.0 -> forward@0.cpu.0.0.1
register 1 sent: float32[2, 64], 1 copy, forward@0.cpu.0.0.1 -> @1.cpu.0.0.0

source batch@0.cpu.0.1.0, ahead
    writes batch%0
compute forward@0.cpu.0.0.1, 4 acts
    reads batch%0 over 4
    writes sent%1
    | arena 64
    | %x = read() : int64[2,33] register 0+0+528 each
    | %n = sum(%x, None, False) : int64[] arena+0
"""

from __future__ import annotations

import itertools
import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from math import prod
from typing import Final, Literal, get_args

import msgspec

from weft.core import dtype as dtypes
from weft.core.errors import CompileError, WeftError
from weft.core.placement import Placement
from weft.core.reading import MALFORMED
from weft.plan import calls
from weft.plan.calls import Call, Step
from weft.plan.ids import DEVICES, decode, parse_id, rank_of, stream_of

Kind = Literal["compute", "copy", "collective", "source", "sink"]
Policy = Literal["caller", "worker"]


class Port(msgspec.Struct, frozen=True):
    """A task's end of a register. Consumed: held for `period` acts, then acknowledged. Produced: written over them.

    With `at`, it takes part in these acts of a launch only: for orders that alternate unevenly.
    """

    register: int
    period: int = 1
    at: tuple[int, ...] = ()

    def items(self, acts: int) -> int:
        """The number of items (uses of a copy) in a launch of so many acts."""
        return len(self.at) or acts // self.period

    def first(self, item: int) -> int:
        """The act of a launch that begins with an item."""
        return self.at[item] if self.at else item * self.period

    def last(self, item: int) -> int:
        """The act of a launch that is done with an item."""
        return self.at[item] if self.at else (item + 1) * self.period - 1

    def item(self, act: int, acts: int) -> int:
        """The index of the item that an act works on, or would next; both counted over all launches."""
        if self.at:
            return act // acts * len(self.at) + bisect_left(self.at, act % acts)
        return act // self.period

    def begins(self, act: int, acts: int) -> bool:
        return act % acts in self.at if self.at else act % self.period == 0

    def ends(self, act: int, acts: int) -> bool:
        return act % acts in self.at if self.at else (act + 1) % self.period == 0


class Register(msgspec.Struct, frozen=True):
    """`copies` blocks of memory used in turn: one task writes them, the consumers read. The copies are the only
    flow control. `full` of them are readable from the start. Without a dtype it carries no data, only order. With
    `offsets` its copies lie there in memory that it shares with other registers, which are needed at other times."""

    id: int
    name: str
    producer: int
    consumers: tuple[int, ...] = ()
    copies: int = 1
    shape: tuple[int, ...] = ()
    dtype: str = ""
    full: int = 0
    offsets: tuple[int, ...] = ()
    device: str = ""  # where it lies; by default where the rank's values lie

    @property
    def bytes(self) -> int:
        """The bytes of one copy."""
        return prod(self.shape) * dtypes.named(self.dtype).itemsize if self.dtype else 0


class Task(msgspec.Struct, frozen=True):
    """A step of the plan, run by one actor. It acts `acts` times per launch; one that consumes nothing waits for the
    launch, unless it runs `ahead` of the launches, as far as its registers' copies allow."""

    id: int
    name: str
    kind: Kind
    consumes: tuple[Port, ...] = ()
    produces: tuple[Port, ...] = ()
    acts: int = 1
    ahead: bool = False
    step: Step = Step()

    @property
    def stream(self) -> int:
        return stream_of(self.id)

    @property
    def rank(self) -> int:
        return rank_of(self.id)

    @property
    def device(self) -> str:
        """Where an act computes; empty for where the rank's values lie."""
        at = decode(self.id)
        return "" if (at.device, at.device_index) == ("cpu", 0) else f"{at.device}:{at.device_index}"

    @property
    def text(self) -> str:
        """What an act does, call by call, for readers: long lists are abbreviated. `str(plan)` is whole."""
        return self.step.folded()


class Stream(msgspec.Struct, frozen=True):
    """A queue of tasks that act one at a time: `caller` on the thread that waits for a result, `worker` on a separate
    thread."""

    index: int
    name: str
    policy: Policy = "caller"


class Plan(msgspec.Struct, frozen=True):
    """One rank's plan. `hash` is that of the job, which the ranks compare before the first launch."""

    name: str
    rank: int = 0
    world_size: int = 1
    streams: tuple[Stream, ...] = (Stream(0, "compute"),)
    tasks: tuple[Task, ...] = ()
    registers: tuple[Register, ...] = ()
    hash: str = ""

    def task(self, id: int) -> Task:
        return next(t for t in self.tasks if t.id == id)

    def register(self, id: int) -> Register:
        return next(r for r in self.registers if r.id == id)

    @property
    def shared(self) -> int:
        """The bytes of the memory that registers share."""
        return max((at + r.bytes for r in self.registers for at in r.offsets), default=0)

    @property
    def shared_on(self) -> str:
        """The device of that memory."""
        return next((r.device for r in self.registers if r.offsets), "")

    @property
    def placement(self) -> Placement | None:
        """Where this rank's global values lie, and so what names no device; None if it has none: then on the CPU."""
        forms = (c.option("form") for t in self.tasks for c in t.step.calls)
        placements = (form[2] for form in forms if form is not None)
        return next((p for p in placements if isinstance(p, Placement) and self.rank in p), None)

    def peers(self, call: Call) -> tuple[int, ...]:
        """The ranks among which a call moves data: those that it names, or the readers of the register it writes."""
        if call.op == "box.exchange":
            sends = [rank for rank, _ in call.option("sends", ())]
            return tuple(sorted({self.rank, *sends, *(r for _, ranks in call.option("receives", ()) for r in ranks)}))
        if call.op == "box.copy" and call.results[0].place.kind == "register":
            readers = {rank_of(c) for c in self.register(call.results[0].place.register).consumers}
            return tuple(sorted({self.rank, *readers})) if readers != {self.rank} else ()
        return call.option("ranks", ())

    def __str__(self) -> str:
        tasks = {t.id: t.name for t in self.tasks}
        registers = {r.id: r.name for r in self.registers}
        head = f"plan {_quote(self.name)}, rank {self.rank} of {self.world_size}"
        lines = [head + (f", hash {_quote(self.hash)}" if self.hash else "")]
        lines += [f"stream {s.index} {_quote(s.name)}, {s.policy}" for s in self.streams]
        lines += [""] * bool(self.registers)
        lines += [_show_register(r, tasks) for r in self.registers]
        lines += [""] * bool(self.tasks)
        for t in self.tasks:
            lines += _show_task(t, registers)
        return "\n".join(itertools.chain.from_iterable(map(_wrapped, lines))) + "\n"


_BARE: Final = r"[A-Za-z0-9_][A-Za-z0-9_./\-]*"
_NAME: Final = rf'(?:{_BARE}|"(?:[^"\\]|\\.)*")'
_ADDRESS: Final = r"@[\w.]+"


WIDTH: Final = 500  # characters, after which a line goes on in the next one
MORE: Final = " " * 8  # at the beginning of that


def _wrapped(line: str) -> Iterator[str]:
    """A line in pieces, which end at commas."""
    begin, indent = 0, ""
    while len(line) - begin > WIDTH and (at := line.rfind(", ", begin, begin + WIDTH)) > begin:
        yield indent + line[begin : at + 1]
        begin, indent = at + 2, MORE
    yield indent + line[begin:]


def _whole(text: str) -> list[tuple[int, str]]:
    """The inverse: numbers and texts of whole lines."""
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if found and line.startswith(MORE):
            found[-1][1].append(line[len(MORE) :])
        else:
            found.append((number, [line]))
    return [(number, " ".join(pieces)) for number, pieces in found]


def _quote(name: str) -> str:
    return name if re.fullmatch(_BARE, name) else json.dumps(name)


def _unquote(text: str) -> str:
    return json.loads(text) if text.startswith('"') else text


def _show_register(r: Register, tasks: dict[int, str]) -> str:
    def at(id: int) -> str:
        return (_quote(tasks[id]) if id in tasks else "") + f"@{decode(id)}"

    content = f"{r.dtype}[{', '.join(map(str, r.shape))}]" if r.dtype else "order"
    content += f" {r.device}" * bool(r.device)
    copies = f"{r.copies} {'copy' if r.copies == 1 else 'copies'}" + (f", {r.full} full" if r.full else "")
    copies += ", shared" * bool(r.offsets) + "".join(f"+{at}" for at in r.offsets)
    consumers = ", ".join(map(at, r.consumers)) or "nobody"
    return f"register {r.id} {_quote(r.name)}: {content}, {copies}, {at(r.producer)} -> {consumers}"


def _show_task(t: Task, registers: dict[int, str]) -> list[str]:
    def at(port: Port) -> str:
        name = _quote(registers[port.register]) if port.register in registers else ""
        acts = f" at {' '.join(map(str, port.at))}" if port.at else ""
        return f"{name}%{port.register}" + (f" over {port.period}" if port.period != 1 else "") + acts

    head = f"{t.kind} {_quote(t.name)}@{decode(t.id)}"
    lines = [head + (f", {t.acts} acts" if t.acts != 1 else "") + (", ahead" if t.ahead else "")]
    if t.consumes:
        lines.append("    reads " + ", ".join(map(at, t.consumes)))
    if t.produces:
        lines.append("    writes " + ", ".join(map(at, t.produces)))
    if t.step.calls:
        lines += [f"    | {line}" for line in str(t.step).split("\n")]
    return lines


_PLAN: Final = re.compile(rf"plan ({_NAME}), rank (\d+) of (\d+)(?:, hash ({_NAME}))?")
_STREAM: Final = re.compile(rf"stream (\d+) ({_NAME}), ({'|'.join(get_args(Policy))})")
_REGISTER: Final = re.compile(
    rf"register (\d+) ({_NAME}): (?:order|(\w+)\[([\d, ]*)\])(?: ((?:{'|'.join(DEVICES[1:])}):\d+))?, "
    rf"(\d+) cop(?:y|ies)(?:, (\d+) full)?(?:, shared((?:\+\d+)+))?, ({_NAME})?({_ADDRESS}) -> (.+)"
)
_TASK: Final = re.compile(rf"({'|'.join(get_args(Kind))}) ({_NAME})({_ADDRESS})(?:, (\d+) acts)?(, ahead)?")
_REFERENCE: Final = re.compile(rf"({_NAME})?({_ADDRESS})(?:, |$)")
_PORT: Final = re.compile(rf"({_NAME})?%(\d+)(?: over (\d+))?(?: at (\d+(?: \d+)*))?(?:, |$)")


def parse(text: str) -> Plan:
    """The inverse of str(plan)."""
    try:
        return _parse(text)
    except MALFORMED as cause:
        raise CompileError(f"this is no plan: {cause}") from None


def _parse(text: str) -> Plan:
    (_, first), *lines = _whole(text)
    head = _PLAN.fullmatch(first)
    if head is None:
        raise CompileError(f"line 1: a plan begins like `plan train, rank 0 of 2`; this is {first!r}")
    streams: list[Stream] = []
    registers: list[Register] = []
    tasks: list[Task] = []
    bodies: list[list[str]] = []
    numbers: list[list[int]] = []  # of their lines
    mentioned: list[tuple[int, str, int]] = []  # line, name, id: checked at the end, when all names are known

    def ports(number: int, line: str) -> tuple[Port, ...]:
        found = _split(_PORT, line)
        mentioned.extend((number, _unquote(m[1]), ~int(m[2])) for m in found if m[1])
        return tuple(Port(int(m[2]), int(m[3] or 1), tuple(map(int, (m[4] or "").split()))) for m in found)

    def read(number: int, line: str) -> None:
        if m := _STREAM.fullmatch(line):
            streams.append(Stream(int(m[1]), _unquote(m[2]), m[3]))  # type: ignore[arg-type]
        elif m := _REGISTER.fullmatch(line):
            ends = _split(_REFERENCE, m[11]) if m[11] != "nobody" else []
            mentioned.extend((number, _unquote(e[1]), parse_id(e[2][1:])) for e in ends if e[1])
            if m[9]:
                mentioned.append((number, _unquote(m[9]), parse_id(m[10][1:])))
            shape = tuple(int(n) for n in m[4].split(", ")) if m[4] else ()
            consumers = tuple(parse_id(e[2][1:]) for e in ends)
            producer, offsets = parse_id(m[10][1:]), tuple(map(int, (m[8] or "").split("+")[1:]))
            registers.append(made := Register(
                int(m[1]), _unquote(m[2]), producer, consumers, int(m[6]), shape, m[3] or "", int(m[7] or 0), offsets,
                m[5] or "",
            ))  # fmt: skip
            calls.check_bytes(made.bytes * made.copies)
        elif m := _TASK.fullmatch(line):
            acts, ahead = int(m[4] or 1), bool(m[5])
            tasks.append(Task(parse_id(m[3][1:]), _unquote(m[2]), m[1], acts=acts, ahead=ahead))  # type: ignore[arg-type]
            bodies.append([])
            numbers.append([])
        elif tasks and line.startswith("    reads "):
            tasks[-1] = msgspec.structs.replace(tasks[-1], consumes=ports(number, line[10:]))
        elif tasks and line.startswith("    writes "):
            tasks[-1] = msgspec.structs.replace(tasks[-1], produces=ports(number, line[11:]))
        elif tasks and line.startswith("    |"):
            numbers[-1].append(number)
            bodies[-1].append(line[6:])
        else:
            raise CompileError(f"neither a stream, a register, a task nor a part of a task: {line!r}")

    for number, line in lines:
        try:
            if line:
                read(number, line)
        except (*MALFORMED, WeftError) as cause:
            raise CompileError(f"line {number}: {cause}") from None
    _agree({t.id: t.name for t in tasks} | {~r.id: r.name for r in registers}, mentioned)
    tasks = [
        msgspec.structs.replace(t, step=calls.parse(body, at)) if body else t
        for t, body, at in zip(tasks, bodies, numbers, strict=True)
    ]
    name, hash = _unquote(head[1]), _unquote(head[4] or "")
    return Plan(name, int(head[2]), int(head[3]), tuple(streams), tuple(tasks), tuple(registers), hash)


def _agree(names: dict[int, str], mentioned: list[tuple[int, str, int]]) -> None:
    """Check the names by which lines mention others."""
    for number, name, id in mentioned:
        if id in names and names[id] != name:
            what = f"@{decode(id)}" if id >= 0 else f"%{~id}"
            raise CompileError(f"line {number}: {what} is called {names[id]!r}, not {name!r}; names and ids must agree")


def _split(item: re.Pattern[str], line: str) -> list[re.Match[str]]:
    found, at = [], 0
    while at < len(line):
        m = item.match(line, at)
        if m is None:
            raise CompileError(f"can't read {line[at:]!r}")
        found.append(m)
        at = m.end()
    return found
