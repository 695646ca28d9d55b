"""Random samples from distributions, some differentiable."""

from __future__ import annotations

from typing import Any

from weft.api.signature import door
from weft.api.table import public
from weft.core.errors import ArgumentError
from weft.functional.create import creation
from weft.functional.create.creation import drawing, finished
from weft.functional.create.likeness import form
from weft.functional.random import random_tensors
from weft.functional.random.draws_in_place import bernoulli_
from weft.functional.tensor.conversion import cast
from weft.functional.tensor.in_place import into
from weft.ops import ops
from weft.ops.explain import LONGER
from weft.ops.shape.views import together
from weft.tensor.tensor import Tensor


@public("flow tensor")
def bernoulli(x: Tensor, p: float | None = None, *, generator: Any = None, dtype: Any = None) -> Tensor:
    """1 with probability x, else 0, element-wise; or with probability p everywhere, in x's shape.

    >>> flow.bernoulli(flow.tensor([0., 1.])).tolist()
    [0.0, 1.0]
    """
    with drawing(generator):
        if p is None:
            y = ops.bernoulli(x)
        else:
            y = bernoulli_(creation.empty(tuple(x.shape), **form(x, None, None, None, None)), p)
    return y if dtype is None else cast(y, dtype)


bernoulli.overwriting = (  # type: ignore[attr-defined]
    lambda x, p=None, *, generator=None, dtype=None: into(x, bernoulli, p, generator=generator)
)


@public("flow tensor")
def multinomial(x: Tensor, num_samples: int, replacement: bool = False, generator: Any = None) -> Tensor:
    with drawing(generator):
        return ops.multinomial(x, num_samples, replacement)


NO_WIDTH = "normal expects all elements of std >= 0.0"


@public("flow")
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None,
    placement: Any = None, sbp: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Draws from normal distributions: one mean and standard deviation for a size, or one for each element.

    >>> flow.normal(flow.tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 2.0]
    """
    if isinstance(std, Tensor):
        std = ops.require(std, ops.ge(std, 0), NO_WIDTH)
    elif std < 0:
        raise ArgumentError(f"{NO_WIDTH}; got {std}")
    shape, options = size, {"dtype": dtype, "device": device, "placement": placement, "sbp": sbp}
    given = [v for v in (mean, std) if isinstance(v, Tensor)]
    if given and size is None:
        one, shape = given[0], together(*(t.shape for t in given))
        where = {"placement": one.placement, "sbp": one.sbp} if one.is_global else {"device": one.device}
        options = {"dtype": dtype or one.dtype, **where}
    elif size is None:
        raise ArgumentError("normal(): a mean and a standard deviation that are numbers need a size=(...)")
    # torch's derivatives by the mean and the standard deviation are zero: `distributions.Normal.rsample` has others
    mean, std = (v.detach() if isinstance(v, Tensor) else v for v in (mean, std))
    y = random_tensors.randn(shape, generator=generator, **options) * std + mean
    y = finished(y if dtype is None else y.to(dtype), requires_grad)
    for v in given:
        if v.requires_grad:
            y = ops.where(ops.ne(ops.zeros_like(y), 0), v, y)
    return y


def poisson(rate: Tensor, generator: Any = None) -> Tensor:
    """Draws from the Poisson distribution."""
    with drawing(generator):
        return ops.poisson(rate)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Draws from the binomial distribution."""
    with drawing(generator):
        return ops.binomial(count, prob)


LONGER["poisson"], LONGER["binomial"] = door(poisson), door(binomial)
