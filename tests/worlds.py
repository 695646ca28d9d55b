"""Worlds of real processes that start quickly, and what must be left of them: nothing.

A process that imports torch and Weft takes two seconds for that; one that is forked from a process that has, nothing.
That ranks are found and watched where they start from nothing is shown in tests/launch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
import torch.distributed as dist

from weft.launch.processes import variables_of

PATIENCE = 100.0  # seconds


@dataclass
class World:
    """Ranks under way. `ended` tells when, on the monotonic clock, and with which code; negative ones are signals."""

    pids: list[int]
    logs: list[Path]
    store: dist.Store
    ended: dict[int, tuple[float, int]] = field(default_factory=dict)

    def said(self, rank: int) -> str:
        return self.logs[rank].read_text()

    def wait_for(self, rank: int, words: str) -> None:
        """Until a rank has printed something."""
        end = time.monotonic() + PATIENCE
        while words not in (self.said(rank) if self.logs[rank].exists() else ""):
            assert time.monotonic() < end, f"rank {rank} never said {words!r}"
            time.sleep(0.01)

    def well(self) -> list[str]:
        """What each rank said, where all have ended well."""
        said = [self.said(rank) for rank in range(len(self.logs))]
        assert [self.ended[rank][1] for rank in range(len(said))] == [0] * len(said), "\n".join(said)
        return said

    def signal(self, rank: int, number: int) -> None:
        os.kill(self.pids[rank], number)


Start = Callable[..., World]


@pytest.fixture(scope="session")
def nursery() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).parent / "nursery.py")]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(PATIENCE) == 0


@pytest.fixture
def world(nursery: subprocess.Popen[str], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Start]:
    """`world("function", n, transport)` runs a function on n ranks; `during` may interfere.

    The function is one of the test's file, or "file.py:function".
    """
    before, ports = shared(), set()

    def start(
        target: str,
        n: int,
        transport: str,
        *args: str,
        env: Mapping[str, str] | None = None,
        during: Callable[[World], None] | None = None,
    ) -> World:
        assert nursery.stdin is not None and nursery.stdout is not None
        store = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=PATIENCE), wait_for_workers=False)
        ports.add(store.port)
        logs = [tmp_path / f"rank{i}.log" for i in range(n)]
        told = [variables_of(i, n, host="127.0.0.1", port=store.port, transport=transport) for i in range(n)]
        ranks = [{"env": {**t, **(env or {})}, "log": str(log)} for t, log in zip(told, logs, strict=True)]
        place = target if ":" in target else f"{request.path}:{target}"
        order = {"target": place, "args": list(args), "ranks": ranks}
        print(json.dumps(order), file=nursery.stdin, flush=True)
        pids = json.loads(nursery.stdout.readline())
        found = World(pids, logs, store)
        try:
            if during is not None:
                during(found)
        except BaseException:
            for pid in pids:
                os.kill(pid, 9)
            raise
        finally:
            for _ in range(n):
                rank, status = json.loads(nursery.stdout.readline())
                found.ended[rank] = time.monotonic(), os.waitstatus_to_exitcode(status)
        return found

    yield start
    assert shared() <= before, "shared memory outlived its run"
    assert not ports & listening(), "a port outlived its run"


def shared() -> set[str]:
    """Weft's objects in shared memory."""
    return {name for name in os.listdir("/dev/shm") if "weft" in name}


def listening() -> set[int]:
    """The ports of this host on which somebody waits."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"}
