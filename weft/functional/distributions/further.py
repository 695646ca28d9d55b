"""Laws that are asked for less often: counts of several kinds, lifetimes, choices that gradients go through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Size

from weft.autograd import no_grad
from weft.core.errors import OptionError
from weft.functional.distributions import constraints
from weft.functional.distributions.base import Distribution, Reparametrised, drawn, together, uniform
from weft.functional.distributions.continuous import EULER
from weft.functional.distributions.discrete import Binomial, Categorical, Chance, counted, either
from weft.functional.distributions.shares import Gamma
from weft.functional.table import calling
from weft.ops import OPS

softplus, lgamma, log_softmax = (calling(n) for n in ("softplus", "lgamma", "log_softmax"))


class RelaxedBernoulli(Chance):
    """A number between 0 and 1, the nearer to one of them the lower the temperature."""

    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        turn = uniform(self.logits, self._extended_shape(sample_shape))
        return ((turn.log() - (-turn).log1p() + self.logits) / self.temperature).sigmoid()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        x = value.log() - (-value).log1p()
        away = self.logits - x * self.temperature
        return OPS["log"](self.temperature) + away - 2 * softplus(away) + softplus(-x) + softplus(x)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._again(self.temperature, **self._larger(batch_shape))


class Chosen(Distribution):
    """What an inner law tells of probabilities, or of their logits."""

    arg_constraints = Categorical.arg_constraints

    def __init__(self, probs: Any, logits: Any, validate_args: Any) -> None:
        self.law = Categorical(probs, logits, validate_args)
        super().__init__(self.law.batch_shape, (self.law._num_events,), validate_args)

    @property
    def probs(self) -> Any:
        return self.law.probs

    @property
    def logits(self) -> Any:
        return self.law.logits

    @property
    def param_shape(self) -> Size:
        return self.law.param_shape


class RelaxedOneHotCategorical(Chosen):
    """Shares of one, the nearer to a single choice the lower the temperature.

    >>> law = flow.distributions.RelaxedOneHotCategorical(flow.tensor(0.5), logits=flow.zeros(3))
    >>> round(law.rsample().sum().item(), 4)
    1.0
    """

    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def _scores(self, sample_shape: Sequence[int]) -> Any:
        """Logarithms of the shares."""
        turn = uniform(self.logits, self._extended_shape(sample_shape))
        return log_softmax((self.logits - (-turn.log()).log()) / self.temperature, -1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._scores(sample_shape).exp()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        n, x = self.event_shape[0], value.log()
        t = together(self.temperature, self.logits.select(-1, 0))[0]
        score = self.logits - x * t.unsqueeze(-1)
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + math.lgamma(n) + (n - 1) * t.log() - x.sum(-1)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._again(self.temperature, **self.law._larger(batch_shape))


class Multinomial(Chosen):
    """How often each of several things comes up in so many draws."""

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        if not isinstance(total_count, int):
            raise OptionError(f"Multinomial: total_count is one whole number for all of the batch; got {total_count!r}")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            chosen: Any = self.law.sample((self.total_count, *sample_shape))
            places = OPS["permute"](chosen, (*range(1, chosen.ndim), 0))
            ones = OPS["ones_like"](OPS["cast"](places, self.law.logits.dtype))
            empty = OPS["zeros_like"](self.law.logits.detach().expand(self._extended_shape(sample_shape)))
            return OPS["scatter_add"](empty, empty.ndim - 1, places, ones)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        logits = OPS["where"]((value == 0) & (self.law.logits == -math.inf), 0.0, self.law.logits)
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Any:
        """The draws' own entropy, less what is lost with their order."""
        n = self.total_count
        each = Binomial(n, probs=self.probs, validate_args=False)
        counts = counted(self.probs.detach(), n + 1, self.probs.ndim, False, ())
        lost = ((each.log_prob(counts).exp() * lgamma(counts + 1)).sum(0)).sum(-1)
        return n * self.law.entropy() - math.lgamma(n + 1) + lost

    @property
    def mean(self) -> Any:
        return self.law.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.law.probs * (1 - self.law.probs)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._again(self.total_count, **self.law._larger(batch_shape))


class NegativeBinomial(Chance):
    """How often something with a probability comes true before it fails so many times."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        which = either("NegativeBinomial", probs, logits)
        self.total_count, given = together(total_count, probs if logits is None else logits)
        super().__init__(**{which: given, "validate_args": validate_args})

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            rates = Gamma(self.total_count.detach(), (-self.logits.detach()).exp(), validate_args=False)
            return OPS["poisson"](rates.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        n = self.total_count
        chance = -n * softplus(self.logits) - value * softplus(-self.logits)
        ways = lgamma(n + value) - lgamma(1.0 + value) - lgamma(n)
        return chance + OPS["where"](n + value == 0, 0.0, ways)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return OPS["clamp"](((self.total_count - 1) * self.logits.exp()).floor(), 0.0)

    @property
    def variance(self) -> Any:
        return self.mean / (-self.logits).sigmoid()

    def _given(self) -> Sequence[str]:
        return ("total_count", self._which)


class Weibull(Reparametrised):
    """Lifetimes: `concentration` above 1 where things wear out."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.scale, self.concentration = together(scale, concentration)
        super().__init__(self.scale.shape, (), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        late = drawn(self.scale, self._extended_shape(sample_shape), "exponential", 1.0)
        return self.scale * late ** (1 / self.concentration)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        k, x = self.concentration, value / self.scale
        return k.log() - self.scale.log() + (k - 1) * x.log() - x**k

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return -(-((value / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Any) -> Any:
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    @property
    def mode(self) -> Any:
        return self.scale * ((self.concentration - 1) / self.concentration) ** (1 / self.concentration)

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

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: Any = None) -> None:
        self.scale, self.alpha = together(scale, alpha)
        super().__init__(self.scale.shape, (), validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: Any) -> Any:
        return self.scale * (-(-value).log1p() / self.alpha).exp()

    @property
    def mode(self) -> Any:
        return self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return (
            self.scale * (drawn(self.scale, self._extended_shape(sample_shape), "exponential", 1.0) / self.alpha).exp()
        )

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
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


class InverseGamma(Reparametrised):
    """One over a draw from the Gamma law."""

    arg_constraints = Gamma.arg_constraints
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        self.law = Gamma(concentration, rate, validate_args=False)
        self.concentration, self.rate = self.law.concentration, self.law.rate
        super().__init__(self.concentration.shape, (), validate_args)

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        return 1 - self.law.cdf(1 / value)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return OPS["reciprocal"](self.law.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        return self.law.log_prob(1 / value) - 2 * value.log()

    @property
    def mean(self) -> Any:
        a = self.concentration
        return OPS["where"](a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = self.concentration
        return OPS["where"](a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * calling("digamma")(a)


__all__ = [
    "InverseGamma", "Multinomial", "NegativeBinomial", "Pareto", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "Weibull",
]  # fmt: skip
