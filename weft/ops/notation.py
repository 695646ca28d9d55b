"""Layout rules from an axis notation.

    "m k, k n -> m n"         a shared axis may be split; absent from an input: broadcast; from an output: partial
    "... d!, d! -> ... d!"    `!`: never split along it; `...`: any leading axes, aligned to the right, as broadcasting
    "v@ d, ... -> ... d"      `@`: splitting it needs the kernel that knows its shard
    "... 1 -> ..."            `1`: an axis of size one
    "_"                       an operand that is never split, whatever its shape

What the notation can't express is a function from shapes and attributes to a notation or to rules.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

from weft.core import sbp as sbps
from weft.core.sbp import Sbp, broadcast, partials, split

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """One legal layout on one axis of a placement: an sbp per input and per output.

    `ranked`: the kernel must know its shard of the whole; `even`: sizes that the number of ranks on the axis must
    divide.
    """

    inputs: tuple[Sbp, ...]
    outputs: tuple[Sbp, ...]
    ranked: bool = False
    even: tuple[int, ...] = ()  # sizes that the axis must divide

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}{' @' * self.ranked}"


def whole(inputs: int, outputs: int) -> Rule:
    return Rule((broadcast,) * inputs, (broadcast,) * outputs)


def _terms(side: str) -> list[list[str]]:
    side = side.strip()
    return [term.split() for term in side.split(",")] if side else []


def present(text: str, counts: tuple[int, ...]) -> str:
    """The notation for the tensors of a call: operands that are numbers or None are dropped, lists repeated."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(counts) or all(n == 1 for n in counts):
        return text
    return ",".join(t for t, n in zip(terms, counts, strict=True) for _ in range(n)) + f" {arrow}{right}"


def _expand(term: list[str], missing: int, ndim: int) -> list[str]:
    if term == ["_"]:
        return ["_"] * ndim
    if "..." not in term:
        return term
    i = term.index("...")
    covered = ndim - len(term) + 1
    return [*term[:i], *(f".{j}" for j in range(missing - covered, missing)), *term[i + 1 :]]


class _Axes(NamedTuple):
    """The axes of a call's operands and results, and how long each is."""

    inputs: list[list[str]]
    results: list[list[str]]
    size: dict[str, int]


def _axes(text: str, shapes: tuple[Shape, ...], outputs: tuple[Shape, ...]) -> _Axes | None:
    """The axes; None if the kernel accepts more than the notation covers, such as a vector for a matrix."""
    left, _, right = text.partition("->")
    # an empty side is one 0-d tensor or none
    ins, outs = (_terms(side) or [[] for s in of if not s] for side, of in ((left, shapes), (right, outputs)))
    if len(ins) == 1 and len(shapes) > 1:  # one term for a list of operands
        ins = ins * len(shapes)
    assert len(ins) == len(shapes), f"{text!r} has {len(ins)} inputs; the call has {len(shapes)}"
    if len(outs) != len(outputs):  # an empty term, but an output that isn't 0-d
        return None
    dots = [len(s) - len(t) + 1 for t, s in zip(ins, shapes, strict=True) if "..." in t]
    dots += [len(s) - len(t) + 1 for t, s in zip(outs, outputs, strict=True) if "..." in t]
    missing = max(dots, default=0)
    inputs = [_expand(t, missing, len(s)) for t, s in zip(ins, shapes, strict=True)]
    results = [_expand(t, missing, len(s)) for t, s in zip(outs, outputs, strict=True)]
    size: dict[str, int] = {}
    for term, shape in [*zip(inputs, shapes, strict=True), *zip(results, outputs, strict=True)]:
        if len(term) != len(shape):
            return None
        for axis, n in zip(term, shape, strict=True):
            size[axis] = max(size.get(axis, 1), n)
    return _Axes(inputs, results, size)


@functools.lru_cache(maxsize=65536)
def rules(
    text: str, shapes: tuple[Shape, ...], outputs: tuple[Shape, ...], reduce: str = "sum", least: int = 2
) -> tuple[Rule, ...]:
    """The rules of a notation for operands and results of these shapes, the unsplit one first; axes shorter than
    `least` are not split."""
    found = [whole(len(shapes), len(outputs))]
    axes = _axes(text, shapes, outputs)
    if axes is None:
        return tuple(found)
    inputs, results, size = axes
    partial = partials[reduce]
    for axis in dict.fromkeys(a for t in [*inputs, *results] for a in t):
        if axis.endswith("!") or axis in ("1", "_") or size[axis] < least:
            continue
        if not any(axis in t for t in inputs):
            if inputs:
                continue  # a new axis of the op
        places = [_place(axis, t, s, size[axis]) for t, s in zip(inputs, shapes, strict=True)]
        found.append(
            Rule(
                tuple(broadcast if p is None else split(p) for p in places),
                tuple(partial if axis not in t else split(t.index(axis)) for t in results),
                axis.endswith("@"),
            )
        )
    return tuple(found)


@functools.lru_cache(maxsize=65536)
def products(text: str, shapes: tuple[Shape, ...], outputs: tuple[Shape, ...]) -> int:
    """The number of elements of an element-wise op, or of multiplications of a contraction: the largest span of one
    operand's or result's axes, or of two operands that share an axis which others lack. (Attention multiplies queries
    by keys, then scores by values, and never all three.)"""
    axes = _axes(text, shapes, outputs)
    if axes is None:
        return max(map(math.prod, (*shapes, *outputs)), default=0)
    inputs, results, size = axes
    every = dict.fromkeys(map(frozenset, (*inputs, *results)))
    common = frozenset[str]().union(*every).intersection(*every)
    sharing: dict[str, list[frozenset[str]]] = {}
    for term in dict.fromkeys(map(frozenset, inputs)):  # a list's may be many, and alike
        for axis in term - common:
            sharing.setdefault(axis, []).append(term)
    pairs = (a | b for terms in sharing.values() for a, b in itertools.combinations(terms, 2))
    return max((math.prod(size[axis] for axis in term) for term in (*every, *pairs)), default=0)


def shapes(text: str, operands: tuple[Shape, ...]) -> tuple[Shape, ...] | None:
    """The results' shapes; None if they have a new axis of the op, or operands don't agree."""
    left, _, right = text.partition("->")
    ins = _terms(left) or [[] for s in operands if not s]
    if len(ins) == 1 and len(operands) > 1:
        ins = ins * len(operands)
    if len(ins) != len(operands):
        return None
    leading = max((len(s) - len(t) + 1 for t, s in zip(ins, operands, strict=True) if "..." in t), default=0)
    size: dict[str, int] = {"1": 1}
    for term, shape in zip(ins, operands, strict=True):
        names = _expand(term, leading, len(shape))
        if len(names) != len(shape):
            return None
        for axis, n in zip(names, shape, strict=True):
            known = size.setdefault(axis, n)
            if known == n or axis == "_":
                continue
            if not axis.startswith(".") or 1 not in (known, n):  # only the axes of `...` broadcast
                return None
            size[axis] = max(known, n) if 0 not in (known, n) else 0
    results = [_expand(t, leading, len(t) - 1 + leading) for t in (side.split() for side in right.split(","))]
    if any(axis not in size or axis == "_" for term in results for axis in term):
        return None
    return tuple(tuple(size[axis] for axis in term) for term in results)


def _place(axis: str, term: list[str], shape: Shape, size: int) -> int | None:
    """The dimension of an operand with the axis; None if it lacks it or broadcasts along it."""
    if axis not in term:
        return None
    place = term.index(axis)
    return None if shape[place] == 1 and size > 1 else place


def linear(
    groups: tuple[tuple[int, ...], ...], inputs: int, outputs: int, partial: Sbp = sbps.partial_sum
) -> tuple[Rule, ...]:
    """Rules by which P passes through the operands of a group, the others being broadcast."""
    return tuple(
        Rule(tuple(partial if i in group else broadcast for i in range(inputs)), (partial,) * outputs)
        for group in groups
    )
