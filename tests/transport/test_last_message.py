"""A rank that sends last and ends takes nothing along: its memory stays until the receiver holds it, or has ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.rank import current
from weft.transport import transport_of
from weft.transport.c10d_connections import Waiter
from weft.transport.shared.shm import ShmTransport

NOTICED = 30.0  # seconds, where everything else runs at the same time


def at_its_end(transport: ShmTransport) -> None:
    """Tell the others when this rank waits for them at its end; it never does where it doesn't."""
    wait = transport.wait_until

    def waiting(ready: Callable[[], object], *rest: Any, **more: Any) -> None:
        transport.put("waits at its end", b"")
        wait(ready, *rest, **more)

    transport.wait_until = waiting  # type: ignore[method-assign]


def sends(kind: str, x: flow.Tensor) -> None:
    transport, t = transport_of(), torch.arange(3.0)
    if kind == "send":
        transport.send(t, 1)
    elif kind == "unwaited":
        flow.distributed.isend(flow.from_torch(t), 1)
    elif kind == "line":
        transport.exchange(((1, t),), (), "line")
    elif kind == "channel":
        end = transport.channel("k", 0, 1, (3,), torch.float32, 1)
        end.buffer(0).copy_(t)
        end.post()
    else:
        x.to_global(placement=flow.placement("cpu", [1]))


def takes(kind: str, x: flow.Tensor) -> torch.Tensor:
    transport, t = transport_of(), torch.empty(3)
    if kind in ("send", "unwaited"):
        transport.recv(t, 0)
    elif kind == "line":
        transport.exchange((), ((0, t),), "line")
    elif kind == "channel":
        end = transport.channel("k", 0, 1, (3,), torch.float32, 1)
        transport.wait_until(end.arrived, "rank 0", (0,))
        t = end.buffer(0).clone()
    else:
        t = torch.tensor(x.to_global(placement=flow.placement("cpu", [1])).to_local().tolist())
    return t


def last(kind: str, then: str = "takes") -> None:
    transport, x = transport_of(), flow.arange(3.0, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)
    assert isinstance(transport, ShmTransport)
    if current().index == 0:
        sends(kind, x)
        at_its_end(transport)
        return
    transport.get("waits at its end")
    if then == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "takes":
        print(takes(kind, x).tolist())


@pytest.mark.parametrize("kind", ["send", "unwaited", "line", "channel", "boxing"])
def test_the_last_message_arrives_after_its_sender_has_come_to_its_end(world: Any, kind: str) -> None:
    assert world("last", 2, "shm", kind).well()[1] == "[0.0, 1.0, 2.0]\n"


@pytest.mark.parametrize("then", ["ends", "dies"])
def test_a_receiver_that_never_takes_it_holds_nobody(world: Any, then: str) -> None:
    done = world("last", 2, "shm", "send", then)
    assert done.ended[0][1] == 0 and abs(done.ended[0][0] - done.ended[1][0]) < NOTICED


def held_until_the_deadline() -> None:
    """The receiver lives, and never takes it."""
    transport = transport_of()
    assert isinstance(transport, ShmTransport)
    if current().index:
        transport._meeting.get("left/0", 60.0)
        return
    transport.send(torch.ones(1), 1)
    transport.deadline = 0.1
    start = time.monotonic()
    transport.close()
    print(0.1 <= time.monotonic() - start < NOTICED)


def test_no_longer_than_the_deadline(world: Any) -> None:
    assert world("held_until_the_deadline", 2, "shm").said(0) == "True\n"


class HeldUp:
    """A work of Gloo's whose end is noticed late."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def wait(self) -> None:
        self.work.wait()
        time.sleep(1.0)


def noticed_late(kind: str) -> None:
    x = flow.arange(3.0, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)
    if current().index == 0:
        return sends(kind, x)
    add = Waiter.add
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Waiter, "add", lambda self, work, message=None: add(self, HeldUp(work), message))
        print(takes(kind, x).tolist())


@pytest.mark.parametrize("kind", ["send", "unwaited", "line", "channel", "boxing"])
def test_what_gloo_has_received_counts_after_the_senders_end(world: Any, kind: str) -> None:
    assert world("noticed_late", 2, "c10d", kind).well()[1] == "[0.0, 1.0, 2.0]\n"
