"""Specs are interned: equal ones are one."""

from __future__ import annotations

import sys
import threading

from weft.core.dtype import float32
from weft.core.placement import Placement
from weft.core.sbp import broadcast
from weft.core.spec import Spec


def test_ranks_that_are_threads_make_one_spec() -> None:
    placement, gate, before = Placement("cpu", [0]), threading.Barrier(4), sys.getswitchinterval()
    made: list[list[Spec]] = [[] for _ in range(4)]

    def make(mine: list[Spec]) -> None:
        for n in range(2000):
            if n % 50 == 0:
                gate.wait(20)
            mine.append(Spec((n + 7, 9), float32, placement, (broadcast,)))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in made]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert all(spec is first for first, *others in zip(*made, strict=True) for spec in others)
