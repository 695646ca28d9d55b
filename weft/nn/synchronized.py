"""Layers that look at every rank's data: for local tensors, where each rank has its own part of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.autograd import Function, assign, no_grad
from weft.core.rank import current
from weft.functional import comm
from weft.nn.module import Module
from weft.nn.normalization import _BatchNorm
from weft.ops import OPS
from weft.tensor.tensor import Tensor

add, sub, mul, div, total, reshape = (OPS[n] for n in ("add", "sub", "mul", "div", "sum", "reshape"))


class _Summed(Function):
    """The sum over all ranks, or a group of them; so is the gradient, for every rank's part enters every rank's sum."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        ctx.group = args[1]
        return comm.all_reduce(OPS["clone"](args[0]), group=ctx.group)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        return comm.all_reduce(OPS["clone"](gradients[0]), group=ctx.group), None


class AllReduce(Module):
    """The sum of all ranks' tensors, on every rank."""

    def forward(self, x: Tensor) -> Tensor:
        return _Summed.apply(x, None)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over the batches of all ranks together, or of a group of ranks, as if they were one.

    Global tensors need none of this: any BatchNorm sees the whole of them.
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
        count = reshape(OPS["full_like"](OPS["narrow"](reshape(x.detach(), (-1,)), 0, 0, 1), 1.0, None), (1,))
        count = mul(count, float(x.numel() // x.shape[1]))
        sums = _Summed.apply(OPS["cat"]([total(x, others, False), count], 0), self.process_group)
        n = OPS["narrow"](sums, 0, x.shape[1], 1).detach()
        centre = div(OPS["narrow"](sums, 0, 0, x.shape[1]), n)
        centred = sub(x, reshape(centre, channels))
        spread = div(_Summed.apply(total(OPS["square"](centred), others, False), self.process_group), n)
        if self.training and self.track_running_stats:
            self._remember(centre.detach(), div(mul(spread.detach(), n), sub(n, 1.0)))
        y = mul(centred, reshape(OPS["rsqrt"](add(spread, self.eps)), channels))
        if self.weight is not None:
            y = mul(y, reshape(self.weight, channels))
        return y if self.bias is None else add(y, reshape(self.bias, channels))

    def _remember(self, centre: Tensor, spread: Tensor) -> None:
        with no_grad():
            assign(self.num_batches_tracked, add(self.num_batches_tracked, 1))
            for running, now in ((self.running_mean, centre), (self.running_var, spread)):
                share: Any = self.momentum
                if share is None:
                    share = div(1.0, OPS["cast"](self.num_batches_tracked, running.dtype))
                assign(running, add(mul(running, sub(1.0, share)), mul(now, share)))

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module, with a SyncBatchNorm of the same values in place of every BatchNorm."""
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
