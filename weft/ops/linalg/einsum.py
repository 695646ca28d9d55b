"""einsum: its equation is a layout notation already."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from weft.ops import notation
from weft.ops.declaration import op
from weft.ops.pointwise.arithmetic import conjugated


@op(memory_order="meta")
def einsum(operands: Sequence[Tensor], equation: str) -> Tensor:
    """The sum of products of an explicit equation, of two operands or more; each axis of an operand is elsewhere too,
    and once in each operand.

    >>> flow._C.einsum("ij,jk->ik", flow.ones(2, 3), flow.ones(3, 2)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    return torch.einsum(equation, list(operands))


@einsum.layout
def _(operands, equation):
    left, _, out = equation.partition("->")
    terms = left.split(",")
    text = f"{', '.join(' '.join(t) for t in terms)} -> {' '.join(out)}"
    size = {a: n for term, shape in zip(terms, operands, strict=True) for a, n in zip(term, shape, strict=True)}
    apart = notation.linear(tuple((i,) for i in range(len(terms))), len(terms), 1)
    return *notation.rules(text, tuple(operands), (tuple(size[a] for a in out),)), *apart


@einsum.grad
def _(dy, operands, equation, needs):
    left, _, out = equation.partition("->")
    terms = left.split(",")
    found = []
    for i, need in enumerate(needs):
        if not need:
            found.append(None)
            continue
        others = [k for k in range(len(terms)) if k != i]
        text = f"{','.join([out, *(terms[k] for k in others)])}->{terms[i]}"
        found.append(einsum([dy, *(conjugated(operands[k]) for k in others)], text))
    return (found,)


@einsum.samples
def _(rand):
    yield [rand(4, 6), rand(6, 3)], "ij,jk->ik"
    yield [rand(2, 4, 3), rand(2, 3, 5), rand(5)], "bij,bjk,k->bi"
