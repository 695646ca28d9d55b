"""`flow.signal.windows`: how much each of M samples counts, most in the middle.

`sym=False` leaves the last sample of a window of M + 1 out, so that windows side by side go on evenly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from weft.api.signature import door
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, OptionError
from weft.functional.create import creation
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.tensor.tensor import Tensor

Weights = Callable[[Any, int], Any]  # of the places 0, 1, ... and the last one's, where the window ends


def _window(name: str, m: int, sym: bool, weights: Weights, where: dict[str, Any], alone: bool = False) -> Tensor:
    """Weights at M places, in the dtype that is asked for; one that is `alone` counts 1, unless they tell that too."""
    unknown = sorted(where.keys() - {"dtype", "device", "placement", "sbp", "requires_grad"})
    if unknown:
        raise ArgumentError(f"{name}(): got an unexpected argument {unknown[0]!r}")
    if isinstance(m, bool) or not isinstance(m, int) or m < 0:
        raise OptionError(f"{name}(): M counts samples; got {m!r}")
    wanted = dtypes.of(where.pop("dtype", None) or creation.get_default_dtype())
    if not wanted.is_floating_point:
        raise OptionError(f"{name}(): a window is of floats; got dtype {wanted}")
    grad = where.pop("requires_grad", False)
    places = creation.arange(m, dtype=dtypes.float64, **where)
    end = max(m - 1, 0) if sym or m < 2 else m
    y = ops.ones_like(places) if m < 2 and not alone else weights(places, end)
    return creation.finished(cast(y, wanted), grad)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **where: Any) -> Tensor:
    """A sum of cosines with these weights, of alternating sign.

    >>> flow.signal.windows.general_cosine(3, a=[0.5, 0.5]).tolist()
    [0.0, 1.0, 0.0]
    """
    shares = list(a)
    if not shares:
        raise OptionError("general_cosine(): a is one weight or more, of cosines")

    def weights(k: Any, end: int) -> Any:
        turn: Any = k * (2 * math.pi / end)
        total: Any = ops.full_like(k, shares[0], None)
        for i, share in enumerate(shares[1:], 1):
            total = total + (turn * i).cos() * (share if i % 2 == 0 else -share)
        return total

    return _window("general_cosine", M, sym, weights, where)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **where: Any) -> Tensor:
    """A raised cosine: alpha less 1 - alpha times a cosine."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **where)


def hamming(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Hamming's window."""
    return general_hamming(M, sym=sym, **where)


def hann(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """The raised cosine that begins and ends at zero."""
    return general_hamming(M, alpha=0.5, sym=sym, **where)


def blackman(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Blackman's window."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **where)


def nuttall(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Nuttall's window."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **where)


def bartlett(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """A triangle that begins and ends at zero."""
    return _window("bartlett", M, sym, lambda k, end: 1 - (k * (2 / end) - 1).abs(), where)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **where: Any) -> Tensor:
    """Kaiser's window: narrower the higher beta."""
    if beta < 0:
        raise OptionError(f"kaiser(): beta is at least 0; got {beta}")

    def weights(k: Any, end: int) -> Any:
        away = (k * (2 / end) - 1) * beta
        height = ops.clamp(beta * beta - away.square(), 0.0).sqrt()  # type: ignore[attr-defined]
        return ops.i0(height) / ops.i0(ops.full_like(k, float(beta), None))  # type: ignore[operator]

    return _window("kaiser", M, sym, weights, where)


def cosine(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Half a wave."""
    return _window("cosine", M, sym, lambda k, end: ((k + 0.5) * (math.pi / (end + 1))).sin(), where, True)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **where: Any) -> Tensor:
    """The bell, as wide as std samples."""
    if std <= 0:
        raise OptionError(f"gaussian(): std is above 0; got {std}")
    return _window("gaussian", M, sym, lambda k, end: (-0.5 * ((k - end / 2) / std).square()).exp(), where, True)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **where: Any) -> Tensor:
    """Falling to both sides of the middle, to 1 / e within tau samples."""
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


# ---- by their older names ----------------------------------------------------------------------------


def _older(shape: Callable[..., Tensor], says: str, example: str = "") -> None:
    """`name_window(length)`: begun again after its end, unless it isn't periodic."""
    name = f"{shape.__name__}_window"

    def window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
        return shape(window_length, sym=not periodic, **options)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"{says} of so many elements." + (f"\n\n>>> flow.{name}(4).tolist()\n{example}" if example else "")
    public("flow")(window)


_older(hann, "The raised cosine window", "[0.0, 0.5, 1.0, 0.5]")
_older(blackman, "Blackman's window")
_older(bartlett, "The triangular window", "[0.0, 0.5, 1.0, 0.5]")


@public("flow")
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Hamming's window of so many elements: alpha less beta times a cosine."""
    return general_cosine(window_length, a=[alpha, beta], sym=not periodic, **options)


@public("flow")
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser's window of so many elements; `beta`: how narrow it is.

    >>> flow.kaiser_window(3, periodic=False, beta=0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    return kaiser(window_length, beta=beta, sym=not periodic, **options)
