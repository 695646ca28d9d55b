"""How far one law lies from another, by a table of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.errors import MissingFormulaError
from weft.functional.distributions import crossings
from weft.functional.distributions.base import Distribution, summed
from weft.functional.distributions.continuous import Cauchy, Exponential, HalfNormal, Laplace, LogNormal, Normal
from weft.functional.distributions.covariances import LowRankMultivariateNormal
from weft.functional.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from weft.functional.distributions.joint import Independent, MultivariateNormal, TransformedDistribution
from weft.functional.distributions.rarer import ContinuousBernoulli
from weft.functional.distributions.shares import Beta, Dirichlet, Gamma
from weft.functional.table import calling
from weft.ops import OPS

digamma, softplus = calling("digamma"), calling("softplus")
where, inf = OPS["where"], float("inf")

Divergence = Callable[[Any, Any], Any]
PAIRS: dict[tuple[type[Distribution], type[Distribution]], Divergence] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Divergence], Divergence]:
    """A decorator: what it decorates tells the divergence of laws of these types, and of their subclasses."""

    def mark(f: Divergence) -> Divergence:
        PAIRS[type_p, type_q] = f
        return f

    return mark


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """What a draw from p loses, on average, when q is taken for p: the mean of log p - log q.

    >>> N = flow.distributions.Normal
    >>> flow.distributions.kl_divergence(N(flow.tensor(1.0), 1.0), N(flow.tensor(0.0), 1.0)).item()
    0.5
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            found = PAIRS.get((a, b))
            if found is not None:
                return found(p, q)
    near = ", ".join(f"{a.__name__} to {b.__name__}" for a, b in PAIRS if type(p) is a or type(q) is b)
    raise MissingFormulaError(
        f"kl_divergence: no formula for {type(p).__name__} to {type(q).__name__} is here"
        + (f"; there are {near}" if near else "")
        + ". Add one with @flow.distributions.register_kl, or average p.log_prob(x) - q.log_prob(x) over draws of p"
    )


for (_one, _other), _how in crossings.pairs():
    register_kl(_one, _other)(_how)


# ---- laws of one kind --------------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
def _(p: LogNormal, q: LogNormal) -> Any:
    return _normal(p._log, q._log)


@register_kl(HalfNormal, HalfNormal)
def _(p: HalfNormal, q: HalfNormal) -> Any:
    return _normal(p._law, q._law)


@register_kl(Laplace, Laplace)
def _(p: Laplace, q: Laplace) -> Any:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _(p: Cauchy, q: Cauchy) -> Any:
    both = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return both.log() - (4 * p.scale * q.scale).log()


@register_kl(Exponential, Exponential)
def _(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Bernoulli, Bernoulli)
def _(p: Bernoulli, q: Bernoulli) -> Any:
    yes = where(p.probs == 0, 0.0, p.probs * (softplus(-q.logits) - softplus(-p.logits)))
    no = where(p.probs == 1, 0.0, (1 - p.probs) * (softplus(q.logits) - softplus(p.logits)))
    lost = ((q.probs == 0) & (p.probs != 0)) | ((q.probs == 1) & (p.probs != 1))
    return where(lost, inf, yes + no)


@register_kl(Binomial, Binomial)
def _(p: Binomial, q: Binomial) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise MissingFormulaError("kl_divergence: of Binomials, q must not count more tries than p")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, inf, p.total_count * each)


@register_kl(Geometric, Geometric)
def _(p: Geometric, q: Geometric) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _(p: Any, q: Any) -> Any:
    apart = where(q.probs == 0, inf, p.logits - q.logits)
    return where(p.probs == 0, 0.0, p.probs * apart).sum(-1)


@register_kl(Poisson, Poisson)
def _(p: Poisson, q: Poisson) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _(p: Bernoulli, q: Poisson) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _(p: Poisson, q: Any) -> Any:
    return OPS["full_like"](p.rate.detach(), inf, None)


@register_kl(Gamma, Gamma)
def _(p: Gamma, q: Gamma) -> Any:
    a, b = p.concentration, q.concentration
    first = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return first + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Any:
    apart = p.mean * (p.logits - q.logits) + p.log_norm() - q.log_norm()
    return apart + (-p.probs).log1p() - (-q.probs).log1p()


@register_kl(Dirichlet, Dirichlet)
def _(p: Dirichlet, q: Dirichlet) -> Any:
    a, b = p.concentration, q.concentration
    whole = a.sum(-1)
    first = whole.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return first + ((a - b) * (digamma(a) - digamma(whole).unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _(p: Beta, q: Beta) -> Any:
    return kl_divergence(p._law, q._law)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _(p: Any, q: Any) -> Any:
    away, n = (q.loc - p.loc).unsqueeze(-1), p.event_shape[0]
    return q._spread() - p._spread() + 0.5 * (q._size(p._columns()) + q._size(away) - n)


# ---- laws of laws ------------------------------------------------------------------------------------


@register_kl(Independent, Independent)
def _(p: Independent, q: Independent) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise MissingFormulaError("kl_divergence: both laws must count as many dimensions as one event")
    return summed(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p: TransformedDistribution, q: TransformedDistribution) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise MissingFormulaError("kl_divergence: laws of transforms are compared where the transforms are the same")
    return kl_divergence(p.base_dist, q.base_dist)


__all__ = ["kl_divergence", "register_kl"]
