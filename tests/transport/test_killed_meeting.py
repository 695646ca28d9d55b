"""A rank that is started by hand is killed at a step of the meeting; the others, of which one comes late, name it."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.ports import free_ports
from weft.core.rank import current
from weft.transport import transport_of
from weft.transport.rendezvous import Meeting
from weft.transport.secret import Signed

RANKS = 3  # of each run
SOON = 15.0  # seconds, where everything else runs at the same time; the deadline is far behind
STEPS = ("add", "set", "first", "get")  # methods of the store

# The victim, the step after which it is killed, and whether rank 1 then hasn't yet looked for others.
KILLS = {
    "shm": [
        (0, "add weft/0/opened/0", True),
        (0, "set weft/0/1/come/0", True),
        (0, "get weft/0/1/come/1", False),
        (1, "set weft/0/1/come/1", False),
        (1, "get weft/0/1/come/0", False),
        (1, "add weft/0/1/group/0,1,2/claim", False),
        (0, "set weft/0/1/group/0,1,2", False),
    ],
    "c10d": [
        (0, "set weft/0/1/come/0", True),
        (1, "set weft/0/1/come/1", False),
        (0, "set weft/0/1/come/cpu/0,1,2/0", False),
        (1, "get weft/0/1/come/cpu/0,1,2/0", False),
    ],
}


def die_after(step: str, reached: Path, dies: Path) -> None:
    """Be killed after a step, but not before another rank has reached the store."""

    def watched(name: str) -> None:
        was = getattr(Signed, name)

        def call(self: Signed, key: str, *given: Any) -> Any:
            found = was(self, key, *given)
            if f"{name} {self._prefix}{key}" == step:
                until(reached)
                dies.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        setattr(Signed, name, call)

    for name in STEPS:
        watched(name)


def until(path: Path) -> None:
    while not path.exists():
        time.sleep(0.002)


def meets(transport: str, folder: str, *ports: str) -> None:
    """One rank of one of several runs, which are by hand."""
    run, rank = divmod(int(os.environ["RANK"]), RANKS)
    victim, step, halts = KILLS[transport][run]
    for name in [n for n in os.environ if n.startswith(("TORCHELASTIC", "LOCAL_", "GROUP_"))]:
        del os.environ[name]
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_PORT=ports[run])
    reached, dies = Path(folder, f"{run}.reached"), Path(folder, f"{run}.dies")
    if rank == victim:
        die_after(step, reached, dies)
    elif rank == 2:
        until(reached)
        if "group" not in step and "cpu" not in step:  # at those steps all have come
            until(dies)
    else:
        begin = Meeting.__init__

        def reach(self: Meeting, *given: Any) -> None:
            begin(self, *given)
            reached.touch()
            if halts:
                until(dies)

        Meeting.__init__ = reach  # type: ignore[method-assign]
    opened = transport_of()
    if rank != victim and step.startswith("set") and "/group/" in step:  # who claims a group first makes its memory
        until(dies)
    opened.group(range(current().world_size)).all_reduce(torch.ones(2))


@pytest.mark.parametrize("transport", KILLS)
def test_the_others_end_soon_and_name_the_rank(world: Any, tmp_path: Path, transport: str) -> None:
    kills = KILLS[transport]
    ports = [str(port) for port, _ in zip(free_ports(), kills, strict=False)]
    done = world("meets", RANKS * len(kills), transport, transport, str(tmp_path), *ports, env={"WEFT_DEADLINE": "60"})
    for run, (victim, step, _) in enumerate(kills):
        for rank in range(RANKS):
            when, code = done.ended[RANKS * run + rank]
            said = done.said(RANKS * run + rank)
            if rank == victim:
                assert code == -signal.SIGKILL, (step, said)
            else:
                assert code == 1 and when - done.ended[RANKS * run + victim][0] < SOON, (step, rank, said)
                assert re.search(rf"(Error|Failed): .*\brank {victim}\b", said), (step, rank, said)
