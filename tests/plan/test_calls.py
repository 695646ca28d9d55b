"""What chains do, as text that was changed by hand: refused, with the line."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import CompileError
from weft.plan import calls as _calls
from weft.plan.calls import Call, Place, Ref, Result, Step, _interleaved

READS, WRITES = {0: 256}, {1: 256}
TEXT = """\
arena 256
%x = read() : float32[4,4] register 0+0
%w = variable() : float32[4,4] variable
%t = transpose(%w, 0, 1) : float32[4,4] view of %w
%o = ones_like(%x, None) : float32[4,4] constant
%y = matmul(%x, %t) : float32[4,4] arena+0
%z = relu(%y) : float32[4,4] arena+0
%v = reshape(%z, (16,)) : float32[16] view of %z
%a = add(%z, %o) : float32[4,4] arena+64
%l = matmul(%a, %x) : float32[4,4] arena+128 strides (8,1)
%r = relu(%a) : float32[4,4] arena+144 strides (8,1)
%s = box.all_reduce(%l, ranks=(0, 1), reduce='sum') : float32[4,4] register 1+0
%q = sum(%v, None, False) : float32[] register 1+64
%g = add(%r, %l) : float32[4,4] made"""


def check(text: str) -> None:
    step = _calls.parse(text.splitlines())
    assert _calls.parse(str(step).splitlines()) == step
    _calls.verify(step, READS, WRITES)


def test_as_it_is() -> None:
    check(TEXT)


CHANGES = [
    ("matmul(%x, %t)", "matmul(%x, %z)", "reads %z, which no call before it makes"),
    ("matmul(%x, %t)", "matmul(%x, %y)", "reads %y, which no call before it makes"),
    ("%r = relu", "%z = relu", "%z is made twice"),
    ("matmul(%x, %t)", "matmulled(%x, %t)", "no op is called 'matmulled'"),
    ("box.all_reduce", "box.all_the_same", "no op is called 'box.all_the_same'"),
    ("box.all_reduce", "os.system", "no op is called 'os.system'"),
    ("matmul(%x, %t)", "matmul(%x)", "takes 2 arguments"),
    ("matmul(%x, %t)", "matmul(%x, 3)", "must be a value"),
    ("ones_like(%x, None)", "ones_like(%x, %x)", "dtype is no value"),
    ("%y = matmul", "%y, %k = matmul", "says no form and place"),
    ("%y = matmul(%x, %t) :", "%y, %k = matmul(%x, %t) : float32[4,4] made,", "makes 1 values, and here are 2"),
    ("relu(%y) : float32[4,4] arena+0", "relu(%y) : float32[4,4] arena+32", "still needed"),
    ("add(%z, %o) : float32[4,4] arena+64", "add(%z, %o) : float32[4,4] arena+0", "still needed"),  # %v looks
    ("relu(%y) : float32[4,4] arena+0", "relu(%y) : float32[2,8] arena+0", "still needed"),
    ("arena+144 strides (8,1)", "arena+136 strides (8,1)", "still needed"),
    ("arena+144 strides (8,1)", "arena+144 strides (1,8)", "still needed"),
    ("arena 256", "arena 255", "beyond the 255 bytes"),
    ("arena+64", "arena+66", "between two numbers"),
    ("arena+64", "arena+99999999999999999999", "beyond"),
    ("register 0+0", "register 0+196", "beyond the 256 bytes"),
    ("register 0+0", "register 7+0", "consumes no register 7"),
    ("register 0+0", "register 1+128", "consumes no register 1"),
    ("register 1+64", "register 0+64", "produces no register 0"),
    ("register 1+64", "register 1+60", "still needed"),
    ("read() : float32[4,4] register 0+0", "read() : float32[4,4] arena+0", "names what lies in a register"),
    ("variable() : float32[4,4] variable", "variable() : float32[4,4] arena+0", "names what lies in a variable"),
    ("variable()", "variable(%x)", "takes 0 values"),
    ("float32[] register 1+64", "float32[] variable", "only the call variable"),
    ("float32[16] view of %z", "float32[16] view of %x", "isn't the first value that it reads"),
    ("float32[16] view of %z", "float32[16] view of %nobody", "isn't the first value that it reads"),
    ("relu(%y) : float32[4,4] arena+0", "relu(%y) : float32[4,4] view of %y", "makes no view"),
    ("relu(%y) : float32[4,4] arena+0", "relu(%y) : float32[4,4] constant", "no constant is made of %y"),
    ("reduce='sum') : float32[4,4] register 1+0", "reduce='sum') : float32[4,4] made", "needs a place"),
    ("strides (8,1)", "strides (8)", "2 dimensions and 1 strides"),
    ("%q = sum(%v, None, False)", "%q = accumulate(%v, %v)", "takes 1 values"),
    ("sum(%v, None, False) : float32[] register 1+64", "pack(%v) : float32[16] arena+0", "in a register"),
    ("sum(%v, None, False) : float32[] register 1+64", "pack(%v) : float32[8] register 1+64", "values of one form"),
]


@pytest.mark.parametrize("before, after, says", CHANGES)
def test_a_change_is_refused(before: str, after: str, says: str) -> None:
    assert before in TEXT
    with pytest.raises(CompileError, match=says) as told:
        check(TEXT.replace(before, after))
    assert "line" in str(told.value) or "in `" in str(told.value)


def test_what_lies_in_each_act_is_counted() -> None:
    text = "arena 0\n%x = read() : float32[4] register 0+0\n%p = pack(%x) : float32[4] register 1+0+16 each\n"
    text += "%s = sum(%x, None, False) : float32[] register 1+32"
    step = _calls.parse(text.splitlines())
    _calls.verify(step, READS, WRITES, acts=2)
    for acts, says in ((3, "still needed"), (99, "beyond")):
        with pytest.raises(CompileError, match=says):
            _calls.verify(step, READS, WRITES, acts)


def test_an_operand_is_not_overwritten_while_a_view_of_it_is_read() -> None:
    text = "arena 64\n%x = read() : float32[4,4] register 0+0\n%a = relu(%x) : float32[4,4] arena+0\n"
    text += "%t = transpose(%a, 0, 1) : float32[4,4] view of %a\n%b = add(%a, %t) : float32[4,4] arena+0"
    with pytest.raises(CompileError, match="%b lies where %a does"):
        check(text)


IN_PLACE = """\
arena 512
%x = read() : float32[4,4] register 0+0
%c = relu(%x) : float32[2,6] arena+96
%s = relu(%x) : float32[4,4] arena+192
%h = relu(%x) : float32[4] arena+320
%i = relu(%x) : float32[4] arena+384
%n = relu(%x) : float32[4] arena+448
%a = relu(%x) : float32[4,2] arena+0 strides (6,1)
%b = abs(%x) : float32[4,4] arena+8 strides (6,1)
%whole = box.joined((%a, %b)) : float32[4,6] arena+0
%outer = box.joined((%whole, %c)) : float32[6,6] arena+0
%sum = box.all_reduce(%s, ranks=(0, 1), reduce='sum') : float32[4,4] arena+192
%j, %k = box.all_reduce((%h, %i), ranks=(0, 1), reduce='sum') : float32[4] arena+320, float32[4] arena+384
%y = abs(%n) : float32[4] register 1+128
%z = abs(%sum) : float32[4,4] register 1+0"""


@pytest.mark.parametrize(
    "before, after, says",
    [
        ("", "", ""),
        ("arena+8 strides", "arena+4 strides", "side by side"),
        ("arena+8 strides", "arena+256 strides", "side by side"),
        ("joined((%a, %b))", "joined((%b, %a))", "side by side"),
        ("joined((%a, %b))", "joined(%a)", "side by side"),
        (
            "%whole = box.joined((%a, %b)) : float32[4,6]",
            "%whole = box.joined((%a, %b)) : float32[6,4]",
            "side by side",
        ),
        ("float32[4,6] arena+0\n", "float32[4,6] arena+128\n", "side by side"),
        ("%z = abs(%sum)", "%z = abs(%s)", "%sum lies where %s does"),  # read again once it is reduced
        ("reduce='sum') : float32[4,4] arena+192", "reduce='sum') : float32[4,4] arena+208", "%sum lies where %s does"),
        ("float32[4] arena+320, float32[4] arena+384", "float32[4] arena+384, float32[4] arena+320", "still needed"),
        ("%n = relu(%x) : float32[4] arena+448", "%n = relu(%x) : float32[4] arena+352", "still needed"),
        ("float32[4] arena+384\n%y", "float32[4] register 1+64\n%y", "one run of memory"),
    ],
)
def test_parts_and_sums_in_place_lie_just_where_they_are_looked_for(before: str, after: str, says: str) -> None:
    assert before in IN_PLACE
    text = IN_PLACE.replace(before, after)
    if not says:
        return check(text)
    with pytest.raises(CompileError, match=says):
        check(text)


def chain(n: int) -> Step:
    """A long value that lives on, and short ones, of which every other one does."""
    calls = [
        Call("read", (), (Result("x0", "float32", (4,), Place("register", 0, 0)),), (), "x0"),
        Call("relu", (Ref("x0"),), (Result("long", "float32", (1 << 20,), Place("arena", 64 * n)),), (), "long"),
    ]
    for i in range(1, n):
        calls.append(Call("relu", (Ref(f"x{i - 1}"),), (Result(f"x{i}", "float32", (4,), Place("arena", 64 * i)),)))
    last = tuple(Ref(f"x{i}") for i in range(0, n, 2))
    calls.append(Call("cat", ((Ref("long"), *last), 0), (Result("all", "float32", (4,), Place("made")),)))
    return Step(tuple(calls), 64 * n + (4 << 20))


BOXES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 3)), min_size=3)


@given(BOXES.map(lambda boxes: boxes[:3]))
def test_slices_of_a_whole_are_told_apart(boxes: list[tuple[int, int, int, int]]) -> None:
    shape = (7, 7, 7)
    whole = np.arange(7**3).reshape(shape)
    found = []
    for start, length in (0, 1), (2, 3):
        cut = tuple(slice(box[start], box[start] + box[length]) for box in boxes)
        place = Place("arena", 4 * int(whole[cut].flat[0]))
        found.append((Result("x", "float32", whole[cut].shape, place, (49, 7, 1)), {*whole[cut].flat}))
    (a, mine), (b, others) = found
    apart = _interleaved(a, b)
    assert apart == _interleaved(b, a)
    assert not apart or not mine & others
    if all(box[0] <= box[2] for box in boxes):  # one lies behind the other in all dimensions
        assert apart == (not mine & others)


def test_the_time_it_takes_is_linear() -> None:
    def taken(step: Step) -> float:
        start = time.process_time()
        _calls.verify(step, READS, WRITES)
        return time.process_time() - start

    short, long = chain(500), chain(4000)
    assert min(taken(long) for _ in range(2)) < 20 * min(taken(short) for _ in range(3))


def test_what_is_long_is_shortened_for_readers() -> None:
    text = "arena 64\n" + "\n".join(f"%w{i} = variable() : float32[4] variable" for i in range(9))
    text += f"\n%c = cat(({', '.join(f'%w{i}' for i in range(9))}), 0) : float32[36] made"
    assert _calls.parse(text.splitlines()).folded().splitlines() == [
        "arena 64", "%w0 ... %w8: 9 variables, 144 B", "%c = cat((%w0, %w1, ... 7 more), 0) : float32[36] made",
    ]  # fmt: skip
