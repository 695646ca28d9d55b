"""Checkpoints of others: torch's files, and folders of safetensors, into any layout; and what they read of ours."""

from __future__ import annotations

import json
import pickle
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.torch
import torch

import weft as flow
from tests.ranks import on
from weft.core.errors import CheckpointError, SbpError
from weft.launch import spawn_threads

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


def test_one_rank_reads_what_torch_saved_for_all(tmp_path: Path) -> None:
    torch.save({"w": torch.arange(4.0), "step": 3}, tmp_path / "of rank 0")

    def run() -> Any:
        path, both = tmp_path / f"of rank {flow.env.get_rank()}", flow.placement.all("cpu")
        found = flow.load(path, 0, both)  # OneFlow's order
        assert found["w"].placement == both and flow.load(path, global_src_rank=0)["w"].placement.members == (0,)
        with pytest.raises((FileNotFoundError, CheckpointError)):
            flow.load(path, global_src_rank=1)
        return found["w"].tolist(), found["step"]

    assert spawn_threads(2, run) == [([0.0, 1.0, 2.0, 3.0], 3)] * 2


def test_arguments_by_position_are_read_as_torchs_or_as_oneflows(tmp_path: Path) -> None:
    state = {"w": flow.ones(2)}
    flow.save(state, tmp_path / "x", pickle, 4, _use_new_zipfile_serialization=False)  # as of torch.save
    assert flow.load(tmp_path / "x", "cpu", pickle, encoding="latin1")["w"].is_local
    assert flow.load(tmp_path / "x", None, "cpu", support_pytorch_format=False)["w"].is_local
    for found in (flow.load(tmp_path / "x", 0), flow.load(tmp_path / "x", 0, flow.device("cpu"))):
        assert found["w"].placement == flow.placement("cpu", [0])


@pytest.mark.parametrize("older", [False, True])
def test_what_torch_saved_is_read(older: bool, tmp_path: Path) -> None:
    model = torch.nn.BatchNorm1d(3)
    state = {"model": model.state_dict(), "step": 3, "rates": [0.1, (1, "a")], "p": model.weight}
    state["args"] = Namespace(lr=0.1)
    torch.save(state, tmp_path / "x.pt", _use_new_zipfile_serialization=not older)
    found: Any = flow.load(tmp_path / "x.pt", weights_only=True)
    assert isinstance(found["model"], OrderedDict) and found["step"] == 3 and found["rates"] == [0.1, (1, "a")]
    assert found["args"] == state["args"]
    assert isinstance(found["p"], flow.Tensor) and found["p"].tolist() == [1.0, 1.0, 1.0]
    flow.nn.BatchNorm1d(3).load_state_dict(found["model"])
    P = flow.placement("cpu", ranks=[0])
    assert flow.load(tmp_path / "x.pt", placement=P, sbp=S(0))["p"].sbp == (S(0),)
    parted: Any = flow.load(tmp_path / "x.pt", placement=P, sbp={"model.*_mean": S(0)})
    whole = parted["model"]["running_var"].sbp, parted["p"].sbp
    assert parted["model"]["running_mean"].sbp == (S(0),) and whole == ((B,), (B,))


ONEFLOWS = (  # as OneFlow 0.9 wrote it
    b"\x80\x04\x95\xe0\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x10protocol_version\x94K\x01\x8c\x04data\x94\x8c\x0bcollections"
    b"\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94(\x8c\x01w\x94\x8c\noneflow.nn\x94\x8c\tParameter\x94\x93\x94)\x81\x94}\x94\x8c\x04path"
    b"\x94\x8c\x08tensor_2\x94sb\x8c\x04more\x94}\x94(\x8c\x01b\x94\x8c\x07oneflow\x94\x8c\x06Tensor\x94\x93\x94)\x81\x94}\x94h\r"
    b"\x8c\x08tensor_3\x94sb\x8c\x05again\x94h\x0b\x8c\x04list\x94]\x94(K\x01G@\x04\x00\x00\x00\x00\x00\x00N\x88K\x01K\x02\x86\x94"
    b"\x8c\x01x\x94euuu."
)


def oneflows(path: Path, pickled: bytes = ONEFLOWS) -> Path:
    (path / "pickled_data").write_bytes(pickled)
    for name, t, kind in (("2", torch.arange(4.0).reshape(2, 2), "kFloat"), ("3", torch.tensor([5]), "kInt64")):
        (path / f"tensor_{name}").mkdir()
        (path / f"tensor_{name}" / "out").write_bytes(t.numpy().tobytes())
        shape = "".join(f"  dim: {n}\n" for n in t.shape)
        (path / f"tensor_{name}" / "meta").write_text(f"shape {{\n{shape}}}\ndata_type: {kind}\n")
    return path


def test_patterns_that_fit_nothing_are_a_mistake(tmp_path: Path) -> None:
    """As in `to_global`: the tensors would be whole on every rank."""
    P = flow.placement("cpu", ranks=[0])
    folder_of(tmp_path)
    torch.save({"model": {"w": torch.ones(2)}}, tmp_path / "x.pt")
    flow.save({"model": {"w": flow.ones(2)}}, tmp_path / "own")
    for path, name in ((tmp_path, "up.weight"), (tmp_path / "x.pt", "model.w"), (tmp_path / "own", "model.w")):
        for how in ({}, {"global_src_rank": 0}):
            with pytest.raises(SbpError, match=rf"no tensor of .* matches \['weight', 'layers.up'\]; .*{name}"):
                flow.load(path, placement=P, sbp={"weight": S(0), "layers.up": "colwise"}, **how)
            flow.load(path, placement=P, sbp={"weight": S(0), "*": B}, **how)


def test_what_oneflow_saved_is_read(tmp_path: Path) -> None:
    found: Any = flow.load(oneflows(tmp_path))
    assert isinstance(found, OrderedDict) and found["w"].tolist() == [[0.0, 1.0], [2.0, 3.0]]
    more = found["more"]
    assert more["b"].dtype is flow.int64 and more["b"].tolist() == [5] and more["again"].tolist() == found["w"].tolist()
    assert more["list"] == [1, 2.5, None, True, (1, 2), "x"]
    assert flow.load(tmp_path, placement=flow.placement("cpu", [0]), sbp=S(0))["w"].sbp == (S(0),)
    data = {"args": Namespace(lr=0.5, steps=[1]), "seen": {1, "a"}, "fixed": frozenset({(1, 2)}), "none": set()}
    (tmp_path / "pickled_data").write_bytes(pickle.dumps({"protocol_version": 1, "data": data}, 4))
    assert flow.load(tmp_path) == data


def test_what_a_resumed_program_saves_to_oneflows_folder_is_read_from_then_on(tmp_path: Path) -> None:
    flow.save({"step": flow.load(oneflows(tmp_path))["more"]["b"] + 1}, tmp_path)
    assert flow.load(tmp_path)["step"].tolist() == [6]


@pytest.mark.parametrize(
    ("written", "instead", "says"),
    [
        (
            b"\x8c\x07oneflow\x94\x8c\x06Tensor",
            b"\x8c\x02os\x94\x8c\x06system",
            "a os.system in it. Whole modules are code",
        ),
        (b"tensor_3", b"../etc/x", "names no folder in it"),
        (b"K\x01K\x02\x86", b"K\x01K\x02c", "or is damaged"),
        (b"euuu.", b"eu", "or is damaged"),
    ],
)
def test_what_isnt_data_in_oneflows_folder_is_refused(
    written: bytes, instead: bytes, says: str, tmp_path: Path
) -> None:
    assert written in ONEFLOWS
    with pytest.raises(CheckpointError, match=says):
        flow.load(oneflows(tmp_path, ONEFLOWS.replace(written, instead)))


def test_a_tensor_of_oneflows_that_was_cut_off(tmp_path: Path) -> None:
    (oneflows(tmp_path) / "tensor_2" / "out").write_bytes(b"abc")
    with pytest.raises(CheckpointError, match="3 bytes, for which its meta doesn't fit"):
        flow.load(tmp_path)
