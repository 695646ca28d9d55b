"""`flow.distributions`: numbers drawn from a law, and how likely they are under it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from weft.autograd import no_grad
from weft.core import dtype as dtypes
from weft.core.errors import OptionError
from weft.functional.shaping import broadcast_tensors
from weft.functional.table import calling
from weft.ops import OPS
from weft.tensor.tensor import Size, Tensor

add, sub, mul, div, log, exp, total = map(calling, ("add", "sub", "mul", "div", "log", "exp", "sum"))


class Distribution(ABC):
    """A law over values of `event_shape`, one for each place of `batch_shape`."""

    def __init__(self, batch_shape: Sequence[int], event_shape: Sequence[int] = ()) -> None:
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)

    @abstractmethod
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Values drawn from the law: `sample_shape` of them for each place. They carry no gradient."""

    @abstractmethod
    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or the probability, at a value."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """How much a value tells, in nats."""


class Categorical(Distribution):
    """One of several classes, by probabilities or by scores that softmax makes probabilities of.

    >>> flow.distributions.Categorical(probs=flow.tensor([0.0, 2.0])).sample((3,)).tolist()
    [1, 1, 1]
    """

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: Any = None) -> None:
        if (probs is None) == (logits is None):
            raise OptionError("Categorical takes either probs or logits: one of them")
        given = probs if logits is None else logits
        assert given is not None
        if given.ndim < 1:
            raise OptionError("Categorical: the last dimension of probs or logits holds the classes; got a number")
        if probs is not None:
            self.probs = div(probs, total(probs, -1, True))
            tiny = 2.0**-24 if probs.dtype is dtypes.float32 else 2.0**-53
            self.logits = log(OPS["clamp"](self.probs, tiny, 1 - tiny))
        else:
            self.logits = calling("log_softmax")(given, -1)
            self.probs = exp(self.logits)
        super().__init__(given.shape[:-1])

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        count, classes = math.prod(sample_shape), self.probs.shape[-1]
        with no_grad():
            rows = OPS["reshape"](self.probs.detach(), (math.prod(self.batch_shape), classes))
            drawn = OPS["transpose"](OPS["multinomial"](rows, count, True), 0, 1)
            return OPS["reshape"](drawn, (*sample_shape, *self.batch_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        index = OPS["unsqueeze"](OPS["cast"](value, dtypes.int64), -1)
        shape = (*value.shape, self.logits.shape[-1])
        logits = self.logits if tuple(self.logits.shape) == shape else OPS["expand"](self.logits, shape)
        return OPS["squeeze"](OPS["gather"](logits, len(shape) - 1, index), -1)

    def entropy(self) -> Tensor:
        return OPS["neg"](total(mul(self.probs, self.logits), -1))


class Normal(Distribution):
    """The bell around `loc`, as wide as `scale`.

    >>> flow.distributions.Normal(flow.zeros(1), flow.ones(1)).log_prob(flow.zeros(1)).tolist()
    [-0.918...]
    """

    def __init__(self, loc: Tensor, scale: Tensor, validate_args: Any = None) -> None:
        self.loc, self.scale = broadcast_tensors(loc, scale)
        super().__init__(self.loc.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Values drawn, through which gradients flow to `loc` and `scale`."""
        shape = (*sample_shape, *self.batch_shape)
        noise = OPS["randn"](shape, self.loc.dtype, self.loc.device)
        return add(self.loc, mul(self.scale, noise))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        away = div(sub(value, self.loc), self.scale)
        return sub(mul(mul(away, away), -0.5), add(log(self.scale), 0.5 * math.log(2 * math.pi)))

    def entropy(self) -> Tensor:
        return add(log(self.scale), 0.5 + 0.5 * math.log(2 * math.pi))


__all__ = ["Categorical", "Distribution", "Normal"]
