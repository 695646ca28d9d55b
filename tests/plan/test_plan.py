from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.errors import CompileError
from weft.plan import plan as plans
from weft.plan.calls import Call, Place, Ref, Result, Step
from weft.plan.ids import encode
from weft.plan.plan import Plan, Port, Register, Stream, Task, parse

TEXT = """\
plan train, rank 0 of 2, hash 5d41402a
stream 0 compute, caller
stream 1 loader, worker

register 0 batch: int64[8, 33], 2 copies, batch@0.cpu.0.1.0 -> forward@0.cpu.0.0.1
register 1 sent: float32[], 1 copy, forward@0.cpu.0.0.1 -> @1.cpu.0.0.0, @1.cpu.0.0.1
register 2 tick: order, 3 copies, 1 full, forward@0.cpu.0.0.1 -> nobody

source batch@0.cpu.0.1.0, ahead
    writes batch%0
compute forward@0.cpu.0.0.1, 4 acts
    reads batch%0 over 4
    writes sent%1, tick%2 over 2
    | arena 64
    | %x = read() : int64[8,33] register 0+0
    | %weight = variable() : float32[33] variable strides (2)
    | %s = sum(%x, (0,), False) : int64[33] arena+0    # net, train.py:3
    | send: %sent, %sent.scratch = box.all_reduce(%s, ranks=(0, 1), reduce='sum') : int64[] register 1+0, uint8[8] made
"""

SAMPLE = Plan(
    "train", 0, 2,
    (Stream(0, "compute"), Stream(1, "loader", "worker")),
    (
        Task(encode(0, "cpu", 0, 1, 0), "batch", "source", produces=(Port(0),), ahead=True),
        Task(
            encode(0, "cpu", 0, 0, 1), "forward", "compute", (Port(0, 4),), (Port(1), Port(2, 2)), 4,
            step=Step((
                Call("read", results=(Result("x", "int64", (8, 33), Place("register")),), name="x"),
                Call("variable", results=(Result("weight", "float32", (33,), Place("variable"), (2,)),), name="weight"),
                Call(
                    "sum", (Ref("x"), (0,), False), (Result("s", "int64", (33,), Place("arena")),), name="s",
                    at="net, train.py:3",
                ),
                Call(
                    "box.all_reduce", (Ref("s"),),
                    (
                        Result("sent", "int64", (), Place("register", 0, 1)),
                        Result("sent.scratch", "uint8", (8,), Place("made")),
                    ),
                    (("ranks", (0, 1)), ("reduce", "sum")), "send",
                ),
            ), 64),
        ),
    ),
    (
        Register(0, "batch", encode(0, "cpu", 0, 1, 0), (encode(0, "cpu", 0, 0, 1),), 2, (8, 33), "int64"),
        Register(
            1, "sent", encode(0, "cpu", 0, 0, 1), (encode(1, "cpu", 0, 0, 0), encode(1, "cpu", 0, 0, 1)),
            dtype="float32",
        ),
        Register(2, "tick", encode(0, "cpu", 0, 0, 1), copies=3, full=1),
    ),
    "5d41402a",
)  # fmt: skip


def test_it_reads_like_this() -> None:
    assert str(SAMPLE) == TEXT
    assert parse(TEXT) == SAMPLE


def test_bytes_are_those_of_one_copy() -> None:
    assert [r.bytes for r in SAMPLE.registers] == [8 * 33 * 8, 4, 0]


names = st.text(st.characters(codec="utf-8"), max_size=8)
addresses = st.builds(
    encode, st.integers(0, 9), st.sampled_from(["cpu", "cuda"]), st.integers(0, 3), st.integers(0, 5),
    st.integers(0, 99),
)  # fmt: skip
ports = st.lists(st.builds(Port, st.integers(0, 5), st.integers(1, 4)), max_size=3).map(tuple)
registers = st.builds(
    Register, st.integers(0, 5), names, addresses, st.lists(addresses, max_size=3).map(tuple), st.integers(1, 4),
    st.lists(st.integers(0, 9), max_size=3).map(tuple), st.just("float32"), st.integers(0, 2),
    st.lists(st.integers(0, 99), max_size=3).map(tuple), st.sampled_from(["", "cuda:1"]),
) | st.builds(Register, st.integers(0, 5), names, addresses)  # fmt: skip
words = st.text("abcXYZ019_.:-", min_size=1, max_size=6)
sizes = st.integers(0, 2**40)
shapes = st.lists(st.integers(0, 99), max_size=3).map(tuple)
places = st.one_of(
    st.builds(Place, st.just("register"), sizes, sizes, sizes), st.builds(Place, st.just("arena"), sizes),
    st.builds(Place, st.sampled_from(["variable", "constant", "made"])),
    st.builds(lambda name: Place("view", of=name), words),
)  # fmt: skip
results = st.builds(Result, words, st.sampled_from(["float32", "bool", "bfloat16"]), shapes, places, st.none() | shapes)
literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.builds(Ref, words) | st.sampled_from([dtypes.float32, Device("cpu"), slice(1, None), ...]),
    lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5,
)  # fmt: skip
options = st.dictionaries(st.sampled_from(["ranks", "dim"]), literals, max_size=2).map(lambda d: tuple(d.items()))


def made(op: str, args: Any, found: Any, options: Any, name: str, at: str) -> Call:
    return Call(op, args, found, options, name or (found[0].name if found else ""), at)


calls = st.builds(
    made, st.sampled_from(["add", "box.copy", "read"]), st.lists(literals, max_size=3).map(tuple),
    st.lists(results, max_size=2).map(tuple), options, st.just("") | words, st.just("") | st.just("net, train.py:3"),
)  # fmt: skip
steps = st.builds(Step, st.lists(calls, min_size=1, max_size=3).map(tuple), sizes) | st.just(Step())
tasks = st.builds(
    Task, addresses, names, st.sampled_from(["compute", "copy", "sink"]), ports, ports, st.integers(1, 4),
    st.booleans(), steps,
)  # fmt: skip
some_plans = st.builds(
    Plan, names, st.integers(0, 9), st.integers(1, 9),
    st.lists(st.builds(Stream, st.integers(0, 9), names, st.sampled_from(["caller", "worker"])), max_size=2).map(tuple),
    st.lists(tasks, max_size=3, unique_by=lambda t: t.id).map(tuple),
    st.lists(registers, max_size=3, unique_by=lambda r: r.id).map(tuple), names,
)  # fmt: skip


@given(some_plans)
def test_any_plan_survives_its_print(plan: Plan) -> None:
    assert parse(str(plan)) == plan


@pytest.mark.parametrize(
    "before, after, says",
    [
        ("plan train", "plum train", "line 1"),
        ("caller", "nobody", "line 2"),
        ("batch%0 over", "bitch%0 over", "must agree"),
        ("0 over 4", "0 under 4", "can't read"),
        ("-> forward@0", "-> backward@0", "must agree"),
        ("batch: int64[", "batch: int3[", "no dtype is called 'int3'"),
        ("batch: int64[", f"batch: int64[{10**30}, ", r"line \d: \d+ bytes are more than any machine has"),
    ],
)
def test_a_wrong_line_is_named(before: str, after: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        plans.parse(TEXT.replace(before, after))


def test_long_lines_go_on_in_the_next() -> None:
    values = tuple(Ref(f"a.{i}") for i in range(300))
    reads = tuple(Call("read", (), (Result(v.name, "float32", (), Place("register", 4 * i, 1)),), (), v.name)
                  for i, v in enumerate(values))  # fmt: skip
    step = Step((*reads, Call("stack", (values, 0), (Result("all", "float32", (300,), Place("arena")),), (), "all")))
    plan = Plan("p", tasks=(Task(encode(0, "cpu", 0, 0, 0), "t", "compute", step=step),))
    lines = str(plan).split("\n")
    assert max(map(len, lines)) < 520 < len(str(step.calls[-1]))
    assert parse(str(plan)) == plan
    number = next(i for i, line in enumerate(lines, 1) if "stack" in line)
    with pytest.raises(CompileError, match=rf"line {number}: .{{,600}}$"):
        parse(str(plan).replace("%a.299), 0", "%a.299, 0"))
    with pytest.raises(CompileError, match=rf"line {len(lines)}: "):
        parse(str(plan) + "nonsense")
