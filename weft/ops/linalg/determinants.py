"""Determinants of matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.linalg.matmul import adjoint, matmul
from weft.ops.linalg.solving import _regular, inv
from weft.ops.linalg.unchecked import inv_ex
from weft.ops.pointwise.arithmetic import conj, conjugated, mul, sub
from weft.ops.pointwise.complex_numbers import complex__, imag
from weft.ops.reduce.sums import sum
from weft.ops.shape.views import unsqueeze


@op("... i! j! -> ...")
def det(x: Tensor) -> Tensor:
    """The determinant of matrices.

    >>> flow.linalg.det(flow.tensor([[2., 0.], [0., 4.]])).item()
    8.0
    """
    return torch.linalg.det(x)


det.grad(lambda dy, x: mul(unsqueeze(unsqueeze(dy, -1), -1), cofactors(x)))
det.samples(lambda rand: [(_regular(rand),), (_regular(rand, 4),)])


@op("... i! j! -> ... i! j!")
def cofactors(x: Tensor) -> Tensor:
    """The derivative of the determinant of matrices, of singular ones as well.

    >>> flow._C.cofactors(flow.tensor([[1., 2.], [2., 4.]])).round().tolist()
    [[4.0, -2.0], [-2.0, 1.0]]
    """
    inverse, singular = torch.linalg.inv_ex(x)
    y = torch.linalg.det(x).conj()[..., None, None] * inverse.mH
    if not x.is_meta and singular.any():
        u, s, vh = torch.linalg.svd(x)
        others = torch.where(torch.eye(s.shape[-1], dtype=torch.bool, device=s.device), 1, s[..., None, :]).prod(-1)
        turn = (torch.linalg.det(u) * torch.linalg.det(vh)).conj()
        y = torch.where(singular[..., None, None] != 0, turn[..., None, None] * ((u * others[..., None, :]) @ vh), y)
    return y


@cofactors.grad
def _(dy, x, y):
    over = adjoint(inv(x))
    return sub(mul(sum(mul(conjugated(dy), over), (-2, -1), True), y), matmul(over, matmul(adjoint(dy), y)))


cofactors.samples(lambda rand: [(_regular(rand),), (_regular(rand, 4),)])


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
    return mul(unsqueeze(unsqueeze(dlogabsdet, -1), -1), adjoint(inv_ex(x)[0]))  # of a singular one no error: infinite


slogdet.samples(lambda rand: [(_regular(rand, 4),)])
