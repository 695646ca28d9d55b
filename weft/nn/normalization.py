"""Layers that shift and scale to mean zero and variance one, over the batch, the features or groups of channels."""

from __future__ import annotations

from typing import Any

from weft.autograd import assign, no_grad
from weft.core import dtype as dtypes
from weft.core.dispatch import here
from weft.core.errors import OptionError, ShapeError
from weft.nn import functional as F
from weft.nn import init
from weft.nn.making import filled, made, sizes
from weft.nn.module import Module
from weft.ops import OPS
from weft.tensor.tensor import Tensor


def begin(layer: Module) -> None:
    """Let a layer that scales and shifts begin by changing nothing."""
    if layer.weight is not None:
        init.ones_(layer.weight)
    if layer.bias is not None:
        init.zeros_(layer.bias)


class _BatchNorm(Module):
    """Normalises each channel over the batch, and keeps running statistics for when it isn't training."""

    ranks: tuple[int, ...]  # how many dimensions an input may have
    _version = 2
    _since = {"num_batches_tracked": 2}

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        size = (num_features,)
        self.register_parameter("weight", made(size, device, dtype) if affine else None)
        self.register_parameter("bias", made(size, device, dtype) if affine and bias else None)
        kept = track_running_stats
        self.register_buffer("running_mean", filled(size, 0.0, device, dtype) if kept else None)
        self.register_buffer("running_var", filled(size, 1.0, device, dtype) if kept else None)
        self.register_buffer("num_batches_tracked", filled((), 0, device, dtypes.int64) if kept else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        begin(self)

    def _check_input_dim(self, x: Tensor) -> None:
        if x.ndim not in self.ranks:
            wanted = " or ".join(f"{n}D" for n in self.ranks)
            raise ShapeError(f"expected {wanted} input (got {x.ndim}D input of shape {list(x.shape)})")

    def forward(self, x: Tensor) -> Tensor:
        self._check_input_dim(x)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            with no_grad():
                assign(self.num_batches_tracked, OPS["add"](self.num_batches_tracked, 1))
            if self.momentum is None and here.trace is not None:
                return self._averaging(x)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or self.running_mean is None
        if self.training and x.numel() == x.shape[1]:
            raise ShapeError(
                f"Expected more than 1 value per channel when training; got input of shape {list(x.shape)}. One "
                "is its own mean: give larger batches (a loader's drop_last=True leaves the rest out), or call eval()"
            )
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            x, self.running_mean if keep else None, self.running_var if keep else None, self.weight, self.bias,
            use_batch, factor, self.eps,
        )  # fmt: skip

    def _averaging(self, x: Tensor) -> Tensor:
        """Likewise in a graph, which doesn't know the count of batches when it is traced."""
        mean, spread = OPS["clone"](self.running_mean), OPS["clone"](self.running_var)
        y = F.batch_norm(x, mean, spread, self.weight, self.bias, True, 1.0, self.eps)
        with no_grad():
            for running, now in ((self.running_mean, mean), (self.running_var, spread)):
                share = OPS["reciprocal"](OPS["cast"](self.num_batches_tracked, running.dtype))
                assign(running, OPS["lerp"](running, now, share))
        return y

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Over (batch, channels) or (batch, channels, length)."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Over (batch, channels, height, width)."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Over (batch, channels, depth, height, width)."""

    ranks = (5,)


class _InstanceNorm(_BatchNorm):
    """Normalises each channel of each sample by itself."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        self._check_input_dim(x)
        batched = x.ndim == max(self.ranks)
        y = F.instance_norm(
            x if batched else OPS["unsqueeze"](x, 0), self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return y if batched else OPS["squeeze"](y, 0)


class InstanceNorm1d(_InstanceNorm):
    """Over ([batch,] channels, length)."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Over ([batch,] channels, height, width)."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Over ([batch,] channels, depth, height, width)."""

    ranks = (4, 5)


class LayerNorm(Module):
    """Normalises over the last dimensions, which `normalized_shape` names."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = sizes(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", made(self.normalized_shape, device, dtype) if elementwise_affine else None)
        biased = elementwise_affine and bias
        self.register_parameter("bias", made(self.normalized_shape, device, dtype) if biased else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        begin(self)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Scales to a root mean square of one, over the last dimensions."""

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = sizes(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", made(self.normalized_shape, device, dtype) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalises each sample over groups of its channels."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise OptionError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", made((num_channels,), device, dtype) if affine else None)
        self.register_parameter("bias", made((num_channels,), device, dtype) if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        begin(self)

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        scales = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {scales}"
