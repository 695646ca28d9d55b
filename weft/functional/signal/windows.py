"""`flow.signal.windows`: window functions of M samples.

`sym=False` gives a periodic window: the first M samples of a window of M + 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.signal import windows as theirs

from weft.api.signature import door
from weft.api.table import named, public
from weft.core import dtype as dtypes
from weft.core.errors import OptionError
from weft.functional.create import creation
from weft.tensor.tensor import Tensor


def _window(name: str, says: str) -> Callable[..., Tensor]:
    """One of torch's window functions, computed in float64; here it takes a placement and an sbp, too."""
    shape = getattr(theirs, name)

    @named(name, says)
    def window(
        M: int, *, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
        requires_grad: bool = False, **options: Any,
    ) -> Tensor:  # fmt: skip
        if isinstance(M, bool) or not isinstance(M, int):
            raise OptionError(f"{name}(): M must be a number of samples; got {M!r}")
        wanted = dtypes.of(dtype or creation.get_default_dtype())
        if not wanted.is_floating_point:
            raise OptionError(f"{name}(): a window needs a floating dtype; got {wanted}")
        try:
            data = shape(M, dtype=torch.float64, **options).to(wanted.torch)
        except ValueError as error:
            raise OptionError(f"{name}(): {error}") from error
        return creation.placed(name, data, device, placement, sbp, requires_grad)

    own = inspect.signature(window)
    length, *where, _ = own.parameters.values()
    drawn = [p for p in inspect.signature(shape).parameters.values() if p.name not in (*own.parameters, "layout")]
    vars(window)["__signature__"] = own.replace(parameters=[length, *drawn, *where])
    return door(window)


general_cosine = _window(
    "general_cosine",
    """A sum of cosines with these coefficients, of alternating sign.

    >>> flow.signal.windows.general_cosine(3, a=[0.5, 0.5]).tolist()
    [0.0, 1.0, 0.0]
    """,
)
general_hamming = _window("general_hamming", "The generalized Hamming window: alpha - (1 - alpha) * cos.")
hamming = _window("hamming", "Hamming's window.")
hann = _window("hann", "The Hann window: a raised cosine from zero to zero.")
blackman = _window("blackman", "Blackman's window.")
nuttall = _window("nuttall", "Nuttall's window.")
bartlett = _window("bartlett", "The triangular window from zero to zero.")
kaiser = _window("kaiser", "The Kaiser window: narrower with higher beta.")
cosine = _window("cosine", "The cosine window: half a wave.")
gaussian = _window("gaussian", "The Gaussian window with standard deviation `std` in samples.")
exponential = _window("exponential", "The exponential window, decaying to 1 / e within tau samples of the center.")

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


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
