"""Laws that are asked for rarely: angles, ratios of spreads, shares of several shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.autograd import no_grad
from weft.core import dtype as dtypes
from weft.functional import creation, info
from weft.functional.distributions import constraints
from weft.functional.distributions.base import Centred, ExponentialFamily, Reparametrised, noise, together
from weft.functional.distributions.continuous import EULER, Normal, Uniform
from weft.functional.distributions.discrete import Chance, inside
from weft.functional.distributions.joint import TransformedDistribution
from weft.functional.distributions.mapping import AffineTransform, PowerTransform
from weft.functional.distributions.shares import Gamma
from weft.functional.distributions.vectors import StickBreakingTransform
from weft.functional.table import calling
from weft.ops import OPS

digamma, i0e, i1e = map(calling, ("digamma", "i0e", "i1e"))
where, full_like, cast = OPS["where"], OPS["full_like"], OPS["cast"]


class VonMises(Centred):
    """Angles around `loc`, the closer the higher the concentration: the normal law on a circle.

    >>> law = flow.distributions.VonMises(flow.tensor([0.0]), flow.tensor([4.0]))
    >>> law.log_prob(flow.tensor([0.0])).tolist()
    [-0.262...]
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.concentration = together(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - i0e(k).log()

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """By rejection from a Cauchy law wound around the circle, drawn anew until all are accepted."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, k = (cast(t.detach(), dtypes.float64) for t in (self.loc, self.concentration))
            root = 1 + (1 + 4 * k.square()).sqrt()
            rho = (root - (2 * root).sqrt()) / (2 * k)
            wide = where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
            angle = accepted = None
            while accepted is None or not bool(accepted.all()):
                first, second, third = noise(loc, (3, *shape), creation.rand).unbind()
                z = (math.pi * first).cos()
                cosine = (1 + wide * z) / (wide + z)
                spare = k * (wide - cosine)
                good = (spare * (2 - spare) - second > 0) | ((spare / second).log() + 1 - spare >= 0)
                good = good | OPS["isnan"](spare)  # of parameters that aren't numbers no draw would be good
                found = (third - 0.5).sign() * OPS["acos"](cosine)
                angle = found if angle is None else where(good, found, angle)
                accepted = good if accepted is None else accepted | good
            assert angle is not None
            return cast((angle + math.pi + loc) % (2 * math.pi) - math.pi, self.loc.dtype)

    @property
    def variance(self) -> Any:
        """On the circle: one less the mean cosine."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)


class ContinuousBernoulli(Chance, ExponentialFamily, Reparametrised):
    """A number between 0 and 1, its density in proportion to Bernoulli's probabilities. Within `lims`, where formulas
    divide by almost nothing, they are replaced by the first terms of their series."""

    support = constraints.unit_interval

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: Any = None,
    ) -> None:  # fmt: skip
        self._lims = lims
        super().__init__(probs, logits, validate_args)
        if self._which == "probs":
            self.probs = inside(self.probs)

    def _far(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Any:
        """Probabilities with those too near to one half moved away."""
        return where(self._far(), self.probs, full_like(self.probs.detach(), self._lims[0], None))

    def log_norm(self) -> Any:
        """The logarithm of what the density is multiplied by, so that it sums to one."""
        p = self._cut()
        exact = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5).square()
        return where(self._far(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return value * self.logits - calling("softplus")(self.logits) + self.log_norm()

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        p = self._cut()
        below = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        return OPS["clamp"](where(self._far(), below, value), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        p = self._cut()
        found = ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return where(self._far(), found, value)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.icdf(noise(self.probs, self._extended_shape(sample_shape), creation.rand))

    @property
    def mean(self) -> Any:
        p, x = self._cut(), self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return where(self._far(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x)

    @property
    def variance(self) -> Any:
        p, x = self._cut(), (self.probs - 0.5).square()
        exact = p * (p - 1) / (1 - 2 * p).square() + 1 / ((-p).log1p() - p.log()).square()
        return where(self._far(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def entropy(self) -> Any:
        no, yes = (-self.probs).log1p(), self.probs.log()
        return self.mean * (no - yes) - self.log_norm() - no

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._again(**self._larger(batch_shape), lims=self._lims)


class FisherSnedecor(Reparametrised):
    """The ratio of two mean squares, of `df1` and of `df2` normal draws."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive

    def __init__(self, df1: Any, df2: Any, validate_args: Any = None) -> None:
        self.df1, self.df2 = together(df1, df2)
        self._above, self._below = (Gamma(d * 0.5, d, validate_args=False) for d in (self.df1, self.df2))
        super().__init__(self.df1.shape, (), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        tiny = info.finfo(self.df1.dtype).tiny
        above, below = self._above.rsample(sample_shape), self._below.rsample(sample_shape)
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        ways = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return ways + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()

    @property
    def mean(self) -> Any:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Any:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Any:
        a, b = self.df1, self.df2
        found = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return where(b > 4, found, math.nan)


class Kumaraswamy(TransformedDistribution):
    """A share between 0 and 1, much as Beta's, drawn by two powers."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support: Any = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        even = Uniform(*(full_like(self.concentration0.detach(), bound, None) for bound in (0.0, 1.0)))
        turns = [
            PowerTransform(OPS["reciprocal"](self.concentration0)), AffineTransform(1.0, -1.0),
            PowerTransform(OPS["reciprocal"](self.concentration1)),
        ]  # fmt: skip
        super().__init__(even, turns, validate_args)

    def _moment(self, n: int) -> Any:
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        found = ((-b).log1p() / b - (-b * a).log1p()).exp()
        return where((a < 1) | (b < 1), math.nan, found)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return (1 - 1 / b) + (1 - 1 / a) * (digamma(b + 1) + EULER) - a.log() - b.log()

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._again(*(t.expand(tuple(batch_shape)) for t in (self.concentration1, self.concentration0)))


class LogisticNormal(TransformedDistribution):
    """Shares, one more than there are normal numbers that they are broken off by."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        law = Normal(loc, scale, validate_args=validate_args)
        super().__init__(law if law.batch_shape else law.expand((1,)), StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Any:
        return self._normal.loc

    @property
    def scale(self) -> Any:
        return self._normal.scale

    @property
    def _normal(self) -> Any:
        return self.base_dist.base_dist  # type: ignore[attr-defined]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        shape = (*batch_shape, self.event_shape[0] - 1)
        return self._again(self.loc.expand(shape), self.scale.expand(shape))


class GeneralizedPareto(Reparametrised):
    """What is above a high level: a tail that falls as `concentration` says, by powers, exponentially or to an end."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.scale, self.concentration = together(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        end = where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)

    def _bent(self) -> tuple[Any, Any]:
        """Where the tail is exponential, and a concentration that can be divided by."""
        straight = self.concentration.abs() < 1e-8
        return straight, where(straight, 1.0, self.concentration)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.icdf(noise(self.loc, self._extended_shape(sample_shape), creation.rand))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        z = (value - self.loc) / self.scale
        straight, c = self._bent()
        return -self.scale.log() - where(straight, z, (1 / c + 1) * (c * z).log1p())

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of a draw above the value."""
        self._valued(value)
        z = (value - self.loc) / self.scale
        straight, c = self._bent()
        return -where(straight, z, (c * z).log1p() / c)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of the probability of a draw below the value."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Any:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Any) -> Any:
        straight, c = self._bent()
        rest = (-value).log1p()
        return self.loc + self.scale * where(straight, -rest, (-c * rest).expm1() / c)

    @property
    def mean(self) -> Any:
        return where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        c = self.concentration
        return where(c < 0.5, self.scale.square() / ((1 - c).square() * (1 - 2 * c)), math.nan)

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1


__all__ = ["ContinuousBernoulli", "FisherSnedecor", "GeneralizedPareto", "Kumaraswamy", "LogisticNormal", "VonMises"]
