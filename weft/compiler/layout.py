"""The registers of a rank's plan: contents, offsets, producer and consumers; and its chains, which read and write them.
Pure; both ends of a crossing agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from weft.boxing.lowering import Slices, lower
from weft.compiler.arena import MemoryPlan, packed
from weft.compiler.chains import Key
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.errors import CompileError
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops.kernels import is_channels_last
from weft.tensor.blob import blob_of
from weft.tensor.tensor import Tensor

Shape = Strides = tuple[int, ...]

NOTHING = MemoryPlan((), 0)


@dataclass(eq=False)
class Packet:
    """The contents of one register: values, or pieces of values that go to another rank, one after another."""

    id: int
    name: str
    source: Key | str
    targets: list[Key | str]
    src: int
    dst: int
    copies: int = 1
    full: int = 0
    at: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())  # for an order: the acts of its two ends that it orders
    entries: dict[Value, Shape] = field(default_factory=dict)  # with the local shape, or the piece's
    plan: MemoryPlan = NOTHING
    offsets: dict[Value, int] = field(default_factory=dict)
    device: Device | None = None  # where it lies

    def close(self) -> None:
        """Compute the offsets, once every entry is known."""
        self.plan = packed([math.prod(s) * v.dtype.itemsize for v, s in self.entries.items()])
        self.offsets = dict(zip(self.entries, self.plan.offsets, strict=True))

    @property
    def bytes(self) -> int:
        return self.plan.total

    def view(self, memory: torch.Tensor, v: Value) -> torch.Tensor:
        """The entry's place in one copy of the register."""
        return typed(memory, self.offset(v), self.entries[v], v.dtype)

    def offset(self, v: Value) -> int:
        return self.offsets[v]


@dataclass(frozen=True)
class Crossing:
    """One rank's part of an exchange between chains on different placements."""

    node: Node
    sends: tuple[tuple[int, Slices], ...]
    receives: tuple[tuple[Slices, tuple[int, ...]], ...]
    reduces: tuple[tuple[int, str], ...]
    shape: Shape  # of this rank's shard afterwards
    fill: str

    @staticmethod
    def of(node: Node, rank: int) -> Crossing:
        (step,) = lower(node.extra["route"], rank) or (None,)
        if step is not None and step.kind == "copy":
            raise CompileError(
                f"{node.name}: inside build() a global tensor can't be copied between host and device, from "
                f"{node.args[0].form} to {node.outputs[0].form}; give the graph x.to_global(placement=...) of it"
            )
        assert step is not None and step.transfers is not None, f"{node.name} can't cross placements"
        t = step.transfers
        return Crossing(node, t.sends, t.receives, t.reduces, step.shape, step.fill)


def typed(memory: torch.Tensor, at: int, shape: Shape, dtype: DType) -> torch.Tensor:
    """Bytes of a register or an arena, seen as a tensor."""
    return memory[at : at + math.prod(shape) * dtype.itemsize].view(dtype.torch).view(shape)


def sliced(shape: Shape, where: Slices) -> Shape:
    return tuple(len(range(*s.indices(n))) for s, n in zip(where, shape, strict=True))


def strides_of(job: Job) -> dict[Value, Shape | None]:
    """The strides of the variables; None: contiguous."""
    found: dict[Value, Shape | None] = {}
    for v, t in job.variables.items():
        data = blob_of(t).data if isinstance(t, Tensor) else None
        found[v] = None if data is None else own_strides(data)
    return found


def own_strides(t: torch.Tensor) -> Strides | None:
    """A tensor's strides, or None if it is contiguous; those of one channel or pixel can fit both orders."""
    return None if t.is_contiguous() and not is_channels_last(t) else t.stride()


@dataclass(eq=False)
class Chain:
    """One chain on one rank.

    imports    values read from registers, with the packet they come in
    exports    values written into registers
    variables  values whose memory is a tensor of the user, with its strides if it isn't contiguous
    unpacked   from a micro-batch's value to the input that it is a slice of
    one_thread whether its calls are too small for several threads
    roomy      whether kernels may allocate more, to take less time
    tight      whether less memory is worth copies, and more time to plan it
    backend    of the transport
    """

    name: str
    rank: int
    variables: Mapping[Value, Strides | None]
    micro_batches: int
    unpacked: Mapping[Value, Value]
    tight: bool
    backend: str
    nodes: list[Node] = field(default_factory=list)
    imports: dict[Value, Packet] = field(default_factory=dict)
    exports: dict[Value, list[Packet]] = field(default_factory=dict)
    crossings: dict[Node, Crossing] = field(default_factory=dict)
    arrivals: dict[tuple[Node, int], Packet] = field(default_factory=dict)
    departures: dict[tuple[Node, int], Packet] = field(default_factory=dict)
    one_thread: bool = False
    roomy: bool = False

    def shape(self, v: Value) -> Shape:
        return v.local_shape(self.rank)

    def bytes(self, v: Value) -> int:
        return v.local_bytes(self.rank)
