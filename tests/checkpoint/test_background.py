"""A file that is written while the program goes on holds what the tensors held when it was asked for."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import weft as flow
from weft.checkpoint import file
from weft.core.errors import ArgumentError


def test_a_save_that_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go, write = threading.Event(), threading.Event(), file.write

    def slow(*args: Any) -> None:
        began.set()
        assert go.wait(60)
        write(*args)

    monkeypatch.setattr(file, "write", slow)
    x = flow.ones(3)
    with flow.vm.trace() as t:
        saving = flow.save({"x": x}, tmp_path / "x", wait=False)
        assert saving is not None and began.wait(60) and not saving.finished
        assert (x * 2).tolist() == [2.0] * 3  # who reads needn't wait
        threading.Timer(0.05, go.set).start()
        x.add_(1)  # who writes does
        assert saving.finished
        saving.wait()
    assert flow.load(tmp_path / "x")["x"].tolist() == [1.0] * 3
    (event,) = (e for e in t.events if e.kind == "file")
    assert (event.name, event.stream, event.policy) == ("save", "file", "worker") and "float32[3]" in event.reads[0]


def test_the_path_is_of_the_folder_at_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write, go = file.write, threading.Event()
    monkeypatch.setattr(file, "write", lambda *args: go.wait(60) and write(*args))
    saving = flow.save(flow.ones(1), "x", wait=False)
    monkeypatch.chdir(tmp_path.parent)
    go.set()
    assert saving is not None
    saving.wait()
    assert (tmp_path / "x").exists()


def test_what_goes_wrong_is_raised_where_it_is_waited_for(tmp_path: Path) -> None:
    saving = flow.save(flow.ones(1), tmp_path / "no such folder" / "x", wait=False)
    assert saving is not None
    with pytest.raises(Exception, match="no such folder"):
        saving.wait()


def test_global_tensors_are_waited_for(tmp_path: Path) -> None:
    x = flow.ones(2, placement=flow.placement("cpu", ranks=[0]), sbp=flow.sbp.broadcast)
    with pytest.raises(ArgumentError, match="local tensors"):
        flow.save(x, tmp_path / "x", wait=False)
