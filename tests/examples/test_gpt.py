"""One GPT, trained in every way: the losses are those of plain torch, over 50 steps, or 20 of four ranks."""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import gpt
import gpt_in_torch
import pytest
import torch

import weft as flow
from weft.launch import __main__ as launcher
from weft.launch import spawn_threads

ROOT = Path(__file__).resolve().parents[2]
SEVERAL = f"{Path(__file__).parent / 'several.py'}:run"
TINY = "--width 16 --heads 4 --context 8 --batch 8"
WAYS = [("none", 1), *((how, 2) for how in ("data", "tensor", "pipeline"))]
WAYS += [(how, 4) for how in ("data", "tensor", "pipeline", "pipeline+data", "pipeline+tensor", "data+tensor")]


def options(how: str, world: int, more: str = "") -> argparse.Namespace:
    slow = world == 4  # many threads take their time
    size = f"--layers {1 if slow and '--graph' not in more and how != 'pipeline' else 2} --steps {20 if slow else 50}"
    return gpt.parser().parse_args(f"{TINY} {size} --parallel {how} {more}".split())


def train(world: int, how: argparse.Namespace) -> list[list[float]]:
    def rank() -> list[float]:
        torch.set_num_threads(1)
        return gpt.train(how)

    return spawn_threads(world, rank, deadline=60)


@functools.cache
def truth(layers: int, optimizer: str, lr: float) -> torch.Tensor:
    same = options("none", 1, f"--optimizer {optimizer} --lr {lr}")
    same.layers = layers
    training = gpt.Training(same, len(gpt.encode(gpt.text())[1]))
    return torch.tensor(gpt_in_torch.train(same, training.start))


def check(world: int, how: argparse.Namespace) -> None:
    expected = truth(how.layers, how.optimizer, how.lr)
    assert len(expected) == 50 and expected[-1] < 0.9 * expected[0]
    for losses in train(world, how):
        torch.testing.assert_close(torch.tensor(losses), expected[: how.steps], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("road", ["eager", "graph"])
@pytest.mark.parametrize(("how", "world"), WAYS)
def test_threads_train_as_torch_does(how: str, world: int, road: str) -> None:
    check(world, options(how, world, "--graph" * (road == "graph")))


@pytest.mark.parametrize(
    ("how", "world", "more"),
    [
        ("none", 1, "--micro-batches 2"),
        ("pipeline", 2, "--micro-batches 2"),
        ("none", 1, "--micro-batches 4 --graph"),
        ("tensor", 2, "--micro-batches 2 --graph"),
        ("pipeline", 2, "--micro-batches 8 --graph"),
        ("pipeline+data", 4, "--micro-batches 4 --graph"),
    ],
)
def test_micro_batches_change_nothing(how: str, world: int, more: str) -> None:
    """With SGD, which no wrong factor of the gradients passes by."""
    check(world, options(how, world, f"{more} --optimizer sgd --lr 0.3"))


@pytest.mark.parametrize("road", ["eager", "graph"])
def test_dropout_does_not_depend_on_the_layout(road: str) -> None:
    more = "--layers 1 --dropout 0.2 --steps 8 " + "--graph" * (road == "graph")
    alone = train(1, options("data", 1, more))[0]
    plain = train(1, options("data", 1, more.replace("0.2", "0.0")))[0]
    assert alone != plain
    for how, world in (("data", 2), ("tensor", 2), ("pipeline+data", 4)):
        for losses in train(world, options(how, world, more)):
            torch.testing.assert_close(torch.tensor(losses), torch.tensor(alone), rtol=1e-5, atol=1e-5)


def test_a_checkpoint_goes_on_in_another_layout(tmp_path: Path) -> None:
    ids, alphabet = gpt.encode(gpt.text())

    def part(how: argparse.Namespace, first: int, last: int) -> list[float]:
        training = gpt.Training(how, len(alphabet))
        pieces = list(itertools.islice(gpt.batches(ids, how.batch, how.context, how.seed), last))
        if first:
            state = flow.load(tmp_path / "state")
            training.model.load_state_dict(state["model"])
            training.optimizer.load_state_dict(state["optimizer"])
        losses = [gpt.read(training(*piece)) for piece in pieces[first:]]
        if not first:
            flow.save(
                {"model": training.model.state_dict(), "optimizer": training.optimizer.state_dict()}, tmp_path / "state"
            )
        return losses

    begun = spawn_threads(2, part, options("data", 2, "--graph"), 0, 10)[0]
    for how, world, more in (("tensor", 2, "--graph"), ("pipeline", 2, ""), ("none", 1, "--graph")):
        losses = [*begun, *spawn_threads(world, part, options(how, world, more), 10, 20)[0]]
        torch.testing.assert_close(torch.tensor(losses), truth(2, "adamw", 1e-3)[:20], rtol=1e-5, atol=1e-5)


# ---- processes -------------------------------------------------------------------------------------------------------


def ways(*more: str) -> list[str]:
    return [f"{TINY} {one}" for one in more]


def agreed(said: str, count: int) -> None:
    expected = truth(2, "adamw", 1e-3)
    found = [json.loads(line) for line in said.splitlines()]
    assert len(found) == count
    for losses in found:
        torch.testing.assert_close(torch.tensor(losses), expected, rtol=1e-5, atol=1e-5)


def test_processes_over_shared_memory(world: Any) -> None:
    asked = ("--parallel data", "--parallel tensor --graph", "--parallel pipeline --graph --micro-batches 4")
    for said in world(SEVERAL, 2, "shm", *ways(*asked)).well():
        agreed(said, 3)


def test_four_processes(world: Any) -> None:
    asked = ("--parallel pipeline+data --graph --micro-batches 2", "--parallel data+tensor --graph")
    for said in world(SEVERAL, 4, "shm", *ways(*asked)).well():
        agreed(said, 2)


def test_processes_over_c10d(world: Any) -> None:
    asked = ("--parallel data --graph", "--parallel tensor", "--parallel pipeline --graph --micro-batches 2")
    for said in world(SEVERAL, 2, "c10d", *ways(*asked)).well():
        agreed(said, 3)


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("argv", "path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    asked = ["--nproc_per_node", "2", "--threads", str(ROOT / "examples/gpt.py"), "--parallel", "data", "--graph"]
    assert launcher.main([*asked, *TINY.split(), "--check"]) == 0
    output = capsys.readouterr().out
    assert output.count("step    0  loss 4.") == 1
    assert output.count("the losses of 50 steps are those of plain torch") == 1


@pytest.mark.parametrize(
    ("world", "asked", "why"),
    [(2, [], "there are 2 ranks: say what they share out"), (1, ["--parallel", "data+tensor"], "takes an even number")],
)
def test_refused_command_lines(monkeypatch: pytest.MonkeyPatch, world: int, asked: list[str], why: str) -> None:
    monkeypatch.setattr(sys, "argv", ["gpt.py", *asked])
    with pytest.raises(SystemExit, match=why):
        spawn_threads(world, gpt.main)
