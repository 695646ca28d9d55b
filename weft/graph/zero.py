"""ZeRO: shard over data-parallel ranks what each of them would hold whole.

Parameters are split along their first dimension, and so are the optimizer's states and gradients: an all-reduce becomes
a reduce-scatter. `build` reads each parameter whole, by an all-gather once a launch.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import json

from weft.autograd.modes import no_grad
from weft.core.program_line import warn
from weft.core.rank import current
from weft.core.sbp import NdSbp, split
from weft.core.spec import Spec
from weft.job.builder import Builder
from weft.ops import ops
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor
from weft.transport import transport_of
from weft.transport.check import decoded

Split = Callable[[Tensor, NdSbp, dict[str, Any]], None]  # a parameter, its new layout, its states


@contextlib.contextmanager
def partition(optimizers: Iterable[Any], least: int | None, builder: Builder) -> Iterator[None]:
    """Shard the optimizers' parameters of at least so many elements (None: no ZeRO), and register how the trace reads
    them. Undone if compilation fails."""
    if least is None:
        yield
        return
    wholes, trained = _wholes(), [*_parameters(optimizers)]
    with undone_if_it_fails() as split_up:
        for optimizer, p in trained:
            parts = None if p.spec is None else split_of(p.spec, least)
            if parts is not None:
                split_up(p, parts, optimizer.state[p])
            known, whole = wholes.get(id(p), (None, ()))
            if known is not None and known() is p:
                builder.read_as(p, whole)
        if trained and current().world_size > 1 and not any(id(p) in wholes for _, p in trained):
            warn(
                f"{builder.job.name}: config.enable_zero() has no effect, as the optimizers have no parameter to "
                f"split, which must be global, whole on several ranks, and of {least} elements or more. "
                "model.to_global(placement=..., sbp=flow.sbp.broadcast) makes parameters global, "
                "enable_zero(shard_min_size=...) splits smaller ones"
            )
        yield


@contextlib.contextmanager
def undone_if_it_fails() -> Iterator[Split]:
    """What splits a parameter and its states. If what is done with it fails, they are whole again."""
    before: list[tuple[Tensor, Tensor, dict[str, Any], dict[str, Any]]] = []

    def split_up(p: Tensor, parts: NdSbp, state: dict[str, Any]) -> None:
        before.append((p, p.detach(), state, dict(state)))
        _split(p, state, parts)

    try:
        yield split_up
    except BaseException:
        for p, data, state, states in before:
            p.data = data
            state.update(states)
            _wholes().pop(id(p), None)
        raise


def split_like(p: Tensor, spec: Spec, split_up: Split) -> bool:
    """Split a parameter that is whole where a loaded plan has ZeRO's parts of it; whether it was."""
    parts = split_of(p.spec, 1) if isinstance(p, Parameter) and p.spec is not None else None
    if parts is None or p.spec is None or spec != p.spec.replace(nd_sbp=parts):
        return False
    split_up(p, parts, {})
    return True


def split_elsewhere(held: Mapping[str, Tensor], done: Collection[str], split_up: Split) -> None:
    """Let every rank know in which layout parameters are by now, also those of which it has nothing: `done` names
    what a loaded plan let it split."""
    if current().world_size == 1:
        return
    for text in transport_of().everyone().all_gather_bytes(json.encode([*done])):
        for name in cast(list[str], decoded(text, list[str], "what a rank split")):
            spec = held[name].spec if name in held and name not in done else None
            parts = None if spec is None else split_of(spec, 1)
            if spec is not None and parts is not None:
                split_like(held[name], spec.replace(nd_sbp=parts), split_up)


def _wholes() -> dict[int, tuple[weakref.ref[Tensor], NdSbp]]:
    """How each parameter that was split was laid out before, by its id."""
    return current().resource("read whole", lambda rank: {})


def _split(p: Tensor, state: dict[str, Any], sbp: NdSbp) -> None:
    assert p.spec is not None
    wholes = _wholes()
    wholes[id(p)] = weakref.ref(p, lambda _, key=id(p): wholes.pop(key, None)), p.spec.nd_sbp
    with no_grad():
        for name, t in state.items():
            if isinstance(t, Tensor) and t.shape == p.shape:
                state[name] = _laid_out(t, sbp)
        p.data = _laid_out(p.detach(), sbp)


def split_of(spec: Spec, least: int) -> NdSbp | None:
    """The layout split along the first axis on which the tensor is broadcast; None if it is too small."""
    if not spec.shape or math.prod(spec.shape) < least or any(s.dim == 0 for s in spec.nd_sbp):
        return None
    for axis, (ranks, s) in enumerate(zip(spec.placement.shape, spec.nd_sbp, strict=True)):
        if s.is_broadcast and 1 < ranks <= spec.shape[0]:
            return (*spec.nd_sbp[:axis], split(0), *spec.nd_sbp[axis + 1 :])
    return None


def _parameters(optimizers: Iterable[Any]) -> Iterator[tuple[Any, Tensor]]:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for p in group["params"]:
                yield optimizer, p


def _laid_out(t: Tensor, sbp: NdSbp) -> Tensor:
    """The same value in this layout; a shard is copied, so that the whole can be freed."""
    assert t.spec is not None
    return ops.clone(ops.to_global(t, t.spec.placement, sbp))
