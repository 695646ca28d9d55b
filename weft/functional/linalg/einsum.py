"""`einsum` and `tensordot`, converted to the op's explicit form."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.autograd.plain import plain as as_ours
from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

TAKES: Final = (
    'einsum() takes an equation and tensors, einsum("ij,jk->ik", a, b), or tensors and the numbers of their axes, '
    "einsum(a, [0, 1], b, [1, 2], [0, 2])"
)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@public("flow")
def einsum(equation: Any, *operands: Any) -> Tensor:
    """The sum of products of an equation, such as "ij,jk->ik" for the matrix product. Or operands alternate with lists
    of axis numbers, and the result's list comes last: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    >>> flow.einsum("ij,jk->ik", flow.ones(2, 3), flow.ones(3, 2)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if not isinstance(equation, str):
        numbered = _numbered((equation, *operands))
        equation, operands = numbered[0], numbered[1:]
    given = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    given = list(as_ours(tuple(given)))
    if not all(isinstance(x, Tensor) for x in given) or not given:
        raise OptionError(TAKES)
    shapes = tuple(tuple(x.shape) for x in given)
    terms, out = _spelled(equation, tuple(map(len, shapes)))
    if any(len(set(term)) < len(term) for term in terms):
        plain = [_diagonals(x, term, i) for i, (x, term) in enumerate(zip(given, terms, strict=True))]
        return einsum(f"{','.join(term for _, term in plain)}->{out}", *(x for x, _ in plain))
    drops, text = _plan(equation, shapes)
    for i, (alone, ones) in enumerate(drops):
        if alone:
            given[i] = ops.squeeze(ops.sum(given[i], alone, True), alone + ones)
        elif ones:
            given[i] = ops.squeeze(given[i], ones)
    if len(given) > 1:
        return ops.einsum(given, text)
    left, _, out = text.partition("->")
    return ops.permute(given[0], tuple(map(left.index, out)))  # a view, as in PyTorch


def _numbered(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The equation and the operands, from axes given as numbers."""

    def letters(axes: Any) -> str:
        if not isinstance(axes, (list, tuple)):
            raise ArgumentError(TAKES)
        if wrong := [n for n in axes if n is not Ellipsis and (type(n) is not int or not 0 <= n < len(LETTERS))]:
            raise ArgumentError(f"einsum(): an axis is an int from 0 to {len(LETTERS) - 1}, or ...; got {wrong[0]!r}")
        return "".join("..." if n is Ellipsis else LETTERS[n] for n in axes)

    operands, terms = args[: len(args) // 2 * 2 : 2], [letters(axes) for axes in args[1::2]]
    out = f"->{letters(args[-1])}" if len(args) % 2 else ""
    return (",".join(terms) + out, *operands)


@functools.lru_cache(1024)
def _plan(
    equation: str, shapes: tuple[tuple[int, ...], ...]
) -> tuple[list[tuple[tuple[int, ...], tuple[int, ...]]], str]:
    """The axes to sum and squeeze first (of one operand alone, or broadcast), and the op's equation."""
    terms, out = _spelled(equation, tuple(map(len, shapes)))
    size: dict[str, int] = {}
    for shape, term in zip(shapes, terms, strict=True):
        for axis, n in zip(term, shape, strict=True):
            if n != 1 and size.get(axis, 1) not in (1, n):
                raise ShapeError(
                    f"einsum({equation!r}): axis {axis} has size {n}, which does not broadcast with previously seen "
                    f"size {size[axis]}"
                )
            size[axis] = size.get(axis, 1) if n == 1 else n
    drops, kept = [], []
    broadcast = [
        tuple(d for d, axis in enumerate(term) if shape[d] == 1 and size[axis] != 1)
        for shape, term in zip(shapes, terms, strict=True)
    ]
    left = ["".join(c for d, c in enumerate(t) if d not in ones) for t, ones in zip(terms, broadcast, strict=True)]
    for i, (term, ones) in enumerate(zip(terms, broadcast, strict=True)):
        elsewhere = set(out).union(*(t for k, t in enumerate(left) if k != i))
        alone = tuple(d for d, axis in enumerate(term) if axis not in elsewhere and d not in ones)
        drops.append((alone, ones))
        kept.append("".join(axis for d, axis in enumerate(term) if d not in alone + ones))
    return drops, f"{','.join(kept)}->{out}"


@functools.lru_cache(1024)
def _spelled(equation: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The terms of operands and result, with letters for "..." and the result explicit."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ArgumentError(
            f"einsum({equation!r}): {'fewer' if len(ndims) < len(terms) else 'more'} operands were provided than "
            f"specified in the equation: {len(terms)} terms, but {len(ndims)} tensors"
        )
    free = [c for c in LETTERS if c not in equation]
    more = max((n - len(t.replace("...", "")) for t, n in zip(terms, ndims, strict=True) if "..." in t), default=0)
    dots = "".join(free[: max(more, 0)])
    whole = []
    for term, ndim in zip(terms, ndims, strict=True):
        n = ndim - len(term.replace("...", ""))
        full = term.replace("...", dots[len(dots) - max(n, 0) :])
        if len(full) != ndim or not all(c in LETTERS for c in full):
            raise ShapeError(f"einsum(): {equation!r}: the term {term!r} doesn't fit a tensor of {ndim} dimensions")
        whole.append(full)
    if arrow:
        out = out.replace("...", dots)
    else:
        every = "".join(whole)
        out = dots + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in dots))
    if len(set(out)) != len(out) or not set(out) <= set("".join(whole)):
        raise ArgumentError(f"einsum({equation!r}): the result names each axis once, and only axes of the operands")
    return tuple(whole), out


def _diagonals(x: Tensor, term: str, operand: int) -> tuple[Tensor, str]:
    """Axes with the same letter replaced by their diagonal."""
    for axis in dict.fromkeys(term):
        while term.count(axis) > 1:
            first = term.index(axis)
            second = term.index(axis, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(
                    f"einsum(): subscript {axis} is repeated for operand {operand} but the sizes don't match, "
                    f"{x.shape[second]} != {x.shape[first]}: a diagonal is taken of as many rows as columns"
                )
            x = ops.diagonal(x, 0, first, second)
            term = "".join(c for d, c in enumerate(term) if d not in (first, second)) + axis
    return x, term


@public("flow")
@in_one(torch.tensordot)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The product of a and b, summed over pairs of dimensions: the last and first `dims`, or those listed for each.

    >>> flow.tensordot(flow.ones(2, 3), flow.ones(3, 4), 1).shape
    torch.Size([2, 4])
    """
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot expects dims >= 0, but got dims={dims}"
                if dims < 0
                else f"tensordot(): {dims} dimensions of {list(a.shape)} and {list(b.shape)}, which have fewer"
            )
        dims = (tuple(range(a.ndim - dims, a.ndim)), tuple(range(dims)))
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    first, second = [dim_of(d, a.ndim) for d in first], [dim_of(d, b.ndim) for d in second]
    if len(first) != len(second):
        raise ArgumentError(f"tensordot(): {len(first)} dimensions of a and {len(second)} of b; they go in pairs")
    for i, j in zip(first, second, strict=True):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise ShapeError(
                f"tensordot(): contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and "
                f"second has size {b.shape[j]} in dim {j}"
            )
    for name, chosen in (("a", first), ("b", second)):
        if len({*chosen}) < len(chosen):
            raise ShapeError(
                f"dim appears multiple times in the list of dims: tensordot() sums over {chosen} of {name}"
            )
    left, right = list(LETTERS[: a.ndim]), list(LETTERS[a.ndim : a.ndim + b.ndim])
    for i, j in zip(first, second, strict=True):
        right[j] = left[i]
    out = [c for i, c in enumerate(left) if i not in first] + [c for j, c in enumerate(right) if j not in second]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", a, b)
