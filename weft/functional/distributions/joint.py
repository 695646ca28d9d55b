"""Laws made of laws: several numbers together, functions of draws, mixtures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.functional.distributions.base import Distribution, Reparametrised, noise, summed, together
from weft.functional.distributions.discrete import Categorical
from weft.ops import OPS


class Independent(Distribution):
    """A law whose last batch dimensions count as one event: their probabilities multiply.

    >>> law = flow.distributions.Independent(flow.distributions.Normal(flow.zeros(3), flow.ones(3)), 1)
    >>> law.log_prob(flow.zeros(3)).item()
    -2.756...
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: Any = None
    ) -> None:
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        batch, n = tuple(base_distribution.batch_shape), reinterpreted_batch_ndims
        if n > len(batch):
            raise OptionError(f"Independent: {n} dimensions of a batch of shape {list(batch)}")
        at = len(batch) - n
        self.has_rsample = base_distribution.has_rsample
        super().__init__(batch[:at], (*batch[at:], *base_distribution.event_shape))

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return summed(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def expand(self, batch_shape: Sequence[int]) -> Independent:
        inner = tuple(self.event_shape)[: self.reinterpreted_batch_ndims]
        return Independent(self.base_dist.expand((*batch_shape, *inner)), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class MultivariateNormal(Reparametrised):
    """Several numbers that are normal together, by their covariance, its inverse, or its lower triangular root."""

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:  # fmt: skip
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise OptionError("MultivariateNormal takes one of covariance_matrix, precision_matrix and scale_tril")
        if scale_tril is None:
            covariance = covariance_matrix if precision_matrix is None else OPS["inv"](precision_matrix)
            scale_tril = OPS["cholesky"](covariance)
        n = scale_tril.shape[-1]
        batch = together(loc.select(-1, 0), scale_tril.select(-1, 0).select(-1, 0))[0].shape
        self.loc, self.scale_tril = loc.expand((*batch, n)), scale_tril.expand((*batch, n, n))
        super().__init__(batch, (n,))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = noise(self.loc, self._shape(sample_shape)).unsqueeze(-1)
        return self.loc + (self.scale_tril @ drawn).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        away = OPS["solve_triangle"](self.scale_tril, (value - self.loc).unsqueeze(-1)).squeeze(-1)
        spread = self._spread()
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + away.square().sum(-1)) - spread

    def entropy(self) -> Any:
        return 0.5 * self.event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._spread()

    def _spread(self) -> Any:
        """Half the logarithm of the covariance's determinant."""
        return OPS["diagonal"](self.scale_tril, 0, -2, -1).log().sum(-1)

    @property
    def covariance_matrix(self) -> Any:
        return self.scale_tril @ self.scale_tril.mT

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self.scale_tril.square().sum(-1)

    def expand(self, batch_shape: Sequence[int]) -> MultivariateNormal:
        n = self.event_shape[0]
        return MultivariateNormal(
            self.loc.expand((*batch_shape, n)), scale_tril=self.scale_tril.expand((*batch_shape, n, n))
        )


class MixtureSameFamily(Distribution):
    """A draw from one of several laws, which a Categorical chooses; the laws lie along their last batch dimension."""

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: Any = None
    ) -> None:
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(tuple(component_distribution.batch_shape)[:-1], component_distribution.event_shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        chosen: Any = self.mixture_distribution.sample(sample_shape)
        drawn: Any = self.component_distribution.sample(sample_shape)
        events = len(self.event_shape)
        at = chosen.reshape((*chosen.shape, 1, *(1,) * events))
        at = at.expand((*chosen.shape, 1, *self.event_shape))
        return drawn.gather(drawn.ndim - 1 - events, at).squeeze(drawn.ndim - 1 - events)

    def log_prob(self, value: Any) -> Any:
        of_each = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self.event_shape)))
        return (of_each + self.mixture_distribution.logits).logsumexp(-1)

    @property
    def mean(self) -> Any:
        events = len(self.event_shape)
        probs = self.mixture_distribution.probs
        weights = probs.reshape((*probs.shape, *(1,) * events))
        return (weights * self.component_distribution.mean).sum(-1 - events)


class TransformedDistribution(Distribution):
    """What functions make of draws from a law, one after another."""

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: Any = None) -> None:
        self.base_dist = base_distribution
        self.transforms = list(transforms) if isinstance(transforms, (list, tuple)) else [transforms]
        self.has_rsample = base_distribution.has_rsample
        batch, events = tuple(base_distribution.batch_shape), tuple(base_distribution.event_shape)
        more = max([0, *(f.event_dim for f in self.transforms)]) - len(events)
        if more > 0:  # what a transform takes together is one event
            base_distribution = self.base_dist = Independent(base_distribution, more)
            batch, events = tuple(base_distribution.batch_shape), tuple(base_distribution.event_shape)
        super().__init__(batch, events)

    def _through(self, x: Any) -> Any:
        for f in self.transforms:
            x = f(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._through(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        stretched: Any = 0.0
        events = len(self.event_shape)
        for f in reversed(self.transforms):
            x = f.inv(value)
            stretched = stretched + summed(f.log_abs_det_jacobian(x, value), events - f.event_dim)
            value = x
        return self.base_dist.log_prob(value) - stretched


__all__ = ["Independent", "MixtureSameFamily", "MultivariateNormal", "TransformedDistribution"]
