"""Loss scaling in a graph: the loss's gradient starts at the scale, gradients of parameters are divided by it, and a
step with gradients that aren't finite is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from weft.amp.scaler import GradScaler, StaticGradScaler
from weft.core.placement import Placement
from weft.core.rank import current
from weft.core.sbp import broadcast
from weft.functional.training.clipping import INFINITY, total_norm
from weft.job.builder import Builder
from weft.ops import ops
from weft.tensor.tensor import Tensor

SCALE: Final = "loss scale"
INVERSE: Final = "1 / loss scale"
Scaler = GradScaler | StaticGradScaler | None


def begin(scaler: Scaler, builder: Builder, numbers: dict[str, Callable[[], float]]) -> None:
    """Scale the losses, if the graph has a scaler."""
    if scaler is None or not scaler.is_enabled():
        return
    builder.gradients.scale = SCALE, INVERSE
    numbers[SCALE] = scaler.get_scale
    numbers[INVERSE] = lambda: 1.0 / scaler.get_scale()


def unscaled(builder: Builder, grads: Mapping[Tensor, Tensor]) -> dict[Tensor, Tensor]:
    """The gradients, divided by the scale."""
    return {p: g if builder.gradients.scale is None else builder.times(g, INVERSE) for p, g in grads.items()}


def _known_to_all(flag: Tensor) -> Tensor:
    """The flag on every rank, as each chooses the next scale, also one that trains nothing."""
    if flag.spec is None:
        return flag
    return ops.to_global(flag, Placement(flag.spec.placement.type, range(current().world_size)), (broadcast,))


class Guard:
    """Restores what an update wrote if a gradient wasn't finite."""

    def __init__(self, scaler: Scaler, builder: Builder, grads: Iterable[Tensor]) -> None:
        given = list(grads)
        self.finite: Any = None
        if isinstance(scaler, GradScaler) and scaler.is_enabled() and given:
            given += [builder.accumulated(total_norm(g, INFINITY)) for g in builder.gradients.replaced()]
            self.finite = _known_to_all(ops.isfinite(total_norm(given, INFINITY)))
        self.before: list[tuple[Tensor, Tensor]] = []

    def keep(self, tensors: Iterable[Tensor]) -> None:
        """Save the values before the update."""
        if self.finite is not None:
            self.before += [(t, ops.clone(t)) for t in {id(t): t for t in tensors}.values()]

    def restore(self) -> None:
        for t, old in self.before:
            finite = self.finite
            if t.spec is not None:
                finite = ops.to_global(finite, t.spec.placement, (broadcast,) * t.spec.placement.ndim)
            kept = ops.where(finite, t, old)
            if t.spec is not None and kept.spec is not t.spec:
                kept = ops.to_global(kept, t.spec.placement, t.spec.nd_sbp)
            if t.value is None:  # a variable, which the update wrote itself
                ops.store(t, kept)
            else:  # a new value, which is stored when the launch ends, maybe by another chain
                t.copy_(kept)
