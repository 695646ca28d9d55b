"""Laws over classes and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.autograd import no_grad
from weft.core import dtype as dtypes
from weft.core.errors import OptionError
from weft.functional.distributions.base import Distribution, together, uniform
from weft.functional.table import calling
from weft.ops import OPS
from weft.tensor.tensor import Size, Tensor

log_softmax, softplus, xlogy = map(calling, ("log_softmax", "softplus", "xlogy"))


def _either(name: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise OptionError(f"{name} takes either probs or logits: one of them")


def _inside(probs: Any) -> Any:
    """Probabilities away from 0 and 1, so that their logarithms are finite."""
    tiny = 2.0**-23 if probs.dtype is dtypes.float32 else 2.0**-52
    return probs.clamp(tiny, 1 - tiny)


class Categorical(Distribution):
    """One of several classes, by probabilities or by scores that softmax makes probabilities of.

    >>> flow.distributions.Categorical(probs=flow.tensor([0.0, 2.0])).sample((3,)).tolist()
    [1, 1, 1]
    """

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        _either("Categorical", probs, logits)
        given = probs if logits is None else logits
        if given.ndim < 1:
            raise OptionError("Categorical: the last dimension of probs or logits holds the classes; got a number")
        if probs is not None:
            self.probs = probs / probs.sum(-1, True)
            self.logits = _inside(self.probs).log()
        else:
            self.logits = log_softmax(given, -1)
            self.probs = self.logits.exp()
        super().__init__(given.shape[:-1])

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        count, classes = math.prod(sample_shape), self.probs.shape[-1]
        with no_grad():
            rows = OPS["reshape"](self.probs.detach(), (math.prod(self.batch_shape), classes))
            drawn = OPS["transpose"](OPS["multinomial"](rows, count, True), 0, 1)
            return OPS["reshape"](drawn, (*sample_shape, *self.batch_shape))

    def log_prob(self, value: Any) -> Tensor:
        index = OPS["unsqueeze"](OPS["cast"](value, dtypes.int64), -1)
        lead = [b if a == 1 else a for a, b in zip(*_aligned(value.shape, self.batch_shape), strict=True)]
        logits = self.logits.expand((*lead, self.logits.shape[-1]))
        return logits.gather(-1, index.expand((*lead, 1))).squeeze(-1)

    def entropy(self) -> Any:
        return -(self.probs * self.logits).sum(-1)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    @property
    def param_shape(self) -> Size:
        return self.logits.shape

    def enumerate_support(self, expand: bool = True) -> Any:
        """Every class, one after another along a new first dimension."""
        shape = (-1, *(1,) * len(self.batch_shape))
        classes = calling("cumsum")(OPS["ones_like"](self.logits, dtypes.int64), -1).movedim(-1, 0) - 1
        return classes if expand else classes.flatten(1)[:, 0].reshape(shape)

    def expand(self, batch_shape: Sequence[int]) -> Categorical:
        return Categorical(logits=self.logits.expand((*batch_shape, self.logits.shape[-1])))

    def __repr__(self) -> str:
        return f"Categorical(probs: {tuple(self.probs.shape)}, logits: {tuple(self.logits.shape)})"


def _aligned(a: Sequence[int], b: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ndim = max(len(a), len(b))
    return (1,) * (ndim - len(a)) + tuple(a), (1,) * (ndim - len(b)) + tuple(b)


class OneHotCategorical(Distribution):
    """One of several classes, told by a one among zeros."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self._law = Categorical(probs, logits)
        self.probs, self.logits = self._law.probs, self._law.logits
        super().__init__(self._law.batch_shape, (self.probs.shape[-1],))

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        return OPS["cast"](OPS["one_hot"](self._law.sample(sample_shape), self.event_shape[0]), self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        return self._law.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._law.entropy()

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def expand(self, batch_shape: Sequence[int]) -> OneHotCategorical:
        return OneHotCategorical(logits=self.logits.expand((*batch_shape, *self.event_shape)))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Likewise; the gradient of a draw is that of its probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class _Chance(Distribution):
    """A law told by one probability, or by its logit."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        _either(type(self).__name__, probs, logits)
        if logits is None:
            (self.probs,) = together(probs)
            sure = _inside(self.probs)
            self.logits = sure.log() - (-sure).log1p()
        else:
            (self.logits,) = together(logits)
            self.probs = self.logits.sigmoid()
        super().__init__(self.probs.shape)

    def expand(self, batch_shape: Sequence[int]) -> Any:
        return type(self)(logits=self.logits.expand(tuple(batch_shape)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(probs: {tuple(self.probs.shape)}, logits: {tuple(self.logits.shape)})"


class Bernoulli(_Chance):
    """1 with a probability, else 0.

    >>> flow.distributions.Bernoulli(flow.tensor([1.0, 0.0])).sample().tolist()
    [1.0, 0.0]
    """

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            return OPS["bernoulli"](self.probs.detach().expand(self._shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        return value * self.logits - softplus(self.logits)

    def entropy(self) -> Any:
        return softplus(self.logits) - self.probs * self.logits

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Any:
        return OPS["cast"](self.probs >= 0.5, self.probs.dtype)


class Geometric(_Chance):
    """How often something with a probability fails before it comes true."""

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            drawn = uniform(self.probs, self._shape(sample_shape))
            return (drawn.log() / (-self.probs.detach()).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        return value * (-_inside(self.probs)).log1p() + _inside(self.probs).log()

    def entropy(self) -> Any:
        return (softplus(self.logits) - self.probs * self.logits) / self.probs

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs


class Poisson(Distribution):
    """How often something happens that happens `rate` times on average."""

    parameters = ("rate",)

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            return OPS["poisson"](self.rate.detach().expand(self._shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        return xlogy(value, self.rate) - self.rate - (value + 1).lgamma()

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def variance(self) -> Any:
        return self.rate


class Binomial(_Chance):
    """How often something comes true in so many tries."""

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        super().__init__(probs, logits)
        self.total_count, self.probs, self.logits = together(total_count, self.probs, self.logits)
        Distribution.__init__(self, self.probs.shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            shape = self._shape(sample_shape)
            return OPS["binomial"](self.total_count.detach().expand(shape), self.probs.detach().expand(shape))

    def log_prob(self, value: Any) -> Any:
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * softplus(self.logits)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def expand(self, batch_shape: Sequence[int]) -> Binomial:
        shape = tuple(batch_shape)
        return Binomial(self.total_count.expand(shape), logits=self.logits.expand(shape))


__all__ = [
    "Bernoulli", "Binomial", "Categorical", "Geometric", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Poisson",
]  # fmt: skip
