"""CoinFlip: random zeros and ones."""

from __future__ import annotations

from typing import Any

from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.functional.random import random_tensors
from weft.nn.module.module import Module
from weft.ops import ops
from weft.tensor.tensor import Tensor


class CoinFlip(Module):
    """Draws `batch_size` numbers: 1 with a probability, else 0."""

    def __init__(
        self, batch_size: int = 1, random_seed: int | None = None, probability: float = 0.5, device: Any = None,
        placement: Any = None, sbp: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.batch_size, self.probability = batch_size, probability
        self.where = None if device is None else Device(device), placement, sbp
        self.seed = random_seed

    def forward(self) -> Tensor:
        device, placement, sbp = self.where
        drawn = random_tensors.rand(self.batch_size, device=device, placement=placement, sbp=sbp)
        return ops.cast(ops.lt(drawn, self.probability), dtypes.int8)
