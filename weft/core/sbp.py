"""How a global tensor lies on one axis of its placement: split, broadcast, or partial.

    split(dim)     each rank holds a slice along `dim`
    broadcast      each rank holds the whole
    partial_sum    the whole is the sum of what the ranks hold (also `partial_max`, `partial_min`)

Values are interned: equal means identical, so that caches may key on them at the cost of a pointer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from weft.core.errors import SbpError
from weft.core.reading import shortened

MOST_DIMS: Final = 64


class Sbp:
    """One of split(dim), broadcast, partial_sum, partial_max, partial_min. Made by the names of this module."""

    __slots__ = ("kind", "dim", "reduce")
    kind: str
    dim: int
    reduce: str

    def __init__(self, kind: str, dim: int, reduce: str) -> None:
        self.kind, self.dim, self.reduce = kind, dim, reduce

    def __call__(self) -> Sbp:  # OneFlow also has flow.sbp.broadcast() and flow.sbp.split(0)()
        return self

    def __repr__(self) -> str:
        if self.kind == "S":
            return f"weft.sbp.split(dim={self.dim})"
        return "weft.sbp.broadcast" if self.kind == "B" else f"weft.sbp.partial_{self.reduce}"

    def __str__(self) -> str:
        if self.kind == "S":
            return f"S({self.dim})"
        return "B" if self.kind == "B" else "P" if self.reduce == "sum" else f"P({self.reduce})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return parse, (str(self),)

    @property
    def is_split(self) -> bool:
        return self.kind == "S"

    @property
    def is_broadcast(self) -> bool:
        return self.kind == "B"

    @property
    def is_partial(self) -> bool:
        return self.kind == "P"


NdSbp = tuple[Sbp, ...]

_splits = tuple(Sbp("S", dim, "") for dim in range(MOST_DIMS))
broadcast: Final = Sbp("B", -1, "")
partial_sum: Final = Sbp("P", -1, "sum")
partial_max: Final = Sbp("P", -1, "max")
partial_min: Final = Sbp("P", -1, "min")
partials: Final = {"sum": partial_sum, "max": partial_max, "min": partial_min}
sbp = Sbp  # OneFlow's name


def split(dim: int | None = None, *, axis: int | None = None) -> Sbp:
    """Each rank of the axis holds a slice along `dim` (`axis` in older OneFlow)."""
    dim = axis if dim is None else dim
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise SbpError(f"split takes a dimension, an int; got {dim!r}")
    if not 0 <= dim < MOST_DIMS:
        raise SbpError(
            f"split({dim}): the dimension must be at least 0 and below {MOST_DIMS}; "
            "an sbp doesn't know its tensor's number of dimensions, so negative ones have no meaning here"
        )
    return _splits[dim]


def parse(text: str) -> Sbp:
    """The inverse of str(), and of repr(): "S(0)", "B", "P", "P(max)", "weft.sbp.split(dim=0)"."""
    if text == "B":
        return broadcast
    if text == "P":
        return partial_sum
    if text.startswith("S(") and text.endswith(")") and text[2:-1].isdecimal() and len(text) < 8:
        return split(int(text[2:-1]))
    if text.startswith("P(") and text[2:-1] in partials:
        return partials[text[2:-1]]
    spelled = _SPELLED.fullmatch(text)
    if spelled is not None:
        return split(int(spelled[1])) if spelled[1] else partials.get(spelled[2], broadcast)
    raise SbpError(f"{shortened(text)} is not an sbp; write S(0), B, P, P(max) or P(min)")


_SPELLED = re.compile(r"(?:\w+\.)*(?:split\((?:(?:dim|axis)=)?(\d{1,4})\)|broadcast|partial_(sum|max|min))")


def nd(value: Sbp | str | Iterable[Sbp | str], axes: int, ndim: int | None = None) -> NdSbp:
    """One sbp per axis of a placement, from objects or text; a single one is for a placement of one axis."""
    alone = isinstance(value, (Sbp, str))
    given: Any = (value,) if alone else tuple(value) if isinstance(value, Iterable) else (value,)
    if str in map(type, given):
        given = tuple(parse(s) if isinstance(s, str) else s for s in given)
    for s in given:
        if not isinstance(s, Sbp):
            raise SbpError(f"{s!r} is not an sbp; use flow.sbp.split(dim), flow.sbp.broadcast or flow.sbp.partial_sum")
    if len(given) != axes:
        raise SbpError(f"a placement of {axes} axes takes {axes} sbp; got {len(given)}: {show(given)}")
    if ndim is not None:
        for s in given:
            if s.dim >= ndim:
                raise SbpError(f"{s} splits dimension {s.dim}, but the tensor has {ndim}, counted from 0")
    return given


def show(value: NdSbp) -> str:
    return "(" + ", ".join(map(str, value)) + ")"
