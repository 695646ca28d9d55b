"""Transforms of several numbers together: to shares, to roots of covariances."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from weft.core import dtype as dtypes
from weft.core.errors import ShapeError
from weft.functional import creation
from weft.functional.distributions import constraints
from weft.functional.distributions.mapping import Transform
from weft.functional.info import finfo
from weft.functional.likeness import beside
from weft.functional.table import calling
from weft.ops import OPS

softplus, logsigmoid = calling("softplus"), calling("logsigmoid")


def _less(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    if not shape:
        raise ShapeError(f"{name} takes the last dimension together; got a number")
    return tuple(shape)[:-1]


def _beside(x: Any, value: float, front: bool) -> Any:
    """x with one number more along the last dimension."""
    edge = OPS["full_like"](OPS["narrow"](x.detach(), x.ndim - 1, 0, 1), value, None)
    return OPS["cat"]([edge, x] if front else [x, edge], x.ndim - 1)


class SoftmaxTransform(Transform):
    """Shares by scores; many scores give the same shares, and their logarithms come back."""

    bijective = False
    event_dim = 1
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*_less("SoftmaxTransform", shape), shape[-1])

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Shares, one more than there are numbers: each breaks a part off what the ones before have left."""

    event_dim = 1
    domain, codomain = constraints.real_vector, constraints.simplex

    @staticmethod
    def _left(x: Any) -> Any:
        """The logarithm of how many shares are still to come, at each number."""
        n = x.shape[-1]
        return creation.arange(n, 0, -1, dtype=x.dtype, **beside(x)).log()  # type: ignore[attr-defined]

    def _call(self, x: Any) -> Any:
        broken = (x - self._left(x)).sigmoid()
        return _beside(broken, 1.0, False) * _beside((1 - broken).cumprod(-1), 1.0, True)

    def _inverse(self, y: Any) -> Any:
        parts = OPS["narrow"](y, y.ndim - 1, 0, y.shape[-1] - 1)
        rest = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - rest.log() + self._left(parts)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._left(x)
        parts = OPS["narrow"](y, y.ndim - 1, 0, y.shape[-1] - 1)
        return (logsigmoid(x) - x + parts.log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*_less("StickBreakingTransform", shape), shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*_less("StickBreakingTransform", shape), shape[-1] - 1)


# ---- matrices ----------------------------------------------------------------------------------------


def _diagonal(x: Any) -> Any:
    return OPS["diagonal"](x, 0, -2, -1)


class LowerCholeskyTransform(Transform):
    """Triangular matrices whose diagonal is above zero; what was above the diagonal doesn't come back."""

    bijective = False
    event_dim = 2
    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + _diagonal(x).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + _diagonal(y).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Covariances, by their triangular roots."""

    bijective = False
    event_dim = 2
    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Any) -> Any:
        root = LowerCholeskyTransform()(x)
        return root @ root.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(OPS["cholesky"](y))


@functools.cache
def _places(n: int, below: int) -> tuple[list[int], list[int]]:
    """Where a triangle's elements lie in its matrix, row by row; and for each place of the matrix, which it holds."""
    inside = [i * n + j for i in range(n) for j in range(n) if j <= i - below]
    order = {place: k for k, place in enumerate(inside)}
    return inside, [order.get(place, len(inside)) for place in range(n * n)]


def _index(numbers: list[int], like: Any) -> Any:
    return creation.tensor(numbers, dtype=dtypes.int64, **beside(like))


def triangle(x: Any, n: int, below: int = 1) -> Any:
    """The matrix with these numbers so far below its diagonal, zeros elsewhere."""
    flat = OPS["index_select"](_beside(x, 0.0, False), x.ndim - 1, _index(_places(n, below)[1], x))
    return OPS["reshape"](flat, (*x.shape[:-1], n, n))


def numbers_below(x: Any, below: int = 1) -> Any:
    """What lies so far below a matrix's diagonal, row by row."""
    n = x.shape[-1]
    return OPS["index_select"](x.flatten(-2), x.ndim - 2, _index(_places(n, below)[0], x))


class CorrCholeskyTransform(Transform):
    """Triangular roots of correlations, n (n - 1) / 2 numbers for n of them."""

    event_dim = 1
    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _call(self, x: Any) -> Any:
        eps = finfo(x.dtype).eps
        partial = triangle(x.tanh().clamp(-1 + eps, 1 - eps), self._side(x.shape[-1]))
        left = (1 - partial.square()).sqrt().cumprod(-1)
        n = partial.shape[-1]
        left = _beside(OPS["narrow"](left, left.ndim - 1, 0, n - 1), 1.0, True)
        return (partial + creation.eye(n, dtype=x.dtype, **beside(x))) * left  # type: ignore[operator]

    def _inverse(self, y: Any) -> Any:
        n = y.shape[-1]
        left = 1 - y.square().cumsum(-1)
        left = _beside(OPS["narrow"](left, left.ndim - 1, 0, n - 1), 1.0, True)
        return OPS["atanh"](numbers_below(y) / numbers_below(left).sqrt())

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        left = numbers_below(1 - y.square().cumsum(-1), 2).log()
        return 0.5 * left.sum(-1) - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    @staticmethod
    def _side(count: int) -> int:
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ShapeError(f"CorrCholeskyTransform takes n (n - 1) / 2 numbers, such as 1, 3 or 6; got {count}")
        return n

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        n = self._side(shape[-1])
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ShapeError(f"CorrCholeskyTransform gives square matrices; got shape {list(shape)}")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


__all__ = [
    "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "SoftmaxTransform",
    "StickBreakingTransform",
]  # fmt: skip
