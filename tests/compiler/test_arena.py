from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from weft.compiler.arena import ALIGN, Block, aligned, packed, plan
from weft.plan.spans import Span

BLOCKS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 20), st.integers(0, 6)).map(lambda t: Block(t[0], t[1], t[1] + t[2])),
    max_size=25,
)


@given(BLOCKS, st.booleans())
def test_no_two_blocks_alive_together_overlap(blocks: list[Block], tight: bool) -> None:
    found = plan(blocks, tight)
    for i, a in enumerate(blocks):
        start, stop = found.offsets[i], found.offsets[i] + aligned(a.bytes)
        assert start % ALIGN == 0 and stop <= found.total
        for j, b in enumerate(blocks[:i]):
            if a.first <= b.last and b.first <= a.last:
                other = found.offsets[j]
                assert stop <= other or other + aligned(b.bytes) <= start or not a.bytes or not b.bytes


STAIRS = st.tuples(st.integers(1, 4), st.integers(1, 90), st.integers(0, 12), st.integers(0, 6), st.booleans()).map(
    lambda t: stairs(*t)
)


def stairs(count: int, each: int, first: int, length: int, growing: bool) -> Block:
    """A block that is made, or given back, piece by piece."""
    spans = [
        Span(k * each, (k + 1) * each, first + k * growing, first + count + length - (count - k) * (not growing))
        for k in range(count)
    ]
    return Block(count * each, first, first + count + length, tuple(spans))


@given(st.lists(STAIRS, max_size=15))
def test_no_two_pieces_alive_together_overlap(blocks: list[Block]) -> None:
    """Simulated: at each step every byte has one owner."""
    found = plan(blocks, tight=True)
    for now in range(30):
        live = sorted(
            (at + p.begin, at + p.end)
            for at, b in zip(found.offsets, blocks, strict=True) for p in b.pieces if p.first <= now <= p.last
        )  # fmt: skip
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(live))
        assert all(end <= found.total for _, end in live)


def test_what_is_made_piece_by_piece_takes_the_place_of_what_is_given_back() -> None:
    before, after = stairs(4, 64, 0, 0, growing=False), stairs(4, 64, 1, 0, growing=True)
    assert plan([after, before], tight=True).total <= (4 + 1) * 64


def test_a_block_may_lie_below_all_that_are_placed() -> None:
    """Otherwise these take 1408 bytes."""
    blocks = [stairs(4, 128, 2, 1, True), stairs(4, 64, 6, 4, True), stairs(3, 192, 6, 0, True)]
    assert plan([*blocks, stairs(4, 64, 5, 2, False)], tight=True).total <= 1280


@given(BLOCKS)
def test_never_more_than_all_apart_nor_less_than_the_peak(blocks: list[Block]) -> None:
    total = plan(blocks, tight=True).total
    assert total <= plan(blocks).total
    peak = max((sum(aligned(b.bytes) for b in blocks if b.first <= t <= b.last) for t in range(30)), default=0)
    assert peak <= total and plan(blocks).total <= sum(aligned(b.bytes) for b in blocks)


def test_few_blocks_lie_in_no_more_memory_than_is_live() -> None:
    """In the order of first use, the large block would find no gap."""
    blocks = [Block(64, 0, 0), Block(64, 0, 2), Block(128, 1, 2)]
    assert plan(blocks).total == 192


@given(st.lists(st.integers(0, 300)))
def test_packed_lies_in_a_row(sizes: list[int]) -> None:
    found = packed(sizes)
    ends = [at + n for at, n in zip(found.offsets, sizes, strict=True)]
    assert all(end <= start for end, start in zip(ends, [*found.offsets[1:], found.total], strict=False))
