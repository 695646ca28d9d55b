"""Laws over numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.functional import creation
from weft.functional.distributions.base import Reparametrised, drawn, noise, together, uniform
from weft.ops import OPS

EULER = 0.57721566490153286060


class _Placed(Reparametrised):
    """A law of one form, put at `loc` and made as wide as `scale`."""

    parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape)

    def _away(self, value: Any) -> Any:
        return (value - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        return self.loc


class Normal(_Placed):
    """The bell around `loc`, as wide as `scale`.

    >>> flow.distributions.Normal(flow.zeros(1), flow.ones(1)).log_prob(flow.zeros(1)).tolist()
    [-0.918...]
    """

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.loc + self.scale * noise(self.loc, self._shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        away = self._away(value)
        return away * away * -0.5 - (self.scale.log() + 0.5 * math.log(2 * math.pi))

    def entropy(self) -> Any:
        return self.scale.log() + (0.5 + 0.5 * math.log(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        """The probability of a draw below the value."""
        return (OPS["erf"](self._away(value) / math.sqrt(2)) + 1) * 0.5

    def icdf(self, value: Any) -> Any:
        """The value that a draw lies below with this probability."""
        return self.loc + self.scale * OPS["erfinv"](2 * value - 1) * math.sqrt(2)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.scale * self.scale


class Laplace(_Placed):
    """Two falling exponentials, back to back."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        turned = uniform(self.loc, self._shape(sample_shape)) * 2 - 1
        return self.loc - self.scale * turned.sign() * (-turned.abs()).log1p()

    def log_prob(self, value: Any) -> Any:
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()

    @property
    def variance(self) -> Any:
        return 2 * self.scale * self.scale


class Gumbel(_Placed):
    """The largest of many draws."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = uniform(self.loc, self._shape(sample_shape)).clamp(max=1 - 2.0**-24)
        return self.loc - self.scale * (-drawn.log()).log()

    def log_prob(self, value: Any) -> Any:
        away = self._away(value)
        return -away - (-away).exp() - self.scale.log()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + EULER)

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * EULER

    @property
    def variance(self) -> Any:
        return self.scale * self.scale * (math.pi**2 / 6)


class Cauchy(_Placed):
    """The ratio of two normal draws: so wide that it has no mean."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.loc + self.scale * drawn(self.loc, self._shape(sample_shape), "cauchy", 0.0, 1.0)

    def log_prob(self, value: Any) -> Any:
        away = self._away(value)
        return -math.log(math.pi) - self.scale.log() - (away * away).log1p()

    def entropy(self) -> Any:
        return self.scale.log() + math.log(4 * math.pi)

    @property
    def mean(self) -> Any:
        raise OptionError("a Cauchy law has no mean: its draws are too far away too often")


class LogNormal(Normal):
    """What has a normal logarithm."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return super().rsample(sample_shape).exp()

    def log_prob(self, value: Any) -> Any:
        return super().log_prob(value.log()) - value.log()

    def entropy(self) -> Any:
        return super().entropy() + self.loc

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale * self.scale / 2).exp()

    @property
    def variance(self) -> Any:
        square = self.scale * self.scale
        return square.expm1() * (2 * self.loc + square).exp()

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()


class HalfNormal(Reparametrised):
    """The size of a normal draw around zero."""

    parameters = ("scale",)

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        (self.scale,) = together(scale)
        self._law = Normal(OPS["zeros_like"](self.scale.detach()), self.scale)
        super().__init__(self.scale.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._law.rsample(sample_shape).abs()

    def log_prob(self, value: Any) -> Any:
        return OPS["where"](value >= 0, self._law.log_prob(value) + math.log(2), -math.inf)

    def entropy(self) -> Any:
        return self._law.entropy() - math.log(2)

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale * self.scale * (1 - 2 / math.pi)


class Uniform(Reparametrised):
    """Every number from low to below high alike.

    >>> flow.distributions.Uniform(0.0, 2.0).log_prob(flow.tensor([1.0, 3.0])).tolist()
    [-0.693..., -inf]
    """

    parameters = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None:
        self.low, self.high = together(low, high)
        super().__init__(self.low.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.low + noise(self.low, self._shape(sample_shape), creation.rand) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        inside = OPS["logical_and"](value >= self.low, value < self.high)
        return OPS["where"](inside, -(self.high - self.low).log(), -math.inf)

    def entropy(self) -> Any:
        return (self.high - self.low).log()

    @property
    def mean(self) -> Any:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Any:
        return (self.high - self.low).square() / 12


class Exponential(Reparametrised):
    """The time until something happens that happens `rate` times on average."""

    parameters = ("rate",)

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return drawn(self.rate, self._shape(sample_shape), "exponential", 1.0) / self.rate

    def log_prob(self, value: Any) -> Any:
        return self.rate.log() - self.rate * value

    def entropy(self) -> Any:
        return 1.0 - self.rate.log()

    def cdf(self, value: Any) -> Any:
        """The probability of a draw below the value."""
        return -(-self.rate * value).expm1()

    @property
    def mean(self) -> Any:
        return 1.0 / self.rate

    @property
    def variance(self) -> Any:
        return 1.0 / (self.rate * self.rate)


__all__ = ["Cauchy", "Exponential", "Gumbel", "HalfNormal", "Laplace", "LogNormal", "Normal", "Uniform"]
