"""Every optimizer and schedule in a graph, held against the same training done eagerly."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import GraphError, TraceError

schedules: Any = flow.optim.lr_scheduler
KINDS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "AdamW": lambda p: flow.optim.AdamW(p, lr=0.02, amsgrad=True, weight_decay=0.3),
    "RMSprop": lambda p: flow.optim.RMSprop(p, lr=0.02, centered=True),
    **{
        name: lambda p, name=name: getattr(flow.optim, name)(p, lr=0.02)
        for name in ("Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "ASGD", "LAMB", "NAdam", "RAdam", "Rprop")
    },
}


class Net(nn.Module):
    """Counts what it saw, has a layer that no loss reaches and one that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.unused = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(2, 2)
        self.register_buffer("count", flow.zeros(1))
        self.first.bias.requires_grad_(False)
        for i, p in enumerate(self.parameters()):
            p.data = flow.tensor(np.random.default_rng(i).normal(size=tuple(p.shape)).astype(np.float32))

    def forward(self, x: Any) -> Any:
        scale = self.count * 0.25
        self.count += 1
        return self.second(flow.tanh(self.first(x))) * (scale + 1)


class Train(nn.Graph):
    def __init__(self, net: nn.Module, optimizer: Any, micro: int = 1, lr_sch: Any = None) -> None:
        super().__init__()
        self.net = net
        self.add_optimizer(optimizer, lr_sch=lr_sch)
        self.config.set_gradient_accumulation_steps(micro)

    def build(self, x: Any) -> Any:
        loss = self.net(x).square().mean()
        loss.backward()
        return loss


def batch(i: int) -> Any:
    return flow.tensor(np.random.default_rng(50 + i).normal(size=(4, 4)).astype(np.float32))


def alike(make: Callable[[Any], Any], schedule: Callable[[Any], Any] | None = None, micro: int = 1) -> None:
    ours, theirs = Net(), Net()
    optimizer, other = make(ours.parameters()), make(theirs.parameters())
    stepped = schedule(optimizer) if schedule else None
    graph = Train(theirs, other, micro, schedule(other) if schedule else None)
    for i in range(4):
        optimizer.zero_grad()
        found = []
        for part in batch(i).chunk(micro):
            loss = ours(part).square().mean()
            (loss / micro).backward()
            found.append(loss.item())
        optimizer.step()
        if stepped is not None:
            stepped.step()
        np.testing.assert_allclose(graph(batch(i)).numpy().reshape(-1), found, rtol=1e-4)
    for name, t in ours.state_dict().items():
        np.testing.assert_allclose(theirs.state_dict()[name].numpy(), t.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)
    assert {len(s) for s in optimizer.state_dict()["state"].values()} == {
        len(s) for s in other.state_dict()["state"].values()
    }
    graph.close()


GLOBAL: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in KINDS if name != "ASGD"), ("ASGD", {"weight_decay": 0.1}), ("Muon", {}),
    ("Muon", {"adjust_lr_fn": "match_rms_adamw"}), ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}), ("Adafactor", {"weight_decay": 0.1}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), GLOBAL)
def test_it_trains_global_parameters_as_eagerly(kind: str, options: dict[str, Any]) -> None:
    def make(net: nn.Module) -> Any:
        matrices = [p for p in net.parameters() if p.requires_grad and p.ndim == 2]
        return getattr(flow.optim, kind)(matrices, lr=0.05, **options)

    @on(2)
    def train() -> None:
        P, S, B = flow.placement("cpu", ranks=[0, 1]), flow.sbp.split, flow.sbp.broadcast
        ours, theirs = Net().to_global(P, B), Net().to_global(P, {"first.*": S(0), "*": B})
        optimizer, graph = make(ours), Train(theirs, make(theirs))
        for i in range(3):
            optimizer.zero_grad()
            x = batch(i).to_global(P, B).to_global(sbp=S(0))
            loss = ours(x).square().mean()
            loss.backward()
            optimizer.step()
            np.testing.assert_allclose(graph(x).numpy(), loss.numpy(), rtol=1e-4)
        for name, t in ours.state_dict().items():
            np.testing.assert_allclose(theirs.state_dict()[name].numpy(), t.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)

    train()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("micro", [1, 2])
def test_it_trains_as_eagerly(kind: str, micro: int) -> None:
    alike(KINDS[kind], micro=micro)


class Cooling(flow.optim.Optimizer):
    """Written with public functions; it changes what an update reads by something else than a gradient, afterwards."""

    nonnegative = ()
    first_values: Any = {"heat": 1.0}

    def update(self, group: Any, bucket: Any, grads: list[Any], lr: Any) -> None:
        with flow.no_grad():
            for p, g, heat in zip(bucket.params, grads, bucket.states["heat"], strict=True):
                p.sub_(g * heat * lr)
                heat.mul_(0.5)


@pytest.mark.parametrize("micro", [1, 2])
def test_what_an_update_read_is_written_behind_it(micro: int) -> None:
    alike(lambda p: Cooling(p, {"lr": 0.1}), micro=micro)


@pytest.mark.parametrize("schedule", [
    lambda o: schedules.StepLR(o, 2, 0.5), lambda o: schedules.CosineAnnealingLR(o, 3),
    lambda o: schedules.WarmupLR(schedules.MultiStepLR(o, [2, 3]), warmup_factor=0.1, warmup_iters=2),
    lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.1, 2), schedules.ExponentialLR(o, 0.9)], [2]),
    lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.1, 2), schedules.ExponentialLR(o, 0.9)]),
    lambda o: schedules.CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=False),
])  # fmt: skip
def test_rates_follow_the_schedule(schedule: Callable[[Any], Any]) -> None:
    alike(KINDS["SGD"], schedule)


def test_other_options_than_the_rate_stay_as_they_were_compiled() -> None:
    net = Net()
    optimizer = KINDS["SGD"](net.parameters())
    graph = Train(net, optimizer, lr_sch=schedules.CyclicLR(optimizer, 0.01, 0.1, 2))
    graph(batch(0))
    with pytest.raises(GraphError, match=r"compiled with momentum=0.9, .* momentum=0.85.* now.*cycle_momentum=False"):
        graph(batch(1))
    graph = Train(net, optimizer)
    graph(batch(1))
    optimizer.param_groups[0]["weight_decay"] = 0.1
    with pytest.raises(GraphError, match="weight_decay"):
        graph(batch(2))


def test_what_can_not_be_added() -> None:
    net = Net()
    optimizer = KINDS["SGD"](net.parameters())
    for wrong in (schedules.ReduceLROnPlateau(optimizer), 0.5):
        with pytest.raises(GraphError, match=r"lr_sch=\w+\): .*Call the step\(\) of any other yourself"):
            Train(net, optimizer, lr_sch=wrong)
    with pytest.raises(GraphError, match="LBFGS"):
        Train(net, flow.optim.LBFGS(net.parameters()))


def test_what_is_frozen_after_it_was_compiled_is_noticed() -> None:
    net = Net()
    graph = Train(net, KINDS["SGD"](net.parameters()))
    graph(batch(0))
    first = next(iter(net.parameters())).requires_grad_(False)
    with pytest.raises(GraphError, match=r"trained, and it is frozen since \(requires_grad\)"):
        graph(batch(1))
    first.requires_grad_()
    graph(batch(1))


def test_an_eager_step_is_refused_inside_of_build() -> None:
    net = Net()
    optimizer = KINDS["SGD"](net.parameters())

    class Eagerly(Train):
        def build(self, x: Any) -> Any:
            loss = super().build(x)
            optimizer.step()
            return loss

    with pytest.raises(TraceError, match="a graph updates after each"):
        Eagerly(net, optimizer)(batch(0))


def test_each_micro_batch_draws_anew() -> None:
    class Draw(nn.Graph):
        def build(self, x: Any) -> Any:
            return x + flow.rand(1), flow.rand(1)

    graph = Draw()
    graph.config.set_gradient_accumulation_steps(4)
    for drawn in graph(flow.zeros(4)):
        assert len(set(drawn.tolist())) == 4


def trained(graph: Train, start: int) -> list[float]:
    return [graph(batch(start + i)).item() for i in range(3)]


def test_states_loaded_between_launches_are_those_of_the_graph() -> None:
    net = Net()
    optimizer = flow.optim.Adam(net.parameters(), lr=0.05)
    graph = Train(net, optimizer)
    trained(graph, 0)
    weights = {k: v.clone() for k, v in net.state_dict().items()}
    states = copy.deepcopy(optimizer.state_dict())
    first = trained(graph, 3)
    net.load_state_dict(weights)
    optimizer.load_state_dict(states)
    assert trained(graph, 3) == first
    assert optimizer.state[net.first.weight]["step"].item() == 6.0


def test_an_optimizer_that_is_another_by_now() -> None:
    net = Net()
    optimizer = flow.optim.Adam(net.parameters(), lr=0.05)
    graph = Train(net, optimizer)
    graph(batch(0))
    net(batch(1)).sum().backward()
    optimizer.step()
    graph(batch(2))  # every parameter had its step
    net(batch(3)).sum().backward()
    net.second.bias.grad = None
    optimizer.step()
    with pytest.raises(GraphError, match="counts steps apart"):
        graph(batch(4))

    net = Net()
    optimizer = flow.optim.SGD(net.first.parameters(), lr=0.05)
    graph = Train(net, optimizer)
    graph(batch(0))
    optimizer.add_param_group({"params": list(net.second.parameters())})
    with pytest.raises(GraphError, match="given a group"):
        graph(batch(1))


@pytest.mark.parametrize("compiled", [False, True])
def test_training_goes_on_from_the_state_of_a_graph(compiled: bool, tmp_path: Path) -> None:
    def make() -> Train:
        net = Net()
        optimizer = flow.optim.Adam(net.parameters(), lr=0.05)
        graph = Train(net, optimizer, lr_sch=schedules.StepLR(optimizer, 2, 0.5))
        graph.set_grad_scaler(flow.amp.GradScaler(init_scale=64.0, growth_interval=2))
        return graph

    whole = make()
    losses = trained(whole, 0)
    flow.save(whole.state_dict(), tmp_path / "state")
    losses += trained(whole, 3)
    again = make()
    if compiled:
        trained(again, 7)
    again.load_state_dict(flow.load(tmp_path / "state"))
    assert trained(again, 3) == losses[3:]

    class Look(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def build(self, x: Any) -> Any:
            return self.net(x)

    look = Look()
    look.load_state_dict(flow.load(tmp_path / "state"))  # what doesn't train takes the modules
    state = whole.state_dict()
    state["-training"].pop()
    with pytest.raises(GraphError, match="of 2 optimizers, schedules and scalers, and this graph has 3"):
        again.load_state_dict(state)
