"""The demo in small: it trains, draws and writes; Ctrl-C ends every rank without a word."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.worlds import PROGRAM, Start

DEMO = str(Path(__file__).resolve().parents[2] / "examples" / "demo.py")
SMALL = ["--layers", "1", "--width", "16", "--context", "16", "--every", "5"]


def test_it_trains_draws_and_writes(world: Start, tmp_path: Path) -> None:
    said = "".join(world(PROGRAM, 2, "shm", DEMO, *SMALL, "--steps", "12", "--out", str(tmp_path)).well())
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    for told in (
        "after   10 steps: loss",
        "step   12/12",
        "tokens/s",
        "what it writes now",
        "The ",
        "the loss fell from",
    ):
        assert told in said, said
    assert said.count("what it writes now") == 1


def test_an_interrupt_ends_every_rank(world: Start, tmp_path: Path) -> None:
    """The launcher tells all of them, as here; that it does is shown in tests/faults. A rank whose launch needs one
    that has ended by then says so, and fails."""

    def during(running: Any) -> None:
        running.wait_for(0, "steps: loss")  # it is in the middle of the training
        for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGCONT):  # none sees the other's end before its own comes
            for rank in (0, 1):
                running.signal(rank, number)

    done = world(PROGRAM, 2, "shm", DEMO, *SMALL, "--steps", "100000", "--out", str(tmp_path), during=during)
    for rank, (_, code) in done.ended.items():
        said = done.said(rank)
        assert (code == 130 and "Traceback" not in said) or (code == 1 and f"rank {1 - rank} has ended" in said), said
    assert 130 in [code for _, code in done.ended.values()]
