from __future__ import annotations

import threading
from collections.abc import Callable

from weft.plan.net import Net
from weft.runtime.bus import Bus, Mailbox
from weft.runtime.message import FREE, READABLE, Message


class FakeChannel:
    def __init__(self) -> None:
        self.posts = self.acks = 0

    def post(self) -> None:
        self.posts += 1

    def arrived(self) -> int:
        return self.posts

    def acknowledge(self) -> None:
        self.acks += 1

    def acknowledged(self) -> int:
        return self.acks

    def rings(self, bell: Callable[[], None]) -> bool:
        return False


NET = Net().node("a").node("b", rank=1).node("c", rank=1).wire("a", "b", "c", copies=2)
A, B, C = (NET.id(n) for n in "abc")


def test_one_post_for_all_readers_of_a_copy_and_acknowledgements_in_order() -> None:
    sender, receiver = NET.plans()
    channel, box_a, box_bc = FakeChannel(), Mailbox(), Mailbox()
    from_a = Bus(sender, {A: box_a}, {0: channel})
    at_bc = Bus(receiver, {B: box_bc, C: box_bc}, {0: channel})
    for slot in (0, 1):
        from_a.send([Message(READABLE, B, 0, slot), Message(READABLE, C, 0, slot)], box_a)
    assert channel.posts == 2

    assert at_bc.poll() and not at_bc.poll()
    assert list(box_bc.messages) == [Message(READABLE, to, 0, slot) for slot in (0, 1) for to in (B, C)]

    at_bc.send([Message(FREE, A, 0, 0), Message(FREE, A, 0, 1)], box_bc)  # b lets go of both
    assert channel.acks == 0
    at_bc.send([Message(FREE, A, 0, 1)], box_bc)  # c of the second only: the first must go first
    assert channel.acks == 0
    at_bc.send([Message(FREE, A, 0, 0)], box_bc)
    assert channel.acks == 2

    assert from_a.poll() and not from_a.poll()
    assert list(box_a.messages) == [Message(FREE, A, 0, slot) for slot in (0, 0, 1, 1)]


def test_what_was_sent_beyond_the_last_launch_is_given_back() -> None:
    sender, _ = NET.plans()
    channel, box = FakeChannel(), Mailbox()
    bus = Bus(sender, {A: box}, {0: channel})
    for slot in (0, 1):
        bus.send([Message(READABLE, B, 0, slot), Message(READABLE, C, 0, slot)], box)
    (out,) = bus.outgoing.values()
    out.forgive(1, box)
    assert not box.messages, "the launch's own copy may still be read"
    channel.acks = 1
    bus.poll()
    out.forgive(1, box)
    assert len(box.messages) == 4


def test_messages_stay_on_their_thread_or_wake_another() -> None:
    net = Net().node("a").node("b", stream="other").wire("a", "b")
    here, there = Mailbox(), Mailbox()
    bus = Bus(net.plan(), {net.id("a"): here, net.id("b"): there}, {})
    woken = threading.Event()

    def sleep() -> None:
        while not there.messages:
            there.wait(60)
        woken.set()

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    bus.send([Message(FREE, net.id("a"), 0, 0), Message(READABLE, net.id("b"), 0, 0)], here)
    sleeper.join(60)
    assert woken.is_set() and len(here.messages) == len(there.messages) == 1
