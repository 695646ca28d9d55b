# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.distributions`: numbers drawn from a law, and how likely they are under it."""

from weft.functional.distributions.registry import ConstraintRegistry

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy", "Chi2",
    "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet",
    "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto",
    "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform", "InverseGamma",
    "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform",
    "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform",
    "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT", "TanhTransform",
    "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraints",
    "identity_transform", "kl_divergence", "register_kl", "transform_to", "transforms", "utils"
]

biject_to: ConstraintRegistry
from weft.functional.distributions import constraints as constraints
from weft.functional.distributions import transforms as transforms
from weft.functional.distributions import utils as utils
from weft.functional.distributions.base import Distribution as Distribution
from weft.functional.distributions.base import ExponentialFamily as ExponentialFamily
from weft.functional.distributions.continuous import Cauchy as Cauchy
from weft.functional.distributions.continuous import Exponential as Exponential
from weft.functional.distributions.continuous import Gumbel as Gumbel
from weft.functional.distributions.continuous import HalfCauchy as HalfCauchy
from weft.functional.distributions.continuous import HalfNormal as HalfNormal
from weft.functional.distributions.continuous import Laplace as Laplace
from weft.functional.distributions.continuous import LogNormal as LogNormal
from weft.functional.distributions.continuous import Normal as Normal
from weft.functional.distributions.continuous import Uniform as Uniform
from weft.functional.distributions.covariances import LKJCholesky as LKJCholesky
from weft.functional.distributions.covariances import LowRankMultivariateNormal as LowRankMultivariateNormal
from weft.functional.distributions.covariances import Wishart as Wishart
from weft.functional.distributions.discrete import Bernoulli as Bernoulli
from weft.functional.distributions.discrete import Binomial as Binomial
from weft.functional.distributions.discrete import Categorical as Categorical
from weft.functional.distributions.discrete import Geometric as Geometric
from weft.functional.distributions.discrete import OneHotCategorical as OneHotCategorical
from weft.functional.distributions.discrete import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from weft.functional.distributions.discrete import Poisson as Poisson
from weft.functional.distributions.divergence import kl_divergence as kl_divergence
from weft.functional.distributions.divergence import register_kl as register_kl
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
from weft.functional.distributions.mapping import AbsTransform as AbsTransform
from weft.functional.distributions.mapping import AffineTransform as AffineTransform
from weft.functional.distributions.mapping import ComposeTransform as ComposeTransform
from weft.functional.distributions.mapping import CumulativeDistributionTransform as CumulativeDistributionTransform
from weft.functional.distributions.mapping import ExpTransform as ExpTransform
from weft.functional.distributions.mapping import PowerTransform as PowerTransform
from weft.functional.distributions.mapping import SigmoidTransform as SigmoidTransform
from weft.functional.distributions.mapping import SoftplusTransform as SoftplusTransform
from weft.functional.distributions.mapping import TanhTransform as TanhTransform
from weft.functional.distributions.mapping import Transform as Transform
from weft.functional.distributions.parts import CatTransform as CatTransform
from weft.functional.distributions.parts import IndependentTransform as IndependentTransform
from weft.functional.distributions.parts import ReshapeTransform as ReshapeTransform
from weft.functional.distributions.parts import StackTransform as StackTransform
from weft.functional.distributions.rarer import ContinuousBernoulli as ContinuousBernoulli
from weft.functional.distributions.rarer import FisherSnedecor as FisherSnedecor
from weft.functional.distributions.rarer import GeneralizedPareto as GeneralizedPareto
from weft.functional.distributions.rarer import Kumaraswamy as Kumaraswamy
from weft.functional.distributions.rarer import LogisticNormal as LogisticNormal
from weft.functional.distributions.rarer import VonMises as VonMises
from weft.functional.distributions.shares import Beta as Beta
from weft.functional.distributions.shares import Chi2 as Chi2
from weft.functional.distributions.shares import Dirichlet as Dirichlet
from weft.functional.distributions.shares import Gamma as Gamma
from weft.functional.distributions.shares import StudentT as StudentT
from weft.functional.distributions.vectors import CorrCholeskyTransform as CorrCholeskyTransform
from weft.functional.distributions.vectors import LowerCholeskyTransform as LowerCholeskyTransform
from weft.functional.distributions.vectors import PositiveDefiniteTransform as PositiveDefiniteTransform
from weft.functional.distributions.vectors import SoftmaxTransform as SoftmaxTransform
from weft.functional.distributions.vectors import StickBreakingTransform as StickBreakingTransform
identity_transform: ComposeTransform
transform_to: ConstraintRegistry

