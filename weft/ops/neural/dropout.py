"""Dropout: on local tensors one kernel that draws its mask; on global ones a product with a global mask, so that the
same elements are dropped in every layout."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.errors import OptionError
from weft.core.sbp import broadcast
from weft.ops.create.constructors import keep_mask, kept
from weft.ops.declaration import op
from weft.ops.form import Form, alike
from weft.ops.pointwise.arithmetic import mul
from weft.ops.pointwise.copies import clone


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise OptionError(
            f"dropout probability has to be between 0 and 1, but got {p}: p is that of dropping an element"
        )


@op(random=True, returns="y | mask", memory_order="first")
def dropout(x: Tensor, p: float = 0.5, train: bool = True) -> Tensor:
    """x with each element zeroed with probability p, and the others scaled by 1 / (1 - p); x itself if not training.

    >>> flow.nn.functional.dropout(flow.ones(2), 1.).tolist()
    [0.0, 0.0]
    """
    _check(p)
    if not train or p == 0:
        return x.clone(), x.new_ones(())  # type: ignore[return-value]
    mask = kept(torch.empty_like(x), p)
    return x * mask, mask  # type: ignore[return-value]


@dropout.out
def _(outs, x, p, train):
    y, mask = outs
    _check(p)
    if not train or p == 0:
        mask.fill_(1)
        y.copy_(x)
        return
    torch.mul(x, kept(mask, p), out=y)


dropout.form(lambda x, p, train: (x, x if train and p else Form((), x.dtype)) if 0 <= p <= 1 and alike(x) else None)
dropout.grad(lambda dy, mask, p, train: mul(dy, mask) if train and p else clone(dy))
dropout.reads(lambda node: all(node.attributes))


@dropout.instead
def _(x: Any, p: float, train: bool) -> Any:
    _check(p)
    if not train or p == 0:
        return clone(x)
    # the mask is of the logical tensor: broadcast where x is a partial sum
    where = tuple(broadcast if s.is_partial else s for s in x.sbp)
    return mul(x, keep_mask(tuple(x.shape), p, x.dtype, None, x.placement, where))


dropout.samples(lambda rand: [(rand(4, 6), 0.5), (rand(4, 6), 0.3, False), (rand(4, 6), 1.0)])
