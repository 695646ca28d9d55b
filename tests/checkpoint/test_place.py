"""Where a checkpoint goes: only files are replaced, at their links' ends, with their modes; deaths leave nothing."""

from __future__ import annotations

import fcntl
import io
import os
import resource
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import weft as flow
from weft.checkpoint import load, place, save
from weft.core.errors import ArgumentError, CheckpointError
from weft.launch import spawn_threads


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))


def a_circle(path: Path) -> None:
    path.symlink_to(path)


def a_folder_of_that_name(path: Path) -> None:
    (path / place.INSIDE).mkdir(parents=True)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (os.mkfifo, "a fifo"),
        (a_socket, "a socket"),
        (a_circle, "circle"),
        (a_folder_of_that_name, "a folder"),
        (lambda p: p.symlink_to("/dev/null"), "a device"),
    ],
    ids=["fifo", "socket", "circle", "folder", "device"],
)
def test_what_is_no_file_stays(tmp_path: Path, make: Callable[[Path], None], says: str) -> None:
    path = tmp_path / "x"
    make(path)
    before = os.lstat(path)
    with pytest.raises(CheckpointError, match=says):
        save({"x": flow.ones(2)}, path)
    with pytest.raises((CheckpointError, OSError), match=rf"{says}|Too many levels"):
        load(path)
    assert os.lstat(path).st_ino == before.st_ino and stat.S_IFMT(os.lstat(path).st_mode) == stat.S_IFMT(before.st_mode)
    assert not list(tmp_path.glob(".*"))


def test_a_link_stays_and_leads_to_what_is_new(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "x"
    link.symlink_to("there/y")
    for n in (1, 2):  # where nothing is yet, and where something is
        save(n, link)
        assert link.is_symlink() and load(tmp_path / "there" / "y") == n
    assert os.listdir(tmp_path / "there") == ["y"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_the_mode_of_a_file_stays(tmp_path: Path, mode: int) -> None:
    (tmp_path / "x").touch()
    (tmp_path / "x").chmod(mode)
    save(1, tmp_path / "x")
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode


def test_the_mode_of_a_new_file_is_the_umasks(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save(1, tmp_path / "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_the_owner_of_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    os.chown(tmp_path / "x", 1234, 4321)
    save(1, tmp_path / "x")
    assert ((tmp_path / "x").stat().st_uid, (tmp_path / "x").stat().st_gid) == (1234, 4321)


def test_what_deaths_left_goes_and_what_others_are_writing_stays(tmp_path: Path) -> None:
    dead, living = (tmp_path / f"{place.UNFINISHED}{name}" for name in ("1-dead", "2-living"))
    dead.write_bytes(b"half of")
    with living.open("wb") as others:
        fcntl.flock(others, fcntl.LOCK_EX)
        save(1, tmp_path / "x")
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([living.name, "x"])
    save(2, tmp_path / "x")
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_that_was_cleared_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, made = place.lock, []

    def late(handle: int) -> bool | None:
        if not made:
            made.extend(tmp_path.iterdir())
            made[0].unlink()
        return lock(handle)

    monkeypatch.setattr(place, "lock", late)
    save(1, tmp_path / "x")
    assert len(made) == 1 and load(tmp_path / "x") == 1


@pytest.mark.parametrize("step", ["write", "fsync", "replace", "fchmod"])
def test_a_failed_save_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    save({"x": flow.ones(2)}, tmp_path / "x")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(*(("weft.checkpoint.file._sum", fail) if step == "write" else (f"os.{step}", fail)))
    with pytest.raises(OSError, match="no space"):
        save({"x": flow.zeros(2)}, tmp_path / "x")
    monkeypatch.undo()
    assert load(tmp_path / "x")["x"].tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("options", [{}, {"max_shard_size": "1MB"}])
def test_a_full_disk_is_told_with_the_path(tmp_path: Path, options: dict[str, str]) -> None:
    save({"x": flow.ones(2)}, tmp_path / "x", **options)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(OSError, match=f"{tmp_path}/x"):
            save({"x": flow.zeros(1 << 17)}, tmp_path / "x", **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert load(tmp_path / "x")["x"].tolist() == [1.0, 1.0]


def test_threads_save_beside_one_another(tmp_path: Path) -> None:
    def run() -> None:
        for _ in range(5):
            save({"x": flow.ones(1000)}, tmp_path / "x", global_dst_rank=None)

    spawn_threads(4, run)
    assert load(tmp_path / "x")["x"].sum().item() == 1000 and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("path", [3, None, 1.5, "", b"", "a\0b", ["x"]])
def test_what_is_no_path(path: object) -> None:
    for call in (lambda: save(1, path), lambda: load(path)):
        with pytest.raises(ArgumentError, match="path"):
            call()


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"no folder to save {tmp_path}/missing/x to; os.makedirs"):
        save({"x": flow.ones(2)}, tmp_path / "missing" / "x")


def test_new_checkpoints_are_folders_where_programs_expect_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.HABIT, "folders", True)
    path, old = tmp_path / "epoch_0", tmp_path / "old"
    old.write_bytes(b"")
    background = save({"x": flow.ones(2)}, tmp_path / "later", wait=False)
    assert background is not None
    background.wait()
    for step in (1, 2):
        save({"step": step}, path)
        save({"step": step}, old)  # a file stays one
        assert load(path) == load(old) == {"step": step} and os.listdir(path) == [place.INSIDE] and old.is_file()
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["epoch_0", "later"]
    save({"w": flow.ones(4)}, tmp_path / "shards", max_shard_size="1KB")
    assert all(p.is_file() for p in (tmp_path / "shards").iterdir())
    save({"x": 1}, tmp_path / "1" / "model")  # as programs do that lay models out for a server
    assert load(tmp_path / "1" / "model") == {"x": 1}
    stream = io.BytesIO()
    save({"x": 1}, stream)


def test_each_rank_and_the_writer_of_global_tensors_make_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.HABIT, "folders", True)

    def run() -> None:
        both, rank = flow.placement("cpu", [0, 1]), flow.env.get_rank()
        x = flow.arange(4.0, placement=both, sbp=flow.sbp.split(0))
        save({"x": x}, tmp_path / "whole", global_dst_rank=1)
        save({"rank": rank}, tmp_path / "each")  # as programs do where all ranks run one line
        assert load(tmp_path / "whole", placement=both)["x"].tolist() == [0.0, 1.0, 2.0, 3.0]
        assert load(tmp_path / "each")["rank"] in (0, 1)

    spawn_threads(2, run)
    assert (tmp_path / "whole").is_dir() and (tmp_path / "each").is_dir()
