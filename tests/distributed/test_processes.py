"""Processes that nobody launched: each is told its place by init_process_group."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from bench.ports import free_port
from weft.distributed import launch

HERE = Path(__file__).parent


def test_spawned_processes_join_and_train_as_one() -> None:
    run = [sys.executable, str(HERE / "spawned.py"), str(free_port())]
    ran = subprocess.run(run, capture_output=True, text=True, timeout=250)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["alike", "2"]


def test_the_launcher_answers_to_the_name_that_others_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["launch", "--help"])
    monkeypatch.delitem(sys.modules, launch.__name__)  # as in a process that hasn't imported it
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(launch.__name__, run_name="__main__")
    assert not ended.value.code and "--nproc_per_node" in capsys.readouterr().out
