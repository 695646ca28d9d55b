from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.errors import CompileError
from weft.plan.net import Net
from weft.plan.order import handovers, imagined
from weft.plan.plan import Plan, Port, parse
from weft.plan.verify import Act, precedences, verify
from weft.simulator.modelcheck import explore
from weft.simulator.simulate import simulate
from weft.simulator.training_pipeline import pipeline


def joined(plans: tuple[Plan, ...]):
    return {t.id: t for p in plans for t in p.tasks}, {r.id: r for p in plans for r in p.registers}


def test_the_imagined_run_is_one_forward_one_backward() -> None:
    tasks, registers = joined(pipeline(2, 4).plans())
    found = [(tasks[a.task].name, a.number) for a in imagined(tasks, registers, lambda t: t.rank)]
    first = [f"{name}{number}" for name, number in found if name in ("f0", "b0")]
    assert first == ["f00", "f01", "b00", "f02", "b01", "f03", "b02", "b03"]


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 6), st.data())
def test_an_imagined_run_keeps_every_precedence(stages: int, micro: int, data: st.DataObject) -> None:
    quotas = [data.draw(st.integers(1, 4)) for _ in range(stages)]
    tasks, registers = joined(pipeline(stages, micro, quotas).plans())
    order = {a: i for i, a in enumerate(imagined(tasks, registers, lambda t: t.rank))}
    assert len(order) == sum(t.acts for t in tasks.values())
    assert all(order[p.before] < order[p.after] for p in precedences(tasks, registers))


def test_acts_that_wait_for_each_other_have_no_order() -> None:
    tasks, registers = joined(Net().node("a").node("b").wire("a", "b").wire("b", "a").plans())
    with pytest.raises(CompileError, match="wait for each other"):
        imagined(tasks, registers, lambda t: t.rank)


def test_handovers_go_round() -> None:
    order = [Act(1, 0), Act(1, 1), Act(2, 0), Act(1, 2), Act(2, 1), Act(2, 2)]
    assert handovers(order) == {(1, 2): [(1, 0, False), (2, 1, False)], (2, 1): [(0, 2, False), (2, 0, True)]}
    assert handovers(order[:2]) == {}


def taking_turns() -> Net:
    """Two tasks of three acts that nothing but the turn orders: a a b a b b."""
    net = Net().node("begin", kind="source").node("a", 3).node("b", 3)
    net.wire("begin", "a", copies=2, over=(1, 3)).wire("begin", "b", name="also", copies=2, over=(1, 3))
    net.wire("a", "b", name="there", at=((1, 2), (0, 1)))
    return net.wire("b", "a", name="back", full=1, at=((0, 2), (0, 2)))


def test_turns_print_and_parse() -> None:
    text = str(taking_turns().plan())
    assert "writes there%2 at 1 2" in text and "back%3 at 0 2" in text
    assert parse(text) == taking_turns().plan()


def test_turns_are_kept_in_every_order_of_messages() -> None:
    verify(taking_turns().plan())
    assert explore(taking_turns().plan(), launches=2).states > 50


def test_turns_in_time() -> None:
    order = [a.task for a in simulate(taking_turns().plan(), launches=2).acts if a.task in "ab"]
    assert order == list("aababb" * 2)


@pytest.mark.parametrize("at", [(1, 0), (0, 0), (0, 7)])
def test_a_port_takes_part_in_acts_that_exist_in_order(at: tuple[int, ...]) -> None:
    plan = taking_turns().plan()
    b = plan.tasks[2]
    ports = tuple(msgspec.structs.replace(p, at=at) if p.at else p for p in b.consumes)
    with pytest.raises(CompileError, match="must rise"):
        verify(msgspec.structs.replace(plan, tasks=(*plan.tasks[:2], msgspec.structs.replace(b, consumes=ports))))


def test_items_of_a_port() -> None:
    plain, turn = Port(0, 2), Port(0, 1, (1, 2))
    assert [plain.item(k, 4) for k in range(6)] == [0, 0, 1, 1, 2, 2]
    assert [turn.item(k, 4) for k in range(8)] == [0, 0, 1, 2, 2, 2, 3, 4]
    assert [turn.begins(k, 4) for k in range(5)] == [False, True, True, False, False]
    assert (plain.items(4), turn.items(4)) == (2, 2)
    assert (plain.first(1), plain.last(1), turn.first(1), turn.last(1)) == (2, 3, 2, 2)
