"""Random draws in place: `normal_`, `uniform_`, `bernoulli_`, ..."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.autograd.overwrite import assign
from weft.functional.create.creation import drawing
from weft.functional.create.likeness import form, strides_of
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.tensor.tensor import Tensor


def drawn(x: Tensor, distribution: str, parameters: tuple[float, ...], generator: Any = None) -> Tensor:
    """Overwrite x with draws from a distribution of the op `draw`, in memory order, as torch does."""
    where = {k: v for k, v in form(x, None, None, None, None).items() if k != "dtype"}
    with drawing(generator):
        y = ops.draw(
            tuple(x.shape), distribution, parameters, x.dtype,
            where.get("device"), where.get("placement"), where.get("sbp"), strides_of(x),
        )  # fmt: skip
    return assign(x, y)


@in_one(torch.Tensor.uniform_, "d_x, from_, to, generator=drawn()", writes=True)
def _uniform(x: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the uniform distribution over [from_, to)."""
    return drawn(x, "uniform", (from_, to), generator)


def _between(x: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Tensor:  # OneFlow's names
    return drawn(x, "uniform", (a, b), generator)


@public("tensor")
@in_one(torch.Tensor.normal_, "d_x, mean, std, generator=drawn()", writes=True)
def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the normal distribution."""
    return drawn(x, "normal", (mean, std), generator)


@public("tensor")
@in_one(torch.Tensor.exponential_, "d_x, lambd, generator=drawn()", writes=True)
def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the exponential distribution."""
    return drawn(x, "exponential", (lambd,), generator)


@public("tensor")
def geometric_(x: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the geometric distribution."""
    return drawn(x, "geometric", (p,), generator)


@public("tensor")
def cauchy_(x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the Cauchy distribution."""
    return drawn(x, "cauchy", (median, sigma), generator)


@public("tensor")
def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the log-normal distribution."""
    return drawn(x, "log_normal", (mean, std), generator)


@public("tensor")
def random_(x: Tensor, from_: int | None = None, to: int | None = None, *, generator: Any = None) -> Tensor:
    """Overwrite x with integers from `from_` to `to` - 1; `random_(n)` draws from 0 to n - 1, and without bounds over
    the dtype's range.

    >>> flow.empty(3).random_(1).tolist()
    [0.0, 0.0, 0.0]
    """
    if to is not None:
        return drawn(x, "random", (from_ or 0, to), generator)
    return drawn(x, "random", () if from_ is None else (from_,), generator)


@public("tensor")
@in_one(torch.Tensor.bernoulli_, "d_x, d_p, generator=drawn()", writes=True)
def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Overwrite x with ones, each with probability p, and zeros; p may be a tensor."""
    if isinstance(p, Tensor):
        with drawing(generator):
            return assign(x, cast(ops.bernoulli(ops.expand(p, tuple(x.shape))), x.dtype))
    return drawn(x, "bernoulli", (p,), generator)
