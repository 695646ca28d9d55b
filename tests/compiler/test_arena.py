from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.compiler.arena import ALIGN, Block, aligned, packed, plan

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


@given(BLOCKS)
def test_never_more_than_all_apart_nor_less_than_the_peak(blocks: list[Block]) -> None:
    total = plan(blocks, tight=True).total
    assert total <= plan(blocks).total
    peak = max((sum(aligned(b.bytes) for b in blocks if b.first <= t <= b.last) for t in range(30)), default=0)
    assert peak <= total and plan(blocks).total <= sum(aligned(b.bytes) for b in blocks)


@given(st.lists(st.integers(0, 300)))
def test_packed_lies_in_a_row(sizes: list[int]) -> None:
    found = packed(sizes)
    ends = [at + n for at, n in zip(found.offsets, sizes, strict=True)]
    assert all(end <= start for end, start in zip(ends, [*found.offsets[1:], found.total], strict=False))
