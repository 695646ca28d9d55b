"""Functions of draws with an inverse and a slope, for laws of what they give: of each number by itself."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from weft.core.errors import MissingFormulaError, OptionError
from weft.functional.distributions import constraints
from weft.functional.distributions.base import summed
from weft.functional.shaping import broadcast_shapes
from weft.functional.table import calling
from weft.ops import OPS
from weft.tensor.tensor import Tensor

softplus = calling("softplus")


class Transform:
    """A function of numbers, or of events of several dimensions, with an inverse and a slope.

    Subclasses write `_call(x)`, `_inverse(y)` and `log_abs_det_jacobian(x, y)`, and say in `domain` and `codomain` what
    they take and give; `event_dim` counts the dimensions that are taken together. With `cache_size=1`, the inverse of
    what was just given is what it was made of, itself.
    """

    bijective: Any = True
    event_dim: Any = 0
    domain: Any = None
    codomain: Any = None
    sign: Any = 1  # -1 where it falls
    _last: tuple[Any, Any] | None = None

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise OptionError(f"cache_size is 0 or 1; got {cache_size}")
        self._cache_size = cache_size

    @property
    def dims(self) -> tuple[int, int]:
        """How many dimensions make an event before it, and after it."""
        before, after = self.domain, self.codomain
        return (
            self.event_dim if before is None else before.event_dim,
            self.event_dim if after is None else after.event_dim,
        )

    def _call(self, x: Any) -> Any:
        raise MissingFormulaError(f"{type(self).__name__} should say what it makes of x: def _call(self, x)")

    def _inverse(self, y: Any) -> Any:
        raise MissingFormulaError(f"{type(self).__name__} has no inverse: def _inverse(self, y) would be one")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of its slope's size at x, where it gives y."""
        raise MissingFormulaError(
            f"{type(self).__name__} has no slope: def log_abs_det_jacobian(self, x, y) would give it"
        )

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of what it makes of a value of this shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of what it made a value of this shape of."""
        return tuple(shape)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same, remembering the last value or not."""
        if self._cache_size == cache_size:
            return self
        other = copy.copy(self)
        Transform.__init__(other, cache_size)
        other._last = None
        return other

    def __call__(self, x: Any) -> Any:
        if self._last is not None and self._last[0] is x:
            return self._last[1]
        return self._kept(x, self._call(x), 1)

    def _back(self, y: Any) -> Any:
        """The x that it makes y of."""
        if self._last is not None and self._last[1] is y:
            return self._last[0]
        return self._kept(self._inverse(y), y, 0)

    def _kept(self, x: Any, y: Any, which: int) -> Any:
        if getattr(self, "_cache_size", 0):
            self._last = x, y
        return (x, y)[which]

    @property
    def inv(self) -> Transform:
        """The inverse, as a transform."""
        return Inverse(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        mine, others = self.__dict__, getattr(other, "__dict__", {})
        return type(self) is type(other) and all(
            _equal(mine[k], others.get(k)) for k in mine if k not in ("_last", "_cache_size", "domain", "codomain")
        )

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a is b or (a.shape == b.shape and bool((a == b).all()))  # type: ignore[attr-defined]
    return not isinstance(a, Tensor) and not isinstance(b, Tensor) and bool(a == b)


class Inverse(Transform):
    """A transform, the other way round."""

    def __init__(self, of: Transform) -> None:
        super().__init__()
        self.of, self.event_dim, self.bijective = of, of.event_dim, of.bijective
        self.domain, self.codomain = of.codomain, of.domain

    @property
    def sign(self) -> Any:  # type: ignore[override]
        return self.of.sign

    def __call__(self, x: Any) -> Any:
        return self.of._back(x)

    def _back(self, y: Any) -> Any:
        return self.of(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.of.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.of.forward_shape(shape)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return Inverse(self.of.with_cache(cache_size))

    @property
    def inv(self) -> Transform:
        return self.of

    def __repr__(self) -> str:
        return f"_InverseTransform({self.of!r})"


class ComposeTransform(Transform):
    """Several, one after another."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [f.with_cache(cache_size) for f in parts] if cache_size else list(parts)
        self.event_dim = max((f.event_dim for f in self.parts), default=0)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(f.bijective for f in self.parts)

    @property
    def sign(self) -> Any:  # type: ignore[override]
        found: Any = 1
        for f in self.parts:
            found = found * f.sign
        return found

    @property
    def dims(self) -> tuple[int, int]:
        before = after = 0
        for f in reversed(self.parts):  # what the later ones take together, the earlier ones must have given
            taken, given = f.dims
            before = max(before + taken - given, taken)
        for f in self.parts:
            taken, given = f.dims
            after = max(after + given - taken, given)
        return before, after

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self._region(self.parts[0].domain if self.parts else constraints.real, self.dims[0])

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return self._region(self.parts[-1].codomain if self.parts else constraints.real, self.dims[1])

    @staticmethod
    def _region(region: Any, dims: int) -> Any:
        if region is None or dims <= region.event_dim:
            return region
        return constraints.independent(region, dims - region.event_dim)

    def _call(self, x: Any) -> Any:
        for f in self.parts:
            x = f(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for f in reversed(self.parts):
            y = f.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        stretched: Any = 0.0 if self.parts else OPS["zeros_like"](x)
        dims = self.dims[0]
        for f in self.parts:
            y = f(x)
            taken, given = f.dims
            stretched = stretched + summed(f.log_abs_det_jacobian(x, y), dims - taken)
            dims += given - taken
            x = y
        return stretched

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for f in self.parts:
            shape = f.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for f in reversed(self.parts):
            shape = f.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


class AffineTransform(Transform):
    """loc + scale * x."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        region = constraints.independent(constraints.real, event_dim) if event_dim else constraints.real
        self.domain = self.codomain = region

    @property
    def sign(self) -> Any:  # type: ignore[override]
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)  # type: ignore[attr-defined]

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return summed((x * 0 + self.scale).abs().log(), self.event_dim)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        own = [tuple(t.shape) for t in (self.loc, self.scale) if isinstance(t, Tensor)]
        return tuple(broadcast_shapes(tuple(shape), *own))

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and all(
            _equal(a, b) for a, b in ((self.loc, other.loc), (self.scale, other.scale))
        )

    __hash__ = Transform.__hash__


class ExpTransform(Transform):
    """exp(x)."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """x to a power, above zero."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:  # type: ignore[override]
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else (self.exponent > 0) - (self.exponent < 0)  # type: ignore[attr-defined]

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(broadcast_shapes(tuple(shape), tuple(getattr(self.exponent, "shape", ()))))

    inverse_shape = forward_shape


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    domain, codomain = constraints.real, constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return x.sigmoid()

    def _inverse(self, y: Any) -> Any:
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return OPS["log"](-OPS["expm1"](-y)) + y  # type: ignore[operator]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class TanhTransform(Transform):
    """tanh(x): what keeps an action in bounds."""

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return OPS["atanh"](y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """The size of x: of what it gives, one of the two that it could be made of comes back."""

    bijective = False
    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class CumulativeDistributionTransform(Transform):
    """How likely a draw from a law is below x: evenly spread, where x is drawn from that law."""

    codomain = constraints.unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution, self.domain = distribution, distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)


identity_transform = ComposeTransform([])

__all__ = [
    "AbsTransform", "AffineTransform", "ComposeTransform", "CumulativeDistributionTransform", "ExpTransform",
    "PowerTransform", "SigmoidTransform", "SoftplusTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip
