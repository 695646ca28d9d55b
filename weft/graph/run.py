"""The runtime of a compiled graph: memory for its registers, acts for its tasks, one VM instruction a launch."""

from __future__ import annotations

import collections
import contextlib
import copy
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any, Final

import torch

from weft.boxing.part import device_of
from weft.compiler import coalesce
from weft.compiler.again import lower_again
from weft.compiler.calls.bind import Binder
from weft.compiler.lower import Lowered
from weft.core import collecting
from weft.core.device import Device
from weft.core.dispatch import hooks
from weft.core.errors import GraphError
from weft.core.rank import current
from weft.graph.draws import Draws
from weft.graph.ends import inputs_of, outputs_of
from weft.graph.feed import Feed, Reader, follow
from weft.graph.lines import GraphLine
from weft.graph.on_cuda.captured import Captures, repeats, writes
from weft.graph.on_cuda.device_streams import Streams, in_order
from weft.graph.waits import Waits
from weft.job.value import Value
from weft.ops import OPS
from weft.plan.calls import Call, Result
from weft.plan.ids import rank_of
from weft.plan.plan import Task
from weft.runtime.actor import Turn
from weft.runtime.executor import NAP, Executor, Ticket
from weft.tensor.blob import Blob, blob_of
from weft.tensor.counters import counters
from weft.tensor.written import mark
from weft.transport import Line, transport_of
from weft.transport.staged import Cuda, Staged
from weft.transport.stuck import waits_of
from weft.vm import vm_of
from weft.vm.dependency import join, pending, untouched, writable
from weft.vm.instruction import Instruction

BRIEF: Final = int(2e9 * NAP)  # ns: the executor's own thread starts on a launch after one or two naps
CHAINS: Final = ("compute", "collective", "copy")  # kinds of tasks


class Launch:
    """One launch: its inputs, numbers and outputs."""

    __slots__ = ("inputs", "numbers", "outputs", "instruction", "ticket", "began")

    def __init__(self, inputs: list[Blob], numbers: list[float], outputs: list[Blob]) -> None:
        self.inputs, self.numbers, self.outputs = inputs, numbers, outputs
        self.instruction: Instruction | None = None
        self.ticket: Ticket | None = None
        self.began = 0


class Running:
    """The runtime of one compiled graph on one rank.

    `numbers` names the numbers that the host gives at each launch (learning rates).
    """

    def __init__(self, lowered: Lowered, numbers: list[str], written: list[int], line: GraphLine) -> None:
        self.lowered, self.numbers = lowered, numbers
        self.written = written  # indices of the arguments that the program overwrites
        placement = lowered.plan.placement
        self.device = torch.device("cpu") if placement is None else device_of(placement).torch  # of what names none
        self.rank, self.transport, self.vm = current(), transport_of(), vm_of()
        self.lent, self.line = line, line.line  # a separate line, as eager calls overlap with launches
        own = {t.stream for t in lowered.plan.tasks if t.kind == "collective"}  # streams with separate lines
        named = [(s.index, f"{self.line.name}/{s.name}") for s in lowered.plan.streams if s.index in own]
        self.stream_lines = {index: Line(self.transport, name) for index, name in named}
        self.order = threading.Lock()  # held while a thread submits a launch
        self.waiting: collections.deque[Launch] = collections.deque()  # launched, not yet taken in by the source
        self.under_way: collections.deque[Launch] = collections.deque()  # taken in, not yet handed out by the sink
        self.draws = Draws(lowered, self.rank)
        self.channels: dict[int, Any] = {}
        self.memory: dict[int, list[torch.Tensor]] = {}
        self.variables: dict[Value, Blob] = {v: blob_of(t) for v, t in lowered.job.variables.items()}
        self.exchanges = counters.exchanged
        self.bound: dict[Value, torch.Tensor] = {}  # the memory of the variables
        self.named: dict[str, torch.Tensor] = {}  # the same, by name
        self.stale = True  # the memory of a variable has changed
        self.arenas: dict[tuple[int, str], torch.Tensor] = {}  # by stream and device
        self.binders: dict[int, Binder] = {}  # by task id; rebuilt when a variable gets other memory
        self.chains: list[dict[Any, Callable[[], None]]] = []
        devices = [self.device, *(_torch(t.device) for t in lowered.plan.tasks if t.device)]
        cuda = next((d for d in devices if d.type == "cuda"), None)
        self.captures = {} if cuda is None else {cuda: Captures(cuda)}
        self.streams = None if cuda is None else Streams(lowered.plan, Cuda(cuda))
        self.staged: dict[int, Staged] = {}  # by register
        self._registers()
        self.ended = self.dropped = False
        self.feeds: list[Feed] = []
        self.waits = Waits(
            self.transport,
            self.line.name,
            lambda: f"launch {self.executor.finished + 1} of graph {self.lowered.plan.name}",
        )
        self.launches = 0
        self.brief = False  # the last launch took less time than handing it to another thread
        acts = {t.id: self._chain(t) for t in lowered.plan.tasks if t.kind in CHAINS} | self._ends() | self._readers()
        if self.streams is not None:
            on_host = {r.id for r in lowered.plan.registers if r.bytes and self._at(r.device).type == "cpu"}
            acts = in_order(lowered.plan, acts, self.streams, on_host, self.staged)
        deadline, look, everyone = self.transport.deadline, self.waits.look, range(self.transport.world_size)
        elsewhere = partial(waits_of, self.transport, everyone)
        self.executor = Executor(lowered.plan, acts, self.channels, deadline=deadline, watch=look, elsewhere=elsewhere)
        self.vm.on_tracing_changed.append(self._follow)
        self._follow(bool(self.vm.recorders))
        self.key = f"graph {lowered.plan.name}"
        while self.key in self.rank.resources:  # a loaded plan may have the name of another graph
            self.key += "'"
        self.rank.resources[self.key] = self

    def _at(self, device: str) -> torch.device:
        return _torch(device) if device else self.device

    def _have_arenas(self) -> None:
        """Have an arena for the tasks of each stream, which act one at a time, that is large enough for all of them."""
        for task in sorted(self.lowered.plan.tasks, key=lambda t: t.step.arena, reverse=True):
            key = task.stream, task.device
            if task.step.calls and (key not in self.arenas or self.arenas[key].nbytes < task.step.arena):
                self.arenas[key] = torch.empty(task.step.arena, dtype=torch.uint8, device=self._at(task.device))
        if self.streams is not None:
            self.streams.fork()

    def _registers(self) -> None:
        plan = self.lowered.plan
        shared = torch.zeros(plan.shared, dtype=torch.uint8, device=self._at(plan.shared_on))
        copying = {p.register for t in plan.tasks if t.kind == "copy" for p in (*t.consumes, *t.produces)}
        for r in plan.registers:
            source, (target, *_) = rank_of(r.producer), [*map(rank_of, r.consumers), rank_of(r.producer)]
            if source != target:
                channel, at = self.lent.channel(source, target, r.bytes, r.copies), self._at(r.device)
                if r.bytes and self.streams is not None and at.type == "cuda":
                    device, sends = self.streams.device, source == self.rank.index
                    channel = self.staged[r.id] = Staged(channel, r.bytes, at, device, sends)
                self.channels[r.id] = channel
                self.memory[r.id] = [channel.buffer(i)[: max(r.bytes, 1)] for i in range(r.copies)]
            elif r.offsets:
                self.memory[r.id] = [shared[at : at + r.bytes] for at in r.offsets]
            else:
                at = self._at(r.device)
                pinned = r.id in copying and at.type == "cpu" and torch.cuda.is_available()
                self.memory[r.id] = [
                    torch.zeros(r.bytes, dtype=torch.uint8, device=at, pin_memory=pinned) for _ in range(r.copies)
                ]
        if self.streams is not None:
            self.streams.fork()

    # ---- acts ------------------------------------------------------------------------------------------

    def _chain(self, task: Task) -> Callable[[Turn], None]:
        """A chain's act: it runs the function bound to the turn's copies, which is generated at its first use."""
        functions: dict[Any, Callable[[], None]] = {}
        self.chains.append(functions)
        acts = task.acts

        def bind(turn: Turn, phase: int) -> Callable[[], None]:
            binder = self.binders.get(task.id)
            if binder is None:
                rank, step = self.rank.index, self.lowered.plan.task(task.id).step
                arena = self.arenas[task.stream, task.device]
                line = self.stream_lines.get(task.stream, self.line)
                binder = self.binders[task.id] = Binder(task.name, step, rank, arena, self.named, line, self.draws)
            slots = {p.register: self.memory[p.register][s] for p, s in zip(task.consumes, turn.consumed, strict=True)}
            slots |= {p.register: self.memory[p.register][s] for p, s in zip(task.produces, turn.produced, strict=True)}
            trace = None if self.executor.trace is None else partial(self._record_calls, binder.forms)
            with collecting.paused():
                function = binder.bind(slots, phase, trace)
            captures = self.captures.get(binder.arena.device) if trace is None and task.kind == "compute" else None
            if captures is None:
                return function
            generators = self.draws.generators(task.step, binder.arena.device)
            if generators is None or not repeats(task.step, binder.source.cells, captures.device):
                return function
            return captures.of(function, writes(task.step, binder.memory.static), generators)

        def act(turn: Turn) -> None:
            phase = turn.act % acts
            key = (turn.consumed, turn.produced, phase)
            function = functions.get(key)
            if function is None:
                with ordinary():  # a thread that waits for results acts, too
                    function = functions[key] = bind(turn, phase)
            try:
                function()
            except Exception as error:
                better = self.binders[task.id].explained(error)
                if better is error:
                    raise
                raise better from error

        random = any(c.op in OPS and OPS[c.op].random for c in task.step.calls)
        return self.draws.chain(act, acts) if random else act

    def _ends(self) -> dict[int, Callable[[Turn], None]]:
        """The acts of the source, which copies a launch's inputs in, and of the sink, which copies its outputs out."""
        plan = self.lowered.plan
        ends = {t.kind: t for t in plan.tasks if not t.ahead and t.kind in ("source", "sink")}
        places = inputs_of(ends["source"], self.memory, self.numbers)
        filled: dict[tuple[int, int], float] = {}  # the number that each slot holds

        def source(turn: Turn) -> None:
            launch = self.waiting.popleft()
            launch.began = perf_counter_ns()
            self.under_way.append(launch)
            self.draws.begin()
            if places:
                slot = turn.produced[0]
                for place, (i, is_input, view) in enumerate(places[slot]):
                    if is_input:
                        view.copy_(launch.inputs[i].data)  # type: ignore[arg-type]
                    elif filled.get((slot, place)) != launch.numbers[i]:  # one number may fill several slots
                        view.fill_(launch.numbers[i])
                        filled[slot, place] = launch.numbers[i]

        alone = self.transport.world_size == 1
        reads = outputs_of(ends["sink"], self.memory, lambda name: self.named[name])

        def sink(turn: Turn) -> None:
            launch = self.under_way[0]  # stays in the queue until it is over: `_give_up` must find it
            for read, blob in zip(reads, launch.outputs, strict=True):
                blob.data.copy_(read(turn))  # type: ignore[union-attr]
            self.draws.end()
            self.under_way.popleft()
            self.brief = alone and perf_counter_ns() - launch.began < BRIEF
            if launch.instruction is not None:
                launch.instruction.finish()

        return {ends["source"].id: source, ends["sink"].id: sink}

    def _readers(self) -> dict[int, Callable[[Turn], None]]:
        """The acts of loaders, and their feeds on this rank: in the same order on all ranks."""
        acts: dict[int, Callable[[Turn], None]] = {}
        job, mine = self.lowered.job, {name: (t, p) for t, (name, p) in self.lowered.loaders.items()}
        for name, values in [(n.args[0], n.outputs) for n in job.nodes if n.op == "source"]:
            channels, followers = follow(name, job.loaders[name], self.rank.index, self.lent)
            self.feeds += followers
            if name in mine:
                task, packet = mine[name]
                views = [[packet.view(m, v) if v in packet.entries else None for v in values]
                         for m in self.memory[packet.id]]  # fmt: skip
                reader = Reader(job.loaders[name], values, views, channels)
                self.feeds.append(reader)
                acts[task] = reader.act
        return acts

    # ---- being watched ---------------------------------------------------------------------------------

    def _follow(self, tracing: bool) -> None:
        """Begin or end recording acts and calls."""
        self.executor.trace = self._acted if tracing else None
        for functions in self.chains:
            functions.clear()

    def _acted(self, task: Task, act: int, start: int, end: int) -> None:
        for recorder in self.vm.recorders:
            recorder.act(self.lowered.plan.name, task, start, end)

    def _record_calls(self, forms: Mapping[str, Result], calls: Sequence[Call], times: Sequence[int]) -> None:
        for recorder in self.vm.recorders:
            recorder.calls(self.lowered.plan, forms, calls, times)

    # ---- launching -------------------------------------------------------------------------------------

    def renewed(self) -> bool:
        """Whether a variable's tensor was given the memory of another one since this was last asked."""
        self.exchanges = counters.exchanged
        now = {v: blob_of(t) for v, t in self.lowered.job.variables.items()}
        before, self.variables = self.variables, now
        self.stale = self.stale or any(b is not before[v] for v, b in now.items())
        return self.stale

    def together(self, blobs: list[Blob]) -> list[Blob]:
        """One blob that represents all of them in an instruction."""
        self.vm.drain()
        while len(blobs) > 1:
            with self.vm.lock:  # another thread may launch a graph that shares them
                if not any(map(pending, blobs)):
                    join(blobs)
                    break
            self.vm.drain()
        return blobs[:1]

    def launch(
        self, inputs: list[Blob], numbers: list[float], outputs: list[Blob], reads: list[Blob], writes: list[Blob]
    ) -> None:
        """Submit one launch: an instruction that reads the inputs and variables and writes the outputs and variables.
        Outputs beyond those that are given go into the inputs that the program overwrites.

        Several may be in flight. A thread that waits for a result drives the actors meanwhile. A launch that is shorter
        than a thread switch runs at once, in the caller, without an instruction.
        """
        if self.executor.error is not None:
            self.executor.launch()  # raises: nobody may ever read this launch
        if self.transport.world_size > 1:
            self.transport.note(f"graph {self.lowered.plan.name}, launch {self.launches}")
        for feed in self.feeds:
            feed.take(self.launches, self.executor.until)
        self.launches += 1
        if self.stale:
            self._rebind()
        if self.written:
            over = [inputs[i] for i in self.written]
            mark(over)
            outputs, writes = [*outputs, *over], [*writes, *over]
        launch = Launch(inputs, numbers, outputs)
        if self.draws.steps:
            self.draws.launched()
        alone = not (self.vm.recorders or self.vm.refuses) and all(map(writable, self.draws.pending))
        if self.brief and alone and untouched(inputs, reads, writes):
            try:
                if self._at_once(launch):
                    return
            except BaseException as error:
                self._submit(launch, partial(_again, error), reads, writes)  # its outputs are lost
                if not isinstance(error, Exception):
                    raise
                return
        for b in inputs:
            if b.access is not None and any(w.name == self.lowered.plan.name for w in b.access.writers):
                hooks.wait_read(b)  # an output of this graph: its launches are ordered by their source only

        def start() -> None:
            with self.order:
                self.waiting.append(launch)
                try:
                    launch.ticket = self.executor.launch()
                except BaseException as error:
                    if not isinstance(error, Exception):
                        self.executor.fail(error)  # Ctrl-C: it may have been taken in
                    if launch in self.waiting:
                        self.waiting.remove(launch)
                    raise

        self._submit(launch, start, reads, writes, lambda seconds: self._drive(launch, seconds))

    def _submit(
        self, launch: Launch, start: Callable[[], None], reads: list[Blob], writes: list[Blob],
        drive: Callable[[float], None] | None = None,
    ) -> None:  # fmt: skip
        name = self.lowered.plan.name
        inputs, over = launch.inputs, [launch.inputs[i] for i in self.written]
        if over:  # each blob in only one of the lists of operands
            inputs = [b for b in inputs if not any(b is y for y in over)]
            writes = [b for b in writes if not any(b is y for y in over)]
        launch.instruction = Instruction(
            "launch", start, (*inputs, *reads), (*launch.outputs, *writes), self.draws.pending, name
        )
        self.vm.issue(launch.instruction, "graph:" + name, drive)

    def _at_once(self, launch: Launch) -> bool:
        """Run it in this thread, unless others are in flight. Its operands are free, as for an eager op."""
        with self.order:
            self.waiting.append(launch)
            until = self.executor.launch_if_idle()
            if until is None:
                self.waiting.pop()
                return False
        try:
            self.executor.wait(until)
            return True
        except BaseException as error:
            self.waits.over(error)
            self._give_up(error)
            raise

    def _drive(self, launch: Launch, seconds: float) -> None:
        assert launch.ticket is not None
        try:
            launch.ticket.wait()
        except BaseException as error:
            self.waits.over(error)
            self._give_up(error)
            if not isinstance(error, Exception):
                raise  # Ctrl-C, in the thread that happened to drive: the launch may be one that nobody reads
        else:
            self.waits.over()

    def _give_up(self, error: BaseException) -> None:
        """Fail all launches, also if only the wait for one was interrupted."""
        self.executor.fail(error)
        for other in (*self.under_way, *self.waiting):
            if other.instruction is not None and not other.instruction.finished:
                other.instruction.finish(error)
        self.under_way.clear()
        self.waiting.clear()
        self.executor.error = _bare(error)

    def _rebind(self) -> None:
        """Bind the chains again after a variable got other memory, once nothing is in flight."""
        self.vm.drain()
        lower_again(self.lowered)
        self.bound = {v: _data(b) for v, b in self.variables.items()}
        self.named = {v.name: t for v, t in self.bound.items()}
        self.stale = False
        self.binders.clear()
        for functions in self.chains:
            functions.clear()
        with self.vm.lock:
            for task in self.lowered.plan.tasks:
                places = {r.name: r.place for c in task.step.calls for r in c.results}
                for call in task.step.calls:
                    coalesce.gather(call, self.named, places)
        self._have_arenas()  # now: what is moved was held twice

    def ends_with(self, graph: object) -> None:
        """Be closed when the graph is dropped. The collecting thread may be inside one of its acts, be another rank's,
        or hold a lock that closing takes, and exceptions would be lost. So one that can't be closed at once is closed
        when the rank compiles the next, or ends."""
        weakref.finalize(graph, _dropped, self)

    def close(self) -> None:
        with contextlib.suppress(ValueError):
            self.vm.on_tracing_changed.remove(self._follow)
        for feed in self.feeds:
            feed.close()
        try:
            self.executor.close()
            if self.streams is not None:
                self.streams.join()
        finally:
            if self.executor.closing:
                for channel in self.staged.values():
                    channel.end(self.transport.deadline if self.executor.error is None else 0.0)
                self.rank.resources.pop(self.key, None)  # what it holds is free when the graph is
        if self.executor.closing and not self.ended:
            self.ended = True
            if self.executor.error is None:
                posts = map(self.executor.bus.count, self.channels)
                self.lent.release([*posts, *(n for f in self.feeds for n in f.counts())])
            self.vm.forget(f"graph:{self.lowered.plan.name}")


def close_dropped() -> None:
    """Close this rank's graphs that were garbage collected."""
    for running in [r for r in tuple(current().resources.values()) if isinstance(r, Running) and r.dropped]:
        _close(running)


def _close(running: Running) -> None:
    try:
        running.close()
    except Exception as error:
        if error is not running.executor.error:  # else readers of the failed launch's results get it
            raise


def _dropped(running: Running) -> None:
    running.dropped = True
    executor, rank = running.executor, running.rank
    free = not (running.vm.lock.locked() or executor.locked())
    if rank is current() and rank.world_size == 1 and free and executor.finished >= executor.launched:
        _close(running)


def _again(error: BaseException) -> None:
    raise error


def _bare(error: BaseException) -> BaseException:
    """An error to keep: without the frames of those who got it, which may hold the graph itself."""
    try:
        return copy.copy(error)
    except Exception:  # of a class that can't be copied
        return GraphError(repr(error))


def _torch(device: str) -> torch.device:
    return Device(device).check().torch


def _data(b: Blob) -> torch.Tensor:
    assert b.data is not None
    return b.data


@contextlib.contextmanager
def ordinary() -> Iterator[None]:
    """A context in which tensors are ordinary ones, which other threads and later launches may write, though the caller
    is in torch's inference mode."""
    grad = torch.is_grad_enabled()
    with torch._C._InferenceMode(False):
        torch._C._set_grad_enabled(grad)
        yield
