"""Which calls are lines of their chain, and which are tasks on a stream of their own.

A task of its own costs a hand-over to another thread and back, and cuts the chain around it. That pays where the call
waits for something outside of the rank's cores: a network, or a device that computes by itself.
"""

from __future__ import annotations

import itertools
from typing import Final, Literal

from weft.boxing.steps import AxisStep
from weft.compiler.options import Options
from weft.compiler.zero import stage_of
from weft.core.placement import Placement
from weft.job.job import Job
from weft.job.value import Node

Way = Literal["inline", "stream"]
COLLECTIVES: Final = "collectives"  # the first stream's name
SECOND: Final = f"{COLLECTIVES}.second"
ABREAST: Final = {  # of a type of device: the streams that collectives go on, in turn
    "cpu": (COLLECTIVES, SECOND),  # while the one's bytes travel, ranks meet for the other's: the link has no pause
    "cuda": (COLLECTIVES,),  # NCCL's kernels may hold each other up where two communicators are under way
}

WAYS: dict[tuple[str, str], Way] = {  # (backend, type of device); inline, where nothing is said
    ("local", "cpu"): "inline",  # threads of one interpreter, which runs one of them at a time
    ("shm", "cpu"): "inline",  # the caller's core does the sum; another thread would take it from the kernels
    ("c10d", "cpu"): "stream",  # Gloo waits for sockets
    ("local", "cuda"): "stream",
    ("c10d", "cuda"): "stream",  # NCCL has a stream anyway
}


def streams_of(job: Job, options: Options) -> dict[Node, str]:
    """The streams of those nodes that are tasks on one."""
    turns = {device: itertools.cycle(names) for device, names in ABREAST.items()}
    found = {node: device_of(node, options) for node in job.nodes}
    return {node: next(turns[device]) for node, device in found.items() if device}


def device_of(node: Node, options: Options) -> str:
    """The type of device beside which a node is a task with a stream of its own; none if it is a line of its chain, as
    is whatever micro-batches repeat, and everything under ZeRO: what goes beside a chain lies in registers all of the
    time, where ZeRO is for parameters and gradients to be there no longer than they are needed."""
    if node.op != "boxing" or node.micro or stage_of(options) is not None:
        return ""
    route = node.extra["route"] if "route" in node.extra else node.extra["routes"][0]
    placement = route.src.placement
    for step in route.steps:
        if isinstance(step, AxisStep) and not step.local and placement.shape[step.axis] > 1:
            if WAYS.get((backend(placement, step.axis, options), placement.type)) == "stream":
                return placement.type
    return ""


def backend(placement: Placement, axis: int, options: Options) -> str:
    """What carries the collectives along an axis: only c10d reaches other hosts, imagined ones too."""
    return options.backend if options.links.of_axis(placement, axis).number == 1 else "c10d"
