"""Filling a tensor with one value."""

from __future__ import annotations

from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Scalar, op
from weft.ops.reduce.sums import sum


@op("..., _ -> ...", promotes=True)
def fill(x: Tensor, value: Tensor | Scalar) -> Tensor:
    """A tensor of x's form filled with the value, a number or a 0-d tensor: the result of `x.fill_(value)`.

    >>> flow.fill(flow.ones(2), 3).tolist()
    [3.0, 3.0]
    """
    return x.new_empty(x.shape).fill_(value)


fill.layout(lambda x, value: "..., _ -> ..." if isinstance(value, tuple) else "... -> ...")


@fill.inplace
def _(x, value):
    return x.zero_() if type(value) is int and value == 0 else x.fill_(value)  # zero_ is faster


fill.grad(lambda dy, needs: (zeros_like(dy) if needs[0] else None, sum(dy) if needs[1] else None))
fill.samples(lambda rand: [(rand(4, 6), 2.5), (rand(4, 6), rand(1)[0])])
