"""Decide which collectives and copies run inline in their chain, and which are tasks on a separate stream.

A separate task costs two thread switches, and cuts its chain. That pays where the call waits for something other than
the rank's cores: a network, or an asynchronous device.
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
from weft.plan.plan import Kind

Way = Literal["inline", "stream"]
COLLECTIVES: Final = "collectives"  # the first stream's name
SECOND: Final = f"{COLLECTIVES}.second"
COPIES: Final = "copies"  # between host and device: a stream for each direction, since a bus has two
COLLECTIVE_STREAMS: Final = {  # by type of device: the streams that collectives alternate between
    "cpu": (COLLECTIVES, SECOND),  # while bytes of one travel, ranks synchronize for the other: the link is never idle
    "cuda": (COLLECTIVES,),  # NCCL's kernels of two communicators may block each other
}

WAYS: dict[tuple[str, str], Way] = {  # by (backend, type of device); otherwise inline
    ("local", "cpu"): "inline",  # threads of one interpreter, which runs one of them at a time
    ("shm", "cpu"): "inline",  # the caller's core does the sum; another thread would take it from the kernels
    ("c10d", "cpu"): "stream",  # Gloo waits for sockets
    ("local", "cuda"): "stream",
    ("c10d", "cuda"): "stream",  # NCCL has a stream anyway
    ("copy", "cuda"): "stream",  # from the host and to it: the bus works beside both
}


def streams_of(job: Job, options: Options) -> dict[Node, str]:
    """The stream of each node that is a separate task."""
    turns = {device: itertools.cycle(names) for device, names in COLLECTIVE_STREAMS.items()}
    found = {node: device_of(node, options) for node in job.nodes}
    collectives = {node: next(turns[device]) for node, device in found.items() if device}
    return collectives | {node: f"{COPIES} to {node.args[1]}" for node in job.nodes if _is_copy(node)}


def kind_of(stream: str) -> Kind:
    """The kind of the tasks on a stream."""
    return "copy" if stream.startswith(COPIES) else "collective" if stream else "compute"


def _is_copy(node: Node) -> bool:
    """Whether a node is a copy between host and device with a stream of its own."""
    if node.op != "to_device":
        return False
    there, here = sorted((device.type for device in node.args[1:3]), key="cpu".__eq__)
    return here == "cpu" and WAYS.get(("copy", there)) == "stream"


def device_of(node: Node, options: Options) -> str:
    """The type of device of a collective that is a separate task; empty if it runs inline in its chain."""
    zero = stage_of(options)
    if node.op != "boxing" or (node.micro and zero is not None and zero.early):  # a shard's would cut every layer
        return ""
    placement = node.route.src.placement
    for step in node.route.steps:
        if isinstance(step, AxisStep) and not step.local and placement.shape[step.axis] > 1:
            if WAYS.get((backend(placement, step.axis, options), placement.type)) == "stream":
                return placement.type
    return ""


def backend(placement: Placement, axis: int, options: Options) -> str:
    """The backend of the collectives along an axis: only c10d reaches other hosts, simulated ones too."""
    return options.backend if options.links.of_axis(placement, axis).number == 1 else "c10d"
