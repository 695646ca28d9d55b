"""Decide whether a chain runs faster on one thread of torch's. Pure.

To share a small call among cores takes longer than the call, and far longer while others use the cores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from weft.compiler.passes.layouts import multiplications, work
from weft.job.value import Node
from weft.ops import OPS

SHARING: Final = 20e-6  # seconds for which the cores wait for each other in one call, if that isn't measured
GRAIN: Final = 1 << 15  # elements that other calls than products don't share
GAIN: Final = 0.05  # more threads must save so much of the time


def one_is_enough(nodes: Sequence[Node], threads: int, sharing: float = SHARING, speed: float = 1.0) -> bool:
    """`sharing` and `speed`, of products as a multiple of the estimate, may be measured."""
    calls = [n for n in nodes if n.op in OPS]
    if any(v.device_type != "cpu" for n in calls for v in (n.outputs or n.operands())):
        return False
    saved = total = 0.0
    known: dict[Any, tuple[float, bool]] = {}  # by form: the seconds of a call, and whether threads share it
    for n in calls:
        values = *n.operands(), *n.outputs
        form = n.op, n.signature, tuple([(v.shape, v.dtype) for v in values])
        if form not in known:
            products, most = multiplications(n), max((math.prod(v.shape) for v in values), default=0)
            known[form] = work(n, n.signature, products=products) / speed, most >= GRAIN or products > most
        seconds, shared = known[form]
        total += seconds
        saved += shared * (seconds * (1 - 1 / threads) - sharing)
    return saved <= GAIN * total
