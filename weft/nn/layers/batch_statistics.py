"""What batch normalization computes, over one rank's batch or all ranks'."""

from __future__ import annotations

import math
from typing import Any

from weft.autograd import Function, no_grad
from weft.autograd.overwrite import assign
from weft.core.dispatch import here
from weft.core.dtype import float32, float64
from weft.core.rank import current
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.nn import functional as F
from weft.nn.module.module import Module
from weft.ops import ops
from weft.system import comm
from weft.tensor.tensor import Tensor


def forward(self: Any, x: Tensor) -> Tensor:
    """Batch normalization by the batch, or in evaluation by the running statistics."""
    self._check_input_dim(x)
    factor = 0.0 if self.momentum is None else self.momentum
    if self.training and self.track_running_stats and self.num_batches_tracked is not None:
        self.num_batches_tracked.add_(1)
        if self.momentum is None and here.trace is not None:
            return _averaging(self, x)
        if self.momentum is None:
            factor = 1.0 / float(self.num_batches_tracked)
    use_batch = self.training or self.running_mean is None
    keep = not self.training or self.track_running_stats
    return F.batch_norm(
        x, self.running_mean if keep else None, self.running_var if keep else None, self.weight, self.bias,
        use_batch, factor, self.eps,
    )  # fmt: skip


def _averaging(self: Any, x: Tensor) -> Tensor:
    """`momentum=None` in a graph, which doesn't know the count of batches when it is traced."""
    mean, spread = ops.clone(self.running_mean), ops.clone(self.running_var)
    y = F.batch_norm(x, mean, spread, self.weight, self.bias, True, 1.0, self.eps)
    with no_grad():
        for running, now in ((self.running_mean, mean), (self.running_var, spread)):
            share = ops.reciprocal(ops.cast(self.num_batches_tracked, running.dtype))
            assign(running, ops.lerp(running, now, share))
    return y


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


def over_ranks(self: Any, x: Tensor) -> Tensor:
    """SyncBatchNorm: over the batches of all ranks, or of a group. Of a global tensor any batch norm sees the whole."""
    if not self.training or x.is_global or current().world_size == 1:
        return forward(self, x)
    self._check_input_dim(x)
    given, x = x, x if x.dtype is float64 else x.to(float32)
    others = tuple(d for d in range(x.ndim) if d != 1)
    channels = (1, -1, *(1,) * (x.ndim - 2))
    count = creation.full((1,), float(math.prod(x.shape[d] for d in others)), dtype=x.dtype, **device_of(x))
    sums = _Summed.apply(ops.cat([ops.sum(x, others, False), count], 0), self.process_group)
    n = ops.narrow(sums, 0, x.shape[1], 1).detach()
    centre = ops.div(ops.narrow(sums, 0, 0, x.shape[1]), n)
    centred = ops.sub(x, ops.reshape(centre, channels))
    spread = ops.div(_Summed.apply(ops.sum(ops.square(centred), others, False), self.process_group), n)
    if self.track_running_stats:
        _remember(self, centre.detach(), ops.div(ops.mul(spread.detach(), n), ops.sub(n, 1.0)))
    y = ops.mul(centred, ops.reshape(ops.rsqrt(ops.add(spread, self.eps)), channels))
    if self.weight is not None:
        y = ops.mul(y, ops.reshape(self.weight, channels))
    if self.bias is not None:
        y = ops.add(y, ops.reshape(self.bias, channels))
    return y.to(given.dtype)


def _remember(self: Any, centre: Tensor, spread: Tensor) -> None:
    with no_grad():
        assign(self.num_batches_tracked, ops.add(self.num_batches_tracked, 1))
        for running, now in ((self.running_mean, centre), (self.running_var, spread)):
            share: Any = self.momentum
            if share is None:
                share = ops.div(1.0, ops.cast(self.num_batches_tracked, running.dtype))
            assign(running, ops.lerp(running, now.to(running.dtype), share))
