"""Functions of draws with an inverse and a slope, for laws of what they give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.functional.distributions.base import summed
from weft.functional.table import calling
from weft.ops import OPS

softplus = calling("softplus")


class Transform:
    """A function of numbers, or of events of `event_dim` dimensions, with an inverse and a slope.

    Subclasses write `_call(x)`, `_inverse(y)` and `log_abs_det_jacobian(x, y)`. With `cache_size=1`, the inverse of
    what was just given is what it was made of, itself.
    """

    bijective = True
    event_dim = 0
    domain: Any = None  # PyTorch's declarations; nothing here reads them
    codomain: Any = None
    _last: tuple[Any, Any] | None = None

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise OptionError(f"cache_size is 0 or 1; got {cache_size}")
        self._cache_size = cache_size

    def _call(self, x: Any) -> Any:
        raise OptionError(f"{type(self).__name__} should say what it makes of x: def _call(self, x)")

    def _inverse(self, y: Any) -> Any:
        raise OptionError(f"{type(self).__name__} has no inverse: def _inverse(self, y) would be one")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of its slope's size at x, where it gives y."""
        raise OptionError(f"{type(self).__name__} has no slope: def log_abs_det_jacobian(self, x, y) would give it")

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
        return _Inverse(self)

    @property
    def sign(self) -> int:
        """1 where it rises, -1 where it falls."""
        return 1


class _Inverse(Transform):
    def __init__(self, of: Transform) -> None:
        super().__init__()
        self.of, self.event_dim = of, of.event_dim

    def __call__(self, x: Any) -> Any:
        return self.of._back(x)

    def _back(self, y: Any) -> Any:
        return self.of(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.of.log_abs_det_jacobian(y, x)

    @property
    def inv(self) -> Transform:
        return self.of


class ComposeTransform(Transform):
    """Several, one after another."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.event_dim = max((f.event_dim for f in self.parts), default=0)

    def _call(self, x: Any) -> Any:
        for f in self.parts:
            x = f(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for f in reversed(self.parts):
            y = f.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        stretched: Any = 0.0
        for f in self.parts:
            y = f(x)
            stretched = stretched + summed(f.log_abs_det_jacobian(x, y), self.event_dim - f.event_dim)
            x = y
        return stretched


class AffineTransform(Transform):
    """loc + scale * x."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return summed((x * 0 + self.scale).abs().log(), self.event_dim)


class ExpTransform(Transform):
    """exp(x)."""

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """x to a power, above zero."""

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    def _call(self, x: Any) -> Any:
        return x.sigmoid()

    def _inverse(self, y: Any) -> Any:
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return OPS["log"](-OPS["expm1"](-y)) + y  # type: ignore[operator]

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class TanhTransform(Transform):
    """tanh(x): what keeps an action in bounds."""

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return OPS["atanh"](y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform", "SoftplusTransform",
    "TanhTransform", "Transform",
]  # fmt: skip
