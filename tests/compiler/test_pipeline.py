"""Which schedules fall out of quotas and of what is due first: the pauses of textbooks, for any ranks and stages."""

from __future__ import annotations

import random
from xml.etree import ElementTree

import pytest

from tests.compiler.test_lower import pipeline
from weft.compiler.lower import lower
from weft.compiler.options import Options
from weft.core.errors import CompileError
from weft.graph.simulated_launch import imagine
from weft.job.text import parse, show
from weft.plan.ids import rank_of
from weft.plan.plan import parse as parse_plan
from weft.plan.verify import verify
from weft.simulator import simulate
from weft.simulator.schedule import Schedule


def schedule(ranks: int, each: int, micro: int, zero_bubble: bool, wide: int = 1) -> Schedule:
    """Of stages that are dealt out in turn, each on `wide` ranks."""
    places = [",".join(str(r * wide + i) for i in range(wide)) for r in range(ranks)]
    job = pipeline([f"cpu:[{places[s % ranks]}]" for s in range(each * ranks)], micro=micro, zero_bubble=zero_bubble)
    assert show(parse(show(job))) == show(job)
    options = Options(micro_batches=micro, zero_bubble=zero_bubble)
    every = [lower(job, rank, ranks * wide, options) for rank in range(ranks * wide)]
    verify([each.plan for each in every])
    assert [parse_plan(str(each.plan)) for each in every] == [each.plan for each in every]
    return imagine(every[0])


@pytest.mark.parametrize("zero_bubble", [False, True], ids=["", "zero bubble"])
@pytest.mark.parametrize(
    "ranks, each, micro", [(2, 1, 4), (4, 1, 8), (4, 1, 16), (2, 2, 4), (3, 2, 6), (4, 2, 16), (2, 3, 4), (4, 3, 12)]
)
def test_the_pause_is_the_textbooks(ranks: int, each: int, micro: int, zero_bubble: bool) -> None:
    """One unit each for forward, gradients of inputs, gradients of weights. The whole has as many stages per rank."""
    found = schedule(ranks, each, micro, zero_bubble)
    assert found.pause == (ranks - 1) * (1 if zero_bubble else 3)
    assert found.span == 3 * micro * each + found.pause


@pytest.mark.parametrize("each, zero_bubble, most", [(2, False, 1.04), (1, True, 1.04), (2, True, 1.09)])
def test_small_delays_add_little_to_the_pause(each: int, zero_bubble: bool, most: float) -> None:
    """Messages between ranks take a hundredth of a unit, and acts up to a fiftieth longer: the mean of some runs."""
    ranks, runs, textbook = 4, 5, 3 * (1 if zero_bubble else 3)
    job = pipeline([f"cpu:[{s % ranks}]" for s in range(each * ranks)], micro=16, zero_bubble=zero_bubble)
    parts = [lower(job, rank, ranks, Options(micro_batches=16)) for rank in range(ranks)]
    registers = [r for part in parts for r in part.plan.registers]
    between = {r.id for r in registers if rank_of(r.producer) not in map(rank_of, r.consumers)}

    def pause(draw: random.Random) -> float:
        found = simulate(
            [part.plan for part in parts],
            lambda task, act: len(parts[0].roles.get(task.name, "")) * (1 + draw.random() / 50),
            latency=lambda message: 0.01 * (message.register in between),
        )
        return found.span - sum(a.end - a.start for a in found.acts) / ranks

    assert sum(pause(random.Random(seed)) for seed in range(runs)) / runs < most * textbook


def test_more_ranks_to_a_stage_change_nothing() -> None:
    assert schedule(4, 2, 8, True, wide=2).pause == schedule(4, 2, 8, True).pause == 3


def test_ranks_without_work_have_no_row() -> None:
    job = pipeline(["cpu:[1]", "cpu:[2]"], micro=4, zero_bubble=False)
    found = imagine(lower(job, 0, 4, Options(micro_batches=4)))
    assert [*found.rows] == ["rank 1", "rank 2"] and found.pause == 3


@pytest.mark.parametrize("micro", [1, 2, 3, 5, 7])
def test_a_last_row_may_be_short(micro: int) -> None:
    """Then it takes longer than the textbook's, which has no such schedule, but no longer than stages one by one."""
    plain, dealt = schedule(4, 1, micro, False), schedule(4, 2, micro, False)
    assert dealt.span <= 2 * plain.span


def test_as_a_table_and_as_a_picture() -> None:
    found = schedule(2, 2, 2, True)
    assert str(found).splitlines() == [
        "time     0   1   2   3   4   5   6   7   8   9  10  11  12",
        "rank 0 F0a F1a F0b F1b   . B0b W0b B1b W1b B0a W0a B1a W1a",
        "rank 1   . F0a F1a F0b B0b F1b B1b B0a B1a W0b W1b W0a W1a",
        "13 units, of which the busiest rank pauses 1 (8%)",
    ]
    drawn = list(ElementTree.fromstring(found.svg()).iter("{http://www.w3.org/2000/svg}rect"))
    assert len(drawn) == 1 + 2 * 12 + 3, "the ground, twelve parts a rank, and what the colours mean"
    empty = Schedule({"rank 0": []})
    assert "set_gradient_accumulation_steps" in str(empty) and ElementTree.fromstring(empty.svg()) is not None


WHY = {
    "one micro-batch": (["cpu:[0]", "cpu:[1]"], 1, "there is one micro-batch"),
    "one placement": (["cpu:[0]", "cpu:[0]"], 4, r"set_stage\(1, flow.placement\('cpu', ranks=\[1\]\)\)"),
}


@pytest.mark.parametrize("name", WHY)
def test_no_pauses_to_fill(name: str) -> None:
    places, micro, why = WHY[name]
    with pytest.raises(CompileError, match=f"enable_zero_bubble.*{why}"):
        pipeline(places, micro=micro, zero_bubble=True)
