"""ZeRO: of what every data-parallel rank would hold alike, each holds a part.

Parameters rest split along their first dimension, and so do the optimizer's states and the gradients that it is given:
a sum over ranks becomes a reduce-scatter. `build` reads each parameter whole, gathered once a launch.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weft.autograd.modes import no_grad
from weft.core.rank import current
from weft.core.sbp import NdSbp, split
from weft.core.spec import Spec
from weft.job.builder import Builder
from weft.ops import OPS
from weft.tensor.tensor import Tensor

if TYPE_CHECKING:
    from weft.graph.graph import Graph


def partition(graph: Graph, builder: Builder) -> None:
    """Split what the graph's optimizers update, and tell the trace how to read it."""
    least = graph.config.shard_min_size
    if least is None:
        return
    split_before: dict[int, tuple[weakref.ref[Tensor], NdSbp]] = current().resource("read whole", lambda rank: {})
    with no_grad():
        for optimizer, p in _parameters(graph):
            spec = p.spec
            parts = None if spec is None else split_of(spec, least)
            if spec is not None and parts is not None:
                split_before[id(p)] = weakref.ref(p), spec.nd_sbp
                p.data = _laid_out(p.detach(), parts)
                for name, state in optimizer.state[p].items():
                    if isinstance(state, Tensor) and state.shape == p.shape:
                        optimizer.state[p][name] = _laid_out(state, parts)
            known, whole = split_before.get(id(p), (None, ()))
            if known is not None and known() is p:
                builder.read_as(p, whole)


def split_of(spec: Spec, least: int) -> NdSbp | None:
    """The layout with the first axis along which all ranks hold the same split; None if that isn't worth it."""
    if not spec.shape or math.prod(spec.shape) < least or any(s.dim == 0 for s in spec.nd_sbp):
        return None
    for axis, (ranks, s) in enumerate(zip(spec.placement.shape, spec.nd_sbp, strict=True)):
        if s.is_broadcast and 1 < ranks <= spec.shape[0]:
            return (*spec.nd_sbp[:axis], split(0), *spec.nd_sbp[axis + 1 :])
    return None


def _parameters(graph: Graph) -> Iterator[tuple[Any, Tensor]]:
    for optimizer, _ in graph._optimizers:
        for group in optimizer.param_groups:
            for p in group["params"]:
                yield optimizer, p


def _laid_out(t: Tensor, sbp: NdSbp) -> Tensor:
    """The same value; a split one has memory of its own, so that the whole can go."""
    assert t.spec is not None
    return OPS["clone"](OPS["to_global"](t, t.spec.placement, sbp))
