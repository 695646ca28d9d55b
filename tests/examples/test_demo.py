"""The demo in small: it trains, draws and writes; Ctrl-C ends it on every rank."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "weft.launch", "--nproc_per_node", "2", "examples/demo.py"]
COMMAND += ["--layers", "1", "--width", "16", "--context", "16", "--every", "5"]
TOLD = {**os.environ, "OMP_NUM_THREADS": "1"}


def test_it_trains_draws_and_writes(tmp_path: Path) -> None:
    command = [*COMMAND, "--steps", "12", "--out", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, env=TOLD, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    for told in (
        "after   10 steps: loss",
        "step   12/12",
        "tokens/s",
        "what it writes now",
        "The ",
        "the loss fell from",
    ):
        assert ended.stdout.count(told) >= 1, ended.stdout
    assert ended.stdout.count("what it writes now") == 1


def test_an_interrupt_ends_every_rank(tmp_path: Path) -> None:
    command = [*COMMAND, "--steps", "100000", "--out", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, env=TOLD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as launcher:
        assert launcher.stdout is not None
        try:
            assert any("steps: loss" in line for line in launcher.stdout)  # it is in the middle of the training
            start = time.monotonic()
            launcher.send_signal(signal.SIGINT)
            _, told = launcher.communicate(timeout=30)
        finally:
            launcher.kill()
    assert launcher.returncode == 130
    assert time.monotonic() - start < 10
    assert "interrupted; every rank was ended" in told
    assert "Traceback" not in told, told
