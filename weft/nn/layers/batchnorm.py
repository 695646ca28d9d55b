"""Batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.autograd import Function, no_grad
from weft.autograd.inplace import assign
from weft.core import dtype as dtypes
from weft.core.dispatch import here
from weft.core.errors import ShapeError
from weft.core.rank import current
from weft.nn import functional as F
from weft.nn import init
from weft.nn.layers.lazy import _lazy
from weft.nn.layers.normalization import begin
from weft.nn.module.making import filled, made
from weft.nn.module.module import Module
from weft.ops import ops
from weft.system import comm
from weft.tensor.tensor import Tensor


class _BatchNorm(Module):
    """Normalizes each channel over the batch, and keeps running statistics for evaluation."""

    ranks: tuple[int, ...]  # the allowed numbers of dimensions of the input
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
                assign(self.num_batches_tracked, ops.add(self.num_batches_tracked, 1))
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
        """`momentum=None` in a graph, which doesn't know the count of batches when it is traced."""
        mean, spread = ops.clone(self.running_mean), ops.clone(self.running_var)
        y = F.batch_norm(x, mean, spread, self.weight, self.bias, True, 1.0, self.eps)
        with no_grad():
            for running, now in ((self.running_mean, mean), (self.running_var, spread)):
                share = ops.reciprocal(ops.cast(self.num_batches_tracked, running.dtype))
                assign(running, ops.lerp(running, now, share))
        return y

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm3d(_BatchNorm):
    """Over (batch, channels, depth, height, width)."""

    ranks = (5,)


class BatchNorm2d(_BatchNorm):
    """Over (batch, channels, height, width)."""

    ranks = (4,)


class BatchNorm1d(_BatchNorm):
    """Over (batch, channels) or (batch, channels, length)."""

    ranks = (2, 3)


LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (_lazy(k, 1) for k in (BatchNorm1d, BatchNorm2d, BatchNorm3d))


class _Summed(Function):
    """The sum over all ranks, or a group of them; its gradient is the sum, too."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        ctx.group = args[1]
        return comm.all_reduce(ops.clone(args[0]), group=ctx.group)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        return comm.all_reduce(ops.clone(gradients[0]), group=ctx.group), None


class AllReduce(Module):
    """The sum of all ranks' tensors, on every rank."""

    def forward(self, x: Tensor) -> Tensor:
        return _Summed.apply(x, None)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of all ranks, or of a group of ranks.

    Global tensors don't need it: any BatchNorm sees the whole batch.
    """

    ranks = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Sequence[int] | None = None, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def forward(self, x: Tensor) -> Tensor:
        use_batch = self.training or self.running_mean is None
        if not use_batch or x.is_global or current().world_size == 1:
            return super().forward(x)
        others = tuple(d for d in range(x.ndim) if d != 1)
        channels = (1, -1, *(1,) * (x.ndim - 2))
        count = ops.reshape(ops.full_like(ops.narrow(ops.reshape(x.detach(), (-1,)), 0, 0, 1), 1.0, None), (1,))
        count = ops.mul(count, float(x.numel() // x.shape[1]))
        sums = _Summed.apply(ops.cat([ops.sum(x, others, False), count], 0), self.process_group)
        n = ops.narrow(sums, 0, x.shape[1], 1).detach()
        centre = ops.div(ops.narrow(sums, 0, 0, x.shape[1]), n)
        centred = ops.sub(x, ops.reshape(centre, channels))
        spread = ops.div(_Summed.apply(ops.sum(ops.square(centred), others, False), self.process_group), n)
        if self.training and self.track_running_stats:
            self._remember(centre.detach(), ops.div(ops.mul(spread.detach(), n), ops.sub(n, 1.0)))
        y = ops.mul(centred, ops.reshape(ops.rsqrt(ops.add(spread, self.eps)), channels))
        if self.weight is not None:
            y = ops.mul(y, ops.reshape(self.weight, channels))
        return y if self.bias is None else ops.add(y, ops.reshape(self.bias, channels))

    def _remember(self, centre: Tensor, spread: Tensor) -> None:
        with no_grad():
            assign(self.num_batches_tracked, ops.add(self.num_batches_tracked, 1))
            for running, now in ((self.running_mean, centre), (self.running_var, spread)):
                share: Any = self.momentum
                if share is None:
                    share = ops.div(1.0, ops.cast(self.num_batches_tracked, running.dtype))
                assign(running, ops.add(ops.mul(running, ops.sub(1.0, share)), ops.mul(now, share)))

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every BatchNorm in a module by a SyncBatchNorm with the same values."""
        if isinstance(module, _BatchNorm) and type(module).__name__.startswith("BatchNorm"):
            made = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            for table in ("_parameters", "_buffers"):
                for name, value in getattr(module, table).items():
                    setattr(made, name, value)
            made.training = module.training
            return made
        for name, child in list(module.named_children()):
            setattr(module, name, cls.convert_sync_batchnorm(child, process_group))
        return module
