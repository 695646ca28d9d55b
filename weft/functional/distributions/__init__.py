"""`flow.distributions`: numbers drawn from a law, and how likely they are under it."""

from torch.distributions import constraints as constraints  # declarations of values, which subclasses name

from weft.functional.distributions import transforms
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
from weft.functional.distributions.further import (
    HalfCauchy,
    InverseGamma,
    Multinomial,
    NegativeBinomial,
    Pareto,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    Weibull,
)
from weft.functional.distributions.joint import (
    Independent,
    MixtureSameFamily,
    MultivariateNormal,
    TransformedDistribution,
)
from weft.functional.distributions.shares import Beta, Chi2, Dirichlet, Gamma, StudentT
from weft.functional.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
)

__all__ = [
    "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ComposeTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "Gamma", "Geometric", "Gumbel", "HalfCauchy",
    "HalfNormal", "Independent", "InverseGamma", "Laplace", "LogNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Pareto", "Poisson", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "SigmoidTransform",
    "SoftplusTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "Weibull",
    "kl_divergence", "register_kl", "transforms",
]  # fmt: skip
