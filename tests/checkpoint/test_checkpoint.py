"""What is saved comes back, in any layout; what is no checkpoint is refused with the reason."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import weft as flow
from weft import checkpoint
from weft.core.errors import CheckpointError
from weft.launch.threads import spawn_threads


def test_nested_structures(tmp_path: Path) -> None:
    shared = flow.tensor([1.0, 2.0])
    value = {
        "weights": {"a": shared, "b": [shared, flow.tensor(3, dtype=flow.int64)]},
        "state": {0: {"step": 4, "rate": 0.1}, 1: None},
        "name": "run",
        "pair": (True, "x"),
        "dtype": flow.bfloat16,
        "empty": flow.zeros(0, 3),
        "half": flow.ones(2, dtype=flow.float16),
    }
    checkpoint.save(value, tmp_path / "c.safetensors")
    back = checkpoint.load(tmp_path / "c.safetensors")
    assert back["weights"]["a"].tolist() == [1.0, 2.0] and back["weights"]["b"][0] is back["weights"]["a"]
    assert back["weights"]["b"][1].item() == 3 and back["weights"]["b"][1].dtype is flow.int64
    assert back["state"] == value["state"] and back["pair"] == (True, "x") and back["dtype"] is flow.bfloat16
    assert back["empty"].shape == (0, 3) and back["half"].dtype is flow.float16 and back["name"] == "run"
    assert [p.name for p in tmp_path.iterdir()] == ["c.safetensors"]


def test_views_and_buffers() -> None:
    x = flow.arange(6).view(2, 3)
    buffer = io.BytesIO()
    checkpoint.save({"row": x[0], "turned": x.t(), "x": x}, buffer)
    buffer.seek(0)
    back = checkpoint.load(buffer)
    assert back["row"].tolist() == [0, 1, 2] and back["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_flat_dict_is_a_plain_safetensors_file(tmp_path: Path) -> None:
    model = flow.nn.Linear(2, 3)
    checkpoint.save(model.state_dict(), tmp_path / "m")
    theirs = safetensors.torch.load_file(tmp_path / "m")
    assert set(theirs) == {"weight", "bias"}
    safetensors.torch.save_file({"weight": torch.ones(3, 2), "bias": torch.zeros(3)}, tmp_path / "t")
    model.load_state_dict(checkpoint.load(tmp_path / "t", map_location="cpu"))
    assert model.weight.tolist() == [[1.0, 1.0]] * 3


def test_training_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    def run(model: Any, optimizer: Any, steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            (model(flow.ones(4, 2)) ** 2).mean().backward()
            optimizer.step()

    flow.manual_seed(0)
    model = flow.nn.Linear(2, 3)
    optimizer = flow.optim.AdamW(model.parameters(), lr=0.1)
    run(model, optimizer, 3)
    checkpoint.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c")
    state = checkpoint.load(tmp_path / "c")
    again = flow.nn.Linear(2, 3)
    other = flow.optim.AdamW(again.parameters(), lr=0.5)
    again.load_state_dict(state["model"])
    other.load_state_dict(state["optimizer"])
    run(model, optimizer, 3)
    run(again, other, 3)
    assert again.weight.tolist() == model.weight.tolist()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no safetensors file"),
        (b"hello, this is a text and no model", "no safetensors file"),
        (b"PK\x03\x04and so on", "is a pickle"),
        (b"\x80\x02}q\x00.", "is a pickle"),
    ],
)
def test_foreign_files(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CheckpointError, match=says):
        checkpoint.load(tmp_path / "x")


@pytest.mark.parametrize("kept", [4, 40, -1])
def test_a_file_that_was_cut_off(tmp_path: Path, kept: int) -> None:
    checkpoint.save({"x": flow.ones(100)}, tmp_path / "x")
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=r"cut off|no safetensors"):
        checkpoint.load(tmp_path / "x")


def test_what_has_no_place_in_a_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"`a\.1`: it is a Linear.*state_dict"):
        checkpoint.save({"a": [1, flow.nn.Linear(1, 1)]}, tmp_path / "x")
    assert not list(tmp_path.iterdir())
    with pytest.raises(CheckpointError, match="a folder"):
        checkpoint.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "nothing")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save({"x": flow.ones(2)}, tmp_path / "x")

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space"):
        checkpoint.save({"x": flow.zeros(2)}, tmp_path / "x")
    assert checkpoint.load(tmp_path / "x")["x"].tolist() == [1.0, 1.0]
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_global_tensors_are_saved_whole_and_loaded_in_any_layout(tmp_path: Path) -> None:
    whole = torch.arange(15.0).view(5, 3)

    def run() -> Any:
        both, last = flow.placement("cpu", [0, 1]), flow.placement("cpu", [1])
        x = flow.tensor(whole.tolist(), placement=both, sbp=flow.sbp.split(0))
        y = flow.ones(2, placement=last, sbp=flow.sbp.broadcast)
        checkpoint.save({"x": x, "y": y, "n": 1}, tmp_path / "g")
        back = checkpoint.load(tmp_path / "g", placement=both, sbp=flow.sbp.split(1))
        one = checkpoint.load(tmp_path / "g", map_location=both, global_src_rank=1)
        assert back["x"].sbp == (flow.sbp.split(1),) and one["x"].sbp == (flow.sbp.broadcast,)
        assert back["x"].to_local().shape == ((5, 2) if flow.env.get_rank() == 0 else (5, 1))
        model = flow.nn.Linear(3, 5, bias=False).to_global(both, flow.sbp.split(1))
        model.load_state_dict({"weight": checkpoint.load(tmp_path / "g")["x"]})
        lone = checkpoint.load(tmp_path / "g", global_src_rank=1)["x"]  # on the rank that read it
        assert lone.placement == flow.placement("cpu", [1])
        model.load_state_dict({"weight": lone})
        return back["x"].numpy(), one["x"].numpy(), back["y"].numpy(), model.weight.detach().numpy(), one["n"]

    for a, b, y, w, n in spawn_threads(2, run):
        assert (a == whole.numpy()).all() and (b == whole.numpy()).all() and (w == whole.numpy()).all()
        assert y.tolist() == [1.0, 1.0] and n == 1


def test_every_rank_learns_of_a_failed_write(tmp_path: Path) -> None:
    def run() -> str:
        x = flow.ones(2, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)
        try:
            checkpoint.save(x, tmp_path / "missing" / "x")
        except (CheckpointError, FileNotFoundError) as error:
            return type(error).__name__
        return "saved"

    assert spawn_threads(2, run) == ["FileNotFoundError", "CheckpointError"]


def test_in_a_folder_that_is_there(tmp_path: Path) -> None:
    checkpoint.save({"x": flow.ones(2), "step": 3}, tmp_path)
    checkpoint.save({"x": flow.zeros(2), "step": 4}, tmp_path)
    (tmp_path / "notes").write_text("of somebody's own")
    back = checkpoint.load(tmp_path)
    assert back["x"].tolist() == [0.0, 0.0] and back["step"] == 4
    assert len(list(tmp_path.iterdir())) == 2
