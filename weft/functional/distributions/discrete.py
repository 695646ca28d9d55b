"""Laws over classes and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Size

from weft.autograd import no_grad
from weft.core import dtype as dtypes
from weft.core.errors import OptionError
from weft.functional import creation
from weft.functional.distributions import constraints
from weft.functional.distributions.base import Distribution, ExponentialFamily, lazy, together, uniform
from weft.functional.likeness import form
from weft.functional.table import calling
from weft.ops import OPS

log_softmax, softplus, xlogy = map(calling, ("log_softmax", "softplus", "xlogy"))
where, full_like = OPS["where"], OPS["full_like"]


def either(name: str, probs: Any, logits: Any) -> str:
    """Which of two parameters was given."""
    if (probs is None) == (logits is None):
        raise OptionError(f"{name} takes either probs or logits: one of them")
    return "probs" if logits is None else "logits"


def inside(probs: Any) -> Any:
    """Probabilities away from 0 and 1, so that their logarithms are finite."""
    tiny = 2.0**-23 if probs.dtype is dtypes.float32 else 2.0**-52
    return probs.clamp(tiny, 1 - tiny)


def counted(like: Any, n: int, batch: int, expand: bool, batch_shape: Sequence[int]) -> Any:
    """0 to n - 1 along a new first dimension, for each place of a batch if they are expanded."""
    where_to = {k: v for k, v in form(like, None, None, None, None).items() if k != "dtype"}
    values = creation.arange(n, dtype=like.dtype, **where_to).reshape((-1, *(1,) * batch))
    return values.expand((-1, *batch_shape)) if expand else values


class Categorical(Distribution):
    """One of several classes, by probabilities or by scores that softmax makes probabilities of.

    >>> flow.distributions.Categorical(probs=flow.tensor([0.0, 2.0])).sample((3,)).tolist()
    [1, 1, 1]
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        which = either("Categorical", probs, logits)
        given = probs if logits is None else logits
        if given.ndim < 1:
            raise OptionError("Categorical: the last dimension of probs or logits holds the classes; got a number")
        if which == "probs":
            self.probs = probs / probs.sum(-1, True)
        else:
            self.logits = log_softmax(given, -1)
        self._which, self._num_events = which, given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    @lazy
    def probs(self) -> Any:
        return self.logits.exp()

    @lazy
    def logits(self) -> Any:
        return inside(self.probs).log()

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        count, classes = math.prod(sample_shape), self._num_events
        with no_grad():
            rows = OPS["reshape"](self.probs.detach(), (math.prod(self.batch_shape), classes))
            drawn = OPS["transpose"](OPS["multinomial"](rows, count, True), 0, 1)
            return OPS["reshape"](drawn, (*sample_shape, *self.batch_shape))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        index = OPS["unsqueeze"](OPS["cast"](value, dtypes.int64), -1)
        lead = [b if a == 1 else a for a, b in zip(*_aligned(value.shape, self.batch_shape), strict=True)]
        logits = self.logits.expand((*lead, self._num_events))
        return logits.gather(-1, index.expand((*lead, 1))).squeeze(-1)

    def entropy(self) -> Any:
        return -(self.probs * self.logits).sum(-1)

    @property
    def mean(self) -> Any:
        """Not a number: classes are no numbers."""
        return full_like(self.probs.detach().sum(-1), math.nan, None)

    @property
    def variance(self) -> Any:
        return self.mean

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    @property
    def param_shape(self) -> Size:
        return getattr(self, self._which).shape

    def enumerate_support(self, expand: bool = True) -> Any:
        classes = counted(self.probs.detach(), self._num_events, len(self.batch_shape), expand, self.batch_shape)
        return OPS["cast"](classes, dtypes.int64)

    def _given(self) -> Sequence[str]:
        return (self._which,)


def _aligned(a: Sequence[int], b: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ndim = max(len(a), len(b))
    return (1,) * (ndim - len(a)) + tuple(a), (1,) * (ndim - len(b)) + tuple(b)


class OneHotCategorical(Distribution):
    """One of several classes, told by a one among zeros."""

    arg_constraints = Categorical.arg_constraints
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self._law = Categorical(probs, logits, validate_args)
        super().__init__(self._law.batch_shape, (self._law._num_events,), validate_args)

    @property
    def probs(self) -> Any:
        return self._law.probs

    @property
    def logits(self) -> Any:
        return self._law.logits

    @property
    def param_shape(self) -> Size:
        return self._law.param_shape

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        return OPS["cast"](OPS["one_hot"](self._law.sample(sample_shape), self.event_shape[0]), self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return self._law.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._law.entropy()

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return OPS["cast"](OPS["one_hot"](self._law.mode, self.event_shape[0]), self.probs.dtype)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        classes = OPS["one_hot"](self._law.enumerate_support(expand), self.event_shape[0])
        return OPS["cast"](classes, self.probs.dtype)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._again(**self._law._larger(batch_shape))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Likewise; the gradient of a draw is that of its probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Chance(Distribution):
    """A law told by one probability, or by its logit."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self._which = either(type(self).__name__, probs, logits)
        if logits is None:
            (self.probs,) = together(probs)
        else:
            (self.logits,) = together(logits)
        super().__init__(self.param_shape, (), validate_args)

    @lazy
    def probs(self) -> Any:
        return self.logits.sigmoid()

    @lazy
    def logits(self) -> Any:
        sure = inside(self.probs)
        return sure.log() - (-sure).log1p()

    @property
    def param_shape(self) -> Size:
        return getattr(self, self._which).shape

    def _given(self) -> Sequence[str]:
        return (self._which,)


class Bernoulli(Chance, ExponentialFamily):
    """1 with a probability, else 0.

    >>> flow.distributions.Bernoulli(flow.tensor([1.0, 0.0])).sample().tolist()
    [1.0, 0.0]
    """

    support = constraints.boolean
    has_enumerate_support = True

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            return OPS["bernoulli"](self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return value * self.logits - softplus(self.logits)

    def entropy(self) -> Any:
        return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Any:
        return counted(self.probs.detach(), 2, len(self.batch_shape), expand, self.batch_shape)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Any:
        """Not a number where both are as likely."""
        likelier = OPS["cast"](self.probs >= 0.5, self.probs.dtype)
        return where(self.probs == 0.5, math.nan, likelier)


class Geometric(Chance):
    """How often something with a probability fails before it comes true."""

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and not constraints.holds(constraints.positive, self.probs):
            raise OptionError(f"Geometric: what never comes true is waited for without end; got probs {self.probs}")

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            drawn = uniform(self.probs, self._extended_shape(sample_shape))
            return (drawn.log() / (-self.probs.detach()).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return value * (-inside(self.probs)).log1p() + inside(self.probs).log()

    def entropy(self) -> Any:
        return (softplus(self.logits) - self.probs * self.logits) / self.probs

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return OPS["zeros_like"](self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs


class Poisson(ExponentialFamily):
    """How often something happens that happens `rate` times on average."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, (), validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            return OPS["poisson"](self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return xlogy(value, self.rate) - self.rate - (value + 1).lgamma()

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate


class Binomial(Chance):
    """How often something comes true in so many tries."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **Chance.arg_constraints}
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        which = either("Binomial", probs, logits)
        self.total_count, given = together(total_count, probs if logits is None else logits)
        super().__init__(**{which: given, "validate_args": validate_args})

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            return OPS["binomial"](self.total_count.detach().expand(shape), self.probs.detach().expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Any:
        """Where all count as many tries: a sum over everything that may come of them."""
        n = self._tries("entropy")
        chances = self.log_prob(counted(self.probs.detach(), n + 1, len(self.batch_shape), False, ()))
        return -(chances.exp() * chances).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self._tries("enumerate_support")
        return counted(self.probs.detach(), n + 1, len(self.batch_shape), expand, self.batch_shape)

    def _tries(self, what: str) -> int:
        most, least = (int(f(self.total_count.detach())) for f in (OPS["amax"], OPS["amin"]))
        if most != least:
            raise OptionError(f"Binomial.{what}(): total_count differs over the batch, from {least} to {most}")
        return most

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return OPS["minimum"](((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def _given(self) -> Sequence[str]:
        return ("total_count", self._which)


__all__ = [
    "Bernoulli", "Binomial", "Categorical", "Geometric", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Poisson",
]  # fmt: skip
