"""Checkpoints under PyTorch's names: states by names, written and read in any layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint.state_dict as theirs

import weft as flow
import weft.distributed.checkpoint as dcp
from tests.ranks import on
from weft import nn
from weft.checkpoint.file import Stored
from weft.core.errors import ArgumentError, CheckpointError
from weft.distributed.checkpoint import format_utils
from weft.distributed.checkpoint import state_dict as states
from weft.distributed.fsdp import fully_shard
from weft.launch import spawn_threads

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)).tolist()


def net() -> Any:
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2))


def trained(model: Any, optimizer: Any, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(flow.tensor(X)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Counter:
    """What has a state of its own."""

    def __init__(self) -> None:
        self.n = 0

    def state_dict(self) -> dict[str, Any]:
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.n = state["n"]


class App(Counter):
    """As PyTorch's recipe has it: model and optimizer in one."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self.model, self.optimizer = model, optimizer

    def state_dict(self) -> dict[str, Any]:
        model, optim = states.get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optim}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        states.set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"]
        )


def made(sharded: bool) -> tuple[Any, Any]:
    model = fully_shard(net()) if sharded else net()
    return model, flow.optim.AdamW(model.parameters(), lr=0.05)


@pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (False, True)])
def test_training_goes_on_from_a_checkpoint(tmp_path: Path, before: bool, after: bool) -> None:
    whole, optimizer = made(False)
    expected = trained(whole, optimizer, 4)

    def save() -> None:
        model, optimizer = made(before)
        trained(model, optimizer, 2)
        counter = Counter()
        counter.n = 7
        dcp.save({"app": App(model, optimizer), "counter": counter, "step": 2}, checkpoint_id=tmp_path / "at")

    def resume() -> list[float]:
        flow.manual_seed(1)
        model, optimizer = made(after)
        state = {"app": App(model, optimizer), "counter": Counter(), "step": 0}
        dcp.load(state, checkpoint_id=tmp_path / "at")
        assert state["step"] == 2 and state["counter"].n == 7  # type: ignore[attr-defined]
        return trained(model, optimizer, 2)

    spawn_threads(2, save, deadline=60)
    for losses in spawn_threads(2, resume, deadline=60):
        torch.testing.assert_close(losses, expected[2:], rtol=1e-4, atol=1e-5)


def test_names_of_states_are_torchs() -> None:
    model, reference = net(), torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    for p, q in ((model, reference),):
        p[2].bias.requires_grad_(False)
        q[2].bias.requires_grad_(False)
    ours = [flow.optim.AdamW(m.parameters(), lr=0.05) for m in (model[0], model[2])]
    others = [torch.optim.AdamW(m.parameters(), lr=0.05) for m in (reference[0], reference[2])]
    given: list[dict[str, Any]] = [
        {}, {"ignore_frozen_params": True}, {"flatten_optimizer_state_dict": True}, {"full_state_dict": True}
    ]  # fmt: skip
    for options in given:
        a = states.get_state_dict(model, ours, options=states.StateDictOptions(**options))
        b = theirs.get_state_dict(reference, others, options=theirs.StateDictOptions(**options))
        assert [*a[0]] == [*b[0]], options
        if "flatten_optimizer_state_dict" not in options:
            assert {n: {*v} for n, v in a[1]["state"].items()} == {n: {*v} for n, v in b[1]["state"].items()}
            assert [g["params"] for g in a[1]["param_groups"]] == [g["params"] for g in b[1]["param_groups"]]
        else:
            assert {n for n in b[1] if n.startswith("state.")} == {n for n in a[1] if n.startswith("state.")}
    kept = states.StateDictOptions(keep_submodule_prefixes=False)
    assert [*states.get_model_state_dict(model, submodules={model[0]}, options=kept)] == ["weight", "bias"]
    assert [*states.get_model_state_dict(model, submodules={model[2]})] == ["2.weight", "2.bias"]
    flat = states.StateDictOptions(flatten_optimizer_state_dict=True)
    trained(model, ours[0], 1)
    saved = states.get_optimizer_state_dict(model, ours, options=flat)
    again = [flow.optim.AdamW(m.parameters(), lr=0.1) for m in (model[0], model[2])]
    states.set_optimizer_state_dict(model, again, saved, options=flat)
    assert again[0].param_groups[0]["lr"] == 0.05
    assert again[0].state[model[0].weight]["exp_avg"].tolist() == ours[0].state[model[0].weight]["exp_avg"].tolist()


def test_each_parameter_keeps_its_count_of_steps(tmp_path: Path) -> None:
    """Parameters that made as many steps share their count; the checkpoint may tell two."""
    model, optimizer = made(False)
    for step in range(3):
        optimizer.zero_grad()
        (model[0].weight.sum() + (model[2].bias.sum() if step == 1 else 0)).backward()
        optimizer.step()
    dcp.save({"app": App(model, optimizer)}, checkpoint_id=tmp_path)
    other = App(*made(False))
    dcp.load({"app": other}, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    found = states.get_optimizer_state_dict(other.model, other.optimizer)["state"]
    assert (found["0.weight"]["step"].item(), found["2.bias"]["step"].item()) == (3.0, 1.0)


@pytest.mark.parametrize("name", ["Adagrad", "Adam", "ASGD", "NAdam", "Rprop"])
def test_a_state_that_is_read_early_changes_no_training(name: str) -> None:
    results = []
    for early in (True, False):
        model = net()
        optimizer = getattr(flow.optim, name)(model.parameters(), lr=0.05)
        if early:
            states.get_state_dict(model, optimizer)
        results.append(trained(model, optimizer, 3))
    assert results[0] == results[1]


@on(2)
def test_one_rank_has_the_whole_state_and_gives_it() -> None:
    model, optimizer = made(True)
    trained(model, optimizer, 1)
    whole = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    found = states.get_state_dict(model, optimizer, options=whole)
    assert bool(found[0]) is bool(found[1]) is (flow.env.get_rank() == 0)
    step = flow.tensor(1.0)
    for values in found[1].get("state", {}).values():
        values["step"] = step  # one tensor, as a file gives it
    flow.manual_seed(5)
    other, fresh = made(True)
    spread = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    states.set_state_dict(other, fresh, model_state_dict=found[0], optim_state_dict=found[1], options=spread)
    assert trained(other, fresh, 2) == trained(model, optimizer, 2)


def test_a_checkpoint_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    at = dcp.FileSystemWriter(tmp_path / "at", thread_count=2)
    later = dcp.async_save({"a": flow.ones(2), "b": {"c": flow.zeros(3)}}, storage_writer=at)
    later.result()
    assert later.done()
    reader = dcp.FileSystemReader(at.path)
    state: dict[str, Any] = {"a": flow.zeros(2), "b": {"c": flow.ones(4)}}
    with pytest.raises(CheckpointError, match=r"b\.c has the shape"):
        dcp.load(state, storage_reader=reader)
    state["b"] = {"d": flow.ones(3)}
    with pytest.raises(CheckpointError, match=r"no 'b\.d'"):
        dcp.load_state_dict(state, reader)
    assert state["a"].tolist() == [0, 0]
    dcp.load(state, storage_reader=reader, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert state["a"].tolist() == [1, 1] and state["b"]["d"].tolist() == [1, 1, 1]
    format_utils.dcp_to_torch_save(at.path, tmp_path / "file.pt")
    assert torch.load(tmp_path / "file.pt")["b"]["c"].tolist() == [0, 0, 0]
    format_utils.torch_save_to_dcp(tmp_path / "file.pt", tmp_path / "again")
    assert flow.load(tmp_path / "again")["a"].tolist() == [1, 1]
    with pytest.raises(ArgumentError, match="takes a DefaultSavePlanner"):
        dcp.save({"a": flow.ones(2)}, storage_writer=at, planner=object())
    with pytest.raises(ArgumentError, match="has a folder"):
        dcp.save({})
    with pytest.raises(CheckpointError, match="the model lacks"):
        states.get_optimizer_state_dict(net(), flow.optim.SGD([nn.Parameter(flow.ones(3))], lr=0.1))


def test_a_group_writes_without_the_others(tmp_path: Path) -> None:
    def run() -> Any:
        group, rank = flow.distributed.new_group([1, 2]), flow.env.get_rank()
        if rank:
            dcp.save({"x": flow.tensor([rank])}, checkpoint_id=tmp_path / "one", process_group=group)
            dcp.async_save({"x": flow.tensor([rank])}, checkpoint_id=tmp_path / "two", process_group=group).result()
        flow.distributed.barrier()
        found = {"x": flow.tensor([0])}, {"x": flow.tensor([0])}
        for state, name in zip(found, ("one", "two"), strict=True):
            dcp.load(state, checkpoint_id=tmp_path / name)
        return [state["x"].item() for state in found]

    assert spawn_threads(3, run, deadline=60) == [[1, 1]] * 3


def test_each_rank_reads_its_rows_of_what_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []
    take = Stored.take
    monkeypatch.setattr(Stored, "take", lambda self, rows=None: taken.append((self.name, rows)) or take(self, rows))

    def each() -> None:
        P, S, B = flow.placement("cpu", ranks=[0, 1]), flow.sbp.split, flow.sbp.broadcast
        x = flow.arange(32).float().reshape(8, 4)
        states = {"rows": x.to_global(P, B), "columns": x.to_global(P, B), "other": x.to_global(P, B)}
        state: Any = {**states, "deep": [x.to_global(P, B), 3]}
        dcp.save(state, checkpoint_id=str(tmp_path))
        rows, columns = (flow.zeros(8, 4, placement=P, sbp=S(dim)) for dim in (0, 1))
        own: Any = {"rows": rows, "columns": columns, "deep": None}
        dcp.load(own, checkpoint_id=str(tmp_path))
        for t in (own["rows"], own["columns"], own["deep"][0]):
            assert t.numpy().tolist() == x.tolist()
        assert own["rows"].sbp == (S(0),) and own["columns"].sbp == (S(1),) and own["deep"][1] == 3

    spawn_threads(2, each)
    rows = {name: [r for n, r in taken if n == name] for name, _ in taken}
    assert sorted(rows.pop("rows")) == [(0, 4), (4, 8)]
    assert "other" not in rows
