"""Calls that move data, as text that was changed by hand: refused, with the line."""

from __future__ import annotations

import pytest

from weft.core.errors import CompileError
from weft.plan import calls, moved

TEXT = """\
arena 4096
%x = read() : float32[4,6] register 0+0
%p = read() : float32[2,6] register 0+128
%sum = box.all_reduce(%x, ranks=(0, 2, 3), index=1, reduce='sum') : float32[4,6] arena+0
%far = box.all_reduce(%x, ranks=(0, 1, 2, 3), index=2, reduce='sum', hosts=((0, 1), (2, 3))) : float32[4,6] arena+128
%part = box.reduce_scatter(%x, ranks=(1, 2), index=1, dim=0, reduce='max') : float32[2,6] arena+256
%first = box.reduce_scatter(%x, ranks=(1, 2), index=1, dim=0, reduce='sum') : float32[2,6] arena+768
%second = box.reduce_scatter(%x, ranks=(1, 2), index=1, dim=0, reduce='min') : float32[2,6] arena+816
%whole = box.all_gather(%p, ranks=(1, 2), index=1, dim=1) : float32[2,12] arena+320
%turned = box.all_to_all(%p, ranks=(1, 2), index=1, dim=1, from_dim=0) : float32[4,3] arena+448
%zeros = box.to_partial(%x, ranks=(1, 2), index=1, fill='sum') : float32[4,6] arena+512
%mine = box.split_to_partial(%p, ranks=(1, 2), index=1, dim=0, fill='sum') : float32[4,6] arena+640
%cut = box.slice(%x, dim=0, start=1, stop=3) : float32[2,6] view of %x
%seen = box.same(%cut) : float32[2,6] view of %cut
%sent = box.copy(%x, where=(slice(0, 2, None), slice(3, 6, None))) : float32[2,3] register 1+0
%all = box.joined((%first, %second)) : float32[4,6] arena+768
%put = box.merge(%p, %part, receives=(((slice(0, 2, None), slice(0, 6, None)), (0, 1)),), reduces=((2, 'sum'),)) \
: float32[3,6] arena+896
%met = box.exchange(%x, sends=((2, (slice(0, 2, None), slice(0, 6, None))), (3, (slice(2, 4, None), \
slice(0, 6, None)))), receives=(((slice(0, 2, None), slice(0, 6, None)), (2,)), ((slice(2, 3, None), \
slice(0, 6, None)), (1,))), reduces=()) : float32[3,6] arena+1024"""


def check(text: str) -> None:
    step = calls.parse(text.splitlines())
    assert calls.parse(str(step).splitlines()) == step
    calls.verify(step, {0: 256}, {1: 256})
    moved.verify(step, rank=2, world=4)


def test_as_it_is() -> None:
    check(TEXT)
    assert {c.op for c in calls.parse(TEXT.splitlines()).calls} >= set(calls.MOVES)


CHANGES = [
    ("ranks=(0, 2, 3), index=1", "ranks=(0, 2, 4), index=1", "no rank 4 among 4"),
    ("ranks=(0, 2, 3), index=1", "ranks=(0, 2, -1), index=1", "no rank -1 among 4"),
    ("ranks=(0, 2, 3), index=1", "ranks=(0, 2, True), index=1", "no rank True among 4"),
    ("ranks=(0, 2, 3), index=1", "ranks=(2, 2, 3), index=1", "aren't distinct"),
    ("ranks=(0, 2, 3), index=1", "ranks=(0, 1, 3), index=1", "plan is of rank 2"),
    ("ranks=(0, 2, 3), index=1", "ranks=(0, 2, 3), index=2", "plan is of rank 2"),
    ("ranks=(0, 2, 3), index=1", "ranks=(0, 2, 3), index=7", "plan is of rank 2"),
    ("ranks=(0, 2, 3), index=1", "ranks=2, index=1", "not iterable"),
    ("ranks=(0, 2, 3), index=1, ", "", "says no ranks"),
    ("reduce='sum') : float32[4,6] arena+0", "reduce='product') : float32[4,6] arena+0", "is no reduction"),
    ("reduce='sum') : float32[4,6] arena+0", "reduce='sum') : float32[3,6] arena+0", "can't make"),
    ("reduce='sum') : float32[4,6] arena+0", "reduce='sum') : int32[4,6] arena+0", "stays of its dtype"),
    ("reduce='sum') : float32[4,6] arena+0", "reduce='sum', where=1) : float32[4,6] arena+0", "no option where"),
    ("hosts=((0, 1), (2, 3))", "hosts=((0, 1), (2, 2))", "each of 4 ranks once"),
    ("hosts=((0, 1), (2, 3))", "hosts=((0, 1, 2), (3,))", "each of 4 ranks once"),
    ("dim=0, reduce='max') : float32[2,6]", "dim=0, reduce='max') : float32[1,6]", "isn't"),
    ("dim=0, reduce='max')", "dim=5, reduce='max')", "no dimension 5"),
    ("dim=1) : float32[2,12]", "dim=0) : float32[2,12]", "can't make"),
    ("dim=1) : float32[2,12]", "dim=1) : float32[2,14]", "isn't"),
    ("dim=1, from_dim=0) : float32[4,3]", "dim=0, from_dim=1) : float32[4,3]", "isn't"),
    ("fill='sum') : float32[4,6] arena+512", "fill='nought') : float32[4,6] arena+512", "is no reduction"),
    ("dim=0, fill='sum') : float32[4,6] arena+640", "dim=1, fill='sum') : float32[4,6] arena+640", "can't make"),
    ("start=1, stop=3", "start=3, stop=5", "isn't"),
    ("start=1, stop=3", "start=-1, stop=1", "isn't"),
    ("start=1, stop=3", "start=1, stop=2", "isn't"),
    ("box.same(%cut) : float32[2,6]", "box.same(%cut) : float32[6,2]", "can't make"),
    ("slice(3, 6, None))) : float32[2,3] reg", "slice(3, 7, None))) : float32[2,3] reg", "reaches beyond 6"),
    ("slice(3, 6, None))) : float32[2,3] reg", "slice(2, 6, None))) : float32[2,3] reg", "can't make"),
    ("slice(3, 6, None))) : float32[2,3] reg", "slice(6, 3, -1))) : float32[2,3] reg", "not forwards"),
    ("where=(slice(0, 2, None), slice(3, 6, None))", "where=(slice(0, 2, None),)", "no piece of"),
    ("(0, 1)),), reduces=((2, 'sum'),)", "(0, 3)),), reduces=((2, 'sum'),)", "out of range"),
    ("(0, 1)),), reduces=((2, 'sum'),)", "(0, 1)),), reduces=((3, 'sum'),)", "2 contribute"),
    ("(0, 1)),), reduces=((2, 'sum'),)", "(0, 1)),), reduces=((2, 'mean'),)", "is no reduction"),
    ("receives=(((slice(0, 2, None), slice(0, 6, None)), (0, 1)", "receives=(((slice(0, 3, None), slice(0, 6, None)), "
     "(0, 1)", "arrives where"),
    ("(3, (slice(2, 4", "(4, (slice(2, 4", "no rank 4"),
    ("(3, (slice(2, 4", "(3, (slice(2, 5", "reaches beyond 4"),
    ("slice(0, 6, None)), (1,))", "slice(0, 6, None)), (9,))", "no rank 9"),
    ("slice(0, 6, None)), (1,))", "slice(0, 6, None)), (1, 3))", "2 contribute"),
    ("((slice(2, 3, None), slice(0, 6, None)), (1,))", "((slice(2, 9, None), slice(0, 6, None)), (1,))", "beyond 3"),
    ("sends=((2, (slice(0, 2", "sends=((2, (slice(0, 1", "arrives where"),
    ("sends=((2, (slice(0, 2", "sends=((1, (slice(0, 2", "sends itself 0"),
]  # fmt: skip


@pytest.mark.parametrize("before, after, says", CHANGES)
def test_a_change_is_refused(before: str, after: str, says: str) -> None:
    assert before in TEXT
    with pytest.raises(CompileError, match=says) as told:
        check(TEXT.replace(before, after))
    assert "in `%" in str(told.value)
