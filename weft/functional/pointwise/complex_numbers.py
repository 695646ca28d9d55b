"""Real and imaginary parts, and other functions of complex numbers."""

from __future__ import annotations

from weft.api.table import public
from weft.core import dtype as dtypes
from weft.ops import ops
from weft.ops.pointwise.complex_numbers import imag as imag_of
from weft.ops.pointwise.complex_numbers import polar as polar_of
from weft.ops.pointwise.complex_numbers import real as real_of
from weft.tensor.tensor import Tensor


@public("flow")
def real(x: Tensor) -> Tensor:
    """The real part, sharing memory; x itself, if it is real."""
    return real_of(x) if x.dtype.is_complex else x


@public("flow")
def imag(x: Tensor) -> Tensor:
    """The imaginary part, sharing memory."""
    return imag_of(x)


@public("flow")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers from absolute values and angles.

    >>> flow.polar(flow.tensor([2.0]), flow.tensor([0.0])).tolist()
    [(2+0j)]
    """
    return polar_of(abs, angle)


@public("flow tensor")
def is_complex(x: Tensor) -> bool:
    """Whether x holds complex numbers."""
    return x.dtype.is_complex


@public("flow tensor", "conj conj_physical")
def conj(x: Tensor) -> Tensor:
    return x if isinstance(x, Tensor) and not x.dtype.is_complex else ops.conj(x)


@public("flow tensor")
def isreal(x: Tensor) -> Tensor:
    """Whether the elements have no imaginary part.

    >>> flow.isreal(flow.tensor([1.0, 2j])).tolist()
    [True, False]
    """
    return ops.eq(imag_of(x), 0) if x.dtype.is_complex else ops.ones_like(x, dtypes.bool_)


@public("flow tensor", "resolve_conj resolve_neg")
def resolve_conj(x: Tensor) -> Tensor:
    """x: conjugation and negation are never lazy here."""
    return x
