"""Values, and the nodes that compute them: the parts of a job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from weft.boxing.signature import Signature
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.literal import cleaned
from weft.core.spec import Spec
from weft.core.substitution import substituted
from weft.ops import OPS


class Value:
    """A symbol: the result of a node. Global values have a spec; local ones a shape, a dtype and a device."""

    __slots__ = ("name", "shape", "dtype", "spec", "device", "_meta")

    def __init__(self, name: str, shape: tuple[int, ...], dtype: DType, spec: Spec | None, device: Device) -> None:
        self.name, self.shape, self.dtype, self.spec, self.device = name, shape, dtype, spec, device
        self._meta: torch.Tensor | None = None

    @property
    def meta(self) -> torch.Tensor:
        """A meta tensor of this form."""
        if self._meta is None:
            self._meta = torch.empty(self.shape, dtype=self.dtype.torch, device="meta")
        return self._meta

    @property
    def form(self) -> str:
        if self.spec is not None:
            return repr(self.spec)
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}] {self.device}"

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def device_type(self) -> str:
        return self.device.type if self.spec is None else self.spec.placement.type

    def local_shape(self, rank: int) -> tuple[int, ...]:
        """The shape of a rank's part."""
        return self.shape if self.spec is None else self.spec.local_shape(rank)

    def local_bytes(self, rank: int) -> int:
        return math.prod(self.local_shape(rank)) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"%{self.name}"


@dataclass(eq=False, slots=True)
class Node:
    """One call in a job. `args` hold values in place of tensors.

    micro     whether it runs once per micro-batch, not once per launch
    ranked    whether its kernel needs its position on the grid
    late      whether it may be deferred, as no other stage waits for it
    scope     the module in which it was called; at: the user's line
    """

    name: str
    op: str
    args: tuple[Any, ...]
    outputs: tuple[Value, ...]
    scope: str = ""
    at: str = ""
    micro: bool = False
    ranked: bool = False
    stage: int | None = None
    signature: Signature | None = None  # of a node on global operands: the layout it runs in
    extra: dict[str, Any] = field(default_factory=dict)
    late: bool = False
    _of: Any = field(default=None, init=False, repr=False)  # the arguments for which operands are cached
    _operands: tuple[Value, ...] = field(default=(), init=False, repr=False)

    def operands(self) -> tuple[Value, ...]:
        """The values it reads, in order."""
        if self._of is not self.args:
            found: list[Value] = []
            for a in self.args:
                if isinstance(a, Value):
                    found.append(a)
                elif isinstance(a, (list, tuple)):
                    found += [v for v in a if isinstance(v, Value)]
            self._of, self._operands = self.args, tuple(found)
        return self._operands

    @property
    def view(self) -> bool:
        """Whether its results are views of its first operand."""
        return self.op in OPS and OPS[self.op].view

    @property
    def draws(self) -> bool:
        return self.op in OPS and OPS[self.op].random

    @property
    def route(self) -> Any:
        """The route of a boxing; of several values, which go alike, the first one's."""
        return self.extra["route"] if "route" in self.extra else self.extra["routes"][0]

    @property
    def where(self) -> str:
        """Its module, and the program's line."""
        return ", ".join(map(cleaned, filter(None, (self.scope, self.at))))

    def replace_operands(self, table: Mapping[Value, Value]) -> None:
        if not table.keys().isdisjoint(self.operands()):
            self.args = substituted(self.args, Value, lambda v: table.get(v, v))


def specs(args: tuple[Any, ...]) -> Any:
    """A node's arguments with specs in place of values."""
    return substituted(args, Value, lambda v: v.spec)
