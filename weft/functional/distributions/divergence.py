"""How far one law lies from another, by a table of pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.core.errors import OptionError
from weft.functional.distributions.base import Distribution, summed
from weft.functional.distributions.continuous import Exponential, Laplace, Normal, Uniform
from weft.functional.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from weft.functional.distributions.joint import Independent, MultivariateNormal
from weft.functional.distributions.shares import Beta, Dirichlet, Gamma
from weft.functional.table import calling
from weft.ops import OPS

digamma, softplus, xlogy = map(calling, ("digamma", "softplus", "xlogy"))

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
    known = ", ".join(f"{a.__name__} to {b.__name__}" for a, b in PAIRS)
    raise OptionError(
        f"kl_divergence: no formula for {type(p).__name__} to {type(q).__name__} is here; there are {known}. "
        "Add one with @flow.distributions.register_kl, or average p.log_prob(x) - q.log_prob(x) over draws of p"
    )


@register_kl(Normal, Normal)
def _(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _(p: Laplace, q: Laplace) -> Any:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Exponential, Exponential)
def _(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Uniform, Uniform)
def _(p: Uniform, q: Uniform) -> Any:
    outside = OPS["logical_or"](q.low > p.low, q.high < p.high)
    return OPS["where"](outside, math.inf, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(Bernoulli, Bernoulli)
def _(p: Bernoulli, q: Bernoulli) -> Any:
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    return yes + (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _(p: Any, q: Any) -> Any:
    apart = OPS["where"](q.probs == 0, math.inf, p.logits - q.logits)
    return OPS["where"](p.probs == 0, 0.0, p.probs * apart).sum(-1)


@register_kl(Poisson, Poisson)
def _(p: Poisson, q: Poisson) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Gamma, Gamma)
def _(p: Gamma, q: Gamma) -> Any:
    a, b = p.concentration, q.concentration
    first = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return first + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


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
def _(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    apart = OPS["solve_triangle"](q.scale_tril, (q.loc - p.loc).unsqueeze(-1)).squeeze(-1)
    spread = OPS["solve_triangle"](q.scale_tril, p.scale_tril)
    size = p.event_shape[0]
    return q._spread() - p._spread() + 0.5 * (spread.square().sum((-2, -1)) + apart.square().sum(-1) - size)


@register_kl(Independent, Independent)
def _(p: Independent, q: Independent) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise OptionError("kl_divergence: both laws must count as many dimensions as one event")
    return summed(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


__all__ = ["kl_divergence", "register_kl"]
