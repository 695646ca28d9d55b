"""Drawing from a distribution with a gradient, and reading images at given places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.functional import creation
from weft.functional.conversion import cast
from weft.functional.creation import drawing, finished
from weft.functional.likeness import beside, form
from weft.functional.overwrite import bernoulli_, exponential_
from weft.functional.signature import door
from weft.functional.table import calling, public
from weft.ops import OPS
from weft.ops.explain import LONGER
from weft.ops.shape import dim_of, together
from weft.tensor.tensor import Tensor, at_hand

_add, _sub, _mul, _div, _log, _softmax, _reshape, _matmul, _cat = map(
    calling, ("add", "sub", "mul", "div", "log", "softmax", "reshape", "matmul", "cat")
)


@public("flow tensor")
def bernoulli(x: Tensor, p: float | None = None, *, generator: Any = None, dtype: Any = None) -> Tensor:
    """1 with probability x, else 0, element by element; or with probability p wherever x has an element.

    >>> flow.bernoulli(flow.tensor([0., 1.])).tolist()
    [0.0, 1.0]
    """
    with drawing(generator):
        if p is None:
            y = OPS["bernoulli"](x)
        else:
            y = bernoulli_(creation.empty(tuple(x.shape), **form(x, None, None, None, None)), p)
    return y if dtype is None else cast(y, dtype)


@public("flow tensor")
def multinomial(x: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Draws of indices, with probabilities in proportion to x's last dimension.

    >>> flow.multinomial(flow.tensor([0., 3., 0.]), 1).tolist()
    [1]
    """
    with drawing(generator):
        return OPS["multinomial"](x, num_samples, replacement)


@public("flow")
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, **options: Any) -> Tensor:
    """Draws from normal distributions: one mean and standard deviation for all of a size, or one for each element.

    >>> flow.normal(flow.tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 2.0]
    """
    if (least := at_hand(std) if isinstance(std, Tensor) else torch.as_tensor(std)) is not None and (least < 0).any():
        raise ArgumentError("normal expects all elements of std >= 0.0: a standard deviation has no sign")
    wanted, shape = options.pop("requires_grad", False), size
    given = [v for v in (mean, std) if isinstance(v, Tensor)]
    if given and size is None:
        one, shape = given[0], together(*(t.shape for t in given))
        where = {"placement": one.placement, "sbp": one.sbp} if one.is_global else {"device": one.device}
        options = {"dtype": one.dtype, **where}
    elif size is None:
        raise ArgumentError("normal(): a mean and a standard deviation that are numbers need a size=(...)")
    return finished(creation.randn(shape, generator=generator, **options) * std + mean, wanted)  # type: ignore[operator]


def poisson(rate: Tensor, generator: Any = None) -> Tensor:
    """Counts of what happens `rate` times on average."""
    with drawing(generator):
        return OPS["poisson"](rate)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """How often something of this probability comes true in so many tries."""
    with drawing(generator):
        return OPS["binomial"](count, prob)


LONGER["poisson"], LONGER["binomial"] = door(poisson), door(binomial)


@public("neural")
def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1, *, generator: Any = None
) -> Tensor:
    """A draw from the distribution that logits tell, soft; or hard, one at the drawn place, with the soft gradient.

    >>> flow.nn.functional.gumbel_softmax(flow.zeros(4), hard=True).sum().item()
    1.0
    """
    if isinstance(eps, int):
        raise OptionError(
            f"gumbel_softmax(logits, {tau!r}, {hard!r}, {eps!r}): in that place PyTorch has eps, which does nothing, "
            f"and OneFlow the dimension. Name it: dim={eps!r}"
        )
    empty = creation.empty(tuple(logits.shape), **form(logits, None, None, None, None))
    waits = exponential_(empty, generator=generator)
    noise = OPS["neg"](_log(waits))
    soft = _softmax(_div(_add(logits, noise), float(tau)), dim)
    if not hard:
        return soft
    d, n = dim_of(dim, soft.ndim), soft.shape[dim]
    ones = OPS["one_hot"](OPS["argmax"](soft, d, False), n)
    order = [*range(soft.ndim - 1)]
    order.insert(d, soft.ndim - 1)
    whole = cast(OPS["permute"](ones, tuple(order)), soft.dtype)
    return _add(_sub(whole, soft.detach()), soft)


@public("neural")
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """The input read at the places of a grid, which go from -1 to 1.

    >>> flow.nn.functional.grid_sample(flow.tensor([[[[1., 3.]]]]), flow.zeros(1, 1, 1, 2)).item()
    2.0
    """
    return OPS["grid_sample"](input, grid, mode, padding_mode, bool(align_corners))


@public("neural")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid of places that affine matrices send an image of this size to, for `grid_sample`.

    >>> flow.nn.functional.affine_grid(flow.ones(1, 2, 3), (1, 1, 1, 1)).tolist()
    [[[[1.0, 1.0]]]]
    """
    dims = len(size) - 2
    if dims not in (2, 3) or tuple(theta.shape) != (size[0], dims, dims + 1):
        raise ShapeError(
            f"affine_grid() takes theta of (n, 2, 3) for a size (n, c, h, w), or (n, 3, 4) for (n, c, d, h, w); "
            f"got {list(theta.shape)} and {list(size)}"
        )
    options = {"dtype": theta.dtype, **beside(theta)}
    tail = tuple(size[2:])
    lines: list[Any] = []
    for d in reversed(range(dims)):
        n = tail[d]
        step = 2.0 / max(n - 1, 1) if align_corners else 2.0 / n
        line = _mul(_sub(creation.arange(n, **options), (n - 1) / 2), step)
        line = _reshape(line, (*(1,) * d, n, *(1,) * (dims - 1 - d), 1))
        lines.append(OPS["expand"](line, (*tail, 1)))
    base = _reshape(_cat([*lines, creation.ones((*tail, 1), **options)], dims), (1, -1, dims + 1))
    return _reshape(_matmul(base, OPS["transpose"](theta, 1, 2)), (size[0], *tail, dims))


@public("neural")
def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Per row, the cross entropy of the label's class.

    >>> flow.nn.functional.sparse_softmax_cross_entropy(flow.tensor([0]), flow.zeros(1, 2)).tolist()
    [0.693...]
    """
    shape = tuple(labels.shape)
    if shape != tuple(logits.shape)[:-1]:
        raise ShapeError(
            f"sparse_softmax_cross_entropy(): a label for each row of the logits, which are {list(logits.shape)}; got "
            f"labels of shape {list(shape)}"
        )
    rows = _reshape(OPS["log_softmax"](logits, -1), (-1, logits.shape[-1]))
    return _reshape(OPS["neg"](OPS["pick"](rows, _reshape(labels, (-1,)))), shape)
