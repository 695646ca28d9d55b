"""Laws made of laws: several numbers together, functions of draws, mixtures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.autograd import no_grad
from weft.core.errors import OptionError
from weft.functional.distributions import constraints
from weft.functional.distributions.base import Centred, Distribution, Reparametrised, lazy, noise, summed, together
from weft.functional.distributions.discrete import Categorical
from weft.functional.distributions.mapping import ComposeTransform, Transform
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
        super().__init__(batch[:at], (*batch[at:], *base_distribution.event_shape), validate_args)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        inner, n = self.base_dist.support, self.reinterpreted_batch_ndims
        return inner if inner is None or not n else constraints.independent(inner, n)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return summed(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims:
            raise OptionError("Independent.enumerate_support(): of several numbers together there are too many values")
        return self.base_dist.enumerate_support(expand)

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        inner = tuple(self.event_shape)[: self.reinterpreted_batch_ndims]
        return self._again(self.base_dist.expand((*batch_shape, *inner)), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


ROOTS = ("covariance_matrix", "precision_matrix", "scale_tril")


def one_root(name: str, *given: Any) -> str:
    """Which of the three ways to tell a covariance was taken."""
    told = [n for n, m in zip(ROOTS, given, strict=True) if m is not None]
    if len(told) != 1:
        raise OptionError(f"{name} takes one of covariance_matrix, precision_matrix and scale_tril")
    return told[0]


class Spread(Distribution):
    """A law that a covariance tells: as such, by its inverse, or by its lower triangular root. The others follow."""

    def _told(self, which: str, matrix: Any) -> None:
        self._which = which
        self.__dict__[which] = matrix

    @lazy
    def scale_tril(self) -> Any:
        if self._which == "precision_matrix":
            return OPS["cholesky"](OPS["inv"](self.precision_matrix))
        return OPS["cholesky"](self.covariance_matrix)

    @lazy
    def covariance_matrix(self) -> Any:
        return self.scale_tril @ self.scale_tril.mT

    @lazy
    def precision_matrix(self) -> Any:
        return OPS["inv"](self.covariance_matrix)

    def _spread(self) -> Any:
        """Half the logarithm of the covariance's determinant."""
        return OPS["diagonal"](self.scale_tril, 0, -2, -1).log().sum(-1)


class JointlyNormal(Centred, Reparametrised):
    """Several numbers that are normal together; `_spread` is half the logarithm of their covariance's determinant."""

    def entropy(self) -> Any:
        return 0.5 * self.event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._spread()  # type: ignore[attr-defined]


class MultivariateNormal(Spread, JointlyNormal):
    """Several numbers that are normal together, by their covariance, its inverse, or its lower triangular root."""

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:  # fmt: skip
        which = one_root("MultivariateNormal", covariance_matrix, precision_matrix, scale_tril)
        matrix = next(m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None)
        if loc.ndim < 1 or matrix.ndim < 2:
            raise OptionError(
                f"MultivariateNormal: loc is a vector and {which} a matrix, or batches of them; got shapes "
                f"{list(loc.shape)} and {list(matrix.shape)}"
            )
        n = matrix.shape[-1]
        batch = together(loc.select(-1, 0), matrix.select(-1, 0).select(-1, 0))[0].shape
        self.loc = loc.expand((*batch, n))
        self._told(which, matrix.expand((*batch, n, n)))
        super().__init__(batch, (n,), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = noise(self.loc, self._extended_shape(sample_shape)).unsqueeze(-1)
        return self.loc + (self.scale_tril @ drawn).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        size = self._size((value - self.loc).unsqueeze(-1))
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + size) - self._spread()

    def _size(self, columns: Any) -> Any:
        """The squares of vectors' lengths by the covariance, summed."""
        return OPS["solve_triangle"](self.scale_tril, columns).square().sum((-2, -1))

    def _columns(self) -> Any:
        """Vectors whose outer products sum to the covariance."""
        return self.scale_tril

    @property
    def variance(self) -> Any:
        return self.scale_tril.square().sum(-1)

    def _given(self) -> Sequence[str]:
        return ("loc", self._which)


class MixtureSameFamily(Distribution):
    """A draw from one of several laws, which a Categorical chooses; the laws lie along their last batch dimension."""

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: Any = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise OptionError(f"MixtureSameFamily: a Categorical chooses the law; got {mixture_distribution!r}")
        if not isinstance(component_distribution, Distribution):
            raise OptionError(f"MixtureSameFamily: it chooses from a law's batch; got {component_distribution!r}")
        batch, laws = tuple(component_distribution.batch_shape), mixture_distribution.logits.shape[-1]
        if batch[-1:] != (laws,):
            raise OptionError(f"MixtureSameFamily: {laws} laws to choose from, in a batch of shape {list(batch)}")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        inner = self.component_distribution.support
        return None if inner is None else constraints.MixtureSameFamilyConstraint(inner)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            chosen: Any = self.mixture_distribution.sample(sample_shape)
            drawn: Any = self.component_distribution.sample(sample_shape)
            events = len(self.event_shape)
            at = chosen.reshape((*chosen.shape, 1, *(1,) * events))
            at = at.expand((*chosen.shape, 1, *self.event_shape))
            return drawn.gather(drawn.ndim - 1 - events, at).squeeze(drawn.ndim - 1 - events)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        of_each: Any = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self.event_shape)))
        return (of_each + self.mixture_distribution.logits).logsumexp(-1)

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        of_each: Any = self.component_distribution.cdf(value.unsqueeze(-1 - len(self.event_shape)))
        return (of_each * self.mixture_distribution.probs).sum(-1)

    def _averaged(self, of_each: Any) -> Any:
        events = len(self.event_shape)
        probs = self.mixture_distribution.probs
        return (probs.reshape((*probs.shape, *(1,) * events)) * of_each).sum(-1 - events)

    @property
    def mean(self) -> Any:
        return self._averaged(self.component_distribution.mean)

    @property
    def variance(self) -> Any:
        away = self.component_distribution.mean - self.mean.unsqueeze(-1 - len(self.event_shape))
        return self._averaged(self.component_distribution.variance + away.square())

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        laws = self.mixture_distribution._num_events
        return self._again(
            self.mixture_distribution.expand(batch_shape), self.component_distribution.expand((*batch_shape, laws))
        )

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution!r},\n  {self.component_distribution!r})"


class TransformedDistribution(Distribution):
    """What functions make of draws from a law, one after another."""

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: Any = None) -> None:
        self.transforms: list[Any] = list(transforms) if isinstance(transforms, (list, tuple)) else [transforms]
        if not all(isinstance(f, Transform) for f in self.transforms):
            raise OptionError(f"TransformedDistribution takes a law and a Transform, or several; got {transforms!r}")
        self.has_rsample = base_distribution.has_rsample
        whole = ComposeTransform(self.transforms)
        taken, given = whole.dims
        before = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(before) < taken:
            raise OptionError(
                f"TransformedDistribution: the transforms take {taken} dimensions together; draws have {list(before)}"
            )
        after = whole.forward_shape(before)
        back, events = whole.inverse_shape(after), len(base_distribution.event_shape)
        if back != before:  # parameters of the transforms have a larger batch
            base_distribution = base_distribution.expand(back[: len(back) - events])
        if taken > events:  # what a transform takes together is one event
            base_distribution = Independent(base_distribution, taken - events)
        self.base_dist = base_distribution
        cut = len(after) - max(given, events + given - taken)
        super().__init__(after[:cut], after[cut:], validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        found = ComposeTransform(self.transforms).codomain if self.transforms else self.base_dist.support
        if found is None:
            return None
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def _through(self, x: Any) -> Any:
        for f in self.transforms:
            x = f(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        stretched: Any = 0.0
        events = len(self.event_shape)
        for f in reversed(self.transforms):
            x = f.inv(value)
            taken, given = f.dims
            events += taken - given
            stretched = stretched + summed(f.log_abs_det_jacobian(x, value), events - taken)
            value = x
        return summed(self.base_dist.log_prob(value), events - len(self.base_dist.event_shape)) - stretched

    def _turned(self, chance: Any) -> Any:
        """The probability of being below, or of being above where the transforms fall."""
        sign = ComposeTransform(self.transforms).sign
        return chance if isinstance(sign, int) and sign == 1 else sign * (chance - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        self._valued(value)
        for f in reversed(self.transforms):
            value = f.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._through(self.base_dist.icdf(self._turned(value)))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        shape = (*batch_shape, *self.event_shape)
        before = ComposeTransform(self.transforms).inverse_shape(shape)
        events = len(self.base_dist.event_shape)
        return self._again(self.base_dist.expand(before[: len(before) - events]), self.transforms)


__all__ = ["Independent", "MixtureSameFamily", "MultivariateNormal", "TransformedDistribution"]
