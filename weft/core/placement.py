"""Where a global tensor lies: a device type and an n-d grid of ranks. Interned, like sbp."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.core.errors import ArgumentError, PlacementError
from weft.core.rank import current
from weft.core.reading import parsed, shortened

MOST: Final = 1 << 19  # most ranks that a text may name
_interned: dict[tuple[str, tuple[int, ...], tuple[int, ...]], Placement] = {}


class Placement:
    """`placement(type, ranks)`: ranks is a list, or a nested list for a grid of several axes. Or all of it as text:
    `placement("cpu:[0,1]")`. A dict of machines, `hierarchy` and `device_...` are OneFlow's deprecated forms.

    >>> placement("cpu", [[0, 1], [2, 3]]).shape
    (2, 2)
    """

    type: str
    shape: tuple[int, ...]
    members: tuple[int, ...]
    _index: dict[int, int]
    _text: str | None

    def __new__(
        cls, type: str = "", ranks: Any = None, hierarchy: Any = None, *, device_type: str = "", device_ids: Any = None
    ) -> Placement:
        type = type or device_type
        ranks = device_ids if ranks is None else ranks
        if ranks is None and (printed := _printed(type)) is not None:
            return printed
        if type not in ("cpu", "cuda"):
            raise PlacementError(f"a placement's type is 'cpu' or 'cuda'; got {type!r}")
        if ranks is None:
            raise PlacementError(
                f"placement({type!r}) lacks ranks: write placement({type!r}, ranks=[0, 1]) or placement.all({type!r})"
            )
        if isinstance(ranks, dict) or hierarchy:
            ranks = _older(ranks, hierarchy)
        if isinstance(ranks, int):
            ranks = [ranks]
        try:
            grid = np.asarray(ranks)
        except ValueError:
            raise PlacementError(f"the ranks must form a grid, with rows of equal length; got {ranks!r}") from None
        if grid.size == 0 or grid.dtype.kind not in "iu":
            raise PlacementError(f"ranks are a non-empty (nested) list of ints; got {ranks!r}")
        members = tuple(int(r) for r in grid.ravel())
        if len(set(members)) != len(members) or min(members) < 0:
            raise PlacementError(f"every rank occurs once in a placement and none is negative; got {ranks!r}")
        key = (type, tuple(grid.shape), members)
        self = _interned.get(key)
        if self is None:
            self = super().__new__(cls)
            self.type, self.shape, self.members = key
            self._index = {r: i for i, r in enumerate(members)}
            self._text = None
            self = _interned.setdefault(key, self)
        return self

    @staticmethod
    def all(type: str) -> Placement:
        """A placement of every rank of the world, with one axis."""
        return Placement(type, list(range(current().world_size)))

    @property
    def ranks(self) -> np.ndarray:
        return np.array(self.members).reshape(self.shape)

    @property
    def device_type(self) -> str:
        return self.type

    @property
    def hierarchy(self) -> tuple[int, ...]:
        return self.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return len(self.members)

    def __contains__(self, rank: int) -> bool:
        return rank in self._index

    def coordinate(self, rank: int) -> tuple[int, ...] | None:
        """A rank's coordinate on the grid; None outside."""
        index = self._index.get(rank)
        if index is None:
            return None
        place = []
        for n in reversed(self.shape):
            index, c = divmod(index, n)
            place.append(c)
        return tuple(reversed(place))

    def at(self, coordinate: tuple[int, ...]) -> int:
        index = 0
        for n, c in zip(self.shape, coordinate, strict=True):
            index = index * n + c
        return self.members[index]

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.shape))

    def group(self, rank: int, axis: int) -> tuple[int, ...]:
        """The ranks that differ from `rank` along one axis only, in order: the members of that axis' collectives."""
        place = self.coordinate(rank)
        assert place is not None, f"rank {rank} is outside {self}"
        stride = math.prod(self.shape[axis + 1 :])
        first = self._index[rank] - place[axis] * stride
        return self.members[first : first + stride * self.shape[axis] : stride]

    def check(self, world_size: int) -> Placement:
        """Raise if the world doesn't have the ranks."""
        worst = max(self.members)
        if worst >= world_size:
            raise PlacementError(
                f"{self!r} names rank {worst}, but this world has ranks 0 to {world_size - 1}; "
                f"launch with at least {worst + 1} ranks (python -m weft.launch --nproc_per_node {worst + 1} ...)"
            )
        return self

    def __reduce__(self) -> tuple[object, tuple[str, list[Any]]]:
        return Placement, (self.type, self.ranks.tolist())

    def __repr__(self) -> str:
        return f'weft.placement(type="{self.type}", ranks={self.ranks.tolist()})'

    def __str__(self) -> str:
        """Short text, also for thousands of ranks: cpu:[0,1], cpu:[0-1023]."""
        if self._text is None:
            self._text = f"{self.type}:{_text(self.ranks.tolist())}"
        return self._text


placement = Placement


def placed_at(name: str, given: Any) -> Placement:
    """The placement that a function was given, as an object or as text; its ranks must exist."""
    given = Placement(given) if isinstance(given, str) else given
    if not isinstance(given, Placement):
        raise ArgumentError(f"{name}(): placement must be a flow.placement, not {type(given).__name__}")
    return given.check(current().world_size)


def _older(ranks: Any, hierarchy: Any) -> Any:
    """OneFlow's deprecated form: {machine: its devices}, and the grid's shape."""
    if isinstance(ranks, dict):
        each = current().local_size
        counts = {machine: [own] if isinstance(own, int) else list(own) for machine, own in ranks.items()}
        ranks = [int(machine) * each + i for machine, own in counts.items() for i in own]
    try:
        return np.asarray(ranks).reshape(tuple(hierarchy)).tolist() if hierarchy else ranks
    except (TypeError, ValueError):
        raise PlacementError(f"hierarchy={hierarchy!r} doesn't fit the ranks {ranks!r}") from None


def _printed(text: str) -> Placement | None:
    """The placement with this text, short or like `placement(type="cpu", ranks=[0])`."""
    spelled = _SPELLED.fullmatch(str(text))
    if spelled is not None:
        text = f"{spelled[1]}:{spelled[2]}"
    return parse(text) if ":" in str(text) else None


_SPELLED = re.compile(r"(?:\w+\.)*placement\(type=\W(\w+)\W, ranks=(.*)\)")


def parse(text: str) -> Placement:
    """The inverse of str(): cpu:[[0,1],[2,3]]."""
    kind, _, ranks = text.partition(":")

    def refuse(why: str) -> PlacementError:
        return PlacementError(
            f"{shortened(ranks)} is not a grid of ranks; write one like [0,1] or [[0,1],[2,3]] ({why})"
        )

    runs = _RUN.findall(ranks)
    if any(len(n) > 6 for run in runs for n in run) or sum(int(b) - int(a) + 1 for a, b in runs) > MOST:
        raise refuse(f"it names more than {MOST} ranks")
    listed = parsed(_RUN.sub(_spelled, ranks), refuse)
    try:
        return Placement(kind, listed)
    except RecursionError:
        raise refuse("it is nested too deeply") from None


_RUN = re.compile(r"(\d{1,7})-(\d{1,7})")


def _spelled(run: re.Match[str]) -> str:
    return ",".join(map(str, range(int(run[1]), int(run[2]) + 1)))


def _text(ranks: list[Any]) -> str:
    """A nested list as text, in which more than four consecutive ranks are written as first-last."""
    if ranks and isinstance(ranks[0], list):
        return "[" + ",".join(map(_text, ranks)) + "]"
    runs: list[list[int]] = []
    for r in ranks:
        if runs and r == runs[-1][-1] + 1:
            runs[-1].append(r)
        else:
            runs.append([r])
    shown = (f"{run[0]}-{run[-1]}" if len(run) > 4 else ",".join(map(str, run)) for run in runs)
    return "[" + ",".join(shown) + "]"
