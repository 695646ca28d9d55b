"""Decide whether a chain runs faster on one thread of torch's. Pure.

To share a small call among cores takes longer than the call, and far longer while others use the cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.compiler.passes.layouts import work
from weft.job.value import Node
from weft.ops import OPS

SHARING: Final = 20e-6  # seconds for which the cores wait for each other in one call
GAIN: Final = 0.1  # more threads must save so much of the time


def one_is_enough(nodes: Sequence[Node], threads: int) -> bool:
    calls = [n for n in nodes if n.op in OPS]
    if any(v.device_type != "cpu" for n in calls for v in (*n.operands(), *n.outputs)):
        return False
    seconds = [work(n, n.signature) for n in calls]
    saved = sum(max(0.0, t * (1 - 1 / threads) - SHARING) for t in seconds)
    return saved <= GAIN * sum(seconds)
