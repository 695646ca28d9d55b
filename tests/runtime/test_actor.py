from __future__ import annotations

import pytest

from weft.plan.net import Net, line
from weft.runtime.actor import ACTING, DONE, DRAINING, WAITING, Actor
from weft.runtime.message import END, FOREVER, FREE, LAUNCH, NONE, READABLE, Message


def actor(net: Net, name: str) -> Actor:
    plan = net.plan()
    (task,) = (t for t in plan.tasks if t.name == name)
    return Actor(task, {r.id: r for r in plan.registers})


def act(a: Actor) -> list[tuple[int, int, int]]:
    """One whole act; what it says, as (kind, register, slot)."""
    a.begin()
    a.validate()
    said = a.finish()
    a.validate()
    return [(m.kind, m.register, m.slot) for m in said]


def test_a_middle_actor_waits_for_data_and_for_a_free_copy() -> None:
    net = line("a", "b", "c", copies=2)
    b = actor(net, "b")
    assert (b.blocked, b.state) == (1, WAITING)
    for slot in (0, 1):
        b.on_message(Message(READABLE, b.id, 0, slot))
    assert act(b) == [(READABLE, 1, 0), (FREE, 0, 0)]
    assert act(b) == [(READABLE, 1, 1), (FREE, 0, 1)]
    b.on_message(Message(READABLE, b.id, 0, 0))
    assert b.blocked == 1, "both copies of b's register are being read"
    b.on_message(Message(FREE, b.id, 1, 0))
    assert act(b) == [(READABLE, 1, 0), (FREE, 0, 0)]


def test_copies_are_written_in_ring_order() -> None:
    """Copy 1 is let go of before copy 0: the next act must still wait for copy 0."""
    net = Net().node("a").node("b").node("c").wire("a", "b", "c", copies=2)
    a = actor(net, "a")
    a.on_message(Message(LAUNCH, a.id, NONE, 3))
    act(a), act(a)
    for slot in (1, 1, 0):
        a.on_message(Message(FREE, a.id, 0, slot))
        a.validate()
        assert a.blocked == 1
    a.on_message(Message(FREE, a.id, 0, 0))
    assert act(a) == [(READABLE, 0, 0), (READABLE, 0, 0)]


def test_a_consumed_register_is_held_for_its_period_and_a_produced_one_written_over_it() -> None:
    net = Net().node("in").node("m", 4).node("out").wire("in", "m", copies=2, over=(1, 4)).wire("m", "out", over=(2, 1))
    m = actor(net, "m")
    m.on_message(Message(READABLE, m.id, 0, 0))
    turn = m.begin()
    assert (turn.act, turn.consumed, turn.reading, turn.produced, turn.writing) == (0, (0,), (0,), (0,), (0,))
    assert m.finish() == ()
    assert act(m) == [(READABLE, 1, 0)]
    assert m.blocked == 1
    m.on_message(Message(FREE, m.id, 1, 0))
    assert act(m) == []
    assert act(m) == [(READABLE, 1, 0), (FREE, 0, 0)]
    m.on_message(Message(FREE, m.id, 1, 0))
    m.on_message(Message(READABLE, m.id, 0, 1))
    assert m.begin().consumed == (1,)


def test_messages_during_an_act_count_for_the_next() -> None:
    b = actor(line("a", "b", "c", copies=2), "b")
    b.on_message(Message(READABLE, b.id, 0, 0))
    b.begin()
    assert b.state is ACTING
    b.on_message(Message(READABLE, b.id, 0, 1))
    b.validate()
    b.finish()
    b.validate()
    assert b.blocked == 0


def test_turns_computed_before_their_acts_are_those_that_acts_compute() -> None:
    net = line("a", "b", "c", copies=2)
    plain, foreseen = actor(net, "b"), actor(net, "b")
    assert len(list(foreseen.foresee())) == 1, "two copies, two turns, of which the first is there"
    for slot in (0, 1, 0, 1):
        said = []
        for b in (plain, foreseen):
            b.on_message(Message(READABLE, b.id, 0, slot))
            said.append(act(b))
            b.on_message(Message(FREE, b.id, 1, slot))
        assert said == [[(READABLE, 1, slot), (FREE, 0, slot)]] * 2
    assert not list(plain.foresee())


def test_a_full_register_is_readable_from_the_start() -> None:
    net = Net().node("a").node("b").wire("a", "b", copies=2).wire("b", "a", copies=3, full=1)
    a, b = actor(net, "a"), actor(net, "b")
    assert act(a) == [(READABLE, 0, 0), (FREE, 1, 0)]
    b.on_message(Message(READABLE, b.id, 0, 0))
    assert b.begin().produced == (1,), "copy 0 was full"


def test_a_source_finishes_its_launches_before_it_ends() -> None:
    a = actor(line("a", "b", copies=4), "a")
    a.on_message(Message(LAUNCH, a.id, NONE, 2))
    a.begin()
    assert a.on_message(Message(END, a.id, NONE, 0)) == ()
    assert [m.kind for m in a.finish()] == [READABLE]
    assert act(a) == [(READABLE, 0, 1), (END, 0, 0)]
    assert a.state is DRAINING
    a.on_message(Message(FREE, a.id, 0, 0))
    assert a.state is DRAINING, "one copy is still read"
    a.on_message(Message(FREE, a.id, 0, 1))
    a.validate()
    assert a.state is DONE


def test_a_source_that_runs_ahead_ends_at_once() -> None:
    net = Net().node("a", ahead=True, kind="source").node("b").wire("a", "b", copies=4)
    a = actor(net, "a")
    a.on_message(Message(LAUNCH, a.id, NONE, FOREVER))
    act(a)
    assert [m.kind for m in a.on_message(Message(END, a.id, NONE, 0))] == [END]


def test_what_can_no_longer_be_used_goes_back_unread() -> None:
    net = Net().node("a").node("b").node("c", 2)
    net.wire("a", "c", copies=2, over=(1, 2)).wire("b", "c", copies=3)
    c = actor(net, "c")
    for message in (Message(READABLE, c.id, 0, 0), Message(READABLE, c.id, 1, 0)):
        c.on_message(message)
    act(c)
    c.on_message(Message(READABLE, c.id, 0, 1))
    back = c.on_message(Message(END, c.id, 1, 0))
    assert [(m.kind, m.register, m.slot) for m in back] == [(FREE, 0, 0), (FREE, 0, 1)]
    c.validate()
    late = c.on_message(Message(READABLE, c.id, 0, 0))
    assert [(m.kind, m.register, m.slot) for m in late] == [(FREE, 0, 0)]
    assert c.state is DRAINING
    c.on_message(Message(END, c.id, 0, 0))
    assert c.state is DONE
    c.validate()


def test_an_act_that_is_not_due_is_refused() -> None:
    with pytest.raises(AssertionError, match="b can't act"):
        actor(line("a", "b"), "b").begin()


def test_too_many_acknowledgements_are_noticed() -> None:
    a = actor(line("a", "b"), "a")
    with pytest.raises(AssertionError, match="too often"):
        a.on_message(Message(FREE, a.id, 0, 0))


def test_it_says_what_it_waits_for() -> None:
    b = actor(line("a", "b", "c"), "b")
    assert [(r.name, what) for r, what in b.waits_for()] == [("a_b", "data")]
    b.on_message(Message(READABLE, b.id, 0, 0))
    act(b)
    assert [(r.name, what) for r, what in b.waits_for()] == [("a_b", "data"), ("b_c", "copy")]
