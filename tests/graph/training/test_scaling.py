"""Loss scaling in graphs: what an eager loop with the same scaler does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as flow
from weft import nn
from weft.core.errors import GraphError
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast


class Train(nn.Graph):
    def __init__(self, model: nn.Module, optimizer: Any, scaler: Any, micro_batches: int = 1) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        self.set_grad_scaler(scaler)
        self.config.set_gradient_accumulation_steps(micro_batches)

    def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        return loss


OPTIMIZERS: dict[str, Any] = {
    "AdamW": lambda ps: flow.optim.AdamW(ps, lr=0.05),
    "momentum": lambda ps: flow.optim.SGD(ps, lr=0.1, momentum=0.9),
    "RMSprop": lambda ps: flow.optim.RMSprop(ps, lr=0.01),
    "LAMB": lambda ps: flow.optim.LAMB(ps, lr=0.05),
    "clipped": lambda ps: flow.optim.Adam([{"params": ps, "clip_grad_max_norm": 0.1}], lr=0.05),
}


def batches(spoilt: int = 2) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    made = [(rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=(4, 1)).astype(np.float32)) for _ in range(6)]
    made[spoilt][0][1, 1] = np.inf
    return made


def model() -> nn.Module:
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def eagerly(optimizer: str, scaler: flow.amp.GradScaler, frozen: int = 0) -> tuple[list[Any], list[float]]:
    net = model()
    opt, scales = OPTIMIZERS[optimizer](list(net.parameters())[frozen:]), []
    for x, y in batches():
        scales.append(scaler.get_scale())
        loss = nn.functional.mse_loss(net(flow.tensor(x)), flow.tensor(y))
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        opt.clip_grad()
        scaler.step(opt)
        scaler.update()
    return [p.detach().numpy() for p in net.parameters()], scales


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_as_an_eager_loop(optimizer: str) -> None:
    options = {"init_scale": 1024.0, "growth_interval": 2}
    wanted, wanted_scales = eagerly(optimizer, flow.amp.GradScaler(**options))
    scaler, net, scales = flow.amp.GradScaler(**options), model(), []
    graph = Train(net, OPTIMIZERS[optimizer](list(net.parameters())), scaler)
    for x, y in batches():
        scales.append(scaler.get_scale())
        graph(flow.tensor(x), flow.tensor(y))
    assert scales == wanted_scales == [1024.0, 1024.0, 2048.0, 1024.0, 1024.0, 2048.0]
    for a, b in zip(net.parameters(), wanted, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-5, atol=1e-6)
    assert scaler.state_dict()["scale"] == 2048.0 and scaler.state_dict()["_growth_tracker"] == 1
    graph.close()


def test_the_loss_is_what_it_was_and_small_gradients_survive() -> None:
    """float16 knows nothing below 6e-8: without a scale such gradients are zero."""

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(flow.zeros(1))

        def forward(self, x: flow.Tensor) -> flow.Tensor:
            return (self.w.half() * x.half()).float()

    moved = []
    for scaler in (flow.amp.StaticGradScaler(1.0), flow.amp.StaticGradScaler(2.0**14), flow.amp.GradScaler(2.0**14)):
        net = Small()
        graph = Train(net, flow.optim.SGD(net.parameters(), lr=1.0), scaler)
        loss = graph(flow.full((1, 1), 1e-5), flow.full((1, 1), 1e-3))
        assert loss.item() == pytest.approx(1e-6)
        moved.append(net.w.item())
        graph.close()
    assert moved[0] == 0.0 and moved[1] == moved[2] == pytest.approx(2e-8, rel=0.05)


@pytest.mark.parametrize(
    ("first", "last", "optimizer", "frozen"),
    [([0, 1], [0, 1], "AdamW", 0), ([0], [1], "AdamW", 0), ([0], [1], "AdamW", 2), ([0, 1], [2, 3], "LAMB", 0)],
    ids=["data", "pipeline", "a rank that trains nothing", "stages of two ranks"],
)
def test_over_ranks(first: list[int], last: list[int], optimizer: str, frozen: int) -> None:
    def run() -> Any:
        places = flow.placement("cpu", first), flow.placement("cpu", last)
        net: Any = model()
        for stage, place in zip((net[0], net[2]), places, strict=True):
            stage.to_global(placement=place, sbp=B)
        scaler = flow.amp.GradScaler(init_scale=1024.0, growth_interval=2)
        graph = Train(net, OPTIMIZERS[optimizer](list(net.parameters())[frozen:]), scaler, 2 if first != last else 1)
        for n, place in enumerate(places if first != last else ()):
            graph.model[2 * n].to(nn.graph.GraphModule).set_stage(n, place)
        for batch in batches():
            graph(*(flow.tensor(t, placement=p, sbp=S(0)) for t, p in zip(batch, places, strict=True)))
        everywhere = flow.env.all_device_placement("cpu")
        return scaler.get_scale(), [p.to_global(placement=everywhere, sbp=B).detach().numpy() for p in net.parameters()]

    alone = flow.amp.GradScaler(init_scale=1024.0, growth_interval=2)
    wanted, _ = eagerly(optimizer, alone, frozen)
    for scale, found in spawn_threads(1 + last[-1], run, deadline=60):
        assert scale == alone.get_scale()
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_scalers_that_are_none() -> None:
    net = model()
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1), flow.amp.GradScaler(enabled=False))
    x, y = map(flow.tensor, batches()[0])
    graph(x, y).item()
    assert "loss scale" not in str(graph.job)
    loaded = nn.Graph()
    loaded.load_runtime_state_dict(graph.runtime_state_dict())
    assert loaded(x, y).item() == pytest.approx(graph(x, y).item())
    with pytest.raises(GraphError, match="compiled already"):
        graph.set_grad_scaler(flow.amp.GradScaler())
    with pytest.raises(GraphError, match="takes a flow"):
        graph.set_grad_scaler(2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("clip", "micro"), [("clip_grad_value_", 1), ("clamp_", 1), ("clamp_", 2)])
def test_a_step_that_overflows_is_left_out_though_build_makes_its_gradients_finite(clip: str, micro: int) -> None:
    class Clips(Train):
        def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
            loss = (self.model(x) + y).sum()
            loss.backward()
            if clip == "clip_grad_value_":
                nn.utils.clip_grad_value_(self.model.parameters(), 0.5)
            else:
                for p in self.model.parameters():
                    p.grad.clamp_(-0.5, 0.5)  # type: ignore[union-attr]
            return loss

    net, scaler = nn.Linear(2, 1), flow.amp.GradScaler(2.0**64, backoff_factor=2.0**-64)
    graph, x = (
        Clips(net, flow.optim.SGD(net.parameters(), lr=1.0), scaler, micro),
        flow.tensor([[1.0, 1.0], [1.0, 2.0**100]]),
    )
    before = net.weight.numpy().copy()
    for moved in (0.0, 0.5):
        graph(x, flow.ones(2, 1))
        assert scaler.get_scale() == 1.0
        np.testing.assert_allclose(net.weight.numpy(), before - moved, rtol=1e-6)
