"""Checks that ranks which train common parameters use the same options and stay equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from weft.core import fingerprints
from weft.core.rank import current
from weft.tensor.data import local_data
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor
from weft.transport import transport_of
from weft.transport.check import Check, buffers_among, check_of, compare_data, every_steps, kept_alike

NUMBERS = (int, float, bool, str, tuple, type(None))
Groups = Sequence[dict[str, Any]]
TENSORS = frozenset({list, Tensor, Parameter})
UNEQUAL = "unequal inputs"  # the resource of a rank that makes more or fewer steps than others for a while


class Agreement:
    """What an optimizer has announced to other ranks."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.options: list[list[tuple[str, Any]]] = []
        self.steps = 0

    def step(self, optimizer: str, param_groups: Groups) -> None:
        """Run the checks before every step of an optimizer, whose name is shown."""
        rank = current()
        if rank.world_size > 1 and not rank.resources.get(UNEQUAL):
            self.announce(optimizer, param_groups)
            if check_of(rank) is Check.FULL and self.due():
                params = [p for g in param_groups for p in g["params"]]
                check_alike((f"parameter {i}, {p.spec}", p) for i, p in enumerate(params))
                ranks = frozenset(r for p in params if p.is_global for r in p.placement.members)
                buffers = buffers_among(transport_of(), ranks)
                check_alike((f"buffer {i}, {name}, {b.spec}", b) for i, (name, b) in enumerate(buffers))

    def due(self) -> bool:
        """Whether data is compared at this step."""
        self.steps += 1
        return self.steps % every_steps() == 0

    def announce(self, optimizer: str, param_groups: Groups) -> None:
        """Compare the options, with the next collective, among ranks that train common parameters."""
        seen = [v for g in param_groups for v in g.values() if v.__class__ not in TENSORS]
        if seen == self.seen:  # the usual case
            return
        self.seen = seen
        shared = [(g, _together(g["params"])) for g in param_groups]  # other groups are a rank's own
        options = [[(k, v) for k, v in g.items() if isinstance(v, NUMBERS)] for g, among in shared if among]
        if options == self.options:
            return
        self.options = options
        ranks = frozenset[int]().union(*(among for _, among in shared))
        if ranks:
            groups = "; ".join(", ".join(f"{k}={v!r}" for k, v in g) for g in options)
            text = f"{optimizer}({groups})"
            fingerprints.of().fold(
                f"the options of optimizers on ranks {sorted(ranks)}", crc32(text.encode()), text, ranks
            )


def _together(params: Iterable[Tensor]) -> frozenset[int]:
    """The ranks that train some of these parameters in common."""
    ranks: set[int] = set()
    for p in params:
        if p.is_global:
            ranks.update(p.placement.members)
        elif kept_alike(p):
            ranks.update(range(current().world_size))
    return frozenset(ranks) if len(ranks) > 1 else frozenset()


def check_alike(tensors: Iterable[tuple[str, Tensor]]) -> None:
    """Raise if a global tensor differs between ranks that must hold the same."""
    rank = current()
    placed: dict[Any, dict[str, Any]] = {}
    for name, p in tensors:
        if p.is_global and rank.index in p.placement and any(s.is_broadcast for s in p.sbp):
            placed.setdefault(p.placement, {})[name] = p
    for placement, params in placed.items():
        if placement.size == 1:
            continue
        twin = {name: {r: _first(placement, p.sbp, r) for r in placement.members} for name, p in params.items()}
        data = {name: local_data(p, "WEFT_CHECK=full") for name, p in params.items()}
        compare_data(transport_of(), placement.members, data, "what several ranks hold", twin)


def _first(placement: Any, nd_sbp: Any, rank: int) -> int:
    """The first of the ranks that hold the same shard as this one."""
    place = placement.coordinate(rank)
    return placement.at(tuple(0 if s.is_broadcast else c for c, s in zip(place, nd_sbp, strict=True)))
