"""OneFlow's fused layers, composed of plain ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.functional.neural.margin_losses import combined_margin_loss
from weft.functional.oneflow.partial_fc import distributed_partial_fc_sample
from weft.nn import functional as F
from weft.nn.layers.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm
from weft.nn.layers.linear import Linear
from weft.nn.layers.normalization import RMSNorm
from weft.nn.module.module import Module
from weft.ops import ops
from weft.tensor.tensor import Tensor


class _Added(_BatchNorm):
    def forward(self, x: Tensor, addend: Tensor | None = None) -> Tensor:
        y = super().forward(x)
        return ops.relu(y if addend is None else ops.add(y, addend))


class FusedBatchNorm1d(_Added, BatchNorm1d):
    """relu(BatchNorm1d(x) + addend); the addend is optional."""


class FusedBatchNorm2d(_Added, BatchNorm2d):
    """relu(BatchNorm2d(x) + addend); the addend is optional."""


class FusedBatchNorm3d(_Added, BatchNorm3d):
    """relu(BatchNorm3d(x) + addend); the addend is optional."""


class RMSLayerNorm(RMSNorm):
    """RMSNorm over the last dimension, as in T5."""

    def __init__(self, hidden_size: int, eps: float = 1e-6, device: Any = None, dtype: Any = None) -> None:
        super().__init__(hidden_size, eps, True, device, dtype)


class FusedMLP(Module):
    """Linear layers with relu and dropout between them; the last one too, unless `skip_final_activation`."""

    def __init__(
        self, in_features: int, hidden_features: Sequence[int], out_features: int,
        hidden_dropout_rate: Sequence[float] | None = None, out_dropout_rate: float = 0.0,
        skip_final_activation: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        sizes = [in_features, *hidden_features, out_features]
        rates = [*(hidden_dropout_rate or [0.0] * len(hidden_features)), out_dropout_rate]
        if len(rates) != len(sizes) - 1 or not all(0 <= r <= 1 for r in rates):
            raise OptionError(
                f"hidden_dropout_rate is a probability for each of {len(hidden_features)} hidden layers; "
                f"got {hidden_dropout_rate}, and {out_dropout_rate} behind the last layer"
            )
        self.rates, self.skip_final_activation = rates, skip_final_activation
        for i, (before, after) in enumerate(itertools.pairwise(sizes)):
            layer = Linear(before, after, device=device, dtype=dtype)
            self.register_parameter(f"weight_{i}", layer.weight)
            self.register_parameter(f"bias_{i}", layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        for i, rate in enumerate(self.rates):
            x = F.linear(x, getattr(self, f"weight_{i}"), getattr(self, f"bias_{i}"))
            if i < len(self.rates) - 1 or not self.skip_final_activation:
                x = ops.relu(x)
            x = F.dropout(x, rate, self.training) if rate else x
        return x


class CombinedMarginLoss(Module):
    """Cosines with an angular margin for the target class, as in face recognition."""

    def __init__(self, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0) -> None:
        super().__init__()
        self.m1, self.m2, self.m3 = m1, m2, m3

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        return combined_margin_loss(x, label, self.m1, self.m2, self.m3)


class DistributedPariticalFCSample(Module):
    """The labels' classes and others, drawn: `flow.distributed_partial_fc_sample`."""

    def __init__(self, num_sample: int) -> None:
        super().__init__()
        self.num_sample = num_sample

    def forward(self, weight: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return distributed_partial_fc_sample(weight, label, self.num_sample)


class QuickGELU(Module):
    """x sigmoid(1.702 x)."""

    def forward(self, x: Tensor) -> Tensor:
        return F.quick_gelu(x)
