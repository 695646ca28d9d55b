# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.distributions`: numbers drawn from a law, and how likely they are under it."""


__all__ = [
    "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ComposeTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "Gamma", "Geometric", "Gumbel", "HalfCauchy",
    "HalfNormal", "Independent", "InverseGamma", "Laplace", "LogNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Pareto", "Poisson", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "SigmoidTransform",
    "SoftplusTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "Weibull",
    "kl_divergence", "register_kl", "transforms"
]

from weft.functional.distributions import transforms as transforms
from weft.functional.distributions.base import Distribution as Distribution
from weft.functional.distributions.continuous import Cauchy as Cauchy
from weft.functional.distributions.continuous import Exponential as Exponential
from weft.functional.distributions.continuous import Gumbel as Gumbel
from weft.functional.distributions.continuous import HalfNormal as HalfNormal
from weft.functional.distributions.continuous import Laplace as Laplace
from weft.functional.distributions.continuous import LogNormal as LogNormal
from weft.functional.distributions.continuous import Normal as Normal
from weft.functional.distributions.continuous import Uniform as Uniform
from weft.functional.distributions.discrete import Bernoulli as Bernoulli
from weft.functional.distributions.discrete import Binomial as Binomial
from weft.functional.distributions.discrete import Categorical as Categorical
from weft.functional.distributions.discrete import Geometric as Geometric
from weft.functional.distributions.discrete import OneHotCategorical as OneHotCategorical
from weft.functional.distributions.discrete import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from weft.functional.distributions.discrete import Poisson as Poisson
from weft.functional.distributions.divergence import kl_divergence as kl_divergence
from weft.functional.distributions.divergence import register_kl as register_kl
from weft.functional.distributions.further import HalfCauchy as HalfCauchy
from weft.functional.distributions.further import InverseGamma as InverseGamma
from weft.functional.distributions.further import Multinomial as Multinomial
from weft.functional.distributions.further import NegativeBinomial as NegativeBinomial
from weft.functional.distributions.further import Pareto as Pareto
from weft.functional.distributions.further import RelaxedBernoulli as RelaxedBernoulli
from weft.functional.distributions.further import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from weft.functional.distributions.further import Weibull as Weibull
from weft.functional.distributions.joint import Independent as Independent
from weft.functional.distributions.joint import MixtureSameFamily as MixtureSameFamily
from weft.functional.distributions.joint import MultivariateNormal as MultivariateNormal
from weft.functional.distributions.joint import TransformedDistribution as TransformedDistribution
from weft.functional.distributions.shares import Beta as Beta
from weft.functional.distributions.shares import Chi2 as Chi2
from weft.functional.distributions.shares import Dirichlet as Dirichlet
from weft.functional.distributions.shares import Gamma as Gamma
from weft.functional.distributions.shares import StudentT as StudentT
from weft.functional.distributions.transforms import AffineTransform as AffineTransform
from weft.functional.distributions.transforms import ComposeTransform as ComposeTransform
from weft.functional.distributions.transforms import ExpTransform as ExpTransform
from weft.functional.distributions.transforms import PowerTransform as PowerTransform
from weft.functional.distributions.transforms import SigmoidTransform as SigmoidTransform
from weft.functional.distributions.transforms import SoftplusTransform as SoftplusTransform
from weft.functional.distributions.transforms import TanhTransform as TanhTransform
from weft.functional.distributions.transforms import Transform as Transform

