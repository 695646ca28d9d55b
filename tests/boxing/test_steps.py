from __future__ import annotations

import pytest

from weft.boxing import steps
from weft.boxing.steps import (
    AllGather,
    AllReduce,
    AllToAll,
    Copy,
    Exchange,
    ReduceScatter,
    Relabel,
    Slice,
    SplitToPartial,
    State,
    Step,
    ToPartial,
    canonical,
)
from weft.core import sbp
from weft.core.errors import SbpError
from weft.core.placement import Placement

S, B, P, PMAX = sbp.split, sbp.broadcast, sbp.partial_sum, sbp.partial_max
GRID = Placement("cpu", [[0, 1], [2, 3]])
ROW = Placement("cpu", [0, 1, 2, 3])
EVERY = [
    AllReduce(0, "sum"), ReduceScatter(1, 0, "max"), AllGather(0, 1), AllToAll(1, 0, 1), Slice(0, 1),
    ToPartial(0, "min"), SplitToPartial(1, 0, "sum"), Exchange(State(GRID, (S(0), B)), State(ROW, (P,))),
    Relabel(State(GRID, (B, B)), State(ROW, (B,))), Copy("cuda"),
]  # fmt: skip


@pytest.mark.parametrize("step", EVERY, ids=str)
def test_a_step_prints_and_parses(step: Step) -> None:
    assert steps.parse(str(step)) == step


def test_every_kind_of_step_is_in_the_list_above() -> None:
    assert {type(step) for step in EVERY} == set(steps._KINDS.values())


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        (AllReduce(0, "sum"), (P, S(0)), (B, S(0))),
        (ReduceScatter(1, 0, "sum"), (S(0), P), (S(0), S(0))),
        (AllGather(1, 0), (S(0), S(0)), (S(0), B)),
        (AllGather(0, 1), (S(1), S(0)), (B, S(0))),
        (AllToAll(1, 0, 1), (S(0), S(0)), (S(0), S(1))),
        (Slice(1, 0), (S(0), B), (S(0), S(0))),
        (ToPartial(0, "sum"), (B, PMAX), (P, PMAX)),
        (SplitToPartial(0, 1, "max"), (S(1), S(0)), (PMAX, S(0))),
        (AllReduce(1, "max"), (P, PMAX), (P, B)),
    ],
    ids=str,
)
def test_legal_steps(step: Step, before: sbp.NdSbp, after: sbp.NdSbp) -> None:
    assert step.after((4, 4), State(GRID, before)) == State(GRID, after)


@pytest.mark.parametrize(
    ("step", "before", "why"),
    [
        (AllGather(0, 0), (S(0), S(0)), "axis 1 splits dimension 0 within axis 0's slices; change that axis first"),
        (Slice(0, 0), (B, S(0)), "axis 1 splits dimension 0"),
        (AllToAll(0, 1, 0), (S(1), S(0)), "axis 1 splits dimension 0"),
        (ReduceScatter(0, 0, "sum"), (P, S(0)), "axis 1 splits dimension 0"),
        (AllReduce(0, "sum"), (P, PMAX), r"axis 1 is P\(max\) within axis 0's P; change that axis first"),
        (SplitToPartial(0, 0, "max"), (S(0), P), r"axis 1 is P within axis 0's P\(max\)"),
        (AllGather(0, 0), (S(1), B), r"starts from S\(0\) on axis 0, but the tensor lies as cpu.* \(S\(1\), B\)"),
        (AllReduce(0, "max"), (P, B), r"starts from P\(max\)"),
        (AllReduce(2, "sum"), (P, P), "axes 0 to 1 only"),
        (Slice(0, 2), (B, B), "splits dimension 2, but the tensor has 2"),
        (AllReduce(0, "mean"), (P, B), "'mean' is no reduction of a partial; there are sum, max, min"),
        (AllToAll(0, 1, 1), (S(1), B), "changes nothing"),
        (Exchange(State(ROW, (B,)), State(GRID, (B, B))), (B, B), "starts from cpu:.*but the tensor lies as"),
        (Exchange(State(GRID, (B, B)), State(ROW, (B, B))), (B, B), "a placement of 1 axes takes 1 sbp"),
        (Exchange(State(GRID, (B, B)), State(Placement("cuda", [0]), (B,))), (B, B), "would cross device types"),
        (Relabel(State(GRID, (S(0), B)), State(ROW, (S(0),))), (S(0), B), "changes more than names"),
    ],
    ids=str,
)
def test_illegal_steps_say_why(step: Step, before: sbp.NdSbp, why: str) -> None:
    with pytest.raises(SbpError, match=why):
        step.after((4, 4), State(GRID, before))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("all_gather", "no step of a route"),
        ("gather(axis=0, dim=0)", "there are all_reduce, "),
        ("all_gather(axis=0)", "all_gather takes axis, dim"),
        ("all_gather(axis=x, dim=0)", "are numbers"),
        ("exchange(src=cpu:[0,1] S(0), dst=cpu:[0] (B))", "is no state"),
        ("exchange(src=cpu:[0,1 (S(0)), dst=cpu:[0] (B))", "is not a grid of ranks"),
        ("exchange(src=cpu:[0,1] (S(0)), dst=cpu:[0] (Q))", "'Q' is not an sbp"),
    ],
)
def test_text_that_is_no_step(text: str, why: str) -> None:
    with pytest.raises(SbpError, match=why):
        steps.parse(text)


def test_axes_of_one_rank_hold_nobody_back() -> None:
    one = Placement("cpu", [[0], [1]])
    assert AllGather(0, 0).after((4,), State(one, (S(0), S(0)))).nd_sbp == (B, S(0))


def test_states_that_differ_in_names_only() -> None:
    def same(shape: tuple[int, ...], a: State, b: State) -> bool:
        return canonical(shape, a) == canonical(shape, b)

    assert same((4, 3), State(GRID, (B, B)), State(ROW, (B,)))
    assert same((8, 3), State(GRID, (S(0), S(0))), State(ROW, (S(0),)))
    assert not same((6, 3), State(GRID, (S(0), S(0))), State(ROW, (S(0),)))  # 2, 1, 2, 1 rows, not 2, 2, 1, 1
    assert not same((8, 3), State(GRID, (S(0), B)), State(ROW, (S(0),)))
    assert same((8, 3), State(Placement("cpu", [[0, 1]]), (P, S(0))), State(Placement("cpu", [0, 1]), (S(0),)))
    assert not same((8, 3), State(Placement("cpu", [1, 0]), (S(0),)), State(Placement("cpu", [0, 1]), (S(0),)))
