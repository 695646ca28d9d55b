"""Divergences between laws of different kinds, by two tables: what draws of a law are on average, and what a law's log
density asks for.

The divergence is -entropy(p) - E[log q(x)], and log q is a sum of few statistics of x: x itself, its square, log x, ...
Where p has values that q hasn't, it is infinite.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

from weft.functional.distributions.base import Distribution
from weft.functional.distributions.continuous import EULER, Exponential, Gumbel, Laplace, Normal, Uniform
from weft.functional.distributions.further import Pareto
from weft.functional.distributions.rarer import ContinuousBernoulli
from weft.functional.distributions.shares import Beta, Gamma
from weft.functional.table import calling
from weft.ops import OPS

digamma, softplus, xlogy = map(calling, ("digamma", "softplus", "xlogy"))
where = OPS["where"]

# ---- where a law has values --------------------------------------------------------------------------

REGIONS: dict[type[Distribution], Callable[[Any], tuple[Any, Any]]] = {
    Beta: lambda p: (0.0, 1.0),
    ContinuousBernoulli: lambda p: (0.0, 1.0),
    Exponential: lambda p: (0.0, math.inf),
    Gamma: lambda p: (0.0, math.inf),
    Gumbel: lambda p: (-math.inf, math.inf),
    Laplace: lambda p: (-math.inf, math.inf),
    Normal: lambda p: (-math.inf, math.inf),
    Pareto: lambda p: (p.scale, math.inf),
    Uniform: lambda p: (p.low, p.high),
}

# ---- what its draws are on average -------------------------------------------------------------------


def _even_log(low: Any, high: Any) -> Any:
    """The mean of log x over an interval."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


LOG: dict[type[Distribution], Callable[[Any], Any]] = {  # E[log x]
    Beta: lambda p: digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0),
    Exponential: lambda p: -EULER - p.rate.log(),
    Gamma: lambda p: digamma(p.concentration) - p.rate.log(),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: lambda p: _even_log(p.low, p.high),
}
LOG_REST: dict[type[Distribution], Callable[[Any], Any]] = {  # E[log(1 - x)]
    Beta: lambda p: digamma(p.concentration0) - digamma(p.concentration1 + p.concentration0),
    Uniform: lambda p: _even_log(1 - p.high, 1 - p.low),
}
FALLEN: dict[type[Distribution], Callable[[Any, Any], Any]] = {  # E[exp(-x / scale)]
    Exponential: lambda p, scale: p.rate * scale / (p.rate * scale + 1),
    Gamma: lambda p, scale: (1 + 1 / (p.rate * scale)) ** (-p.concentration),
    Gumbel: lambda p, scale: (-p.loc / scale + (1 + p.scale / scale).lgamma()).exp(),
    Normal: lambda p, scale: (-p.loc / scale + 0.5 * (p.scale / scale).square()).exp(),
    Uniform: lambda p, scale: scale / (p.high - p.low) * ((-p.low / scale).exp() - (-p.high / scale).exp()),
}


def _apart(p: Normal, loc: Any) -> Any:
    away = (p.loc - loc) / p.scale
    return p.scale * (math.sqrt(2 / math.pi) * (-0.5 * away.square()).exp() + away * OPS["erf"](away / math.sqrt(2)))


AWAY: dict[type[Distribution], Callable[[Any, Any], Any]] = {Normal: _apart}  # E[|x - loc|]


def _square(p: Any, loc: Any) -> Any:
    """E[(x - loc)^2]."""
    return p.variance + (p.mean - loc).square()


# ---- the mean of log q -------------------------------------------------------------------------------

DENSITIES: dict[type[Distribution], tuple[Any, Callable[[Any, Any, Any], Any]]] = {
    # which statistics it asks for, and what it makes of p, q and those
    Beta: (
        (LOG, LOG_REST),
        lambda p, q, s: (
            (q.concentration1 - 1) * s[0](p)
            + (q.concentration0 - 1) * s[1](p)
            + (q.concentration1 + q.concentration0).lgamma()
            - q.concentration1.lgamma()
            - q.concentration0.lgamma()
        ),
    ),
    ContinuousBernoulli: ((), lambda p, q, s: p.mean * q.logits - softplus(q.logits) + q.log_norm()),
    Exponential: ((), lambda p, q, s: q.rate.log() - q.rate * p.mean),
    Gamma: (
        (LOG,),
        lambda p, q, s: (
            q.concentration * q.rate.log()
            - q.concentration.lgamma()
            + (q.concentration - 1) * s[0](p)
            - q.rate * p.mean
        ),
    ),
    Gumbel: (
        (FALLEN,),
        lambda p, q, s: (q.loc - p.mean) / q.scale - (q.loc / q.scale).exp() * s[0](p, q.scale) - q.scale.log(),
    ),
    Laplace: ((AWAY,), lambda p, q, s: -(2 * q.scale).log() - s[0](p, q.loc) / q.scale),
    Normal: (
        (),
        lambda p, q, s: -q.scale.log() - 0.5 * math.log(2 * math.pi) - _square(p, q.loc) / (2 * q.scale.square()),
    ),
    Pareto: ((LOG,), lambda p, q, s: q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * s[0](p)),
    Uniform: ((), lambda p, q, s: -(q.high - q.low).log()),
}


def _divergence(kind: type[Distribution], other: type[Distribution], p: Any, q: Any) -> Any:
    asked, density = DENSITIES[other]
    found = -p.entropy() - density(p, q, [table[kind] for table in asked])
    (low, high), (least, most) = REGIONS[kind](p), REGIONS[other](q)
    outside = OPS["logical_or"](_less(low, least, found), _less(most, high, found))
    return where(OPS["logical_or"](outside, found != found), math.inf, found)


def _less(a: Any, b: Any, like: Any) -> Any:
    zeros = OPS["zeros_like"](like.detach())
    return OPS["lt"](zeros + a, zeros + b)


def _never(p: Any, q: Any) -> Any:
    """p always has values that q hasn't."""
    return p.entropy().detach() * 0 + q.entropy().detach() * 0 + math.inf


FREE = (Gumbel, Laplace, Normal)  # any number is a value of theirs


def pairs() -> Iterator[tuple[tuple[type[Distribution], type[Distribution]], Callable[[Any, Any], Any]]]:
    """The pairs of kinds for which all is known that is asked for, and those that never fit."""
    for kind in REGIONS:
        for other, (asked, _) in DENSITIES.items():
            if kind in FREE and other not in FREE:
                yield (kind, other), _never
            elif all(kind in table for table in asked):
                yield (kind, other), functools.partial(_divergence, kind, other)
            elif (kind, other) in NEVER:
                yield (kind, other), _never


NEVER = {  # of the others, those that are too wide for what they are compared with
    (kind, other) for kind in (Exponential, Gamma, Pareto) for other in (Beta, ContinuousBernoulli, Uniform)
} | {(ContinuousBernoulli, Pareto)}  # fmt: skip
