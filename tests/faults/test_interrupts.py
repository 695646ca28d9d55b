"""Ctrl-C ends every rank soon, in whatever phase and by whatever it was started, and leaves nothing behind.

The tests run as in a script's background, where SIGINT is ignored: what they start must not inherit that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import kills, victims
from bench.kills import Kill, Nursery, Run
from tests.worlds import Start
from weft.launch import spawn_threads
from weft.vm import vm_of

THREADS = "spawn_threads"
IMPORTING = "importing"  # not a phase that a rank tells of: the interrupt falls at once
PHASES = ("registered", "met", "collectives", "messages", "compiling", "launches", "pipeline", "data loader", "saving")
FORKED = [("forked by hand", phase, kills.TRANSPORTS[i % 2]) for i, phase in enumerate(PHASES)]
ENDED = 40.0  # seconds, beside whatever else runs; a rank that waits on would end by its alarm, after 60


@pytest.fixture(autouse=True)
def in_the_background() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def until(ready: Callable[[], object], why: str) -> None:
    end = time.monotonic() + ENDED
    while not ready():
        assert time.monotonic() < end, why
        time.sleep(0.01)


def threads(kill: Kill, folder: Path, nursery: Nursery) -> Run:
    pids = nursery.fork(f"{kills.PROGRAM}:endless", kills.arguments(kill, folder), [kills.common(kill, folder)], folder)

    def end() -> str:
        nursery.reap(1)
        return (folder / "start0").read_text()

    return Run(0, set(pids), end)


def interrupted(start: str, phase: str, transport: str, nursery: subprocess.Popen[str]) -> str:
    """Interrupt what stands in a terminal's foreground, the launcher or, by hand, every rank, once a rank is in its
    phase. What was said, after all have ended."""
    kill, early = Kill("met" if phase == IMPORTING else phase, start, transport, 0, 0.0), phase == IMPORTING
    folder = Path(tempfile.mkdtemp(prefix="weft-interrupt-"))
    begin = threads if start == THREADS else kills.STARTS[start]
    try:
        run = begin(kill, folder, Nursery(nursery))
        sessions = set(run.sessions)
        try:
            until(lambda: early or (folder / "marked").exists(), f"{kill} never came to its phase")
            for leader in run.sessions:
                with contextlib.suppress(ProcessLookupError):  # it has heard of another's interrupt already
                    os.killpg(leader, signal.SIGINT)
            (folder / victims.LATE).touch()
            until(lambda: not [*kills.in_sessions(sessions | pids(folder))], f"{kill}: somebody went on")
        finally:
            for leader in sessions | pids(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(leader, signal.SIGKILL)
            said = run.end()
        assert not kills.left_behind(folder, sessions | pids(folder), run.port)
        return said + "".join(p.read_text() for p in sorted(folder.glob("rank?")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pids(folder: Path) -> set[int]:
    return {int(p.read_text()) for p in folder.glob("pid?")}


@pytest.mark.parametrize(("start", "phase", "transport"), FORKED)
def test_by_hand(start: str, phase: str, transport: str, nursery: subprocess.Popen[str]) -> None:
    assert "KeyboardInterrupt" in interrupted(start, phase, transport, nursery)


@pytest.mark.parametrize("phase", PHASES)
def test_threads(phase: str, nursery: subprocess.Popen[str]) -> None:
    assert "KeyboardInterrupt" in interrupted(THREADS, phase, "local", nursery)


@pytest.mark.parametrize(
    ("start", "phase", "transport"), [("torchrun", "saving", "shm"), ("spawn", "data loader", "shm")]
)
def test_launchers(start: str, phase: str, transport: str, nursery: subprocess.Popen[str]) -> None:
    """tests/faults/test_faults.py interrupts weft.launch amid training."""
    interrupted(start, phase, transport, nursery)


@pytest.mark.parametrize("start", kills.REAL)
def test_before_anything_runs(start: str, nursery: subprocess.Popen[str]) -> None:
    interrupted(start, IMPORTING, "shm", nursery)


def interrupted_in_a_thread() -> None:
    """The kernel gives a signal to any thread that doesn't block it; Python handles it in the main one, which waits."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])

    def body() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        time.sleep(0.5)  # until the main thread waits
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(ENDED)
        os._exit(1)

    for wait in (lambda: spawn_threads(1, body), lambda: vm_of().submit("file", "file", body).wait()):
        with contextlib.suppress(KeyboardInterrupt):
            wait()
    print("heard twice", flush=True)
    os._exit(0)


def test_a_signal_that_another_thread_takes_ends_a_wait(world: Start) -> None:
    assert world("interrupted_in_a_thread", 1, "shm").well() == ["heard twice\n"]
