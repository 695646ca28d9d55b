"""Laws over matrices, and of vectors whose covariance is told by a few factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.autograd import no_grad
from weft.core.errors import OptionError
from weft.functional import creation, info
from weft.functional.distributions import constraints
from weft.functional.distributions.base import Distribution, ExponentialFamily, Reparametrised, lazy, noise, together
from weft.functional.distributions.joint import JointlyNormal, Spread, one_root
from weft.functional.distributions.shares import Beta, Chi2
from weft.functional.distributions.vectors import triangle
from weft.functional.likeness import beside
from weft.functional.shaping import broadcast_shapes
from weft.functional.table import calling
from weft.ops import OPS
from weft.tensor.tensor import Tensor

digamma, mvlgamma = calling("digamma"), calling("mvlgamma")


def _diagonal(x: Any) -> Any:
    return OPS["diagonal"](x, 0, -2, -1)


def _steps(like: Any, *bounds: int) -> Any:
    return creation.arange(*bounds, dtype=like.dtype, **beside(like))


class LowRankMultivariateNormal(JointlyNormal):
    """Numbers that are normal together, with covariance cov_factor @ cov_factor.T + a diagonal."""

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: Any = None) -> None:
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_factor.shape[-2] != loc.shape[-1] or cov_diag.ndim < 1:
            raise OptionError(
                "LowRankMultivariateNormal: loc and cov_diag are vectors of n numbers, cov_factor a matrix of n rows; "
                f"got shapes {list(loc.shape)}, {list(cov_diag.shape)} and {list(cov_factor.shape)}"
            )
        n, rank = cov_factor.shape[-2:]
        batch = broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        self.loc, self.cov_diag = loc.expand((*batch, n)), cov_diag.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, n, rank))
        super().__init__(batch, (n,), validate_args)

    @lazy
    def _root(self) -> Any:
        """The triangular root of 1 + factor.T @ factor / diagonal: a small matrix that stands for the large one."""
        small = self.cov_factor.mT @ (self.cov_factor / self.cov_diag.unsqueeze(-1))
        return OPS["cholesky"](small + creation.eye(small.shape[-1], dtype=small.dtype, **beside(small)))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        few = noise(self.loc, (*shape[:-1], self.cov_factor.shape[-1])).unsqueeze(-1)
        return self.loc + (self.cov_factor @ few).squeeze(-1) + self.cov_diag.sqrt() * noise(self.loc, shape)

    def _spread(self) -> Any:
        """Half the logarithm of the covariance's determinant."""
        return _diagonal(self._root).log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)

    def _size(self, columns: Any) -> Any:
        """The squares of vectors' lengths by the covariance, summed."""
        scaled = columns / self.cov_diag.unsqueeze(-1)
        short = OPS["solve_triangle"](self._root, self.cov_factor.mT @ scaled)
        return (columns * scaled).sum((-2, -1)) - short.square().sum((-2, -1))

    def _columns(self) -> Any:
        """Vectors whose outer products sum to the covariance."""
        return OPS["cat"]([self.cov_factor, self.cov_diag.sqrt().diag_embed()], self.cov_factor.ndim - 1)

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        n = self.event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._size((value - self.loc).unsqueeze(-1))) - self._spread()

    @property
    def variance(self) -> Any:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy
    def covariance_matrix(self) -> Any:
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy
    def precision_matrix(self) -> Any:
        return OPS["inv"](self.covariance_matrix)

    @lazy
    def scale_tril(self) -> Any:
        return OPS["cholesky"](self.covariance_matrix)


class LKJCholesky(Distribution):
    """Triangular roots of correlations of `dim` numbers; the higher the concentration, the weaker the correlations.

    >>> root = flow.distributions.LKJCholesky(3, 0.5).sample()
    >>> bool(((root @ root.mT).diagonal() - 1).abs().max() < 1e-5)
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: Any = None) -> None:
        if dim < 2:
            raise OptionError(f"LKJCholesky: correlations are between two numbers or more; got dim={dim}")
        self.dim = dim
        (self.concentration,) = together(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)
        row = OPS["clamp"](_steps(self.concentration, -1, dim - 1), 0.0)
        free = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * row
        self._share = Beta(row + 0.5, free, validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Row by row: a direction, and how much of the row's length lies in it; the diagonal has the rest."""
        with no_grad():
            share: Any = self._share.sample(sample_shape)
            ways: Any = noise(share, self._extended_shape(sample_shape)).tril(-1)
            length = ways.square().sum(-1, True).sqrt()
            rows = share.sqrt().unsqueeze(-1) * ways / OPS["where"](length == 0, 1.0, length)
            rest = (1 - rows.square().sum(-1)).clamp(min=info.finfo(rows.dtype).tiny)
            return rows + rest.sqrt().diag_embed()

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        n = self.dim - 1
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - _steps(self.concentration, 2, self.dim + 1)
        kernel = (order * OPS["narrow"](_diagonal(value), value.ndim - 2, 1, n).log()).sum(-1)
        a = self.concentration + 0.5 * n
        return kernel - 0.5 * n * math.log(math.pi) - mvlgamma(a - 0.5, n) + a.lgamma() * n

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._again(self.dim, self.concentration.expand(tuple(batch_shape)))


class Wishart(Spread, Reparametrised, ExponentialFamily):
    """Sums of outer products of `df` normal vectors with themselves: covariances, times how many were counted."""

    support = constraints.positive_definite

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:  # fmt: skip
        which = one_root("Wishart", covariance_matrix, precision_matrix, scale_tril)
        matrix = next(m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None)
        if matrix.ndim < 2:
            raise OptionError(f"Wishart: {which} is a matrix, or a batch of them; got shape {list(matrix.shape)}")
        n = matrix.shape[-1]
        counted = df if isinstance(df, Tensor) else creation.tensor(float(df), dtype=matrix.dtype, **beside(matrix))
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(counted.shape))
        self.df = counted.expand(batch)
        self._told(which, matrix.expand((*batch, n, n)))
        super().__init__(batch, (n, n), validate_args)
        if not constraints.holds(constraints.greater_than(n - 1), self.df):
            raise OptionError(f"Wishart: of {n} by {n} matrices df must be above {n - 1}; got {self.df}")
        self._squares = Chi2(self.df.unsqueeze(-1) - _steps(matrix, n), validate_args=False)

    @property
    def arg_constraints(self) -> Any:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self.event_shape[-1] - 1),
        }  # fmt: skip

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """By the triangular root that such a sum has: roots of squares on the diagonal, normal draws below."""
        n = self.event_shape[-1]
        root: Any = self._squares.rsample(sample_shape).sqrt().diag_embed()  # type: ignore[attr-defined]
        below = noise(self.df, (*sample_shape, *self.batch_shape, n * (n - 1) // 2))
        moved = self.scale_tril @ (root + triangle(below, n) if n > 1 else root)
        return moved @ moved.mT

    def log_prob(self, value: Any) -> Any:
        self._valued(value)
        nu, n = self.df, self.event_shape[-1]
        sign_and_size = OPS["slogdet"](value)
        inverse = OPS["solve_triangle"](self.scale_tril, value)
        trace = _diagonal(OPS["solve_triangle"](self.scale_tril, inverse.mT)).sum(-1)
        norm = nu * (n * math.log(2) / 2 + self._spread()) + mvlgamma(nu / 2, n)
        return (nu - n - 1) / 2 * sign_and_size[1] - trace / 2 - norm

    def entropy(self) -> Any:
        nu, n = self.df, self.event_shape[-1]
        turns = digamma((nu / 2).unsqueeze(-1) - _steps(nu, n) / 2).sum(-1)
        size = (n + 1) * (n * math.log(2) / 2 + self._spread())
        return size + mvlgamma(nu / 2, n) - (nu - n - 1) / 2 * turns + nu * n / 2

    @property
    def mean(self) -> Any:
        return self.df.unsqueeze(-1).unsqueeze(-1) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """Not a number where df is so low that singular matrices are the likeliest."""
        more = self.df - self.event_shape[-1] - 1
        return OPS["where"](more > 0, more, math.nan).unsqueeze(-1).unsqueeze(-1) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        own = _diagonal(v)
        return self.df.unsqueeze(-1).unsqueeze(-1) * (v.square() + own.unsqueeze(-1) * own.unsqueeze(-2))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        matrix = getattr(self, self._which)
        n = matrix.shape[-1]
        return self._again(self.df.expand(tuple(batch_shape)), **{self._which: matrix.expand((*batch_shape, n, n))})


__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "Wishart"]
