"""`vmap`: a function of one sample applied to a batch, one slice after another.

So it works with every function, including branches on values and gradients inside, and costs one call per slice. Hot
code is better written for the batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.autograd.graph import passing
from weft.autograd.plain import taken
from weft.autograd.trees import filled, leaves, mapped
from weft.core import random
from weft.core.dispatch import here
from weft.core.errors import ArgumentError
from weft.core.idle import idle
from weft.ops import ops
from weft.tensor.tensor import Tensor

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`func` applied to each slice of its arguments along `in_dims` (None: not sliced); results are stacked along
    `out_dims`. Both are one number for all, or trees of them in the structure of arguments and results.

    `randomness`: draws in slices are refused ("error"), different in each slice ("different"), or the same ("same").

    >>> flow.vmap(flow.dot)(flow.ones(3, 2), flow.ones(3, 2)).tolist()
    [2.0, 2.0, 2.0]
    """
    if randomness not in RANDOMNESS:
        raise ArgumentError(f"vmap(): randomness is one of {', '.join(map(repr, RANDOMNESS))}; got {randomness!r}")

    idle("vmap(chunk_size)", chunk_size)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = mapped(args, _taken), mapped(kwargs, _taken)
        dims = list(_spread(in_dims if isinstance(in_dims, (int, tuple, list)) else (in_dims,), args, "in_dims"))
        given = list(leaves(args))
        named = [isinstance(t, Tensor) for t in leaves(kwargs)]  # sliced along their first dimension, as in torch
        given, dims = [*given, *leaves(kwargs)], [*dims, *(0 if n else None for n in named)]
        size = _size(given, dims)
        found = []
        alike, before = _Alike(size) if randomness == "same" else None, _draws()
        again = passing.again
        try:
            for i in range(max(size, 1)):  # of no slices, one of zeros tells the form of the results
                passing.again = again or i + 1 < size
                if alike is not None:
                    alike.begin(i)
                parts = iter([t if d is None else _slice(t, d, i) for t, d in zip(given, dims, strict=True)])
                found.append(func(*filled(args, parts), **filled(kwargs, parts)))
                if randomness == "error" and _draws() != before:
                    raise ArgumentError(
                        "vmap(): the function draws random numbers; say whether slices draw different ones, "
                        'vmap(f, randomness="different"), or all the same, randomness="same"'
                    )
        finally:
            passing.again = again
        return _stacked(found, out_dims, size)

    return call


def _taken(v: Any) -> Any:
    return taken(v) if isinstance(v, torch.Tensor) else v


def _slice(t: Tensor, dim: int, i: int) -> Tensor:
    """The i-th slice; zeros of its form if there is none."""
    return ops.select(t, dim, i) if t.shape[dim] else ops.cast(ops.sum(t, (dim,), False), t.dtype)


def _spread(dims: Any, tree: Any, what: str) -> Iterator[Any]:
    """A dimension for each leaf of a tree, from dimensions for all of it or for its parts."""
    if dims is None or isinstance(dims, int):
        for t in leaves(tree):
            yield dims if isinstance(t, Tensor) else None
        return
    parts: Any = list(tree.values()) if isinstance(tree, dict) else tree
    if isinstance(dims, dict):
        dims = [dims[k] for k in tree] if isinstance(tree, dict) and dims.keys() == tree.keys() else dims
    if not isinstance(parts, (tuple, list)) or isinstance(dims, dict) or len(dims) != len(parts):
        raise ArgumentError(f"vmap(): {what} is a number, None, or a tree in the structure of the values; got {dims!r}")
    for d, part in zip(dims, parts, strict=True):
        yield from _spread(d, part, what)


def _size(given: list[Any], dims: list[Any]) -> int:
    sizes = []
    for t, d in zip(given, dims, strict=True):
        if d is not None:
            if not -t.ndim <= d < t.ndim:
                raise ArgumentError(f"vmap(): in_dims says {d} for a tensor of shape {list(t.shape)}")
            sizes.append(t.shape[d])
    if len(set(sizes)) != 1:
        raise ArgumentError(f"vmap(): the sliced dimensions must have one size; they have {sizes or 'none'}")
    return sizes[0]


def _stacked(found: list[Any], out_dims: Any, size: int) -> Any:
    columns = list(zip(*map(leaves, found), strict=True))
    if not all(isinstance(t, Tensor) for column in columns for t in column):
        raise ArgumentError("vmap(): the function must return tensors, alone or in tuples, lists and dicts")
    dims = list(_spread(out_dims, found[0], "out_dims"))
    return filled(found[0], (_stack(column, d, size) for column, d in zip(columns, dims, strict=True)))


def _stack(column: Any, dim: int | None, size: int) -> Tensor:
    first = column[0]
    if any(t.shape != first.shape for t in column):
        raise ArgumentError(
            f"vmap(): the function returned {sorted({str(list(t.shape)) for t in column})}; stacked results must "
            "have one shape"
        )
    if dim is None:
        return first
    at = dim % (first.ndim + 1)
    y = ops.cat([ops.unsqueeze(t, at) for t in column], at)
    return y if size else ops.narrow(y, at, 0, 0, 1)


def _draws() -> Any:
    """The count of draws so far."""
    source = random.source()
    return (source.seed, source.draws) if here.trace is None else here.trace.draws


class _Alike:
    """Makes slices draw the same random numbers, and the generator go on after the last."""

    def __init__(self, size: int) -> None:
        self.size, self.source, self.trace = size, random.source(), here.trace
        self.place = self.source.state() if self.trace is None else None

    def begin(self, i: int) -> None:
        if self.trace is None:
            assert self.place is not None
            self.source.go_back(self.place)
            return
        if i:
            self.trace.steer(self.source, "join")
        if i + 1 < self.size:
            self.trace.steer(self.source, "fork")
