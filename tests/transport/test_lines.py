"""What goes over a line is ordered by itself: two threads of a rank may talk to the others in any order."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from weft.core.rank import current, enter
from weft.launch import spawn_threads
from weft.transport import Line, transport_of


def talk() -> None:
    """The two ranks begin with different lines, so that in one order they would wait for each other."""
    rank, transport = current(), transport_of()
    line = Line(transport, "graph")
    found: dict[str, list[float]] = {}

    def over(name: str, on: Line | None) -> None:
        with enter(rank):
            said = []
            for i in range(20):
                t = torch.full((3,), float(rank.index + i))
                (transport.group((0, 1)) if on is None else on.group((0, 1))).all_reduce(t)
                got, other = torch.empty(1), 1 - rank.index
                (transport if on is None else on).exchange([(other, t[:1] + rank.index)], [(other, got)])
                said.append(got.item())
            found[name] = said

    threads = [threading.Thread(target=over, args=one) for one in (("", None), ("graph", line))]
    for thread in threads[:: 1 - 2 * rank.index]:
        thread.start()
    for thread in threads:
        thread.join(60)
    expected = [1.0 + 2 * i + 1 - rank.index for i in range(20)]
    assert found == {"": expected, "graph": expected}


def test_threads() -> None:
    spawn_threads(2, talk, deadline=60)


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_processes(world: Any, transport: str) -> None:
    world("talk", 2, transport, env={"WEFT_DEADLINE": "60"}).well()
