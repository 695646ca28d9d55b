"""Threads that wait for what Gloo does."""

from __future__ import annotations

import weakref

import pytest

from weft.transport.c10d_connections import Waiter


class Work:
    """One that holds memory while somebody holds it, as Gloo's do."""

    def wait(self) -> None: ...


@pytest.mark.parametrize("count", [1, 3])
def test_nothing_is_held_of_what_is_complete(count: int) -> None:
    waiter, works = Waiter("waits", None), [Work() for _ in range(count)]
    held = [weakref.ref(work) for work in works]
    while works:
        waiter.add(works.pop())
    while not waiter.idle():
        waiter.rest(1.0)
    assert [work() for work in held] == [None] * count
    waiter.end()
    assert waiter.ended(10.0)
