"""Buckets: parameters that one op updates together, and the state that the grouping depends on."""

from __future__ import annotations

from typing import Any

import torch

from weft.core.rank import current
from weft.core.sbp import broadcast
from weft.core.spec import Spec
from weft.tensor.tensor import Tensor, of_shard, of_torch

RATES = {"cpu": torch.float64}  # kernels for GPUs read a rate as float32


class Bucket:
    """Parameters that one op updates, with their states: by name, a list along the parameters, or the common step."""

    __slots__ = ("params", "states", "step", "_rate")

    def __init__(self, params: list[Tensor], states: dict[str, list[Tensor]], step: Tensor | None) -> None:
        self.params, self.states, self.step = params, states, step
        self._rate: tuple[float, Tensor] | None = None

    def rate(self, lr: Any) -> Any:
        """The learning rate as the op takes it. For global parameters it is a tensor: a number would be part of the
        plan."""
        spec = self.params[0].spec
        if spec is None or isinstance(lr, Tensor):
            return lr
        if self._rate is None or self._rate[0] != lr:
            self._rate = (lr, whole(torch.tensor(float(lr), dtype=RATES.get(spec.placement.type)), spec))
        return self._rate[1]


class Plan:
    """The buckets of a parameter group, and the parameters' state and the names of theirs when they were formed."""

    __slots__ = ("forms", "states", "buckets")

    def __init__(self, forms: list[Any], states: tuple[str, ...], buckets: list[Bucket]) -> None:
        self.forms, self.states, self.buckets = forms, states, buckets


def form(p: Tensor) -> Any:
    """What must be unchanged for a plan to be valid; cheap to compare."""
    return p.blob if p.spec is None else p.spec


def form_of(t: Tensor) -> Any:
    return t.spec or (tuple(t.shape), t.dtype, t.device)


def whole(value: torch.Tensor, spec: Spec) -> Tensor:
    """A 0-d tensor, broadcast on a layout's placement: of nothing on other ranks."""
    spec = Spec((), of_torch(value).dtype, spec.placement, (broadcast,) * spec.placement.ndim)
    return of_shard(value.expand(spec.local_shape(current().index)), spec)
