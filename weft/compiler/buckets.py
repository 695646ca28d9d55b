"""Buckets: which all-gathers and reduce-scatters of ZeRO are fused to one collective.

A bucket is copied into one buffer and out of it. Large tensors are sent by themselves, without copies: these would cost
more than the synchronization that they save, and take memory, too.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final

from weft.boxing.steps import Step
from weft.job.value import Node

SHARE: Final = 16  # of all that is gathered, a bucket holds at most this part,
LEAST, MOST = 1 << 18, 1 << 22  # but so many bytes it may always hold, and so many at most


def limit(total: int) -> int:
    """The size limit of a bucket in bytes, given the total size of all buckets."""
    return min(max(total // SHARE, LEAST), MOST)


def travels_alone(size: int, most: int) -> bool:
    return 2 * size >= most


def kind(node: Node, step: type[Step]) -> Hashable:
    """What collectives must have in common to be fused; None for nodes that don't make this step."""
    if node.op != "boxing" or "route" not in node.extra:
        return None
    (only,) = node.extra["route"].steps
    if not isinstance(only, step):
        return None
    v = node.outputs[0]
    assert v.spec is not None
    return only, v.spec.placement, v.dtype, node.micro, node.stage


def bytes_of(node: Node) -> int:
    """The bytes of the whole tensor that is gathered or scattered, on one rank."""
    wholes = (node.extra["route"].src, node.extra["route"].dst)
    rank = wholes[0].placement.members[0]
    return max(math.prod(spec.local_shape(rank)) * spec.dtype.itemsize for spec in wholes)
