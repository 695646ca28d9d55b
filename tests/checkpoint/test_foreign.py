"""Checkpoints of others: torch's files, and folders of safetensors, into any layout; and what they read of ours."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.torch
import torch

import weft as flow
from tests.ranks import on
from weft.core.errors import CheckpointError

S, B = flow.sbp.split, flow.sbp.broadcast


def folder_of(path: Path) -> dict[str, torch.Tensor]:
    """A model's folder, of two files and their index."""
    state = {"up.weight": torch.randn(4, 6), "up.bias": torch.randn(4), "down.weight": torch.randn(6, 4)}
    state["short"] = torch.randn(4, 2).to(torch.float8_e4m3fn)
    names = {"up.weight": "model-1.safetensors", "up.bias": "model-1.safetensors"}
    where = {n: names.get(n, "model-2.safetensors") for n in state}
    for file in set(where.values()):
        part = {n: t for n, t in state.items() if where[n] == file}
        safetensors.torch.save_file(part, path / file, {"format": "pt"})
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    return state


def test_a_folder_with_an_index_is_read(tmp_path: Path) -> None:
    state = folder_of(tmp_path)
    found = flow.load(tmp_path)
    assert set(found) == set(state)
    for name, t in state.items():
        assert torch.equal(found[name].to_torch().float(), t.float()), name
    assert found["short"].dtype is flow.float8_e4m3fn


def test_each_rank_takes_its_slices_of_it(tmp_path: Path) -> None:
    state = folder_of(tmp_path)

    @on(2)
    def run() -> None:
        P, rank = flow.placement("cpu", ranks=[0, 1]), flow.env.get_rank()
        found = flow.load(tmp_path, placement=P, sbp={"up.*": S(0), "down.*": S(1)})
        assert found["up.weight"].sbp == (S(0),) and found["short"].sbp == (B,)
        assert torch.equal(found["up.bias"].to_local().to_torch(), state["up.bias"].chunk(2)[rank])
        assert torch.equal(found["down.weight"].to_local().to_torch(), state["down.weight"].chunk(2, 1)[rank])

    run()


def test_a_folder_of_one_file_needs_no_index(tmp_path: Path) -> None:
    safetensors.torch.save_file({"x": torch.ones(2)}, tmp_path / "model.safetensors")
    assert flow.load(tmp_path)["x"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ("[]", "no index"),
        ('{"weight_map": {"x": "../y"}}', "files in the folder"),
        ('{"weight_map": {"z": "m.safetensors"}}', "lacks it"),
    ],
)
def test_an_index_that_leads_nowhere(index: str, says: str, tmp_path: Path) -> None:
    safetensors.torch.save_file({"x": torch.ones(2)}, tmp_path / "m.safetensors")
    (tmp_path / "m.safetensors.index.json").write_text(index)
    with pytest.raises(CheckpointError, match=says):
        flow.load(tmp_path)


def test_others_read_what_is_saved_and_a_tied_weight_is_there_once(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Embedding(4, 3), torch.nn.Linear(3, 4, bias=False))
    module[1].weight = module[0].weight
    flow.save(flow.from_torch(module).state_dict(), tmp_path / "model.safetensors")
    with safetensors.safe_open(tmp_path / "model.safetensors", "pt") as file:
        assert list(file.keys()) == ["0.weight"] and file.metadata()["format"] == "pt"
        assert torch.equal(file.get_tensor("0.weight"), module[0].weight)
    assert set(flow.load(tmp_path / "model.safetensors")) == {"0.weight", "1.weight"}


@pytest.mark.parametrize("older", [False, True])
def test_what_torch_saved_is_read(older: bool, tmp_path: Path) -> None:
    model = torch.nn.BatchNorm1d(3)
    state = {"model": model.state_dict(), "step": 3, "rates": [0.1, (1, "a")], "p": model.weight}
    torch.save(state, tmp_path / "x.pt", _use_new_zipfile_serialization=not older)
    found: Any = flow.load(tmp_path / "x.pt", weights_only=True)
    assert isinstance(found["model"], OrderedDict) and found["step"] == 3 and found["rates"] == [0.1, (1, "a")]
    assert isinstance(found["p"], flow.Tensor) and found["p"].tolist() == [1.0, 1.0, 1.0]
    flow.nn.BatchNorm1d(3).load_state_dict(found["model"])
    P = flow.placement("cpu", ranks=[0])
    assert flow.load(tmp_path / "x.pt", placement=P, sbp=S(0))["p"].sbp == (S(0),)
