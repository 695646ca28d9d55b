"""Which gathers and scatters of ZeRO travel as one collective.

A bucket is copied into one piece of memory and out of it. What is large travels by itself, from where it lies to where
it goes: the copies would cost more than the meeting of ranks that they save, and would be memory, too.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Final

from weft.boxing.steps import Step
from weft.job.value import Node

SHARE: Final = 16  # of all that is gathered, a bucket holds at most this part,
LEAST, MOST = 1 << 18, 1 << 22  # but so many bytes it may always hold, and so many at most


def limit(total: int) -> int:
    """The bytes of a bucket, where all of them hold so many."""
    return min(max(total // SHARE, LEAST), MOST)


def travels_alone(size: int, most: int) -> bool:
    return 2 * size >= most


def kind(node: Node, step: type[Step]) -> Hashable:
    """What collectives must share to be one; None for nodes that aren't of this step."""
    if node.op != "boxing" or "route" not in node.extra:
        return None
    (only,) = node.extra["route"].steps
    if not isinstance(only, step):
        return None
    v = node.outputs[0]
    assert v.spec is not None
    return only, v.spec.placement, v.dtype, node.micro, node.stage


def bytes_of(node: Node) -> int:
    """Of the whole that is gathered or scattered, as a rank holds it."""
    wholes = (node.extra["route"].src, node.extra["route"].dst)
    rank = wholes[0].placement.members[0]
    return max(math.prod(spec.local_shape(rank)) * spec.dtype.itemsize for spec in wholes)


def in_front(nodes: Iterable[Node], at: dict[int, list[Node]], gone: set[Node]) -> list[Node]:
    """The nodes without those that are gone, and with others put in front of the places where they shall stand."""
    found: list[Node] = []
    for i, node in enumerate(nodes):
        found += at.get(i, ())
        if node not in gone:
            found.append(node)
    return found
