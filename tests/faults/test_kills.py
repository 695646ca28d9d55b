"""A rank is killed in each phase of a run, at some time in it: `python -m bench.faults` does so a thousand times."""

from __future__ import annotations

import subprocess

import pytest

from bench.kills import FORKED, THREADS, TRANSPORTS, Kill, Nursery, tried
from bench.victims import PHASES

NOTICED = 20.0  # seconds, beside whatever else runs; who waits on is told hanging after 25
STARTS = list(FORKED)


@pytest.mark.parametrize(("number", "phase"), list(enumerate(PHASES)), ids=PHASES)
def test_the_others_end_and_name_the_rank(nursery: subprocess.Popen[str], number: int, phase: str) -> None:
    start, bad = STARTS[number % 2], number // 2 % 2
    seen = tried(Kill(phase, start, TRANSPORTS[(number + bad) % 2], bad, 0.005 * number), Nursery(nursery))
    assert not seen.failed and not seen.hangs and seen.slowest < NOTICED, seen
    assert seen.names_rank(1 - bad), seen.output
    assert not seen.left


@pytest.mark.parametrize("phase", PHASES)
def test_threads_end_and_name_rank_and_op(nursery: subprocess.Popen[str], phase: str) -> None:
    seen = tried(Kill(phase, THREADS, "local", 1, 0.0), Nursery(nursery))
    assert not seen.failed and seen.slowest < NOTICED, seen
    assert seen.names_rank(0) and seen.names_work(0), seen.output
