from __future__ import annotations

import doctest

import pytest

from weft.plan import net
from weft.plan.net import Net
from weft.plan.plan import Port
from weft.plan.verify import verify


def test_the_examples_in_its_text() -> None:
    assert doctest.testmod(net).failed == 0


def test_wires_become_registers_and_ports() -> None:
    plans = Net().node("a").node("b", 4, rank=1).wire("a", "b", name="x", copies=3, over=(1, 4)).plans()
    verify(plans)
    assert plans[0].registers == plans[1].registers
    assert plans[0].task(plans[0].tasks[0].id).produces == (Port(0),)
    assert plans[1].tasks[0].consumes == (Port(0, 4),)
    assert plans[0].register(0).copies == 3


def test_streams_keep_their_policy() -> None:
    plan = Net().stream("loader", "worker").node("a", stream="loader").node("b").plan()
    assert [(s.name, s.policy) for s in plan.streams] == [("loader", "worker"), ("compute", "caller")]


def test_plan_is_for_one_rank() -> None:
    with pytest.raises(ValueError):
        Net().node("a").node("b", rank=1).plan()
