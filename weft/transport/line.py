"""Lines: independent orders of calls between the same ranks, one for each stream of a graph, say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from torch import Tensor

from weft.transport.base import Group, Transport

GRAPHS: Final = "graph"  # how the names of graphs' lines begin


class Line:
    """One line of a transport: its calls are ordered among themselves only."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport, self.name = transport, name
        transport.lines.add(name)

    def group(self, ranks: Sequence[int]) -> Group:
        return self.transport.group(ranks, self.name)

    def exchange(self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]]) -> None:
        self.transport.exchange(sends, receives, self.name)
