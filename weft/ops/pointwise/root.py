"""The root that ends norms: at zero its gradient is zero, where the square root's is NaN."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.pointwise.arithmetic import div, eq, mul
from weft.ops.pointwise.copies import masked_fill


@op("... -> ...")
def root(x: Tensor, degree: float = 2.0) -> Tensor:
    """The root of nonnegative numbers; its gradient at zero is zero.

    >>> flow._C.root(flow.tensor([0., 4., 9.])).tolist()
    [0.0, 2.0, 3.0]
    """
    return torch.sqrt(x) if degree == 2 else torch.pow(x, 1.0 / degree)


@root.grad
def _(dy, x, y, degree):
    none = eq(x, 0.0)
    derivative = div(y, mul(masked_fill(x, none, 1.0), float(degree)))
    return mul(dy, masked_fill(derivative, none, 0.0))


root.samples(lambda rand: [rand(4, 6).abs() + 0.1, (rand(4, 6).abs() + 0.1, 3.0)])
