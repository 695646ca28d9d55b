"""Ranks as threads of one process, over the local transport."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from weft.core.rank import Rank, enter
from weft.transport import LocalTransport, LocalWorld, PeerFailed, raised
from weft.transport.base import bounded
from weft.transport.hosts import world_of

GRACE = 8.0  # seconds that the other ranks have to end after one failed
LOOK = 0.2  # seconds at most between looks for Ctrl-C: a signal that another thread took doesn't end a wait


def spawn_threads(n: int, function: Callable[..., Any], *args: Any, deadline: float | None = None) -> list[Any]:
    """Call `function(*args)` on each of `n` ranks of a new world; the results in the order of the ranks.

    If a rank raises, the others get RankError at their next wait, and its exception is raised here.
    """
    world_of(n)
    if deadline is not None:
        bounded(deadline, "deadline")
    world = LocalWorld(n)
    ranks = [Rank(i, n) for i in range(n)]
    for rank in ranks:
        rank.resource("transport", lambda r: LocalTransport(world, r.index, deadline))
    ended: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()
    share = max(1, (os.cpu_count() or 1) // n)

    def run(rank: Rank) -> None:
        result, error = None, None
        world.programs[rank.index] = threading.get_ident()
        torch.set_num_threads(share)  # for this thread: idle thread pools of many ranks would spin against each other
        try:
            with enter(rank):
                try:
                    result = function(*args)
                    machine = rank.resources.get("vm")
                    if machine is not None:
                        machine.sync()  # an error that nobody read fails the rank
                except BaseException as caught:
                    world.fail(rank.index, raised(caught))
                    with contextlib.suppress(Exception):  # errors here must not replace the first one
                        rank.close()
                    raise
                rank.close()
        except BaseException as caught:
            error = caught
            world.fail(rank.index, raised(caught))
        ended.put((rank.index, result, error))

    threads_before = torch.get_num_threads()
    threads = [threading.Thread(target=run, args=(r,), name=f"weft-rank-{r.index}", daemon=True) for r in ranks]
    for thread in threads:
        thread.start()
    try:
        results = _collect(world, ended, n)
        for thread in threads:
            thread.join()
        return results
    finally:
        torch.set_num_threads(threads_before)


def _collect(world: LocalWorld, ended: queue.SimpleQueue, n: int) -> list[Any]:
    results: list[Any] = [None] * n
    errors: list[tuple[int, BaseException]] = []
    end, left = math.inf, n
    while left:
        try:
            index, results_of, error = ended.get(timeout=min(LOOK, max(0.0, end - time.monotonic())))
        except queue.Empty:
            if time.monotonic() < end:
                continue
            break
        except KeyboardInterrupt:
            for rank in range(n):
                world.fail(rank, "was interrupted")
            with contextlib.suppress(queue.Empty):
                for _ in range(n):
                    ended.get(timeout=GRACE / 4)
            raise
        left -= 1
        results[index] = results_of
        if error is not None:
            errors.append((index, error))
            end = min(end, time.monotonic() + GRACE)
    if errors:
        # A rank's own error explains more than those that the others raised because of it.
        index, error = min(errors, key=lambda one: isinstance(one[1], PeerFailed))
        error.add_note(f"raised on rank {index} of {n}")
        raise error
    return results
