"""Complex numbers: construction, real views, angle. Gradients follow torch's convention: the conjugate."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import op
from weft.ops.pointwise.arithmetic import abs, add, conj, div, mul, neg, sgn, square, sub
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.elementary import cos, sin
from weft.ops.pointwise.logic import eq
from weft.ops.shape.broadcast import fit
from weft.ops.shape.joining import cat
from weft.ops.shape.slicing import select
from weft.ops.shape.views import unsqueeze


@op("..., ... -> ...", linear="real+imag", returns="y")
def complex__(real: Tensor, imag: Tensor) -> Tensor:
    """real + i * imag.

    >>> flow.complex(flow.tensor([1.0]), flow.tensor([2.0])).tolist()
    [(1+2j)]
    """
    return torch.complex(real, imag)


complex__.grad(lambda dy, real_shape, imag_shape: (fit(real(dy), real_shape), fit(imag(dy), imag_shape)))
complex__.samples(lambda rand: [(rand(4, 6), rand(4, 6))])


@op("... -> ... k!", view=True)
def view_as_real(x: Tensor) -> Tensor:
    """Complex numbers as pairs along a new last dimension, sharing memory.

    >>> flow.view_as_real(flow.complex(flow.tensor([1.0]), flow.tensor([2.0]))).tolist()
    [[1.0, 2.0]]
    """
    return torch.view_as_real(x.resolve_conj())


@view_as_real.grad
def _(dy):
    return complex__(select(dy, -1, 0), select(dy, -1, 1))  # a gradient may have any strides


view_as_real.scattered(lambda base, part: view_as_complex(part))
view_as_real.samples(lambda rand: [(torch.complex(rand(4, 6), rand(4, 6)),)])


@op("... k! -> ...", view=True)
def view_as_complex(x: Tensor) -> Tensor:
    """Pairs along the last dimension as complex numbers, sharing memory.

    >>> flow.view_as_complex(flow.tensor([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    return torch.view_as_complex(x)


view_as_complex.grad(lambda dy: view_as_real(dy))
view_as_complex.scattered(lambda base, part: view_as_real(part))
view_as_complex.samples(lambda rand: [(rand(4, 6, 2),)])


def real(x: Any) -> Any:
    """The real part of complex numbers."""
    return select(view_as_real(x), -1, 0)


def imag(x: Any) -> Any:
    """The imaginary part of complex numbers."""
    return select(view_as_real(x), -1, 1)


@op("... -> ...", memory_order=lambda x: "contiguous" if x.is_complex() else "")
def angle(x: Tensor) -> Tensor:
    """The angle of a complex number, from -pi to pi; of a real one, 0 or pi.

    >>> flow.angle(flow.complex(flow.tensor([0.0]), flow.tensor([0.0]))).tolist()
    [0.0]
    """
    return torch.angle(x)


@angle.grad
def _(dy, x):
    if not x.dtype.is_complex:
        return zeros_like(dy)
    pairs = view_as_real(x)
    a, b = select(pairs, -1, 0), select(pairs, -1, 1)
    scaled = div(dy, add(square(a), square(b)))
    return view_as_complex(cat([unsqueeze(neg(mul(scaled, b)), -1), unsqueeze(mul(scaled, a), -1)], -1))


angle.samples(lambda rand: [(rand(4, 6),), (torch.complex(rand(4, 6), rand(4, 6)),)])


@sgn.grad
def _(dy, x, y):
    if not x.dtype.is_complex:
        return zeros_like(dy)
    across = sub(dy, mul(y, real(mul(dy, conj(y)))))  # the component along x doesn't change the direction
    return where(eq(x, 0), 0.0, div(across, abs(x)))


def polar(size: Any, phase: Any) -> Any:
    """size * (cos(phase) + i * sin(phase))."""
    return complex__(mul(size, cos(phase)), mul(size, sin(phase)))
