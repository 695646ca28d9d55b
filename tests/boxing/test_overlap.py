from __future__ import annotations

import itertools
import random

import pytest

from weft.boxing.overlap import Overlap, overlapping
from weft.boxing.steps import State
from weft.core import sbp, shard
from weft.core.placement import Placement

S, B, P = sbp.split, sbp.broadcast, sbp.partial_sum
KINDS = [S(0), S(1), B, P]


def test_overlapping_slices_are_those_that_a_scan_finds() -> None:
    for size, parts in itertools.product([0, 1, 3, 7, 12], [(), (1,), (3,), (2, 2), (2, 3), (5, 2), (2, 2, 2)]):
        every = {}
        for place in itertools.product(*map(range, parts)):
            a, b = 0, size
            for n, i in zip(parts, place, strict=True):
                c, d = shard.part(b - a, n, i)
                a, b = a + c, a + d
            every[place] = (a, b)
        for start, stop in itertools.combinations(range(-1, size + 2), 2):
            met = {p: (max(a, start), min(b, stop)) for p, (a, b) in every.items() if max(a, start) < min(b, stop)}
            assert dict(overlapping((0, size), parts, (start, stop))) == met


def test_both_sides_agree_and_every_element_arrives_once_per_contribution() -> None:
    draw = random.Random(2)
    grids = [[0, 1, 2], [3, 1], [[0, 1], [2, 3]], [[5, 0, 3], [1, 6, 2]], [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]
    for _ in range(300):
        src, dst = (Placement("cpu", draw.choice(grids)) for _ in range(2))
        a, b = (tuple(draw.choice(KINDS) for _ in range(p.ndim)) for p in (src, dst))
        shape = draw.choice([(5, 3), (8, 4), (1, 2), (0, 3)])
        found = Overlap(shape, State(src, a), State(dst, b))
        sent = {(rank, to, box) for rank in src.members for to, box in found.sends_of(rank)}
        received = [(by, rank, box) for rank in dst.members for box, ranks in found.receives_of(rank) for by in ranks]
        assert sorted(sent) == sorted(received), "each send is awaited"
        contributions = 1
        for n, s in zip(src.shape, a, strict=True):
            contributions *= n if s.is_partial else 1
        for rank in dst.members:
            place = dst.coordinate(rank)
            assert place is not None
            holds = all(not c or not s.is_partial for c, s in zip(place, b, strict=True))
            pieces = [(box, ranks) for box, ranks in found.receives_of(rank)]
            assert all(len(ranks) == contributions for _, ranks in pieces)
            whole = shard.volume(shard.box(shape, dst.shape, b, place)) if holds else 0
            assert sum(shard.volume(box) for box, _ in pieces) == whole
            if rank in src and pieces and any(rank in ranks for _, ranks in pieces):
                assert any(to == rank for to, _ in found.sends_of(rank))


@pytest.mark.parametrize("how", [S(0), B, P], ids=str)
def test_the_same_layout_elsewhere_has_one_partner_in_any_world(how: sbp.Sbp) -> None:
    n = 4096
    here, there = Placement("cpu", list(range(n))), Placement("cpu", list(range(n, 2 * n)))
    found = Overlap((n, 4), State(here, (how,)), State(there, (how if how is not P else B,)))
    if how is not P:
        assert [to for to, _ in found.sends_of(7)] == [n + 7]
        assert [ranks for _, ranks in found.receives_of(n + 7)] == [[7]]
    else:
        assert len(found.sends_of(7)) == n  # everyone's contribution is needed everywhere
