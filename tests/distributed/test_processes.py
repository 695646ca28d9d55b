"""Processes that nobody launched: each is told its place by init_process_group."""

from __future__ import annotations

import runpy
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from weft.distributed import launch

HERE = Path(__file__).parent


def test_spawned_processes_join_and_train_as_one() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ran = subprocess.run([sys.executable, str(HERE / "spawned.py"), port], capture_output=True, text=True, timeout=250)
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
