"""`flow.signal.windows`: window functions of M samples.

`sym=False` gives a periodic window: the first M samples of a window of M + 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from weft.api.signature import door
from weft.api.table import named, public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, OptionError
from weft.functional.create import creation
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.tensor.tensor import Tensor

Weights = Callable[[Any, int], Any]  # of the indices 0, 1, ... and the last index of the window


def _window(name: str, m: int, sym: bool, weights: Weights, where: dict[str, Any], alone: bool = False) -> Tensor:
    """M samples of a window function, in the given dtype; a single sample is 1, unless `alone`."""
    unknown = sorted(where.keys() - {"dtype", "device", "placement", "sbp", "requires_grad"})
    if unknown:
        raise ArgumentError(f"{name}(): got an unexpected argument {unknown[0]!r}")
    if isinstance(m, bool) or not isinstance(m, int) or m < 0:
        raise OptionError(f"{name}(): M must be a number of samples; got {m!r}")
    wanted = dtypes.of(where.pop("dtype", None) or creation.get_default_dtype())
    if not wanted.is_floating_point:
        raise OptionError(f"{name}(): a window needs a floating dtype; got {wanted}")
    grad = where.pop("requires_grad", False)
    places = creation.arange(m, dtype=dtypes.float64, **where)
    end = max(m - 1, 0) if sym or m < 2 else m
    y = ops.ones_like(places) if m < 2 and not alone else weights(places, end)
    return creation.finished(cast(y, wanted), grad)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **where: Any) -> Tensor:
    """A sum of cosines with these coefficients, of alternating sign.

    >>> flow.signal.windows.general_cosine(3, a=[0.5, 0.5]).tolist()
    [0.0, 1.0, 0.0]
    """
    shares = list(a)
    if not shares:
        raise OptionError("general_cosine(): a needs one coefficient or more")

    def weights(k: Any, end: int) -> Any:
        turn: Any = k * (2 * math.pi / end)
        total: Any = ops.full_like(k, shares[0], None)
        for i, share in enumerate(shares[1:], 1):
            total = total + (turn * i).cos() * (share if i % 2 == 0 else -share)
        return total

    return _window("general_cosine", M, sym, weights, where)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **where: Any) -> Tensor:
    """The generalized Hamming window: alpha - (1 - alpha) * cos."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **where)


def hamming(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Hamming's window."""
    return general_hamming(M, sym=sym, **where)


def hann(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """The Hann window: a raised cosine from zero to zero."""
    return general_hamming(M, alpha=0.5, sym=sym, **where)


def blackman(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Blackman's window."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **where)


def nuttall(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Nuttall's window."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **where)


def bartlett(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """The triangular window from zero to zero."""
    return _window("bartlett", M, sym, lambda k, end: 1 - (k * (2 / end) - 1).abs(), where)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **where: Any) -> Tensor:
    """The Kaiser window: narrower with higher beta."""
    if beta < 0:
        raise OptionError(f"kaiser(): beta must be at least 0; got {beta}")

    def weights(k: Any, end: int) -> Any:
        away = (k * (2 / end) - 1) * beta
        height = ops.clamp(beta * beta - away.square(), 0.0).sqrt()  # type: ignore[attr-defined]
        return ops.i0(height) / ops.i0(ops.full_like(k, float(beta), None))  # type: ignore[operator]

    return _window("kaiser", M, sym, weights, where)


def cosine(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """The cosine window: half a wave."""
    return _window("cosine", M, sym, lambda k, end: ((k + 0.5) * (math.pi / (end + 1))).sin(), where, True)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **where: Any) -> Tensor:
    """The Gaussian window with standard deviation `std` in samples."""
    if std <= 0:
        raise OptionError(f"gaussian(): std must be above 0; got {std}")
    return _window("gaussian", M, sym, lambda k, end: (-0.5 * ((k - end / 2) / std).square()).exp(), where, True)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **where: Any) -> Tensor:
    """The exponential window, decaying to 1 / e within tau samples of the center."""
    if tau <= 0 or (sym and center is not None):
        raise OptionError(f"exponential(): tau is above 0, and center goes with sym=False; got {tau} and {center}")

    def weights(k: Any, end: int) -> Any:
        return (-((k - (end / 2 if center is None else center)) / tau).abs()).exp()

    return _window("exponential", M, sym, weights, where, True)


__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip

globals().update({name: door(globals()[name]) for name in __all__})


# ---- deprecated names --------------------------------------------------------------------------------


def _deprecated(shape: Callable[..., Tensor], says: str, example: str = "") -> None:
    """Bind `name_window(length)`, periodic by default."""
    name = f"{shape.__name__}_window"

    @public("flow")
    @named(name, f"{says} of this length." + (f"\n\n>>> flow.{name}(4).tolist()\n{example}" if example else ""))
    def window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
        return shape(window_length, sym=not periodic, **options)


_deprecated(hann, "The raised cosine window", "[0.0, 0.5, 1.0, 0.5]")
_deprecated(blackman, "Blackman's window")
_deprecated(bartlett, "The triangular window", "[0.0, 0.5, 1.0, 0.5]")


@public("flow")
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """The Hamming window of this length: alpha - beta * cos."""
    return general_cosine(window_length, a=[alpha, beta], sym=not periodic, **options)


@public("flow")
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """The Kaiser window of this length: narrower with higher `beta`.

    >>> flow.kaiser_window(3, periodic=False, beta=0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    return kaiser(window_length, beta=beta, sym=not periodic, **options)
