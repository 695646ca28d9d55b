"""Lower a job to one rank's plan: chains become tasks, values that leave a chain go into registers.

Only this rank's part is computed. Ids follow from what all ranks know (the order of chains, the ranks at both ends), so
both ends of a register between ranks agree without communication.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.compiler import chains, faster, inductor
from weft.compiler.calls.program import lower_chain
from weft.compiler.chain_graph import ChainGraph
from weft.compiler.chains import Key
from weft.compiler.ends import sink_step, source_step
from weft.compiler.layout import Chain, Crossing, Packet, sliced, strides_of
from weft.compiler.options import Options
from weft.compiler.pipeline import Pipeline, roles
from weft.compiler.shared_registers import shared
from weft.compiler.streams import COLLECTIVES, COPIES, kind_of, streams_of
from weft.core.device import Device
from weft.core.errors import CompileError
from weft.core.idle import idle
from weft.job.job import Job
from weft.job.text import shared_hash
from weft.job.value import Node, Value
from weft.plan import ids, order
from weft.plan.calls import Step
from weft.plan.plan import Plan, Port, Register, Stream, Task
from weft.plan.verify import Act

CPU = Device("cpu")
SOURCE, SINK = "source", "sink"
KINDS = 3
DATA, LOOP, TURN = range(KINDS)  # what a register is for: values, the order of launches, the order of collectives


@dataclass
class Lowered:
    """A rank's plan, and what it was lowered from."""

    plan: Plan
    job: Job
    options: Options
    chains: dict[int, Chain] = field(default_factory=dict)  # by task id
    packets: dict[int, Packet] = field(default_factory=dict)  # by register id
    inputs: list[Packet] = field(default_factory=list)  # one for each device
    outputs: list[tuple[Node, Packet | None]] = field(default_factory=list)
    source: int = 0
    sink: int = 0
    unpacked: dict[Value, Value] = field(default_factory=dict)  # from a micro-batch's value to its input
    loaders: dict[int, tuple[str, Packet]] = field(default_factory=dict)  # by task id: its name, its register
    roles: dict[str, str] = field(default_factory=dict)  # what each chain computes, by name, on all ranks
    views: dict[Value, Node] = field(default_factory=dict)  # outputs that are views of variables: how they are made


def lower(job: Job, rank: int, world_size: int, options: Options) -> Lowered:
    return _Lowering(job, rank, world_size, options).go()


class _Lowering:
    def __init__(self, job: Job, rank: int, world_size: int, options: Options) -> None:
        self.job, self.rank, self.world_size, self.options = job, rank, world_size, options
        self.micro = job.micro_batches
        streams = streams_of(job, options)
        self.chains_of = chains.assign(job, streams)
        keys = dict.fromkeys(k for ks in self.chains_of.values() for k in ks)
        self.keys = sorted(
            keys, key=lambda k: (k.depth, not k.micro, k.late, str(k.placement), k.stream, str(k.device))
        )
        self.index = {k: i for i, k in enumerate(self.keys)}
        self.mine = [k for k in self.keys if k.placement is None or rank in k.placement]
        # A single chain shares its thread with both ends: none can run ahead.
        self.ahead = options.ahead if len(self.mine) > 1 else 1
        idle("config.set_outputs_buffer_size(value)", options.ahead != Options().ahead and len(self.keys) == 1)
        self.memory = chains.variables_of(job)
        self.aliases = [
            n
            for n in job.nodes
            if n not in self.chains_of and n.outputs and n.outputs[0] in self.memory and n.op != "variable"
        ]
        self.graph = ChainGraph(self.chains_of, self.keys, self.memory, chains.held_of(job))
        self.pipeline = Pipeline(job, chains.beats(job, streams, self.chains_of), self.micro)
        self.roles = roles(self.chains_of)
        self.packets: dict[int, Packet] = {}
        self.more = -1  # the number of registers beyond those of two ends
        self.joint: dict[tuple[Key, ...], Packet] = {}  # those that several chains read, by source and readers
        self.ends = [SOURCE, SINK, *job.loaders]
        self.streams = sorted({k.stream for k in self.keys if k.stream})
        self.strides = strides_of(job)
        self.unpacked = {n.outputs[0]: n.args[0] for n in job.nodes if n.op == "unpack"}
        variables = {v: self.strides.get(v) for v in self.memory}
        given = variables, self.micro, self.unpacked, options.tight, options.backend
        roomy = inductor.asked(options) and not options.limited
        self.chains = {k: Chain(self.title(k), rank, *given, roomy=roomy) for k in self.mine}
        for node, keys in self.chains_of.items():
            for k in keys:
                if k in self.chains:
                    self.chains[k].nodes.append(node)
        self.made = {v: keys[-1] for node, keys in self.chains_of.items() for v in node.outputs}
        maker = {v: node for node in self.chains_of for v in node.outputs}
        self.again = {k: chains.views_again(k, self.chains[k].nodes, self.chains_of, maker) for k in self.mine}
        self.given: dict[Value, Packet] = {}  # the packet by which an input or a loader's value comes

    # ---- names and numbers -----------------------------------------------------------------------------

    def place(self, end: Key | str) -> int:
        return self.index[end] if isinstance(end, Key) else len(self.keys) + self.ends.index(end)

    def task_id(self, end: Key | str, rank: int) -> int:
        if isinstance(end, Key):
            stream = len(self.ends) - 1 + self.streams.index(end.stream) if end.stream else 0
            device = end.device or CPU
        else:
            stream, device = max(0, self.ends.index(end) - 1), CPU  # a loader has its own thread
        return ids.encode(rank, device.type, device.index, stream, self.place(end) + 1)

    def packet(
        self, source: Key | str, target: Key | str, src: int, dst: int, copies: int, full: int = 0, kind: int = DATA
    ) -> Packet:
        number = self.number(source, target, src, dst, kind)
        known = self.packets.get(number)
        if known is None:
            name = f"{self.title(source)}-{self.title(target)}" + (f".{src}-{dst}" if src != dst else "")
            name += ("", ".next" if full else ".then", ".turn")[kind]
            device = source.device if isinstance(source, Key) and kind == DATA else None
            known = self.packets[number] = Packet(number, name, source, [target], src, dst, copies, full, device=device)
        return known

    def number(self, source: Key | str, target: Key | str, src: int, dst: int, kind: int) -> int:
        number = (self.place(source) * (len(self.keys) + len(self.ends)) + self.place(target)) * KINDS + kind
        return (number * self.world_size + src) * self.world_size + dst

    def title(self, end: Key | str) -> str:
        if isinstance(end, str):
            return end
        last = self.index[end] == len(self.keys) - 1
        if end.stream:
            return f"{COPIES if kind_of(end.stream) == 'copy' else COLLECTIVES}{self.index[end]}"
        role = "weights" if end.late else "step" if not end.micro and (last or self.micro > 1) else "chain"
        return f"{role}{self.index[end]}"

    def copies(self, a: Key | str, b: Key | str) -> int:
        """The number of copies of a register: how far its writer may run ahead."""
        return self.pipeline.copies(a, b) if isinstance(a, Key) and isinstance(b, Key) else self.ahead

    # ---- the work --------------------------------------------------------------------------------------

    def go(self) -> Lowered:
        job, rank = self.job, self.rank
        lowered = Lowered(Plan(job.name, rank, self.world_size), job, self.options, unpacked=self.unpacked)
        lowered.roles = {self.title(k): role for k, role in self.roles.items() if role}
        feeds = self._feeds()
        self._connect()
        lowered.outputs = [(node, self._output(node.args[0])) for node in job.outputs]
        shown = [node for node, packet in lowered.outputs if packet is None]
        lowered.views = {v: n for n in self._needed(shown) for v in n.outputs}
        self._finish_feeds(lowered, feeds)
        for k in self.mine:
            self.packet(k, SINK, rank, rank, self.ahead)  # a launch is over when every chain has done its part
        self._begin_chains({k for p in lowered.inputs for k in p.targets if isinstance(k, Key)})
        if not self.mine:
            self.packet(SOURCE, SINK, rank, rank, self.ahead)
        self._loops()
        self._take_turns()
        self._sort()
        for p in self.packets.values():
            p.close()
        lowered.packets = {p.id: p for p in self.packets.values()}
        tasks = self._tasks(lowered)
        lowered.source, lowered.sink = self.task_id(SOURCE, rank), self.task_id(SINK, rank)
        ends = self._ends(lowered, sink_step(lowered.outputs, lowered.views, self.strides, rank))
        registers = [self._register(p) for p in lowered.packets.values()]
        streams = [Stream(ids.stream_of(t), name, "worker") for t, (name, _) in lowered.loaders.items()]
        own = {ids.stream_of(self.task_id(k, rank)): k.stream for k in self.mine if k.stream}
        streams += [Stream(index, name, "worker") for index, name in own.items()]
        lowered.plan = shared(Plan(
            job.name, rank, self.world_size, (Stream(0, "compute"), *streams), (*ends[:-1], *tasks, *ends[-1:]),
            tuple(sorted(registers, key=lambda r: r.id)), shared_hash(job),
        ))  # fmt: skip
        return lowered

    def _feeds(self) -> dict[tuple[str, Device | None], Packet]:
        """The packets of the source and of loaders, one for each device that reads."""
        of_loaders = {v: n.args[0] for n in self.job.nodes if n.op == "source" for v in n.outputs}
        given = {n.outputs[0]: n.outputs[0] for n in self.job.nodes if n.op in ("input", "host")}
        given |= {v: v for v in of_loaders} | self.unpacked
        feeds: dict[tuple[str, Device | None], Packet] = {}
        for v, whole in given.items():
            end, device = of_loaders.get(whole, SOURCE), chains.device_of(v)
            if (end, device) not in feeds:
                beyond = sum(e == end for e, _ in feeds)
                number = self.beyond() if beyond else self.number(end, SINK, self.rank, self.rank, LOOP)
                name = ("inputs" if end == SOURCE else f"{end}.batch") + (f".{device}" if beyond else "")
                copies = self.ahead if end == SOURCE else 2
                feeds[end, device] = Packet(number, name, end, [], self.rank, self.rank, copies, device=device)
            self.given[v] = feeds[end, device]
        return feeds

    def _connect(self) -> None:
        """The packets by which this rank's chains get what they read, from the ends, other chains and other ranks."""
        reads: dict[Value, dict[Key, None]] = {}
        for k in self.mine:
            near = {v for n in self.again[k] for v in n.outputs}
            for node in (*self.again[k], *self.chains[k].nodes):
                keys = self.chains_of[node]
                if len(keys) == 2:
                    self._cross(node, keys, k)
                    if k != keys[0]:
                        continue
                for v in node.operands():
                    if v in self.memory or v in near or self.made.get(v) == k:
                        continue
                    if v in self.given:
                        feed = self.chains[k].imports[v] = self.given[v]
                        feed.entries[v] = v.local_shape(self.rank)
                        feed.targets.append(k)
                    else:
                        reads.setdefault(v, {})[k] = None
        for v, readers_of in reads.items():
            for packet, readers in self._from_chain(self.made[v], list(readers_of)):
                packet.entries[v] = v.local_shape(self.rank)
                self._export(v, packet)
                for k in readers:
                    self.chains[k].imports[v] = packet

    def _tasks(self, lowered: Lowered) -> list[Task]:
        """A task for each of this rank's chains."""
        tasks = []
        for k, chain in self.chains.items():
            nodes = [*self._needed(chain.nodes), *self.again[k], *chain.nodes]
            chain.nodes, chain.one_thread = faster.prepared(nodes, chain.exports, self.rank, self.options)
            tasks.append(task := self._task(k, chain))
            lowered.chains[task.id] = chain
        return tasks

    def _sort(self) -> None:
        """Let what collectives on streams read and write lie in one order, so that it may lie in one place."""
        apart = [n for n, keys in self.chains_of.items() if kind_of(keys[0].stream) == "collective"]
        place = {v: i for n in apart for values in (n.operands(), n.outputs) for i, v in enumerate(values)}
        for p in self.packets.values():
            if apart and place.keys() >= p.entries.keys():
                p.entries = dict(sorted(p.entries.items(), key=lambda entry: place[entry[0]]))

    def _output(self, v: Value) -> Packet | None:
        """The packet that brings an output to the sink; None if it is a variable's, or on other ranks."""
        if (v.spec is not None and self.rank not in v.spec.placement) or v in self.memory:
            return None
        if v in self.given:
            packet = self.given[v]
            packet.targets.append(SINK)
        else:
            packet = self.packet(self.made[v], SINK, self.rank, self.rank, self.ahead)
            self._export(v, packet)
        packet.entries[v] = v.local_shape(self.rank)
        return packet

    def _needed(self, nodes: list[Node]) -> list[Node]:
        """The views of variables that these nodes read."""
        wanted = {v for n in nodes for v in n.operands()}
        found: list[Node] = []
        for n in reversed(self.aliases):
            if not wanted.isdisjoint(n.outputs):
                found.append(n)
                wanted.update(n.operands())
        return found[::-1]

    def _from_chain(self, source: Key, keys: list[Key]) -> list[tuple[Packet, list[Key]]]:
        """The packets by which chains read a value of another one, with their readers: one, but for micro-batches, of
        which other numbers may be under way to each. In a stage that collectives cut, most are alike."""
        if not any(k.micro for k in (source, *keys)):
            return [(self._joint(source, keys), keys)]
        together: dict[Key | int, list[Key]] = {}
        for k in keys:
            in_stage = source.micro and k.micro and source.placement is k.placement
            alike = in_stage and k.placement in self.pipeline.cut
            together.setdefault(self.copies(source, k) if alike else k, []).append(k)
        return [(self._joint(source, readers), readers) for readers in together.values()]

    def _joint(self, source: Key, keys: list[Key]) -> Packet:
        """The packet that some chains of this rank read."""
        copies = max(self.copies(source, k) for k in keys)
        if len(keys) == 1:
            return self.packet(source, keys[0], self.rank, self.rank, copies)
        known = self.joint.get((source, *keys))
        if known is None:
            name = f"{self.title(source)}-{'/'.join(map(self.title, keys))}"
            number = self.beyond()
            known = self.joint[source, *keys] = self.packets[number] = Packet(
                number, name, source, [*keys], self.rank, self.rank, copies, device=source.device
            )
        return known

    def beyond(self) -> int:
        """A number for a register within this rank that those of two ends don't give."""
        self.more += 1
        places = len(self.keys) + len(self.ends)
        return ((places * places * KINDS + self.more) * self.world_size + self.rank) * self.world_size + self.rank

    def _export(self, v: Value, packet: Packet) -> None:
        packets = self.chains[self.made[v]].exports.setdefault(v, [])
        if packet not in packets:
            packets.append(packet)

    def _cross(self, node: Node, keys: tuple[Key, ...], k: Key) -> None:
        """The packets of an exchange between two chains; pieces for this rank itself use one, too."""
        (a, b), chain = keys, self.chains[k]
        part = Crossing.of(node, self.rank)
        v = node.outputs[0]  # by which its entry is known: its operand may go elsewhere, too
        chain.crossings[node] = part
        if k == a:
            shape = node.args[0].local_shape(self.rank)
            for rank, where in part.sends:
                packet = self.packet(a, b, self.rank, rank, self.copies(a, b))
                packet.entries[v] = sliced(shape, where)
                chain.departures[node, rank] = packet
        if k == b:
            for where, ranks in part.receives:
                for rank in ranks:
                    packet = self.packet(a, b, rank, self.rank, self.copies(a, b))
                    packet.entries[v] = sliced(part.shape, where)
                    chain.arrivals[node, rank] = packet

    def _finish_feeds(self, lowered: Lowered, feeds: dict[tuple[str, Device | None], Packet]) -> None:
        """Let the sources' registers hold whole inputs, of which micro-batches are slices."""
        for (end, _), feed in feeds.items():
            if not feed.targets:
                continue
            owners = dict.fromkeys(self.unpacked.get(v, v) for v in feed.entries)
            feed.entries = {v: v.local_shape(self.rank) for v in owners}
            self.packets[feed.id] = feed
            if end == SOURCE:
                lowered.inputs.append(feed)
            else:
                lowered.loaders[self.task_id(end, self.rank)] = (end, feed)

    def _begin_chains(self, begun: set[Key]) -> None:
        """Let every chain wait for the launch to begin on this rank: for the source, or for a chain here that does.

        Data from other ranks doesn't imply that: they may be launches ahead.
        """
        within = [
            (p.source, target)
            for p in self.packets.values()
            for target in p.targets
            if p.src == p.dst and not p.full and isinstance(p.source, Key) and isinstance(target, Key)
        ]
        for k in self.mine:
            while heard := {b for a, b in within if a in begun} - begun:
                begun |= heard
            if k not in begun:
                self.packet(SOURCE, k, self.rank, self.rank, self.ahead)
                begun.add(k)

    def _loops(self) -> None:
        """Order the writes of variables before the reads, those of the next launch by a register that starts full; and
        chains as the graph of chains wants."""
        for a, b in self.graph.orders:
            if a in self.mine and b in self.mine:
                self.packet(a, b, self.rank, self.rank, self.copies(a, b))
        for w, k, full in self.graph.loops:
            if w in self.mine and k in self.mine:
                self.packet(w, k, self.rank, self.rank, 1, full, LOOP)

    def _take_turns(self) -> None:
        """Make chains with collectives act in one order on all ranks: on each stream they pass a turn around. So do the
        chains of a pipeline whose schedule depends on who goes first.

        A collective blocks its stream's thread. So where data moves between placements or streams, the other chains
        take turns, too: else one that the partner waits for could be queued behind the collective.
        """
        talking = [k for k in self.mine if k in self.graph.talking]
        streams = {k.stream for k in talking}
        mixed = any(len(keys) == 2 for keys in self.chains_of.values()) or ("" in streams and len(streams) > 1)
        if self.pipeline.timed:
            streams.add("")
        sequences = [
            {self.place(k): k for k in self.mine if k.stream == stream and (mixed or k in talking)}
            for stream in sorted(streams)
        ]
        if all(len(mine) < 2 for mine in sequences):
            return
        acts = self.graph.acts(self.micro, self.copies, self._period, lambda k: len(self.roles[k]), self.pipeline.due)
        for mine in sequences:
            self._in_turn([a for a in acts if a.task in mine], mine)

    def _in_turn(self, acts: list[Act], mine: dict[int, Key]) -> None:
        for (a, b), turns in order.handovers(acts).items():
            p = self.packet(mine[a], mine[b], self.rank, self.rank, 1, int(turns[-1][2]), TURN)
            p.at = tuple(t[0] for t in turns), tuple(sorted(t[1] for t in turns))

    def _period(self, end: Key | str, other: Key | str) -> int:
        """For how many acts of `end` one copy of a register is used."""
        mine = self.micro if isinstance(end, Key) and end.micro else 1
        theirs = self.micro if isinstance(other, Key) and other.micro else 1
        return mine if theirs == 1 else 1

    def _task(self, k: Key, chain: Chain) -> Task:
        reads: dict[int, Port] = {}
        writes: dict[int, Port] = {}
        for p in self.packets.values():
            if k in p.targets and p.dst == self.rank:
                reads[p.id] = Port(p.id, 1, p.at[1]) if p.at[1] else Port(p.id, self._period(k, p.source))
            if p.source == k and p.src == self.rank:
                writes[p.id] = Port(p.id, 1, p.at[0]) if p.at[0] else Port(p.id, self._period(k, p.targets[0]))
        acts = self.micro if k.micro else 1
        return Task(
            self.task_id(k, self.rank), chain.name, kind_of(k.stream), tuple(reads.values()),
            tuple(writes.values()), acts, step=lower_chain(chain),
        )  # fmt: skip

    def _ends(self, lowered: Lowered, shown: Step) -> list[Task]:
        """The tasks of the source (a launch's inputs), of loaders, and, last, of the sink (its outputs)."""
        produced = tuple(Port(p.id) for p in self.packets.values() if p.source == SOURCE)
        read = {k for p in self.packets.values() if p.dst == self.rank for k in p.targets}
        free = [k for k in self.mine if k not in read]
        ends = [Task(lowered.source, SOURCE, "source", (), produced, step=source_step(self.job, lowered.inputs))]
        ends += [Task(t, name, "source", (), (Port(p.id),), ahead=True) for t, (name, p) in lowered.loaders.items()]
        if not produced and free:
            raise CompileError(
                f"graph {self.job.name}: nothing that it computes depends on an input; give build() a tensor, "
                "or compute constants outside of the graph"
            )
        consumed = [Port(p.id) for p in self.packets.values() if SINK in p.targets]
        return [*ends, Task(lowered.sink, SINK, "sink", tuple(consumed), (), step=shown)]

    def _register(self, p: Packet) -> Register:
        shape, dtype = ((p.bytes,), "uint8") if p.entries else ((), "")
        ends = [self.task_id(k, p.dst) for k in sorted(set(p.targets), key=self.place)]
        device = str(p.device) if p.entries and p.device not in (None, CPU) else ""
        return Register(
            p.id, p.name, self.task_id(p.source, p.src), tuple(ends), p.copies, shape, dtype, p.full, device=device
        )
