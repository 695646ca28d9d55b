"""ZeRO: parameters, gradients and states in parts, and the losses of those who hold them whole."""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np
import pytest

import weft as flow
from weft import nn
from weft.core.errors import GraphError, ShapeError
from weft.core.rank import current
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast


class Train(nn.Graph):
    def __init__(self, model: nn.Module, optimizer: Any, zero: Any, micro_batches: int = 1) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        if zero is not None:
            self.config.enable_zero(**zero)
        self.config.set_gradient_accumulation_steps(micro_batches)

    def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        return loss


class Predict(nn.Graph):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def build(self, x: flow.Tensor) -> flow.Tensor:
        return self.model(x)


def data(place: flow.placement, sbp: Any, step: int) -> tuple[flow.Tensor, flow.Tensor]:
    rng = np.random.default_rng(step)
    x = flow.tensor(rng.normal(size=(8, 6)).astype(np.float32), placement=place, sbp=sbp)
    return x, flow.tensor(rng.integers(0, 3, 8), placement=place, sbp=sbp)


def model_on(place: flow.placement) -> nn.Module:
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 10), nn.GELU(), nn.LayerNorm(10), nn.Linear(10, 3))
    return model.to_global(placement=place, sbp=[B] * place.ndim)


OPTIMIZERS: dict[str, Any] = {
    "AdamW": lambda ps: flow.optim.AdamW(ps, lr=0.05),
    "momentum": lambda ps: flow.optim.SGD(ps, lr=0.1, momentum=0.9),
    "clipped": lambda ps: flow.optim.Adam([{"params": ps, "clip_grad_max_norm": 0.1}], lr=0.05),
}


def train(zero: Any, optimizer: str, ranks: Any, x_sbp: Any, micro_batches: int) -> Any:
    place = flow.placement("cpu", ranks)
    model = model_on(place)
    opt = OPTIMIZERS[optimizer](list(model.parameters()))
    graph = Train(model, opt, zero, micro_batches)
    losses = [graph(*data(place, x_sbp, i)).numpy() for i in range(3)]
    held = sum(
        t.to_local().numel() for s in opt.state.values() for t in s.values() if isinstance(t, flow.Tensor) and t.ndim
    )
    found = losses, [p.detach().numpy() for p in model.parameters()], held, str(graph.job)
    graph.close()
    return found


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
@pytest.mark.parametrize(
    ("ranks", "x_sbp", "micro_batches"),
    [([0, 1], S(0), 1), ([0, 1], S(0), 2), ([0, 1, 2], S(0), 1), ([[0, 1], [2, 3]], [S(0), B], 2)],
)
def test_parts_train_as_the_whole(optimizer: str, ranks: Any, x_sbp: Any, micro_batches: int) -> None:
    n = int(np.max(ranks)) + 1
    asked = {"shard_min_size": 4}
    whole = spawn_threads(n, train, None, optimizer, ranks, x_sbp, micro_batches, deadline=30)
    parts = spawn_threads(n, train, asked, optimizer, ranks, x_sbp, micro_batches, deadline=30)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a[0], b[0], atol=1e-5)
        for p, q in zip(a[1], b[1], strict=True):
            np.testing.assert_allclose(p, q, atol=1e-5)
    split = len(ranks)  # along the first axis; a bias of three elements stays whole
    assert sum(p[2] for p in parts) * split <= sum(w[2] for w in whole) * (1 + 0.1 * split)
    job, before = parts[0][3], whole[0][3]
    assert "all_gather" not in before and "reduce_scatter" not in before
    assert job.count("'all_gather(axis=0, dim=0)'") == 5  # each parameter is gathered once, however often it is read
    assert job.count("'reduce_scatter(axis=0, dim=0, reduce=sum)'") == 5


def test_a_split_model_predicts_saves_and_goes_on() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        model, twin = model_on(place), model_on(place)
        graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.1), {"stage": 1, "shard_min_size": 1})
        other = Train(twin, flow.optim.SGD(twin.parameters(), lr=0.1), None)
        for i in range(2):
            x, y = data(place, S(0), i)
            np.testing.assert_allclose(graph(x, y).numpy(), other(x, y).numpy(), atol=1e-6)
        assert all(p.sbp == (S(0),) for p in model.parameters())
        x, y = data(place, S(0), 5)
        expected = twin(x).detach().numpy()
        np.testing.assert_allclose(model(x).detach().numpy(), expected, atol=1e-6)  # eagerly
        np.testing.assert_allclose(Predict(model)(x).numpy(), expected, atol=1e-6)
        again = model_on(place)
        again.load_state_dict(model.state_dict())
        np.testing.assert_allclose(again(x).detach().numpy(), expected, atol=1e-6)
        second = Train(model, flow.optim.SGD(model.parameters(), lr=0.1), {"shard_min_size": 1})
        np.testing.assert_allclose(second(x, y).numpy(), other(x, y).numpy(), atol=1e-6)
        assert str(second.job).count("all_gather") == len(list(model.parameters()))

    spawn_threads(2, run, deadline=30)


def test_what_is_small_or_split_already_stays() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        model = model_on(place)
        graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.1), {"shard_min_size": 31})
        graph(*data(place, S(0), 0)).numpy()
        assert [p.sbp for p in model.parameters()] == [(S(0),), *[(B,)] * 5]
        columns = nn.Linear(6, 3).to_global(placement=place, sbp=S(0))
        Train(columns, flow.optim.SGD(columns.parameters(), lr=0.1), {})(*data(place, B, 0)).numpy()
        assert all(p.sbp == (S(0),) for p in columns.parameters())

    spawn_threads(2, run, deadline=30)


def test_a_trace_that_fails_leaves_everything_whole() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        model = model_on(place)
        optimizer = flow.optim.AdamW(model.parameters(), lr=0.1)
        x, y = data(place, S(0), 0)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        graph = Train(model, optimizer, {"shard_min_size": 1})
        with pytest.raises(ShapeError):
            graph(x, y[:3])
        assert all(p.sbp == (B,) for p in model.parameters())
        assert all(t.sbp == (B,) for s in optimizer.state.values() for t in s.values())
        graph(x, y).numpy()
        assert all(p.sbp == (S(0),) for p in model.parameters())

    spawn_threads(2, run, deadline=30)


def test_options_of_zero() -> None:
    model = nn.Linear(2, 2)
    graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.1), None)
    with pytest.raises(GraphError, match="stages are 1, 2 and 3"):
        graph.config.enable_zero(stage=4)
    with pytest.raises(GraphError, match="distributed_split or"):
        graph.config.set_zero_redundancy_optimizer_mode("half")
    graph.config.set_zero_redundancy_optimizer_mode()
    assert "zero=True" in repr(graph.config)
    graph.config.enable_zero(False)
    assert "zero" not in repr(graph.config)
    graph.config.enable_zero()
    graph(flow.ones(2, 2), flow.tensor([0, 1])).item()  # of one rank there are no parts
    with pytest.raises(GraphError, match="compiled already"):
        graph.config.enable_zero()


class Following(flow.nn.Graph):
    def build(self, x: Any) -> Any:
        return x + 1


def test_a_model_that_is_gone_is_forgotten() -> None:
    def rank() -> Any:
        place = flow.placement("cpu", [0, 1])
        model = model_on(place)
        opt = flow.optim.SGD(list(model.parameters()), lr=0.1)
        graph = Train(model, opt, {"shard_min_size": 1})
        graph(*data(place, S(0), 0)).numpy()
        wholes = current().resources["read whole"]
        found = len(wholes)
        del model, opt, graph
        gc.collect()
        Following().compile(flow.ones(1))  # where ranks may wait for each other, a dropped graph ends with the next
        until = time.monotonic() + 10  # the thread that ran the last launch lets go of it when it next wakes up
        while wholes and time.monotonic() < until:
            gc.collect()
        return found, len(wholes)

    assert spawn_threads(2, rank) == [(6, 0)] * 2
