"""A chain as one straight Python function over memory that is there already.

`Program` is the chain on this rank: nodes, what it imports and exports, its memory plan. `bind` has the function
written, for given copies of its registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from weft.compiler import abreast, collective, homes
from weft.compiler.layout import Crossing, Packet, Shape, local_shape
from weft.compiler.memory import Block, MemoryPlan, plan
from weft.compiler.writer import FORM_ONLY, Writer
from weft.job.value import Node, Value
from weft.ops import OPS

SMALL = 1 << 16  # bytes


class Program:
    """One chain on one rank.

    imports    values read from registers, with the packet they come in
    exports    values written into registers
    variables  values whose memory is a tensor of the user's
    unpacked   a micro-batch's value to the input that it is a part of
    """

    def __init__(
        self, name: str, rank: int, nodes: list[Node], imports: dict[Value, Packet], exports: dict[Value, list[Packet]],
        crossings: dict[Node, Crossing], arrivals: dict[tuple[Node, int], Packet],
        departures: dict[tuple[Node, int], Packet],
        variables: set[Value], micro_batches: int, unpacked: dict[Value, Value],
    ) -> None:  # fmt: skip
        self.unpacked = unpacked
        self.name, self.rank, self.nodes = name, rank, nodes
        self.imports, self.exports, self.variables = imports, exports, variables
        self.crossings, self.arrivals, self.departures = crossings, arrivals, departures
        self.micro_batches = micro_batches
        self.random = any(n.op in OPS and OPS[n.op].random for n in nodes)
        self.last_read: dict[Value, int] = {}
        self.made_at: dict[Value, int] = {}
        for i, n in enumerate(nodes):
            for v in n.operands():
                self.last_read[v] = i
            self.made_at.update(dict.fromkeys(n.outputs, i))
        self.constant = self._constants()
        self.root = self._roots()
        self.buckets = collective.buckets(self)
        self.buckets |= abreast.beside(nodes, self.bytes, self.placeable, {*self._inside(), *exports})
        self.bucket_of = {v: n for n, bucket in self.buckets.items() for v in bucket.offsets}
        copied = {v for n in nodes if self.kept(n) for v in n.outputs if not self.exports.get(v)}
        inside = self._inside()  # these have their places
        copied -= inside
        self.joined = homes.joined(nodes, copied.__contains__, inside.isdisjoint, self.shape)
        self.wholes = {part.whole for part in self.joined.values()}
        wholes = {v for v in self.wholes if not self.exports.get(v)}
        self.ordered = homes.ordered(nodes, (copied - self.joined.keys() | wholes).__contains__, self.shape)
        self.memory, self.blocks = self._plan()

    # ---- memory --------------------------------------------------------------------------------------

    def shape(self, v: Value) -> Shape:
        return local_shape(v, self.rank)

    def bytes(self, v: Value) -> int:
        return math.prod(self.shape(v)) * v.dtype.itemsize

    def stand_in(self, v: Value, device: torch.device) -> torch.Tensor:
        """A tensor of a value's form, for those who read no more."""
        return torch.empty(self.shape(v), dtype=v.dtype.torch, device=device)

    def _roots(self) -> dict[Value, Value]:
        """For a value that only looks at another's memory: whose memory it is."""
        root: dict[Value, Value] = {}
        for n in self.nodes:
            if n in self.constant:
                continue
            looks = (n.op in OPS and OPS[n.op].view) or (n.op == "boxing" and collective.aliases(n, self.rank))
            if looks and isinstance(n.args[0], Value):
                for v in n.outputs:
                    root[v] = root.get(n.args[0], n.args[0])
        return root

    def _constants(self) -> set[Node]:
        """Nodes whose value depends on nothing that varies, and is small: computed once, when the chain is bound."""
        found: set[Node] = set()
        known: set[Value] = set()
        for n in self.nodes:
            if n.op not in OPS or len(n.outputs) != 1 or self.exports.get(n.outputs[0]):
                continue
            op = OPS[n.op]
            if op.random or op.writes or op.keywords or (self.bytes(n.outputs[0]) > SMALL and not op.view):
                continue
            if n.op in FORM_ONLY or all(v in known for v in n.operands()):
                found.add(n)
                known.update(n.outputs)
        return found

    def planned(self, node: Node) -> bool:
        """Whether the node's outputs get memory of the arena: it has a kernel that writes where it is told to."""
        if node in self.constant:
            return False
        if node.op == "boxing":
            return node not in self.crossings and collective.writes_into(node, self.rank)
        return node.op in OPS and OPS[node.op].out_kernel is not None and not node.ranked and not OPS[node.op].random

    def kept(self, node: Node) -> bool:
        """Whether the node's outputs, new each time but small, are copied to memory of the arena, so that calls that
        read them can be bound."""
        if node.op not in OPS or node in self.constant or self.planned(node) or OPS[node.op].view:
            return False
        return not OPS[node.op].random and all(0 < self.bytes(v) <= SMALL for v in node.outputs)

    def placeable(self, node: Node) -> bool:
        """Whether the node's outputs lie where the plan says."""
        return self.planned(node) or self.kept(node)

    def _inside(self) -> set[Value]:
        return {v for b in self.buckets.values() for v in (*b.members, *b.outputs)}

    def place_of(self, v: Value) -> tuple[int, int] | None:
        """Which memory a value lies in, a register's or this chain's own, and where in it; None where no plan says."""
        packet = (self.exports.get(v) or [self.imports.get(v)])[0]
        if packet is not None and v not in self.unpacked:
            return packet.id + 1, packet.offset(v)
        if v in self.bucket_of:
            return 0, self.in_bucket(v)
        return (0, self.memory.offsets[self.blocks[v]]) if v in self.blocks else None

    def in_bucket(self, v: Value) -> int:
        """Where in the arena a value of a bucket lies."""
        node = self.bucket_of[v]
        return self.memory.offsets[self.blocks[node]] + self.buckets[node].offsets[v]

    def _plan(self) -> tuple[MemoryPlan, dict[Value | Node, int]]:
        """Offsets for every value that needs memory of this chain's own; members of a bucket lie side by side."""
        last: dict[Value, int] = {}
        for v, i in self.last_read.items():
            r = self.root.get(v, v)
            last[r] = max(last.get(r, 0), i)
        blocks: list[Block] = []
        place: dict[Value | Node, int] = {}
        inside = self._inside()
        for i, n in enumerate(self.nodes):
            if n in self.buckets:
                bucket = self.buckets[n]
                made = [self.made_at[v] for v in bucket.members]
                until = max([i, *(last.get(v, i) for v in (*bucket.outputs, *bucket.members))])
                place[n] = len(blocks)
                blocks.append(Block(bucket.bytes, min([i, *made]), until))
                continue
            if not self.planned(n) and not self.kept(n):
                continue
            for v in n.outputs:
                if v in inside or v in self.joined or self.exports.get(v):
                    continue
                parts = [w for w, part in self.joined.items() if part.whole is v]
                first = min([i, *map(self.made_at.__getitem__, parts)])
                place[v] = len(blocks)
                blocks.append(Block(self.bytes(v), first, max([i, *(last.get(w, i) for w in (v, *parts))])))
        return plan(blocks), place

    # ---- binding -------------------------------------------------------------------------------------

    def bind(
        self, slots: Mapping[int, torch.Tensor], phase: int, variables: Mapping[Value, torch.Tensor],
        arena: torch.Tensor, run: Any,
    ) -> tuple[Callable[[], None], str, Callable[[Exception], Exception]]:  # fmt: skip
        """The function for these copies of the registers, its text, and what explains its errors. `run` tells
        transports and seeds."""
        writer = Writer(self, slots, phase, variables, arena, run)
        for n in self.nodes:
            writer.node(n)
        return *writer.finish(), writer.explained
