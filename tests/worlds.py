"""Worlds of real processes that start quickly, and what must be left of them: nothing.

A process that imports torch and Weft takes two seconds for that; one that is forked from a process that has, nothing.
That ranks are found and watched where they start from nothing is shown in tests/launch.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from bench.kills import listening
from weft.launch.processes import follow, variables_of
from weft.transport import transport_of
from weft.transport.c10d import C10dTransport
from weft.transport.rendezvous import serve
from weft.transport.roll import run_of
from weft.transport.secret import Signed

PATIENCE = 100.0  # seconds
SECRET = "of all runs that are tested"


def errors(log: Path) -> Path:
    return log.with_suffix(".errors")


@dataclass
class World:
    """Ranks under way. `ended` tells when, on the monotonic clock, and with which code; negative ones are signals."""

    pids: list[int]
    logs: list[Path]
    run: Signed
    ended: dict[int, tuple[float, int]] = field(default_factory=dict)

    def said(self, rank: int) -> str:
        """What a rank has printed, its errors last: a rank that waits for long says so there, on a slow machine."""
        return "".join(log.read_text() for log in (self.logs[rank], errors(self.logs[rank])) if log.exists())

    def wait_for(self, rank: int, words: str) -> None:
        """Until a rank has printed something."""
        end = time.monotonic() + PATIENCE
        while words not in self.said(rank):
            assert time.monotonic() < end, f"rank {rank} never said {words!r}"
            time.sleep(0.01)

    def well(self) -> list[str]:
        """What each rank printed, beside its errors, where all have ended well."""
        ended = [self.ended[rank][1] for rank in range(len(self.logs))]
        assert not any(ended), "\n".join(map(self.said, range(len(self.logs))))
        return [log.read_text() for log in self.logs]

    def signal(self, rank: int, number: int) -> None:
        os.kill(self.pids[rank], number)


Start = Callable[..., World]


@pytest.fixture(scope="session")
def nursery() -> Iterator[subprocess.Popen[str]]:
    yield from nursing()


def nursing(*words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).parent / "nursery.py"), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=partial(default_signals, os.getpid()),
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(PATIENCE) == 0


def default_signals(parent: int) -> None:
    """In a new process: be interruptible, even where a script that ignores SIGINT runs the tests; end with them; and
    run on any core."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    follow(parent)


def until_noted() -> None:
    """In a rank: until the others could read what it does now, were it killed."""
    transport = transport_of()
    if isinstance(transport, C10dTransport):  # notes travel with its heartbeat
        beat, note = f"watch/beat/{transport.rank}", transport._watch.note
        while not transport._meeting.value(beat).decode().endswith(f"|{note}"):
            time.sleep(0.01)


MARK = "WEFT_TEST_STARTED"


@contextlib.contextmanager
def started(words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A process, its output and errors in one; it ends with the block, and so does whatever it started."""
    mark = f"{os.getpid()}-{secrets.token_hex(8)}"
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, MARK: mark},
        preexec_fn=partial(default_signals, os.getpid()),
    )
    try:
        with process:
            try:
                yield process
            finally:
                end_marked(mark)
    finally:
        end_marked(mark)


def end_marked(mark: str) -> None:
    """Kill every process that has this mark in its environment, in whatever session it is."""
    words = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if words in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


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
        store = serve("127.0.0.1", 0, PATIENCE)
        ports.add(store.port)
        logs = [tmp_path / f"rank{i}.log" for i in range(n)]
        told = [
            variables_of(i, n, host="127.0.0.1", port=store.port, secret=SECRET, transport=transport) for i in range(n)
        ]
        ranks = [
            {"env": {**t, **(env or {})}, "log": str(log), "errors": str(errors(log))}
            for t, log in zip(told, logs, strict=True)
        ]
        place = target if ":" in target else f"{request.path}:{target}"
        order = {"target": place, "args": list(args), "ranks": ranks}
        print(json.dumps(order), file=nursery.stdin, flush=True)
        pids = json.loads(nursery.stdout.readline())
        found = World(pids, logs, run_of(store, SECRET))

        def next_end() -> None:
            assert nursery.stdout is not None
            rank, status = json.loads(nursery.stdout.readline())
            found.ended[rank] = time.monotonic(), os.waitstatus_to_exitcode(status)

        try:
            if during is not None:
                during(found)
            while len(found.ended) < n:
                next_end()
        finally:
            for pid in pids:  # each the leader of a session of its own, of which something may be left
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            while len(found.ended) < n:
                next_end()
        assert not any(SECRET in found.said(rank) for rank in range(n))
        return found

    yield start
    assert shared() <= before, "shared memory outlived its run"
    assert not ports & listening(), "a port outlived its run"


def program(path: str, *words: str) -> None:
    """In a rank's process: be the program."""
    sys.argv, sys.path[0] = [path, *words], str(Path(path).parent)
    os.chdir(sys.path[0])
    runpy.run_path(path, run_name="__main__")


PROGRAM = f"{__file__}:program"


@pytest.fixture
def alone(world: Start, tmp_path: Path) -> Start:
    """`alone(text, ...)` runs a program, given as its text, on one rank."""

    def start(text: str, *words: str, env: Mapping[str, str] | None = None) -> World:
        path = tmp_path / "program.py"
        path.write_text(text)
        return world(PROGRAM, 1, "local", str(path), *words, env=env)

    return start


def shared() -> set[str]:
    """Weft's objects in shared memory."""
    return {name for name in os.listdir("/dev/shm") if "weft" in name}
