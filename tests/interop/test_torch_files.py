"""`torch.save` and `torch.load` of programs that run under `flow.mock_torch`, beside torch's own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import CheckpointError
from weft.interop import torch_files
from weft.launch import spawn_threads


class Holder:
    """An object of a program's, as a trainer's options are."""

    def __init__(self, x: Any) -> None:
        self.x, self.tags = x, {1, 2}


def test_torch_reads_what_is_saved(tmp_path: Path) -> None:
    w = torch.randn(4)
    theirs = {"w": w, "view": w[1:], "p": torch.nn.Parameter(w), "where": torch.device("cpu"), (1, 2): b"x"}
    ours = {k: flow.from_torch(v) if type(v) is torch.Tensor else v for k, v in theirs.items()}
    ours |= {"p": nn.Parameter(flow.from_torch(w)), "where": flow.device("cpu"), "half": flow.float16}
    ours["view"] = ours["w"][1:]
    ours["p"].decays = theirs["p"].decays = False  # type: ignore[attr-defined]
    torch_files.save(ours, tmp_path / "x.pt")
    seen = torch.load(tmp_path / "x.pt", weights_only=False)
    assert list(map(type, seen.values())) == [*map(type, theirs.values()), flow.dtype]
    assert torch.equal(seen["w"], w) and seen["view"].data_ptr() == seen["w"].data_ptr() + 4
    assert seen["p"].decays is False and seen["p"].requires_grad
    for way in ({}, {"weights_only": False}):
        again = torch_files.load(tmp_path / "x.pt", **way)
        assert type(again["w"]) is flow.Tensor and again["w"].tolist() == w.tolist() and again["half"] is flow.float16
        assert type(again["p"]) is nn.Parameter and again["p"].requires_grad and again[1, 2] == b"x"
        again["w"][1] = 9.0
        assert again["view"][0] == 9
    assert torch_files.load(tmp_path / "x.pt", weights_only=False)["where"] is flow.device("cpu")


def test_what_requires_gradients_does_so_in_files_and_one_tensor_stays_one(tmp_path: Path) -> None:
    x = flow.ones(2, requires_grad=True)
    torch_files.save([x, x, x * 2, x.detach()], tmp_path / "x.pt")
    wanted = [True, True, True, False]
    assert [t.requires_grad for t in torch.load(tmp_path / "x.pt")] == wanted
    for way in ({}, {"weights_only": False}):
        seen = torch_files.load(tmp_path / "x.pt", **way)
        assert [t.requires_grad for t in seen] == wanted and seen[0] is seen[1]
        (seen[0] * 3).sum().backward()
        assert seen[0].grad.tolist() == [3, 3]


def test_modules_that_torch_wrote_are_read(tmp_path: Path) -> None:
    theirs, x = torch.nn.TransformerEncoderLayer(4, 2, 8).eval(), torch.randn(3, 4)
    torch.save(theirs, tmp_path / "x.pt")
    ours = torch_files.load(tmp_path / "x.pt", weights_only=False)
    assert type(ours) is nn.TransformerEncoderLayer and type(ours.self_attn.out_proj) is nn.Linear
    torch.testing.assert_close(ours(flow.from_torch(x)).detach().to_torch(), theirs(x).detach())
    ours.train()(flow.from_torch(x)).sum().backward()
    assert ours.linear1.weight.grad is not None


def test_objects_are_read_where_the_program_asks(tmp_path: Path) -> None:
    model = nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8), nn.BatchNorm1d(3))  # which holds a function of Weft's
    optimizer = flow.optim.Adam(model.parameters())
    model(flow.randn(2, 3, 4)).sum().backward()
    optimizer.step()
    torch_files.save(Holder({"m": model, "o": optimizer, "n": Counter("aab")}), tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    with pytest.raises(CheckpointError, match="more than data"):
        torch_files.load(tmp_path / "x")
    seen = torch_files.load(tmp_path / "x", weights_only=False)
    x = flow.randn(2, 3, 4)
    assert type(seen) is Holder and seen.tags == {1, 2} and seen.x["n"] == Counter("aab")
    assert flow.equal(seen.x["m"].eval()(x), model.eval()(x)) and seen.x["m"][0].activation is nn.functional.relu
    trained = seen.x["o"].param_groups[0]["params"][0]
    assert type(seen.x["o"]) is flow.optim.Adam and trained is seen.x["m"][0].self_attn.in_proj_weight
    with pytest.raises(AttributeError):
        torch_files.save({"f": lambda: 1}, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == before  # a file that fails leaves the last one


def test_modules_that_torch_pickled_are_wefts(tmp_path: Path) -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.GELU())
    for older in (False, True):
        torch.save(theirs, tmp_path / "m", _use_new_zipfile_serialization=not older)
        ours = torch_files.load(tmp_path / "m", weights_only=False)
        x = torch.randn(4, 3)
        assert type(ours[0]) is nn.Linear and torch.allclose(ours(flow.from_torch(x)).to_torch(), theirs(x))


def test_a_global_tensor_is_written_by_one(tmp_path: Path) -> None:
    def each() -> None:
        P = flow.placement("cpu", ranks=[0, 1])
        torch_files.save({"w": flow.arange(4, placement=P, sbp=flow.sbp.split(0))}, tmp_path / "g")
        assert torch_files.load(tmp_path / "g", weights_only=False)["w"].tolist() == [0, 1, 2, 3]

    spawn_threads(2, each, deadline=60)
