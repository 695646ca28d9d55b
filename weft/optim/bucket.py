"""Parameters that one op writes together, and how they were when they were put together."""

from __future__ import annotations

from typing import Any

import torch

from weft.core.sbp import broadcast
from weft.core.spec import Spec
from weft.tensor.tensor import Tensor, of_shard, of_torch

RATES = {"cpu": torch.float64}  # kernels for GPUs read a rate as float32


class Bucket:
    """Parameters that one op writes, with their states: by name, a list along the parameters, or the common step."""

    __slots__ = ("params", "states", "step", "first", "_rate")

    def __init__(self, params: list[Tensor], states: dict[str, list[Tensor]], step: Tensor | None, first: bool) -> None:
        self.params, self.states, self.step, self.first = params, states, step, first
        self._rate: tuple[float, Tensor] | None = None

    def rate(self, lr: Any) -> Any:
        """The learning rate as the op takes it. On global parameters a number would be part of what is planned."""
        spec = self.params[0].spec
        if spec is None or isinstance(lr, Tensor):
            return lr
        if self._rate is None or self._rate[0] != lr:
            self._rate = (lr, whole(torch.tensor(float(lr), dtype=RATES.get(spec.placement.type)), spec))
        return self._rate[1]


class Plan:
    """The buckets of one parameter group, and the parameters as they were when these were found."""

    __slots__ = ("forms", "buckets")

    def __init__(self, forms: list[Any], buckets: list[Bucket]) -> None:
        self.forms, self.buckets = forms, buckets


def form(p: Tensor) -> Any:
    """What must stay for a plan to hold; cheap to compare."""
    return p.blob if p.spec is None else p.spec


def form_of(t: Tensor) -> Any:
    return t.spec or (tuple(t.shape), t.dtype, t.device)


def whole(value: torch.Tensor, spec: Spec) -> Tensor:
    """A 0-d tensor that every rank of a layout holds."""
    flat = (broadcast,) * spec.placement.ndim
    return of_shard(value, Spec((), of_torch(value).dtype, spec.placement, flat))
