"""`flow.signal.windows`: window functions of M samples.

`sym=False` gives a periodic window: the first M samples of a window of M + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.signal import windows as theirs

from weft.api.signature import door
from weft.api.table import named, public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, OptionError
from weft.functional.create import creation
from weft.tensor.tensor import Tensor


def _window(name: str, m: int, sym: bool, where: dict[str, Any], **options: Any) -> Tensor:
    """M samples of one of torch's window functions, computed in float64, in the given dtype."""
    unknown = sorted(where.keys() - {"dtype", "device", "placement", "sbp", "requires_grad"})
    if unknown:
        raise ArgumentError(f"{name}(): got an unexpected argument {unknown[0]!r}")
    if isinstance(m, bool) or not isinstance(m, int) or m < 0:
        raise OptionError(f"{name}(): M must be a number of samples; got {m!r}")
    wanted = dtypes.of(where.get("dtype") or creation.get_default_dtype())
    if not wanted.is_floating_point:
        raise OptionError(f"{name}(): a window needs a floating dtype; got {wanted}")
    data = getattr(theirs, name)(m, sym=sym, dtype=torch.float64, **options).to(wanted.torch)
    device, placement, sbp = (where.get(n) for n in ("device", "placement", "sbp"))
    return creation.placed(name, data, device, placement, sbp, where.get("requires_grad", False))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **where: Any) -> Tensor:
    """A sum of cosines with these coefficients, of alternating sign.

    >>> flow.signal.windows.general_cosine(3, a=[0.5, 0.5]).tolist()
    [0.0, 1.0, 0.0]
    """
    shares = list(a)
    if not shares:
        raise OptionError("general_cosine(): a needs one coefficient or more")
    return _window("general_cosine", M, sym, where, a=shares)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **where: Any) -> Tensor:
    """The generalized Hamming window: alpha - (1 - alpha) * cos."""
    return _window("general_hamming", M, sym, where, alpha=alpha)


def hamming(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Hamming's window."""
    return _window("hamming", M, sym, where)


def hann(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """The Hann window: a raised cosine from zero to zero."""
    return _window("hann", M, sym, where)


def blackman(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Blackman's window."""
    return _window("blackman", M, sym, where)


def nuttall(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """Nuttall's window."""
    return _window("nuttall", M, sym, where)


def bartlett(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """The triangular window from zero to zero."""
    return _window("bartlett", M, sym, where)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **where: Any) -> Tensor:
    """The Kaiser window: narrower with higher beta."""
    if beta < 0:
        raise OptionError(f"kaiser(): beta must be at least 0; got {beta}")
    return _window("kaiser", M, sym, where, beta=beta)


def cosine(M: int, *, sym: bool = True, **where: Any) -> Tensor:
    """The cosine window: half a wave."""
    return _window("cosine", M, sym, where)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **where: Any) -> Tensor:
    """The Gaussian window with standard deviation `std` in samples."""
    if std <= 0:
        raise OptionError(f"gaussian(): std must be above 0; got {std}")
    return _window("gaussian", M, sym, where, std=std)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **where: Any) -> Tensor:
    """The exponential window, decaying to 1 / e within tau samples of the center."""
    if tau <= 0 or (sym and center is not None):
        raise OptionError(f"exponential(): tau is above 0, and center goes with sym=False; got {tau} and {center}")
    return _window("exponential", M, sym, where, center=center, tau=tau)


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
