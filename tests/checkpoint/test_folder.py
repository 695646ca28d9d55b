"""A model's folder, written as hubs have it: what safetensors and Weft read of it, whatever the layout was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.torch
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.checkpoint import folder
from weft.core.errors import ArgumentError, CheckpointError, WeftError

S, B = flow.sbp.split, flow.sbp.broadcast


def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    found = {
        "embed": torch.randn(6, 4),
        "a.weight": torch.randn(4, 5, 3),
        "a.bias": torch.randn(5),
        "n": torch.tensor(7),
    }
    found |= {"half": torch.randn(3, 2).to(torch.bfloat16), "mask": torch.tensor([True, False, True])}
    found |= {f"f8.{n}": torch.randn(4, 2).to(getattr(torch, n)) for n in ("float8_e4m3fn", "float8_e5m2")}
    return found | {"empty": torch.empty(0, 3), "head": found["embed"]}


def layouts(two_dims: bool) -> dict[str, Any]:
    one = {"embed": S(0), "a.weight": S(1), "a.bias": S(0), "half": S(1), "f8.float8_e4m3fn": S(0), "mask": S(0)}
    return {
        k: (S(0), s) if two_dims and k in ("embed", "a.weight") else (B, s) if two_dims else s for k, s in one.items()
    }


def read(path: Path) -> dict[str, torch.Tensor]:
    """As others read it: by the index, if there is one."""
    index = path / "model.safetensors.index.json"
    if not index.exists():
        return safetensors.torch.load_file(path / "model.safetensors")
    where = json.loads(index.read_text())["weight_map"]
    found = {}
    for name, file in where.items():
        with safetensors.safe_open(path / file, "pt") as opened:
            assert opened.metadata()["format"] == "pt"
            found[name] = opened.get_tensor(name)
    return found


def same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, t in expected.items():
        assert found[name].dtype == t.dtype and found[name].shape == t.shape, name
        assert torch.equal(found[name].float(), t.float()), name


@pytest.mark.parametrize(("most", "files"), [("5GB", 1), (130, 3), ("0.025KB", 5), (1, 9)])
def test_local_tensors(tmp_path: Path, most: Any, files: int) -> None:
    whole = state()
    ours = {k: flow.from_torch(v) for k, v in whole.items() if k != "head"}
    flow.save(ours | {"head": ours["embed"]}, tmp_path / "new" / "one", max_shard_size=most)
    written = sorted(os.listdir(tmp_path / "new" / "one"))
    assert len(written) == (files if files == 1 else files + 1)
    same(read(tmp_path / "new" / "one"), {k: v for k, v in whole.items() if k != "head"})  # what is tied is there once
    same({k: v.to_torch() for k, v in flow.load(tmp_path / "new" / "one").items()}, whole)


@pytest.mark.parametrize("two_dims", [False, True])
def test_each_rank_writes_its_slices(tmp_path: Path, two_dims: bool) -> None:
    whole = state()
    written: list[tuple[int, str]] = []

    @on(4 if two_dims else 2)
    def run() -> None:
        n = flow.env.get_world_size()
        P = flow.placement("cpu", ranks=[[0, 1], [2, 3]] if two_dims else list(range(n)))
        how = layouts(two_dims)
        ours = {
            k: flow.from_torch(v).to_global(P, (B,) * P.ndim).to_global(P, how.get(k, (B,) * P.ndim))
            for k, v in whole.items() if k != "head"
        }  # fmt: skip
        ours["sum"] = flow.ones(3).to_global(P, (flow.sbp.partial_sum,) * P.ndim)
        for name, t in ours.items():
            written.extend((flow.env.get_rank(), name) for _ in folder._parts(t, flow.env.get_rank(), 0))
        flow.save(ours | {"head": ours["embed"]}, tmp_path, max_shard_size=130)
        again = flow.load(tmp_path, placement=P, sbp={"embed": how["embed"]})
        assert again["head"].sbp == (B,) * P.ndim and again["embed"].sbp == ours["embed"].sbp
        same({"embed": again["embed"].to_local().to_torch()}, {"embed": ours["embed"].to_local().to_torch()})

    run()
    expected = {k: v for k, v in whole.items() if k != "head"} | {"sum": torch.full((3,), 4.0 if two_dims else 2.0)}
    same(read(tmp_path), expected)
    by_name = {name: [rank for rank, n in written if n == name] for name in expected}
    assert by_name["n"] == [0] and sorted(by_name["embed"]) == ([0, 1, 2, 3] if two_dims else [0, 1])
    assert sorted(by_name["half"]) == [0, 1]  # under two dims, ranks 2 and 3 hold the same


def test_a_later_save_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    model = nn.Linear(4, 4)
    (tmp_path / "config.json").write_text("{}")
    flow.save(model.state_dict(), tmp_path, max_shard_size=1)
    assert len(os.listdir(tmp_path)) == 4
    flow.save(model.state_dict(), tmp_path, max_shard_size="1MiB")
    assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors"]
    model.load_state_dict(flow.load(tmp_path))


@pytest.mark.parametrize("where", [(folder, "_put"), (os, "truncate"), (folder.file, "seal"), (os, "replace")])
def test_a_failed_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any) -> None:
    flow.save({"x": flow.ones(2)}, tmp_path, max_shard_size=8)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(*where, full)

    @on(2)
    def run() -> None:
        P = flow.placement("cpu", ranks=[0, 1])
        with pytest.raises((OSError, CheckpointError), match=r"no space left|rank [01] could not write"):
            flow.save({"x": flow.zeros(2, placement=P, sbp=B)}, tmp_path, max_shard_size=8)

    run()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


class Killed(BaseException):
    pass


@pytest.mark.parametrize(("before", "after"), [(8, 8), (1000, 8), (8, 1000)], ids=["again", "cut", "joined"])
def test_a_kill_between_any_two_steps_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    def save(value: float, most: int) -> None:
        flow.save({name: flow.full((2,), value) for name in "abc"}, tmp_path, max_shard_size=most)

    steps = ("replace", "unlink", "truncate", "fsync", "fchmod", "pwrite", "open", "makedirs")
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a kill loses nothing that the kernel has been given
    real = {name: getattr(os, name) for name in steps}
    left = 0

    def dying(name: str) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:  # nor does a dead process clean up
                raise Killed
            return real[name](*given, **named)

        return step

    ended, kills = False, 0
    while not ended:
        old = 2.0 * kills
        save(old, before)
        files = sorted(os.listdir(tmp_path))
        assert len(files) == (4 if before == 8 else 1)  # nothing is left of the last one
        with monkeypatch.context() as dead:
            left = kills
            for name in steps:
                dead.setattr(os, name, dying(name))
            try:
                save(old + 1, after)
                ended = True
            except Killed:
                kills += 1
        found = {t[0].item() for t in flow.load(tmp_path).values()}
        assert found in ({old}, {old + 1}) and len(flow.load(tmp_path)) == 3
    assert kills > 15


def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    flow.save({"a": flow.ones(5), "b": flow.arange(3)}, tmp_path, max_shard_size=20)
    for path in sorted(tmp_path.glob("*.safetensors")):
        data = bytearray(path.read_bytes())
        for bit in range(0, 8 * len(data), 31):
            data[bit // 8] ^= 1 << bit % 8
            path.write_bytes(data)
            with pytest.raises(CheckpointError):
                flow.load(tmp_path)
            data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
    assert flow.load(tmp_path)["b"].tolist() == [0, 1, 2]


def test_files_of_two_saves_are_not_mixed(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        flow.save({"a": flow.full((2,), value), "b": flow.ones(2)}, tmp_path / str(value), max_shard_size=8)
    names = sorted(p.name for p in (tmp_path / "1.0").glob("*.safetensors"))
    (tmp_path / "1.0" / names[0]).write_bytes((tmp_path / "2.0" / names[0]).read_bytes())
    with pytest.raises(CheckpointError, match="another save than the folder's index"):
        flow.load(tmp_path / "1.0")


def test_saves_into_one_folder_take_turns(tmp_path: Path) -> None:
    @on(2)
    def run() -> None:
        value = float(flow.env.get_rank())
        for _ in range(4):
            flow.save({name: flow.full((500,), value) for name in "abc"}, tmp_path, max_shard_size=2000)

    run()
    assert len({t[0].item() for t in flow.load(tmp_path).values()}) == 1 and len(os.listdir(tmp_path)) == 4


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda p: p.symlink_to("elsewhere")], ids=["fifo", "folder", "link"]
)
def test_what_is_no_file_stays(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "model.safetensors")
    before = os.lstat(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"model\.safetensors is a (fifo|folder|link), and stays"):
        flow.save({"x": flow.ones(2)}, tmp_path, max_shard_size=4)
    assert os.listdir(tmp_path) == ["model.safetensors"]
    assert os.lstat(tmp_path / "model.safetensors").st_ino == before.st_ino


def test_the_mode_stays(tmp_path: Path) -> None:
    modes = []
    for most in (8, 8, 100, 8):
        flow.save({"x": flow.ones(2), "y": flow.ones(2)}, tmp_path, max_shard_size=most)
        for path in tmp_path.glob("*.safetensors"):
            modes.append(path.stat().st_mode & 0o777)
            path.chmod(0o640)
    assert modes[0] == modes[1] and modes[2:] == [0o640] * 5


def test_an_index_that_is_no_file_or_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    for where in ("..", "", "a/b", "/x", "\0", "\ud800", 3):
        index.write_text(json.dumps({"weight_map": {"x": where}}))
        with pytest.raises(CheckpointError, match="no index of safetensors files"):
            flow.load(tmp_path)
    index.unlink()
    os.mkfifo(index)
    with pytest.raises(CheckpointError, match="is a fifo"):
        flow.load(tmp_path)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (3, {}, "tensors by their names"),
        ({"step": 3}, {}, "got int under 'step'"),
        ({"x": flow.ones(1, dtype=flow.complex128)}, {}, "no weft.complex128"),
        ({"x": flow.ones(1)}, {"max_shard_size": "5 apples"}, "max_shard_size is a number of bytes"),
        ({"x": flow.ones(1)}, {"max_shard_size": 0}, "max_shard_size is a number of bytes"),
        ({"x": flow.ones(1)}, {"wait": False}, "wait together"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, given: Any, options: Any, said: str) -> None:
    with pytest.raises(WeftError, match=said):
        flow.save(given, tmp_path / "f", **{"max_shard_size": 9, **options})
    assert not (tmp_path / "f").exists()


def test_beside_a_checkpoint_is_no_place(tmp_path: Path) -> None:
    flow.save({"x": flow.ones(1)}, tmp_path)
    with pytest.raises(CheckpointError, match="give another folder"):
        flow.save({"x": flow.ones(1)}, tmp_path, max_shard_size=9)


def test_sizes_are_told_as_people_write_them() -> None:
    results = [folder._bytes(s) for s in (7, "7", "2KB", "2 kib", "1.5GB", "5MB")]
    assert results == [7, 7, 2000, 2048, 1_500_000_000, 5_000_000]
    with pytest.raises(ArgumentError, match="500MiB"):
        folder._bytes("KB")
