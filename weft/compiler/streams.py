"""Which calls are lines of their chain, and which are tasks on a stream of their own.

A task of its own costs a hand-over to another thread and back, and cuts the chain around it. That pays where the call
waits for something outside of the rank's cores: a network, or a device that computes by itself.
"""

from __future__ import annotations

from typing import Final, Literal

from weft.boxing.steps import AxisStep
from weft.compiler.options import Options
from weft.core.placement import Placement
from weft.job.value import Node

Way = Literal["inline", "stream"]
COLLECTIVES: Final = "collectives"  # the stream's name

WAYS: dict[tuple[str, str], Way] = {  # (backend, type of device); inline, where nothing is said
    ("local", "cpu"): "inline",  # threads of one interpreter, which runs one of them at a time
    ("shm", "cpu"): "inline",  # the caller's core does the sum; another thread would take it from the kernels
    ("c10d", "cpu"): "stream",  # Gloo waits for sockets
    ("local", "cuda"): "stream",
    ("c10d", "cuda"): "stream",  # NCCL has a stream anyway
}


def stream_of(node: Node, options: Options) -> str:
    """The stream that a node is a task on; none if it is a line of its chain, as is whatever micro-batches repeat."""
    if node.op != "boxing" or node.micro:
        return ""
    route = node.extra["route"] if "route" in node.extra else node.extra["routes"][0]
    placement = route.src.placement
    for step in route.steps:
        if isinstance(step, AxisStep) and not step.local and placement.shape[step.axis] > 1:
            if WAYS.get((backend(placement, step.axis, options), placement.type)) == "stream":
                return COLLECTIVES
    return ""


def backend(placement: Placement, axis: int, options: Options) -> str:
    """What carries the collectives along an axis: only c10d reaches other hosts, imagined ones too."""
    return options.backend if options.links.of_axis(placement, axis).number == 1 else "c10d"
