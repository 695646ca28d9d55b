"""Group nodes into chains: a chain is what one actor runs in one act.

A chain's key is (placement, once per micro-batch or per launch, depth, late, stream, device). Depth counts, along the
longest path to a node, how often data changes placement, device, rate or stream. So each edge between chains leads to a
greater depth, and there is no cycle. A pipeline's first stage has a forward chain of depth 0 and a backward chain of
depth 2 S - 2. Deferrable nodes (`Node.late`) form a separate chain.

A node with its own stream starts when the chain ends that makes its operands. So it cuts that chain: later nodes of the
job that don't depend on it run in the next chain, overlapping with it. The first node that reads its result begins a
chain, too: what comes before in the job doesn't wait for it. Copies of micro-batches don't cut so. A copy of what is
there before any chain, as the inputs are, starts with the launch.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from weft.compiler.local_node import written
from weft.compiler.streams import kind_of
from weft.core.device import Device
from weft.core.placement import Placement
from weft.job.job import Job
from weft.job.value import Node, Value


class Key(NamedTuple):
    placement: Placement | None  # None: local
    micro: bool
    depth: int
    late: bool = False
    stream: str = ""  # one of its own, apart from the rank's compute
    device: Device | None = None  # where its values lie; None: where the placement says


NO_CHAIN: Final = ("variable", "input", "host", "source", "unpack", "output", "steer")
LEAVING: Final = ("accumulate", "pack")  # they run in the micro chain that makes their operand
Line = tuple[Placement | None, bool, Device | None]


def placement_of(v: Value) -> Placement | None:
    return v.spec.placement if v.spec is not None else None


def device_of(v: Value) -> Device | None:
    return v.device if v.spec is None else None


def is_alias(node: Node, variables: Container[Value]) -> bool:
    """Whether a node is a view of a variable, which each reader can make itself, once."""
    return node.view and node.args[0] in variables


def variables_of(job: Job) -> dict[Value, Value]:
    """From variables and views of them to the variables."""
    found: dict[Value, Value] = {}
    for n in job.nodes:
        if n.op == "variable":
            found[n.outputs[0]] = n.outputs[0]
        elif is_alias(n, found):
            found.update(dict.fromkeys(n.outputs, found[n.args[0]]))
    return found


def held_of(job: Job) -> dict[Value, Value]:
    """What a node overwrites, and views of it, to whose memory it is: variables, and results that are written later."""
    base: dict[Value, Value] = {}
    for n in job.nodes:
        if n.view and isinstance(n.args[0], Value):
            base.update(dict.fromkeys(n.outputs, base.get(n.args[0], n.args[0])))
    over = {base.get(v, v) for n in job.nodes for v in written(n)}
    results = {v: base.get(v, v) for n in job.nodes for v in n.outputs if base.get(v, v) in over}
    return results | variables_of(job)


def assign(job: Job, streams: Mapping[Node, str] = MappingProxyType({})) -> dict[Node, tuple[Key, ...]]:
    """The chains of each node that runs: one, or two where it crosses from one placement to another."""
    found: dict[Node, tuple[Key, ...]] = {}
    reached: dict[Line, int] = {}  # the greatest depth so far, and
    cut: dict[Line, int] = {}  # the least depth of what follows
    awaited: dict[tuple[Line, Key], int] = {}  # the depth of the first reader of a stream's chain
    made_in: dict[Value, Key | None] = {}  # the chain that makes a value; None: it is there before any chain runs
    memory, held = variables_of(job), held_of(job)
    using: dict[Value, set[Key]] = {}  # the chains that read or write what is overwritten,
    writing: dict[Value, set[Key]] = {}  # and those that write it
    prepared: dict[Line, int] = {}  # the greatest depth of what runs once a launch before micro-batches, or beside them
    later = _after_micro_batches(job, memory, held) if job.micro_batches > 1 else {}
    for node in (*(n for n in job.nodes if n not in later), *later):
        if node.op in NO_CHAIN or is_alias(node, memory):
            made_in.update(dict.fromkeys(node.outputs))
            continue
        operands = node.operands()
        places = [placement_of(v) for v in operands]
        there = placement_of(node.outputs[0]) if node.outputs else (places[0] if places else None)
        crossing = bool(places) and places[0] is not there
        start = places[0] if crossing else there
        leaving = node.op in LEAVING
        rate = node.micro or leaving
        stream = streams.get(node, "")
        copies = kind_of(stream) == "copy"
        device = device_of([*node.outputs, *node.operands()][0])
        line, mine = (start, rate, device), (rate, node.late, stream, device)
        depth = 1 if rate else 0  # what is prepared once a launch comes before every micro-batch
        there_before = all(made_in[v] is None for v in operands)
        stays = stream or (node.op == "boxing" and there_before)  # starts where it stands, as gathers of parameters do
        if not (copies or leaving):
            depth = max(depth, (reached if stays else cut).get(line, depth))
        if stream and not copies and line in reached and there_before:
            depth += 1
        for v, place in zip(operands, places, strict=True):
            source = made_in[v]
            if source is not None:
                moved = source.placement is not place or source.placement is not start
                moved = moved or (source.micro, source.late, source.stream, source.device) != mine
                depth = max(depth, source.depth + moved)
                if source.stream and not (stream or rate):
                    depth = max(depth, awaited.setdefault((line, source), reached.get(line, -1) + 1))
        used, over = ([held[v] for v in values if v in held] for values in (operands, written(node)))
        touched = {k for v in over for k in using.get(v, ())} if over else set()
        touched.update(k for v in used for k in writing.get(v, ()))
        for before in touched:  # who reads it must find what was written by then, and nothing later
            apart = (before.micro, before.late, before.stream, before.device) != mine
            depth = max(depth, before.depth + apart)
        if node in later:
            depth = max(depth, prepared.get(line, -1) + 1, prepared.get((there, rate, device), -1) + 1 - crossing)
        elif later and not rate:
            prepared[line] = max(prepared.get(line, depth), depth)
            prepared[there, rate, device] = max(prepared.get((there, rate, device), depth), depth + crossing)
        first = Key(start, rate, depth, node.late, stream, device)
        for table, values in ((using, used), (writing, over)):
            for v in values:
                table.setdefault(v, set()).add(first)
        if copies:  # what it copies ends a chain on the other device
            line = start, rate, node.args[2]
        if not (copies and rate):
            table = cut if stream else reached
            table[line] = max(table.get(line, depth), depth)
        keys = (first, Key(there, rate, depth + 1)) if crossing else (first,)
        found[node] = keys
        for v in node.outputs:
            made_in[v] = keys[-1]
    _put_off(job, found, held, writing)
    return {n: found[n] for n in job.nodes if n in found} if later else found


def _after_micro_batches(job: Job, memory: Mapping[Value, Value], held: Mapping[Value, Value]) -> dict[Node, None]:
    """What runs once a launch and needs all micro-batches, or overwrites what such a node read. In a chain with what is
    prepared for them it would make micro-batches wait for the last one."""
    made: set[Value] = set()
    read: set[Value] = set()
    later: dict[Node, None] = {}
    for node in job.nodes:
        over = {held[v] for v in written(node)}
        if not node.micro and node.op not in LEAVING:
            used = {held.get(v, v) for v in node.operands()} | over
            if made.isdisjoint(used) and read.isdisjoint(over):
                continue
            if node.op not in NO_CHAIN and not is_alias(node, memory):
                later[node] = None
                read |= used
        made.update(node.outputs, over)
    return later


def beats(job: Job, streams: Mapping[Node, str], found: Mapping[Node, tuple[Key, ...]]) -> dict[Key, int]:
    """How deep in a pipeline each chain is: its depth if collectives of micro-batches had no streams. These cut a
    stage into chains, which are all of one beat."""
    kept = {n: stream for n, stream in streams.items() if not (n.micro and kind_of(stream) == "collective")}
    whole = found if len(kept) == len(streams) else assign(job, kept)
    depths: dict[Key, int] = {}
    for node, keys in found.items():
        for k, uncut in zip(keys, whole[node], strict=True):
            depths[k] = max(depths.get(k, 0), uncut.depth)
    return depths


def _put_off(
    job: Job, found: dict[Node, tuple[Key, ...]], held: Mapping[Value, Value], writing: Mapping[Value, set[Key]]
) -> None:
    """Move backward nodes that read only forward values (recomputation, say) into the chain that first reads them: else
    they would be computed, and kept, too early. A read of what is overwritten stays before the write."""
    read: dict[Value, Key] = {}
    for node in reversed(job.nodes):
        if node not in found:
            continue
        own = found[node]
        wanted = [read[v] for v in node.outputs if v in read]
        if wanted and len(own) == 1 and (node.late or node.extra.get("backward")):
            first = min(wanted, key=lambda k: k.depth)
            alike = all(getattr(first, k) == getattr(own[0], k) for k in ("placement", "micro", "stream", "device"))
            writers = {k for v in node.operands() if v in held for k in writing.get(held[v], ())}
            if alike and all(k == first or k.depth > first.depth for k in writers):
                own = found[node] = (first,)
        for v in node.operands():
            if v not in read or own[0].depth < read[v].depth:
                read[v] = own[0]


def views_again(
    k: Key, nodes: list[Node], chains_of: dict[Node, tuple[Key, ...]], maker: dict[Value, Node]
) -> list[Node]:
    """Views made in other chains of the rank that this one reads: to make them again is free, where a register would
    copy them. Between chains of micro-batches registers are used: they limit how far these run ahead."""
    if k.stream or k.micro:
        return []
    found: dict[Node, None] = {}

    def look(node: Node) -> None:
        for v in node.operands():
            n = maker.get(v)
            if n is not None and n not in found and chains_of[n][-1] != k and _is_view(n):
                if chains_of[n] == (k._replace(depth=chains_of[n][0].depth),):
                    look(n)
                    found[n] = None

    for node in nodes:
        if len(chains_of[node]) == 1:
            look(node)
    return list(found)


def _is_view(n: Node) -> bool:
    """Whether a node is a view of its operand, and of nearly all of it."""
    if not n.view or not isinstance(n.args[0], Value):
        return False
    return math.prod(n.args[0].shape) <= sum(math.prod(v.shape) for v in n.outputs)
