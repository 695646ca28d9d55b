"""Softmax, log_softmax, gumbel_softmax."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.core.errors import OptionError
from weft.functional.create import creation
from weft.functional.create.likeness import form
from weft.functional.random.draws_in_place import exponential_
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("neural flow tensor")
def softmax(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    return ops.softmax(x if dtype is None else cast(x, dtype), _usual(x) if dim is None else dim)


@public("neural flow tensor")
def log_softmax(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    return ops.log_softmax(x if dtype is None else cast(x, dtype), _usual(x) if dim is None else dim)


@public("neural")
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """softmax(-x)."""
    return softmax(ops.neg(input), dim, dtype)


def _usual(x: Tensor) -> int:
    """The dimension if none is named, in PyTorch and OneFlow."""
    return 0 if x.ndim in (0, 1, 3) else 1


@public("neural")
def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1, *, generator: Any = None
) -> Tensor:
    """A sample of the Gumbel-softmax distribution, soft; or hard, one-hot, with the soft sample's gradient.

    >>> flow.nn.functional.gumbel_softmax(flow.zeros(4), hard=True).sum().item()
    1.0
    """
    if isinstance(eps, int):
        raise OptionError(
            f"gumbel_softmax(logits, {tau!r}, {hard!r}, {eps!r}): there PyTorch has eps, which has no effect, "
            f"and OneFlow the dimension. Name it: dim={eps!r}"
        )
    empty = creation.empty(tuple(logits.shape), **form(logits, None, None, None, None))
    waits = exponential_(empty, generator=generator)
    noise = ops.neg(ops.log(waits))
    soft = ops.softmax(ops.div(ops.add(logits, noise), float(tau)), dim)
    if not hard:
        return soft
    d, n = dim_of(dim, soft.ndim), soft.shape[dim]
    ones = ops.one_hot(ops.argmax(soft, d, False), n)
    order = [*range(soft.ndim - 1)]
    order.insert(d, soft.ndim - 1)
    whole = cast(ops.permute(ones, tuple(order)), soft.dtype)
    return ops.add(ops.sub(whole, soft.detach()), soft)
