"""`flow.optim.swa_utils`: averages of a model's weights during training."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft import nn
from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core import dtype as dtypes
from weft.core.errors import OptionError
from weft.functional.create.creation import tensor
from weft.functional.create.likeness import device_of
from weft.nn.module.module import Module
from weft.ops import ops
from weft.tensor.tensor import Tensor

Average = Callable[[Tensor, Tensor, Any], Any]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def _decay(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise OptionError(f"a decay must be from 0 to 1; got {decay}")
    return decay


def _all(one: Average) -> Averages:
    """The in-place average of many tensors, from the function for one."""

    def average(averaged: Sequence[Tensor], current: Sequence[Tensor], count: Any) -> None:
        with no_grad():
            for a, c in zip(averaged, current, strict=True):
                assign(a, one(a, c, count))

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average of one tensor."""
    kept = _decay(decay)
    return lambda averaged, current, count: ops.add(ops.mul(averaged, kept), ops.mul(current, 1 - kept))


def get_swa_avg_fn() -> Average:
    """The mean over all steps, of one tensor."""

    def average(averaged: Any, current: Any, count: Any) -> Any:
        return averaged + (current - averaged) / (count + 1)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """The exponential moving average of many tensors."""
    return _all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """The mean over all steps, of many tensors."""
    return _all(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: the mean over calls of `update_parameters`, or the result of
    `avg_fn` or `multi_avg_fn` from the average, the current value, and the count. Buffers are averaged too with
    `use_buffers`, and copied otherwise.

    >>> model = flow.nn.Linear(1, 1, bias=False)
    >>> mean = flow.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = flow.nn.init.constant_(model.weight, value)
    ...     mean.update_parameters(model)
    >>> mean(flow.ones(1, 1)).item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Average | None = None, multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise OptionError("AveragedModel takes avg_fn or multi_avg_fn: one of them says how to average")
        self.module: Module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        first = next(itertools.chain(self.module.parameters(), self.module.buffers()), None)
        where = {} if first is None else device_of(first)
        self.register_buffer("n_averaged", tensor(0, dtype=dtypes.int64, **where))
        self.average = multi_avg_fn or _all(avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the model's current parameters to the average; the first call copies them."""
        own = [t.detach() for t in self._averaged(self.module)]
        now = [self._like(t, a) for t, a in zip(self._averaged(model), own, strict=True)]
        with no_grad():
            if not int(self.n_averaged):
                for a, t in zip(own, now, strict=True):
                    assign(a, t)
            else:
                self.average(own, now, self.n_averaged)
            if not self.use_buffers:
                for a, t in zip(self.module.buffers(), model.buffers(), strict=True):
                    assign(a, self._like(t, a))
            assign(self.n_averaged, ops.add(self.n_averaged, 1))

    def _averaged(self, model: Module) -> list[Tensor]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]

    @staticmethod
    def _like(t: Tensor, like: Tensor) -> Tensor:
        t = t.detach()
        return t if t.is_global or t.device is like.device else t.to(like.device)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the statistics of all batch normalization layers, as means over a loader's batches.

    If a batch is a list or a tuple, its first element is the input.
    """
    kind = nn.modules._BatchNorm  # type: ignore[attr-defined]  # made with the package
    norms = [m for m in model.modules() if isinstance(m, kind)]
    if not norms:
        return
    training, before = model.training, [m.momentum for m in norms]
    model.train()
    try:
        for m in norms:
            m.reset_running_stats()
            m.momentum = None  # the mean over all batches
        with no_grad():
            for batch in loader:
                x: Any = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
    finally:
        for m, momentum in zip(norms, before, strict=True):
            m.momentum = momentum
        model.train(training)


__all__ = [
    "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip
