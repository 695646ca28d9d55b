"""Determinants of matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.linalg.matmul import adjoint
from weft.ops.linalg.solving import _regular, inv
from weft.ops.pointwise.arithmetic import conj, conjugated, mul
from weft.ops.pointwise.complex_numbers import complex__, imag
from weft.ops.shape.views import unsqueeze


@op("... i! j! -> ...")
def det(x: Tensor) -> Tensor:
    """The determinant of matrices.

    >>> flow.linalg.det(flow.tensor([[2., 0.], [0., 4.]])).item()
    8.0
    """
    return torch.linalg.det(x)


det.grad(lambda dy, x, y: mul(unsqueeze(unsqueeze(mul(dy, conjugated(y)), -1), -1), adjoint(inv(x))))
det.samples(lambda rand: [(_regular(rand),), (_regular(rand, 4),)])


@op("... i! j! -> ..., ...", returns="sign logabsdet")
def slogdet(x: Tensor) -> Any:
    """The sign of the determinant of matrices, and the logarithm of its absolute value.

    >>> flow.linalg.slogdet(flow.eye(2)).logabsdet.item()
    0.0
    """
    return tuple(torch.linalg.slogdet(x))


@slogdet.grad
def _(dsign, dlogabsdet, x, sign):
    if x.dtype.is_complex:  # the sign is a phase, whose change is the imaginary part of the logarithm's
        dlogabsdet = complex__(dlogabsdet, imag(mul(conj(sign), dsign)))
    return mul(unsqueeze(unsqueeze(dlogabsdet, -1), -1), adjoint(inv(x)))


slogdet.samples(lambda rand: [(_regular(rand, 4),)])
