"""Traces: what ran where and when, and what it waited for; recorded per rank, merged on one clock.

with flow.vm.trace() as t:
    ...
print(t)
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from weft.core import dtype as dtypes
from weft.core.amount import amount
from weft.core.dispatch import here, intercept
from weft.core.errors import ArgumentError
from weft.core.program_line import line
from weft.core.rank import Rank, current
from weft.core.reading import MALFORMED
from weft.core.sbp import show
from weft.ops.declaration import Op
from weft.plan.calls import Call, Result
from weft.plan.plan import Plan, Task
from weft.tensor.blob import Blob, blob_of
from weft.tensor.tensor import Tensor
from weft.transport.line import GRAPHS
from weft.transport.watching import Sent, watched
from weft.transport.whole import form
from weft.vm.instruction import Instruction
from weft.vm.machine import Recorder, VirtualMachine, issued_at, running, vm_of

_COLUMNS = ("start us", "waited", "ran", "instruction", "kind", "stream", "thread", "after")


class Event(NamedTuple):
    """One event: an instruction, or an op, a boxing, a collective, an act, or a call in a graph. Times are nanoseconds
    since 1970; operands are forms, such as float32[2, 3]#7, numbered by their memory; those of a call have the plan's
    names.

    moved, peers    the bytes of this rank's part, and the ranks that take part: of a boxing, a call or an instruction
                    that moves data, or of another collective or message
    line            of the program that issued it
    """

    serial: int
    name: str
    kind: str
    stream: str
    policy: str
    thread: str
    queued: int
    start: int
    end: int
    waited_for: tuple[int, ...]  # serials
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    failed: bool
    moved: int = 0
    peers: tuple[int, ...] = ()
    line: str = ""


class Trace:
    """The events of one rank, in the order of their ends."""

    strict = False

    def __init__(self, rank: int, events: Sequence[Event] = ()) -> None:
        self.rank = rank
        self.events = list(events)
        # Durations need the monotonic clock, but processes share only the wall clock.
        self.anchor = _anchor()
        self._numbers: dict[int, int] = {}
        self._moved: dict[int, tuple[int, tuple[int, ...]]] = {}  # by the serials of instructions that move data

    def form(self, blob: Blob) -> str:
        """A blob as events show it."""
        data, number = blob.data, self._numbers.setdefault(id(blob), len(self._numbers) + 1)
        return f"?#{number}" if data is None else f"{form(data)}#{number}"

    def record(self, instruction: Instruction) -> None:
        stream, anchor, end = instruction.stream, self.anchor, time.perf_counter_ns()
        assert stream is not None
        # An external instruction may be ended by any thread, which doesn't say where it ran.
        thread = "" if stream.policy == "external" else threading.current_thread().name
        reads, writes = (tuple(map(self.form, b)) for b in (instruction.const, (*instruction.mut, *instruction.mut2)))
        at = "" if instruction.line is None else instruction.line.brief
        moved, peers = self._moved.pop(instruction.serial, (0, ()))
        self.events.append(Event(
            instruction.serial, instruction.name, instruction.kind, stream.name, stream.policy, thread,
            instruction.queued_ns + anchor, (instruction.started_ns or end) + anchor, end + anchor, instruction.waited,
            reads, writes, instruction.state == "failed", moved, peers, at,
        ))  # fmt: skip

    def moves(self, instruction: Instruction, size: int, ranks: tuple[int, ...]) -> None:
        """Count a collective as part of an instruction, which is recorded when it ends."""
        moved, peers = self._moved.get(instruction.serial, (0, ()))
        self._moved[instruction.serial] = moved + size, tuple(sorted({*peers, *ranks}))

    def act(self, plan: str, task: Task, start: int, end: int) -> None:
        """Record an actor's act in this thread."""
        self.span(task.name, task.kind, f"graph {plan}", start, end)

    def calls(self, plan: Plan, forms: Mapping[str, Result], calls: Sequence[Call], times: Sequence[int]) -> None:
        """Record the calls of a chain's act: `times` are each one's start, and the end of the last."""
        for call, (start, end) in zip(calls, pairwise(times), strict=True):
            read = [forms[name] for name in call.operands()]
            reads, writes = (tuple(f"{form(r)} {r.name}" for r in values) for values in (read, call.results))
            peers = plan.peers(call)
            moved = sent(plan, call, forms) if peers else 0
            self.span(call.op, "call", f"graph {plan.name}", start, end, reads, writes, moved, peers, call.at)

    def heard(self, movement: Any) -> None:
        """Record that a global tensor was moved along a route, now, in this thread."""
        end = time.perf_counter_ns()
        src, dst = movement.src, movement.dst
        self.span(
            f"{src.placement} {show(src.nd_sbp)} -> {dst.placement} {show(dst.nd_sbp)}", "boxing", "compute",
            end - round(movement.seconds * 1e9), end, (str(src),), (str(dst),), movement.moved, movement.peers,
            "" if movement.line is None else movement.line.brief,
        )  # fmt: skip

    def span(
        self, name: str, kind: str, stream: str, start: int, end: int, reads: tuple[str, ...] = (),
        writes: tuple[str, ...] = (), moved: int = 0, peers: tuple[int, ...] = (), line: str = "", serial: int = 0,
        waited_for: tuple[int, ...] = (), failed: bool = False,
    ) -> None:  # fmt: skip
        """Record work of this thread; `start` and `end` are by time.perf_counter_ns."""
        start, end, thread = start + self.anchor, end + self.anchor, threading.current_thread().name
        self.events.append(Event(
            serial, name, kind, stream, "inline", thread, start, start, end, waited_for, reads, writes, failed, moved,
            peers, line,
        ))  # fmt: skip

    def table(self) -> str:
        """A table of events by start: microseconds since the first was queued, waiting time, running time."""
        if not self.events:
            return "no instructions"
        names = {e.serial: f"{e.name}#{e.serial}" for e in self.events if e.serial}  # a span has no number
        zero = min(e.queued for e in self.events)
        rows: list[tuple[str, ...]] = [_COLUMNS]
        for e in sorted(self.events, key=lambda e: (e.start, e.serial)):
            times = (f"{t / 1000:.1f}" for t in (e.start - zero, e.start - e.queued, e.end - e.start))
            after = ", ".join(names.get(serial, f"#{serial}") for serial in e.waited_for)
            about = f" {amount(e.moved)} among {', '.join(map(str, e.peers))}" if e.peers else ""
            name = names.get(e.serial, e.name) + about + (" failed" if e.failed else "")
            rows.append((*times, name, e.kind, e.stream, e.thread, after))
        return aligned(rows, "rrrlllll")

    __str__ = table

    def chrome(self, base: int = 0) -> list[dict[str, Any]]:
        """Events for chrome://tracing and Perfetto: a process per rank, a row per stream and thread. Times are
        microseconds since `base` nanoseconds: counted from 1970, floats would round them."""
        pid = self.rank
        out: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"rank {pid}"}}]
        rows: dict[tuple[str, str], int] = {}
        by_serial = {e.serial: e for e in self.events}
        for e in sorted(self.events, key=lambda e: (e.start, e.serial)):
            tid = _row(rows, e)
            about = {"pid": pid, "tid": tid, "cat": e.kind}
            arguments = {
                "serial": e.serial, "queued_us": (e.start - e.queued) / 1000, "failed": e.failed,
                "waited_for": [by_serial[s].name if s in by_serial else f"#{s}" for s in e.waited_for],
                "reads": list(e.reads), "writes": list(e.writes),
                **({"bytes": e.moved, "ranks": list(e.peers)} if e.peers else {}),
                **({"line": e.line} if e.line else {}),
            }  # fmt: skip
            if e.policy == "external":  # several may be in flight on one stream, so they don't nest
                span = {"name": e.name, "id": f"{pid}.{e.serial}", **about}
                out.append({"ph": "b", "ts": (e.start - base) / 1000, "args": arguments, **span})
                out.append({"ph": "e", "ts": (e.end - base) / 1000, **span})
            else:
                when = {"ts": (e.start - base) / 1000, "dur": (e.end - e.start) / 1000}
                out.append({"ph": "X", "name": e.name, "args": arguments, **when, **about})
            for serial in e.waited_for:
                before = by_serial.get(serial)
                if before is not None:
                    arrow = {"name": "waits for", "cat": "dependency", "id": f"{pid}.{serial}.{e.serial}", "pid": pid}
                    out.append({"ph": "s", "ts": (before.end - base) / 1000, "tid": _row(rows, before), **arrow})
                    out.append({"ph": "f", "bp": "e", "ts": (e.start - base) / 1000, "tid": tid, **arrow})
        for (stream, thread), tid in rows.items():
            name = f"{stream} ({thread})" if thread else stream
            out.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
        return out

    def text(self) -> str:
        """As text that `parse` reads: for traces of other processes."""
        return json.dumps({"rank": self.rank, "events": self.events})


def aligned(rows: Sequence[Sequence[str]], sides: str) -> str:
    """A table as text; `sides` says for each column whether it is aligned to the left or to the right: "lr"."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ends = [str.ljust if side == "l" else str.rjust for side in sides]
    return "\n".join("  ".join(f(c, w) for f, c, w in zip(ends, row, widths, strict=True)).rstrip() for row in rows)


def sent(plan: Plan, call: Call, forms: Mapping[str, Result]) -> int:
    """The bytes of this rank's part of a call that moves data: what it gives, and of messages takes, too."""
    if call.op == "box.copy":
        return sum(r.bytes for r in call.results)
    if call.op != "box.exchange":
        return sum(forms[name].bytes for name in call.operands())
    (given,), (taken,) = call.operands(), call.results
    pieces = [(forms[given], where) for rank, where in call.option("sends") if rank != plan.rank]
    pieces += [(taken, where) for where, ranks in call.option("receives") for rank in ranks if rank != plan.rank]
    sizes = (math.prod(len(range(n)[s]) for n, s in zip(r.shape, where, strict=True)) for r, where in pieces)
    return sum(sizes) * dtypes.named(taken.dtype).itemsize


class _Written(msgspec.Struct):
    """The schema of `text`, by which `parse` validates."""

    rank: int
    events: list[Event]


class _Calls:
    """Records this thread's eager calls, which run without an instruction of the machine."""

    def __init__(self, trace: Trace, machine: VirtualMachine) -> None:
        self.trace, self.machine = trace, machine

    def intercept(self, op: Op, args: tuple[Any, ...], proceed: Callable[..., Any]) -> Any:
        if here.trace is not None:  # a graph is being traced; nothing runs
            return proceed(op, args)
        read, result, failed = _blobs(args), None, True
        machine = self.machine
        with machine.lock:
            serial = machine._serial = machine._serial + 1
            pending = {w.serial for blob in read if blob.access is not None for w in blob.access.writers}
        start = time.perf_counter_ns()
        try:
            result = proceed(op, args)
            failed = False
            return result
        finally:
            end, at = time.perf_counter_ns(), line()
            reads, writes = (tuple(map(self.trace.form, blobs)) for blobs in (read, _blobs((result,))))
            self.trace.span(
                op.name, "op", "compute", start, end, reads, writes, line="" if at is None else at.brief, serial=serial,
                waited_for=tuple(sorted(pending)), failed=failed,
            )  # fmt: skip


def _blobs(values: Sequence[Any]) -> list[Blob]:
    """The memory of the tensors among values, lists opened."""
    found: list[Blob] = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(blob_of(v))
        elif isinstance(v, (list, tuple)):
            found += _blobs(v)
    return found


def parse(text: str) -> Trace:
    """A trace from its text."""
    try:
        read = msgspec.json.decode(text, type=_Written)
    except (*MALFORMED, msgspec.MsgspecError) as cause:
        raise ArgumentError(f"this is no trace's text: {cause}") from None
    return Trace(read.rank, read.events)


@contextlib.contextmanager
def recording(machine: VirtualMachine, recorder: Recorder) -> Iterator[None]:
    """Inside, and until everything has ended that was issued there, a recorder is told of what the machine does."""
    _listen(machine, lambda recorders: (*recorders, recorder))
    try:
        yield
        machine.drain()
    finally:
        _listen(machine, lambda recorders: tuple(r for r in recorders if r is not recorder))


@contextlib.contextmanager
def trace(rank: Rank | None = None) -> Iterator[Trace]:
    """Record what this rank's machine does inside the block, to the end of everything issued there."""
    machine = vm_of(rank)
    recorded = Trace(machine.rank.index)
    with contextlib.ExitStack() as inside:
        if machine.rank is current():
            inside.enter_context(intercept(_Calls(recorded, machine)))
        if (transport := machine.rank.resources.get("transport")) is not None:
            inside.enter_context(watched(transport, partial(_moved, recorded, machine)))
        inside.enter_context(listening(machine.rank, recorded))
        inside.enter_context(recording(machine, recorded))  # ends first, when what is pending has moved its data
        yield recorded


MOVEMENTS: Final = "movements"  # a rank's resource: observers of eager global tensors' movements, innermost last


@contextlib.contextmanager
def listening(rank: Rank, who: Any) -> Iterator[None]:
    """Inside, `who.heard` is called with each movement; `who.strict` says whether implicit movements are refused."""
    listeners = rank.resource(MOVEMENTS, lambda rank: [])
    listeners.append(who)
    try:
        yield
    finally:
        listeners.remove(who)
        if not listeners:
            rank.resources.pop(MOVEMENTS, None)


def _moved(trace: Trace, machine: VirtualMachine, sent: Sent) -> None:
    """Record a collective or a message that has ended in this thread, once: as a row, or as a part of what has one."""
    if of_a_whole(sent):
        return
    end, instruction = time.perf_counter_ns(), running(machine)
    if instruction is not None and instruction.queued_ns:
        trace.moves(instruction, sent.size, sent.ranks)
        return
    with machine.lock:
        serial = machine._serial = machine._serial + 1
    at = "" if (at := issued_at(machine)) is None else at.brief
    trace.span(
        sent.name, "collective", "collective", sent.start, end, (), (), sent.size, sent.ranks, at, serial,
        failed=sent.failed,
    )  # fmt: skip


def of_a_whole(sent: Sent) -> bool:
    """Whether it is part of a graph's call, or of a movement of a global tensor, which tells of its bytes and ranks."""
    return not sent.failed and (sent.line.startswith(GRAPHS) or here.moving)


def document(traces: Sequence[Trace]) -> dict[str, Any]:
    """Ranks' traces in Chrome's format, on one clock that starts at the first event."""
    base = min((e.start for t in traces for e in t.events), default=0)
    events = sorted((e for t in traces for e in t.chrome(base)), key=lambda e: e.get("ts", -1.0))
    return {"traceEvents": events, "displayTimeUnit": "ns", "baseTimeNanoseconds": base}


def merge(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """The Chrome events of several ranks on one clock that starts at the first of them."""
    return document(traces)["traceEvents"]


def write(path: str | os.PathLike[str], traces: Sequence[Trace] | dict[str, Any]) -> None:
    """Write ranks' traces, or a document of theirs, to a file for chrome://tracing or ui.perfetto.dev."""
    text = json.dumps(traces if isinstance(traces, dict) else document(traces)).encode()
    Path(path).write_bytes(gzip.compress(text) if os.fspath(path).endswith(".gz") else text)


def _listen(machine: VirtualMachine, change: Callable[[tuple[Recorder, ...]], tuple[Recorder, ...]]) -> None:
    """Change the recorders; fast paths that bypass the machine are notified when recording begins and ends."""
    with machine.lock:
        before, machine.recorders = bool(machine.recorders), change(machine.recorders)
        after = bool(machine.recorders)
    if before != after:
        for changed in tuple(machine.on_tracing_changed):
            changed(after)


def _anchor() -> int:
    """The offset from the monotonic clock to the wall clock; the tightest of a few readings."""
    readings = []
    for _ in range(5):
        before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        readings.append((after - before, wall - before))
    return min(readings)[1]


def _row(rows: dict[tuple[str, str], int], event: Event) -> int:
    return rows.setdefault((event.stream, event.thread), len(rows))
