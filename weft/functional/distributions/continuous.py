"""Laws over numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.functional import creation
from weft.functional.distributions import constraints
from weft.functional.distributions.base import (
    Centred,
    ExponentialFamily,
    Reparametrised,
    drawn,
    noise,
    together,
    uniform,
)
from weft.ops import OPS

EULER = 0.57721566490153286060

where, full_like = OPS["where"], OPS["full_like"]


class Placed(Centred, Reparametrised):
    """A law of one form, put at `loc` and made as wide as `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def _away(self, value: Any) -> Any:
        return (value - self.loc) / self.scale


class Normal(Placed, ExponentialFamily):
    """The bell around `loc`, as wide as `scale`.

    >>> flow.distributions.Normal(flow.zeros(1), flow.ones(1)).log_prob(flow.zeros(1)).tolist()
    [-0.918...]
    """

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.loc + self.scale * noise(self.loc, self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        away = self._away(value)
        return away * away * -0.5 - (self.scale.log() + 0.5 * math.log(2 * math.pi))

    def entropy(self) -> Any:
        return self.scale.log() + (0.5 + 0.5 * math.log(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return (OPS["erf"](self._away(value) / math.sqrt(2)) + 1) * 0.5

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * OPS["erfinv"](2 * value - 1) * math.sqrt(2)

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.scale * self.scale


class Laplace(Placed):
    """Two falling exponentials, back to back."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        turned = uniform(self.loc, self._extended_shape(sample_shape)) * 2 - 1
        return self.loc - self.scale * turned.sign() * (-turned.abs()).log1p()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Any:
        turned = value - 0.5
        return self.loc - self.scale * turned.sign() * (-2 * turned.abs()).log1p()

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()

    @property
    def variance(self) -> Any:
        return 2 * self.scale * self.scale

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale


class Gumbel(Placed):
    """The largest of many draws."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = uniform(self.loc, self._extended_shape(sample_shape)).clamp(max=1 - 2.0**-24)
        return self.loc - self.scale * (-drawn.log()).log()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        away = self._away(value)
        return -away - (-away).exp() - self.scale.log()

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return (-(-self._away(value)).exp()).exp()

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + EULER)

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * EULER

    @property
    def variance(self) -> Any:
        return self.scale * self.scale * (math.pi**2 / 6)

    @property
    def stddev(self) -> Any:
        return math.pi / math.sqrt(6) * self.scale


class Cauchy(Placed):
    """The ratio of two normal draws: so wide that it has no mean."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.loc + self.scale * drawn(self.loc, self._extended_shape(sample_shape), "cauchy", 0.0, 1.0)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        away = self._away(value)
        return -math.log(math.pi) - self.scale.log() - (away * away).log1p()

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return OPS["atan"](self._away(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return OPS["tan"](math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return self.scale.log() + math.log(4 * math.pi)

    @property
    def mean(self) -> Any:
        """Not a number: draws are too far away too often."""
        return full_like(self.loc, math.nan, None)

    @property
    def variance(self) -> Any:
        return full_like(self.loc, math.inf, None)


class LogNormal(Placed):
    """What has a normal logarithm."""

    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        super().__init__(loc, scale, validate_args)
        self._log = Normal(self.loc, self.scale, validate_args=False)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._log.rsample(sample_shape).exp()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return self._log.log_prob(value.log()) - value.log()

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return self._log.cdf(value.log())

    def icdf(self, value: Any) -> Any:
        return self._log.icdf(value).exp()

    def entropy(self) -> Any:
        return self._log.entropy() + self.loc

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale * self.scale / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale * self.scale).exp()

    @property
    def variance(self) -> Any:
        square = self.scale * self.scale
        return square.expm1() * (2 * self.loc + square).exp()


class Half(Reparametrised):
    """The size of a draw from a law around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    whole: Any

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        (self.scale,) = together(scale)
        self._law = self.whole(OPS["zeros_like"](self.scale.detach()), self.scale, validate_args=False)
        super().__init__(self.scale.shape, (), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._law.rsample(sample_shape).abs()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return where(value >= 0, self._law.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return 2 * self._law.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self._law.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self._law.entropy() - math.log(2)

    @property
    def mode(self) -> Any:
        return OPS["zeros_like"](self.scale)


class HalfNormal(Half):
    """The size of a normal draw around zero."""

    whole = Normal

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale * self.scale * (1 - 2 / math.pi)


class HalfCauchy(Half):
    """The size of a draw from Cauchy's law around zero."""

    whole = Cauchy

    @property
    def mean(self) -> Any:
        return full_like(self.scale, math.inf, None)

    @property
    def variance(self) -> Any:
        return full_like(self.scale, math.inf, None)


class Uniform(Reparametrised):
    """Every number from low to below high alike.

    >>> law = flow.distributions.Uniform(0.0, 2.0, validate_args=False)
    >>> law.log_prob(flow.tensor([1.0, 3.0])).tolist()
    [-0.693..., -inf]
    """

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None:
        self.low, self.high = together(low, high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validate_args and not constraints.holds(constraints.greater_than(0), self.high - self.low):
            raise OptionError(f"Uniform: high must be above low; got {self.low} and {self.high}")

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.low + noise(self.low, self._extended_shape(sample_shape), creation.rand) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        inside = OPS["logical_and"](value >= self.low, value < self.high)
        return where(inside, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return OPS["clamp"]((value - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return (self.high - self.low).log()

    @property
    def mean(self) -> Any:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Any:
        """Not a number: all are alike."""
        return full_like(self.low, math.nan, None)

    @property
    def variance(self) -> Any:
        return (self.high - self.low).square() / 12

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / math.sqrt(12)


class Exponential(Reparametrised, ExponentialFamily):
    """The time until something happens that happens `rate` times on average."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, (), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return drawn(self.rate, self._extended_shape(sample_shape), "exponential", 1.0) / self.rate

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return self.rate.log() - self.rate * value

    def entropy(self) -> Any:
        return 1.0 - self.rate.log()

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Any) -> Any:
        return -(-value).log1p() / self.rate

    @property
    def mean(self) -> Any:
        return 1.0 / self.rate

    @property
    def mode(self) -> Any:
        return OPS["zeros_like"](self.rate)

    @property
    def stddev(self) -> Any:
        return 1.0 / self.rate

    @property
    def variance(self) -> Any:
        return 1.0 / (self.rate * self.rate)


__all__ = [
    "Cauchy", "Exponential", "Gumbel", "HalfCauchy", "HalfNormal", "Laplace", "LogNormal", "Normal", "Uniform"
]  # fmt: skip
