"""`flow.distributions`: numbers drawn from a law, and how likely they are under it."""

from weft.functional.distributions.base import Distribution
from weft.functional.distributions.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfNormal,
    Laplace,
    LogNormal,
    Normal,
    Uniform,
)
from weft.functional.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from weft.functional.distributions.divergence import kl_divergence, register_kl
from weft.functional.distributions.joint import (
    AffineTransform,
    ExpTransform,
    Independent,
    MixtureSameFamily,
    MultivariateNormal,
    SigmoidTransform,
    TanhTransform,
    Transform,
    TransformedDistribution,
)
from weft.functional.distributions.shares import Beta, Chi2, Dirichlet, Gamma, StudentT

__all__ = [
    "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution",
    "ExpTransform", "Exponential", "Gamma", "Geometric", "Gumbel", "HalfNormal", "Independent", "Laplace", "LogNormal",
    "MixtureSameFamily", "MultivariateNormal", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Poisson", "SigmoidTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform",
    "kl_divergence", "register_kl",
]  # fmt: skip
