"""Verify the calls that move data: their ranks, their options, and the shapes of operands and results. One rule for
each; what other ranks do is verified in their plans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from weft.core import shard
from weft.core.errors import CompileError
from weft.plan.calls import MOVES, Call, Result, Step, shown

Shape = tuple[int, ...]
REDUCES: Final = ("sum", "max", "min")


class Move(NamedTuple):
    """A call on one rank, with the shapes of its operands and results, in pairs if there are several."""

    call: Call
    rank: int
    world: int
    given: tuple[Shape, ...]
    made: tuple[Shape, ...]

    def said(self, key: str) -> Any:
        """A required option."""
        found = self.call.option(key)
        if found is None:
            raise ValueError(f"{self.call.op} says no {key}")
        return found


def verify(step: Step, rank: int, world: int) -> None:
    """Raise CompileError unless each call that moves data is valid."""
    results = {r.name: r for c in step.calls for r in c.results}
    for call in step.calls:
        if call.op in MOVES:
            try:
                _check(call, results, rank, world)
            except (ValueError, TypeError, IndexError, AttributeError, KeyError) as cause:
                raise CompileError(f"{shown(call)}: {cause}") from None


def _check(call: Call, results: Mapping[str, Result], rank: int, world: int) -> None:
    rule, options = RULES[call.op.removeprefix("box.")]
    if strange := {key for key, _ in call.options} - {*options, *EVERYWHERE}:
        raise ValueError(f"{call.op} has no option {min(strange)}")
    if not isinstance(allocates := call.option("allocates", 0), int) or allocates < 0:
        raise ValueError(f"it allocates {allocates!r} bytes")
    given = [results[name] for name in call.operands()]
    made = [r for r in call.results if not r.name.endswith(".scratch")]
    if len(made) < len(call.results) - 1:
        raise ValueError(f"{call.op} needs no more than one scratch")
    if len({r.dtype for r in (*given, *made)}) > 1:
        raise ValueError(
            "what moves stays of its dtype, and here " + ", ".join(f"%{r.name} is {r.dtype}" for r in (*given, *made))
        )
    rule(Move(call, rank, world, tuple(r.shape for r in given), tuple(r.shape for r in made)))


# ---- rules -------------------------------------------------------------------------------------------


def _same(m: Move, but: Sequence[int] = ()) -> None:
    """Check that operands and results have the same sizes pairwise, in all dimensions except `but`."""
    if len(m.given) != len(m.made):
        raise ValueError(f"it moves {len(m.given)} values, and makes {len(m.made)}")
    for x, y in zip(m.given, m.made, strict=True):
        for dim in but:
            if not 0 <= dim < min(len(x), len(y)):
                raise ValueError(f"there is no dimension {dim} in {list(x)} and {list(y)}")
        if len(x) != len(y) or any(a != b for d, (a, b) in enumerate(zip(x, y, strict=True)) if d not in but):
            raise ValueError(f"of {list(x)} it can't make {list(y)}")


def _group(m: Move) -> tuple[int, int]:
    """The size of the group, and this rank's index in it."""
    ranks, index = m.said("ranks"), m.call.option("index", 0)
    _peers(m, ranks)
    if len(set(ranks)) < len(ranks):
        raise ValueError(f"its ranks {ranks} aren't distinct")
    if not 0 <= index < len(ranks) or ranks[index] != m.rank:
        raise ValueError(f"the plan is of rank {m.rank}, which isn't number {index} of its ranks {ranks}")
    hosts = m.call.option("hosts")
    if hosts is not None and (
        len({*map(len, hosts)}) > 1 or sorted(i for h in hosts for i in h) != [*range(len(ranks))]
    ):
        raise ValueError(f"its hosts {hosts} don't have each of {len(ranks)} ranks once, and as many each")
    return len(ranks), index


def _peers(m: Move, ranks: Sequence[Any]) -> None:
    for r in ranks:
        if type(r) is not int or not 0 <= r < m.world:
            raise ValueError(f"there is no rank {r!r} among {m.world}")


def _part(m: Move, dim: int, whole: Sequence[Shape], parts: Sequence[Shape]) -> None:
    """Check that each part is this rank's slice of the whole along a dimension."""
    n, index = _group(m)
    for a, b in zip(whole, parts, strict=True):
        start, stop = shard.part(a[dim], n, index)
        if b[dim] != stop - start:
            raise ValueError(f"part {index} of {n} of {list(a)} along dimension {dim} isn't {list(b)}")


def _reduce(how: Any) -> None:
    if how not in REDUCES:
        raise ValueError(f"{how!r} is no reduction; there are {', '.join(REDUCES)}")


def _slice(m: Move) -> None:
    _same(m, [m.said("dim")])
    (x,), (y,), start, stop = m.given, m.made, m.said("start"), m.said("stop")
    if not 0 <= start <= stop <= x[m.said("dim")] or stop - start != y[m.said("dim")]:
        raise ValueError(f"{start} to {stop} of {list(x)} along dimension {m.said('dim')} isn't {list(y)}")


def _copy(m: Move) -> None:
    where = m.call.option("where")
    _same(m._replace(given=(m.given if where is None else tuple(_cut(x, where) for x in m.given))))


def _cut(shape: Shape, where: Sequence[slice]) -> Shape:
    """The shape of a piece."""
    if len(where) != len(shape) or not all(isinstance(s, slice) for s in where):
        raise ValueError(f"{where} is no piece of {list(shape)}")
    for s, n in zip(where, shape, strict=True):
        if s.step not in (None, 1) or not 0 <= (s.start or 0) <= (n if s.stop is None else s.stop) <= n:
            raise ValueError(f"{s} reaches beyond {n} of {list(shape)}, or not forwards")
    return tuple(len(range(*s.indices(n))) for s, n in zip(where, shape, strict=True))


def _all_reduce(m: Move) -> None:
    _group(m)
    _reduce(m.said("reduce"))
    _same(m)


def _reduce_scatter(m: Move) -> None:
    _reduce(m.said("reduce"))
    _same(m, [m.said("dim")])
    _part(m, m.said("dim"), m.given, m.made)


def _all_gather(m: Move) -> None:
    _same(m, [m.said("dim")])
    _part(m, m.said("dim"), m.made, m.given)


def _all_to_all(m: Move) -> None:
    _same(m, [m.said("dim"), m.said("from_dim")])
    _part(m, m.said("dim"), m.given, m.made)
    _part(m, m.said("from_dim"), m.made, m.given)


def _to_partial(m: Move) -> None:
    _same(m)
    _reduce(m.said("fill"))


def _split_to_partial(m: Move) -> None:
    _same(m, [m.said("dim")])
    _reduce(m.said("fill"))
    _part(m, m.said("dim"), m.made, m.given)


def _merge(m: Move) -> None:
    for where, members in m.said("receives"):
        for i in members:
            _arrives(m, where, m.given[i])
    _contributed(m)


def _exchange(m: Move) -> None:
    (x,) = m.given
    kept = [_cut(x, where) for r, where in m.said("sends") if r == m.rank]
    for r, where in m.said("sends"):
        _peers(m, [r])
        _cut(x, where)
    for where, members in m.said("receives"):
        _peers(m, members)
        if m.rank in members:
            if len(kept) != 1:
                raise ValueError(f"it keeps one piece, and sends itself {len(kept)}")
            _arrives(m, where, kept[0])
    _contributed(m)


def _arrives(m: Move, where: Sequence[slice], piece: Shape) -> None:
    (whole,) = m.made
    if _cut(whole, where) != piece:
        raise ValueError(f"{list(piece)} arrives where {list(_cut(whole, where))} of {list(whole)} is written")


def _contributed(m: Move) -> None:
    """Check that the number of contributions to each piece is the number that is reduced."""
    (whole,), fill = m.made, m.call.option("fill", "sum")
    _reduce(fill)
    for count, how in m.said("reduces"):
        _reduce(how)
        if count < 1:
            raise ValueError(f"{count} can't be reduced")
    for where, members in m.said("receives"):
        _cut(whole, where)
        if len(members) != math.prod(count for count, _ in m.said("reduces")):
            raise ValueError(f"{len(members)} contribute to a piece, and {m.said('reduces')} are reduced")


GROUP: Final = ("ranks", "index")
EVERYWHERE: Final = ("device", "allocates")
RULES: Final[dict[str, tuple[Callable[[Move], None], tuple[str, ...]]]] = {  # by kind, with its options
    "same": (_same, ()),
    "slice": (_slice, ("dim", "start", "stop")),
    "copy": (_copy, ("where",)),
    "joined": (lambda m: None, ()),  # calls.verify compares where the parts lie
    "merge": (_merge, ("receives", "reduces", "fill")),
    "all_reduce": (_all_reduce, (*GROUP, "reduce", "hosts")),
    "reduce_scatter": (_reduce_scatter, (*GROUP, "dim", "reduce", "hosts")),
    "all_gather": (_all_gather, (*GROUP, "dim", "hosts")),
    "all_to_all": (_all_to_all, (*GROUP, "dim", "from_dim")),
    "to_partial": (_to_partial, (*GROUP, "fill")),
    "split_to_partial": (_split_to_partial, (*GROUP, "dim", "fill")),
    "exchange": (_exchange, ("sends", "receives", "reduces", "fill")),
}
