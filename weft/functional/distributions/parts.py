"""Transforms made of transforms, one for each part of a value; and of values in another shape."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.errors import OptionError, ShapeError
from weft.functional import creation
from weft.functional.distributions import constraints
from weft.functional.distributions.base import summed
from weft.functional.distributions.mapping import Transform
from weft.functional.likeness import beside
from weft.functional.parts import stack
from weft.ops import OPS


class IndependentTransform(Transform):
    """A transform whose last dimensions count as one event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform, n = base_transform.with_cache(cache_size), reinterpreted_batch_ndims
        self.reinterpreted_batch_ndims, self.event_dim = n, base_transform.event_dim + n
        self.bijective, self.sign = base_transform.bijective, base_transform.sign
        self.domain = constraints.independent(base_transform.domain, n)
        self.codomain = constraints.independent(base_transform.codomain, n)

    def _check(self, value: Any, dims: int) -> None:
        if value.ndim < dims:
            raise ShapeError(f"{self} takes {dims} dimensions together; got shape {list(value.shape)}")

    def _call(self, x: Any) -> Any:
        self._check(x, self.dims[0])
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        self._check(y, self.dims[1])
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return summed(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """An event in another shape."""

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise OptionError(
                f"ReshapeTransform: {self.in_shape} and {self.out_shape} hold different counts of numbers"
            )
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))
        self.event_dim = len(self.in_shape)

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        batch = tuple(x.shape)[: x.ndim - len(self.in_shape)]
        return creation.zeros(batch, dtype=x.dtype, **beside(x))

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._changed(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._changed(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _changed(shape: Sequence[int], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
        cut = len(shape) - len(old)
        if cut < 0 or tuple(shape)[cut:] != old:
            raise ShapeError(f"ReshapeTransform: an event has shape {list(old)}; got {list(shape)}")
        return (*tuple(shape)[:cut], *new)


class _Parts(Transform, ABC):
    """Transforms, each of its own part of a value."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [f.with_cache(cache_size) for f in tseq], dim
        self.event_dim = max(f.event_dim for f in self.transforms)
        self.bijective = all(f.bijective for f in self.transforms)

    @abstractmethod
    def _slices(self, value: Any) -> Sequence[Any]:
        """The parts of a value."""

    @abstractmethod
    def _join(self, parts: Sequence[Any]) -> Any:
        """The value of these parts."""

    def _each(self, turn: Callable[..., Any], *values: Any) -> Any:
        slices = zip(*(self._slices(v) for v in values), strict=True)
        return self._join([turn(f, *s) for f, s in zip(self.transforms, slices, strict=True)])

    def _call(self, x: Any) -> Any:
        return self._each(lambda f, part: f(part), x)

    def _inverse(self, y: Any) -> Any:
        return self._each(lambda f, part: f.inv(part), y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self._each(lambda f, part, made: f.log_abs_det_jacobian(part, made), x, y)


class CatTransform(_Parts):
    """Parts side by side along a dimension, of these lengths, each by a transform of its own."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise OptionError(f"CatTransform: {len(self.lengths)} lengths for {len(self.transforms)} transforms")
        self.domain = constraints.cat([f.domain for f in self.transforms], dim, self.lengths)
        self.codomain = constraints.cat([f.codomain for f in self.transforms], dim, self.lengths)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    def _slices(self, value: Any) -> Sequence[Any]:
        return value.split(self.lengths, self.dim)

    def _join(self, parts: Sequence[Any]) -> Any:
        return OPS["cat"](list(parts), self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Where the parts' events have several dimensions, the slope is one number for them: parts' sums add up."""
        found = [
            f.log_abs_det_jacobian(part, made)
            for f, part, made in zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        ]
        dim = (self.dim if self.dim >= 0 else self.dim + x.ndim) - x.ndim
        ends = [slope.sum(tuple(range(f.dims[0] - self.event_dim, 0))) if f.dims[0] < self.event_dim else slope
                for f, slope in zip(self.transforms, found, strict=True)]  # fmt: skip
        return (
            OPS["cat"](ends, dim + self.event_dim) if dim + self.event_dim < 0 else functools.reduce(OPS["add"], ends)
        )


class StackTransform(_Parts):
    """A transform of its own for each place along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.domain = constraints.stack([f.domain for f in self.transforms], dim)
        self.codomain = constraints.stack([f.codomain for f in self.transforms], dim)

    def _slices(self, value: Any) -> Sequence[Any]:
        return [value.select(self.dim, i) for i in range(value.shape[self.dim])]

    def _join(self, parts: Sequence[Any]) -> Any:
        return stack(list(parts), self.dim)


__all__ = ["CatTransform", "IndependentTransform", "ReshapeTransform", "StackTransform"]
