"""Laws that are asked for less often: counts of several kinds, lifetimes, choices that gradients go through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.autograd import no_grad
from weft.functional.distributions.base import Distribution, Reparametrised, drawn, together, uniform
from weft.functional.distributions.continuous import EULER, Cauchy
from weft.functional.distributions.discrete import Categorical
from weft.functional.distributions.shares import Gamma
from weft.functional.table import calling
from weft.ops import OPS

softplus, lgamma, log_softmax = (calling(n) for n in ("softplus", "lgamma", "log_softmax"))


class _Chances(Distribution):
    """What an inner law tells of probabilities, or of their logits."""

    law: Any

    @property
    def probs(self) -> Any:
        return self.law.probs

    @property
    def logits(self) -> Any:
        return self.law.logits


class RelaxedBernoulli(Reparametrised):
    """A number between 0 and 1, the nearer to one of them the lower the temperature."""

    parameters = ("temperature", "logits")

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        if logits is None:
            logits = probs.log() - (-probs).log1p()
        self.temperature = temperature
        self.logits = together(logits)[0]
        super().__init__(self.logits.shape)

    @property
    def probs(self) -> Any:
        return self.logits.sigmoid()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        turn = uniform(self.logits, self._shape(sample_shape))
        return ((turn.log() - (-turn).log1p() + self.logits) / self.temperature).sigmoid()

    def log_prob(self, value: Any) -> Any:
        x = value.log() - (-value).log1p()
        away = self.logits - x * self.temperature
        return OPS["log"](self.temperature) + away - 2 * softplus(away) + softplus(-x) + softplus(x)


class RelaxedOneHotCategorical(Reparametrised):
    """Shares of one, the nearer to a single choice the lower the temperature.

    >>> law = flow.distributions.RelaxedOneHotCategorical(flow.tensor(0.5), logits=flow.zeros(3))
    >>> round(law.rsample().sum().item(), 4)
    1.0
    """

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self.temperature, self.law = temperature, Categorical(probs=probs, logits=logits)
        shape = tuple(self.law.logits.shape)
        super().__init__(shape[:-1], shape[-1:])

    @property
    def probs(self) -> Any:
        return self.law.probs

    @property
    def logits(self) -> Any:
        return self.law.logits

    def _scores(self, sample_shape: Sequence[int]) -> Any:
        """Logarithms of the shares."""
        turn = uniform(self.logits, self._shape(sample_shape))
        return log_softmax((self.logits - (-turn.log()).log()) / self.temperature, -1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._scores(sample_shape).exp()

    def log_prob(self, value: Any) -> Any:
        n, x = self.event_shape[0], value.log()
        t = together(self.temperature, self.logits.select(-1, 0))[0]
        score = self.logits - x * t.unsqueeze(-1)
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + math.lgamma(n) + (n - 1) * t.log() - x.sum(-1)


class Multinomial(_Chances):
    """How often each of several things comes up in so many draws."""

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self.total_count, self.law = total_count, Categorical(probs=probs, logits=logits)
        shape = tuple(self.law.logits.shape)
        super().__init__(shape[:-1], shape[-1:])

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            chosen: Any = self.law.sample((self.total_count, *sample_shape))
            places = OPS["permute"](chosen, (*range(1, chosen.ndim), 0))
            ones = OPS["ones_like"](OPS["cast"](places, self.law.logits.dtype))
            empty = OPS["zeros_like"](self.law.logits.detach().expand(self._shape(sample_shape)))
            return OPS["scatter_add"](empty, empty.ndim - 1, places, ones)

    def log_prob(self, value: Any) -> Any:
        logits = OPS["where"]((value == 0) & (self.law.logits == -math.inf), 0.0, self.law.logits)
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    @property
    def mean(self) -> Any:
        return self.law.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.law.probs * (1 - self.law.probs)


class NegativeBinomial(Distribution):
    """How often something with a probability comes true before it fails so many times."""

    parameters = ("total_count", "logits")

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        if logits is None:
            total_count, probs = together(total_count, probs)
            logits = probs.log() - (-probs).log1p()
        self.total_count, self.logits = together(total_count, logits)
        super().__init__(self.logits.shape)

    @property
    def probs(self) -> Any:
        return self.logits.sigmoid()

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            return OPS["poisson"](Gamma(self.total_count.detach(), (-self.logits.detach()).exp()).sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        n = self.total_count
        chance = -n * softplus(self.logits) - value * softplus(-self.logits)
        return chance + lgamma(n + value) - lgamma(1.0 + value) - lgamma(n)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def variance(self) -> Any:
        return self.mean / (-self.logits).sigmoid()


class Weibull(Reparametrised):
    """Lifetimes: `concentration` above 1 where things wear out."""

    parameters = ("scale", "concentration")

    def __init__(self, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.scale, self.concentration = together(scale, concentration)
        super().__init__(self.scale.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        late = drawn(self.scale, self._shape(sample_shape), "exponential", 1.0)
        return self.scale * late ** (1 / self.concentration)

    def log_prob(self, value: Any) -> Any:
        k, x = self.concentration, value / self.scale
        return k.log() - self.scale.log() + (k - 1) * x.log() - x**k

    def entropy(self) -> Any:
        k = self.concentration
        return EULER * (1 - 1 / k) + (self.scale / k).log() + 1

    @property
    def mean(self) -> Any:
        return self.scale * lgamma(1 + 1 / self.concentration).exp()

    @property
    def variance(self) -> Any:
        k = self.concentration
        return self.scale**2 * (lgamma(1 + 2 / k).exp() - (2 * lgamma(1 + 1 / k)).exp())


class Pareto(Reparametrised):
    """From `scale` on, ever fewer: the tail falls by the power `alpha`."""

    parameters = ("scale", "alpha")

    def __init__(self, scale: Any, alpha: Any, validate_args: Any = None) -> None:
        self.scale, self.alpha = together(scale, alpha)
        super().__init__(self.scale.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.scale * (drawn(self.scale, self._shape(sample_shape), "exponential", 1.0) / self.alpha).exp()

    def log_prob(self, value: Any) -> Any:
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)

    @property
    def mean(self) -> Any:
        a = OPS["clamp"](self.alpha, 1)
        return a * self.scale / (a - 1)

    @property
    def variance(self) -> Any:
        a = OPS["clamp"](self.alpha, 2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))


class HalfCauchy(Reparametrised):
    """The size of a draw from Cauchy's law around zero."""

    parameters = ("scale",)

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        (self.scale,) = together(scale)
        self.law = Cauchy(OPS["zeros_like"](self.scale.detach(), None), self.scale)
        super().__init__(self.scale.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return OPS["abs"](self.law.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        return OPS["where"](value < 0, -math.inf, self.law.log_prob(value) + math.log(2))

    def entropy(self) -> Any:
        return self.law.entropy() - math.log(2)


class InverseGamma(Reparametrised):
    """One over a draw from the Gamma law."""

    parameters = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        self.law = Gamma(concentration, rate)
        self.concentration, self.rate = self.law.concentration, self.law.rate
        super().__init__(self.concentration.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return OPS["reciprocal"](self.law.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        return self.law.log_prob(1 / value) - 2 * value.log()

    @property
    def mean(self) -> Any:
        a = self.concentration
        return OPS["where"](a > 1, self.rate / (a - 1), math.inf)


__all__ = [
    "HalfCauchy", "InverseGamma", "Multinomial", "NegativeBinomial", "Pareto", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "Weibull",
]  # fmt: skip
