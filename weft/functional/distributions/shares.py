"""Laws over waiting times and shares: what draws of the gamma law make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.functional.distributions import constraints
from weft.functional.distributions.base import ExponentialFamily, Reparametrised, noise, together
from weft.functional.parts import stack
from weft.functional.table import calling
from weft.ops import OPS

digamma, xlogy = map(calling, ("digamma", "xlogy"))


class Gamma(Reparametrised, ExponentialFamily):
    """The time until something happened `concentration` times that happens `rate` times on average."""

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        self.concentration, self.rate = together(concentration, rate)
        super().__init__(self.rate.shape, (), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return OPS["standard_gamma"](self.concentration.expand(shape)) / self.rate.expand(shape)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        a = self.concentration
        return xlogy(a, self.rate) + xlogy(a - 1, value) - self.rate * value - a.lgamma()

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * digamma(a)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return OPS["clamp"]((self.concentration - 1) / self.rate, 0.0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.square()

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return OPS["igamma"](self.concentration, self.rate * value)


class Chi2(Gamma):
    """The sum of the squares of `df` normal draws."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: Any = None) -> None:
        (self.df,) = together(df)
        super().__init__(self.df * 0.5, 0.5, validate_args)


class StudentT(Reparametrised):
    """A normal draw whose width is only estimated, from `df` others."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: Any = None) -> None:
        self.df, self.loc, self.scale = together(df, loc, scale)
        self._squares = Chi2(self.df, validate_args=False)
        super().__init__(self.df.shape, (), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = noise(self.loc, self._extended_shape(sample_shape))
        return self.loc + self.scale * drawn * (self._squares.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        away = (value - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        norm = norm + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1.0)).lgamma()
        return -0.5 * (self.df + 1.0) * (away.square() / self.df).log1p() - norm

    @property
    def mean(self) -> Any:
        return OPS["where"](self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> Any:
        return self.loc

    def entropy(self) -> Any:
        half = 0.5 * self.df
        ways = half.lgamma() + math.lgamma(0.5) - (half + 0.5).lgamma()
        spread = (half + 0.5) * (digamma(half + 0.5) - digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + ways

    @property
    def variance(self) -> Any:
        wide = self.scale.square() * self.df / OPS["clamp"](self.df - 2, 1e-12)
        return OPS["where"](self.df > 2, wide, OPS["where"](self.df > 1, math.inf, math.nan))


class Dirichlet(Reparametrised, ExponentialFamily):
    """Shares that sum to one; the larger a class's concentration, the larger its share."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration: Any, validate_args: Any = None) -> None:
        if concentration.ndim < 1:
            raise OptionError("Dirichlet: the last dimension of concentration holds the classes; got a number")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = OPS["standard_gamma"](self.concentration.expand(self._extended_shape(sample_shape)))
        return drawn / drawn.sum(-1, True)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        a = self.concentration
        return xlogy(a - 1.0, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Any:
        a, k = self.concentration, self.concentration.shape[-1]
        whole = a.sum(-1)
        rest = (k - whole) * digamma(whole) + ((a - 1.0) * digamma(a)).sum(-1)
        return a.lgamma().sum(-1) - whole.lgamma() - rest

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def variance(self) -> Any:
        whole = self.concentration.sum(-1, True)
        return self.concentration * (whole - self.concentration) / (whole.square() * (whole + 1))

    @property
    def mode(self) -> Any:
        """The likeliest shares; where no concentration is above one, all of the largest."""
        a = self.concentration
        over = OPS["clamp"](a - 1, 0.0)
        shares = over / over.sum(-1, True)
        largest = OPS["cast"](OPS["one_hot"](shares.argmax(-1), a.shape[-1]), a.dtype)
        return OPS["where"]((a < 1).all(-1, keepdim=True), largest, shares)


class Beta(Reparametrised, ExponentialFamily):
    """A share between 0 and 1."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        self._law = Dirichlet(stack([self.concentration1, self.concentration0], -1), validate_args=False)
        super().__init__(self.concentration1.shape, (), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return OPS["select"](self._law.rsample(sample_shape), -1, 0)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return self._law.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._law.entropy()

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return OPS["select"](self._law.mode, -1, 0)

    @property
    def variance(self) -> Any:
        whole = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (whole.square() * (whole + 1))


__all__ = ["Beta", "Chi2", "Dirichlet", "Gamma", "StudentT"]
