"""Laws over waiting times and shares: what draws of the gamma law make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.functional.distributions.base import Reparametrised, noise, together
from weft.functional.shaping import stack
from weft.functional.table import calling
from weft.ops import OPS

digamma, xlogy = map(calling, ("digamma", "xlogy"))


class Gamma(Reparametrised):
    """The time until something happened `concentration` times that happens `rate` times on average."""

    parameters = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        self.concentration, self.rate = together(concentration, rate)
        super().__init__(self.rate.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._shape(sample_shape)
        return OPS["standard_gamma"](self.concentration.expand(shape)) / self.rate.expand(shape)

    def log_prob(self, value: Any) -> Any:
        a = self.concentration
        return xlogy(a, self.rate) + xlogy(a - 1, value) - self.rate * value - a.lgamma()

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * digamma(a)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.square()


class Chi2(Gamma):
    """The sum of the squares of `df` normal draws."""

    parameters = ("df",)

    def __init__(self, df: Any, validate_args: Any = None) -> None:
        (self.df,) = together(df)
        super().__init__(self.df * 0.5, 0.5)


class StudentT(Reparametrised):
    """A normal draw whose width is only estimated, from `df` others."""

    parameters = ("df", "loc", "scale")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: Any = None) -> None:
        self.df, self.loc, self.scale = together(df, loc, scale)
        self._squares = Chi2(self.df)
        super().__init__(self.df.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = noise(self.loc, self._shape(sample_shape))
        return self.loc + self.scale * drawn * (self._squares.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Any) -> Any:
        away = (value - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        norm = norm + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1.0)).lgamma()
        return -0.5 * (self.df + 1.0) * (away.square() / self.df).log1p() - norm

    @property
    def mean(self) -> Any:
        return OPS["where"](self.df <= 1, math.nan, self.loc)

    @property
    def variance(self) -> Any:
        wide = self.scale.square() * self.df / OPS["clamp"](self.df - 2, 1e-12)
        return OPS["where"](self.df > 2, wide, OPS["where"](self.df > 1, math.inf, math.nan))


class Dirichlet(Reparametrised):
    """Shares that sum to one; the larger a class's concentration, the larger its share."""

    parameters = ("concentration",)

    def __init__(self, concentration: Any, validate_args: Any = None) -> None:
        if concentration.ndim < 1:
            raise OptionError("Dirichlet: the last dimension of concentration holds the classes; got a number")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:])

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = OPS["standard_gamma"](self.concentration.expand(self._shape(sample_shape)))
        return drawn / drawn.sum(-1, True)

    def log_prob(self, value: Any) -> Any:
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

    def expand(self, batch_shape: Sequence[int]) -> Dirichlet:
        return Dirichlet(self.concentration.expand((*batch_shape, *self.event_shape)))


class Beta(Reparametrised):
    """A share between 0 and 1."""

    parameters = ("concentration1", "concentration0")

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        self._law = Dirichlet(stack([self.concentration1, self.concentration0], -1))
        super().__init__(self.concentration1.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return OPS["select"](self._law.rsample(sample_shape), -1, 0)

    def log_prob(self, value: Any) -> Any:
        return self._law.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._law.entropy()

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Any:
        whole = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (whole.square() * (whole + 1))


__all__ = ["Beta", "Chi2", "Dirichlet", "Gamma", "StudentT"]
