"""Instance normalization."""

from __future__ import annotations

from typing import Any

from weft.nn import functional as F
from weft.nn.layers.batchnorm import _BatchNorm
from weft.nn.layers.lazy import _lazy
from weft.ops import ops
from weft.tensor.tensor import Tensor


class _InstanceNorm(_BatchNorm):
    """Normalizes each channel of each sample."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        self._check_input_dim(x)
        batched = x.ndim == max(self.ranks)
        y = F.instance_norm(
            x if batched else ops.unsqueeze(x, 0), self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return y if batched else ops.squeeze(y, 0)


class InstanceNorm3d(_InstanceNorm):
    """Over ([batch,] channels, depth, height, width)."""

    ranks = (4, 5)


class InstanceNorm2d(_InstanceNorm):
    """Over ([batch,] channels, height, width)."""

    ranks = (3, 4)


class InstanceNorm1d(_InstanceNorm):
    """Over ([batch,] channels, length)."""

    ranks = (2, 3)


LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (  # torch's have weights and statistics by default
    _lazy(k, 1 - k.ranks[1], affine=True, track_running_stats=True)
    for k in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
