"""The rate of a graph's step n is a function of n: the schedule shows it, whoever else steps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.core.errors import GraphError

of: Any = flow.optim.lr_scheduler
STEPS = 10


class Own(of.LRScheduler):
    """A program's own, with a step of its own and a count of its own."""

    def __init__(self, optimizer: Any) -> None:
        self.seen = 0
        super().__init__(optimizer)

    def get_lr(self) -> list[float]:
        return [base / (1 + self.seen) for base in self.base_lrs]

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        self.seen += 2


SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "StepLR": lambda o: of.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda o: of.MultiStepLR(o, [2, 5], 0.5),
    "ExponentialLR": lambda o: of.ExponentialLR(o, 0.5),
    "ConstantLR": lambda o: of.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda o: of.LinearLR(o, 0.25, 1.0, 6),
    "LambdaLR": lambda o: of.LambdaLR(o, lambda n: 0.5**n),
    "MultiplicativeLR": lambda o: of.MultiplicativeLR(o, lambda n: 0.75),
    "CosineDecayLR": lambda o: of.CosineDecayLR(o, 6, 0.25),
    "PolynomialLR": lambda o: of.PolynomialLR(o, 6, power=2.0),
    "CosineAnnealingLR": lambda o: of.CosineAnnealingLR(o, 4, 0.01),
    "CosineAnnealingWarmRestarts": lambda o: of.CosineAnnealingWarmRestarts(o, 2, 2),
    "CyclicLR": lambda o: of.CyclicLR(o, 0.1, 1.0, 3, cycle_momentum=False),
    "OneCycleLR": lambda o: of.OneCycleLR(o, 1.0, STEPS + 1, cycle_momentum=False),
    "WarmUpLR": lambda o: of.WarmUpLR(of.StepLR(o, 2, 0.5), 0.25, 3),
    "WarmupLR": lambda o: of.WarmupLR(o, 0.25, 3, "constant"),
    "SequentialLR": lambda o: of.SequentialLR(o, [of.ConstantLR(o, 0.5, 2), of.ExponentialLR(o, 0.5)], [3]),
    "ChainedScheduler": lambda o: of.ChainedScheduler([of.ConstantLR(o, 0.5, 3), of.ExponentialLR(o, 0.75)]),
    "SWALR": lambda o: flow.optim.swa_utils.SWALR(o, 0.25, 4),
    "Own": Own,
}


class Net(nn.Module):
    """Loses what its weights are: each step takes the rate away from them."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(flow.zeros(1)), nn.Parameter(flow.zeros(1))

    def forward(self) -> Any:
        return (self.a + self.b).sum()


class Train(nn.Graph):
    def __init__(self, schedule: Callable[[Any], Any] | None, scaled: float = 1.0) -> None:
        super().__init__()
        net = Net()
        groups = [{"params": [net.a]}, {"params": [net.b], "lr": 0.5}]
        if scaled != 1.0:
            groups[1]["lr_scale"] = scaled  # type: ignore[assignment]
        self.net = net
        self.optimizer = flow.optim.SGD(groups, lr=1.0)
        self.schedule = schedule and schedule(self.optimizer)
        self.add_optimizer(self.optimizer, lr_sch=self.schedule)

    def build(self) -> Any:
        loss = self.net()
        loss.backward()
        return loss

    def rates(self) -> list[float]:
        """Those of a launch, as the weights feel them."""
        net = self.net.to(nn.Module)
        before = net.a.item(), net.b.item()
        self()
        return [before[0] - net.a.item(), before[1] - net.b.item()]


def eager(schedule: Callable[[Any], Any]) -> list[list[float]]:
    groups = [{"params": [flow.zeros(1, requires_grad=True)]},
              {"params": [flow.zeros(1, requires_grad=True)], "lr": 0.5}]  # fmt: skip
    made, found = schedule(flow.optim.SGD(groups, lr=1.0)), []
    for _ in range(STEPS + 1):
        found.append(list(made.get_last_lr()))
        made.step()
    return found


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_rate_of_a_step_follows_from_its_number(name: str) -> None:
    expected = eager(SCHEDULES[name])
    for by_hand in (False, True):
        graph = Train(SCHEDULES[name])
        for n in range(STEPS):
            if n == STEPS // 2:  # what was saved now goes on now, in another graph that is compiled and elsewhere
                state, graph = graph.state_dict(), Train(SCHEDULES[name])
                graph.rates()
                graph.load_state_dict(state)
            assert graph.rates() == pytest.approx(expected[n], rel=1e-4, abs=1e-6)
            for _ in range(2 * by_hand):
                graph.schedule.step()
            shown = [g["lr"] for g in graph.optimizer.param_groups]
            assert graph.schedule.get_last_lr() == pytest.approx(expected[n + 1]) == shown
            assert graph.schedule.last_epoch == graph.schedule.last_step == n + 1
        graph.close()


def test_every_schedule_is_tried() -> None:
    made = {n for n in dir(of) if isinstance(getattr(of, n), type) and issubclass(getattr(of, n), of.LRScheduler)}
    assert made - {"LRScheduler", "_LRScheduler", "ReduceLROnPlateau"} <= SCHEDULES.keys()


def test_the_parts_of_a_schedule_and_its_optimizer_do_not_drive_it_either() -> None:
    graph = Train(SCHEDULES["ChainedScheduler"])
    expected = eager(SCHEDULES["ChainedScheduler"])
    for n in range(4):
        assert graph.rates() == pytest.approx(expected[n], rel=1e-4)
        graph.schedule.schedulers[1].step()
    graph.optimizer.param_groups[1]["lr"] = 7.0
    with pytest.raises(GraphError, match=r"param_groups\[1\]\['lr'\] was set to 7.0, and ChainedScheduler says 0.\d+"):
        graph()
    graph.close()


def test_eager_steps_are_counted_by_whoever_makes_them() -> None:
    graph, expected = Train(SCHEDULES["ExponentialLR"]), eager(SCHEDULES["ExponentialLR"])
    net = graph.net.to(nn.Module)
    assert graph.rates() == pytest.approx(expected[0])
    for n in (1, 2):
        before = net.a.item()
        graph.optimizer.zero_grad()
        net().backward()
        graph.optimizer.step()
        assert before - net.a.item() == pytest.approx(expected[n][0])
        graph.schedule.step()
        graph.schedule.step()  # there is nothing to count
    assert graph.rates() == pytest.approx(expected[3])
    graph.close()


def test_a_group_has_a_scale_of_its_own_beside_the_schedule() -> None:
    graph = Train(SCHEDULES["ExponentialLR"], scaled=0.5)
    assert [graph.rates() for _ in range(3)] == [[1.0, 0.25], [0.5, 0.125], [0.25, 0.0625]]
    graph.optimizer.param_groups[1]["lr_scale"] = 1.0
    assert graph.rates() == [0.125, 0.0625]
    graph.close()


def test_one_optimizer_has_one_schedule_and_a_schedule_its_optimizer() -> None:
    graph = Train(SCHEDULES["StepLR"])
    graph()
    other = Train(SCHEDULES["StepLR"])
    with pytest.raises(GraphError, match="StepLR sets the rates of another optimizer than this SGD"):
        graph.__class__.add_optimizer(Train(None), graph.optimizer, lr_sch=other.schedule)
    Train(None).add_optimizer(graph.optimizer, lr_sch=of.ExponentialLR(graph.optimizer, 0.5))
    with pytest.raises(GraphError, match="was given StepLR, and another graph gave its optimizer ExponentialLR"):
        graph()
    for g in (graph, other):
        g.close()


# A value for each key that a group may have, other than what it has by default.
KEYS: dict[str, Any] = {
    "lr": 0.3, "betas": (0.5, 0.75), "eps": 0.1, "weight_decay": 0.25, "amsgrad": True, "maximize": True,
    "momentum": 0.5, "nesterov": True, "do_bias_correction": False, "decoupled_weight_decay": True, "alpha": 0.5,
    "centered": True, "rho": 0.5, "lr_decay": 0.5, "initial_accumulator_value": 0.5, "adam_w_mode": False,
    "lambd": 0.25, "t0": 0.0, "etas": (0.25, 2.0), "step_sizes": (0.01, 0.1), "momentum_decay": 0.1,
    "dampening": 0.25, "beta2_decay": -0.5, "d": 2.0, "clip_grad_max_norm": 0.25, "clip_grad_norm_type": 1.0,
}  # fmt: skip
KINDS = [
    flow.optim.SGD, flow.optim.Adam, flow.optim.AdamW, flow.optim.RMSprop, flow.optim.Adadelta, flow.optim.Adafactor,
    flow.optim.Adagrad, flow.optim.Adamax, flow.optim.ASGD, flow.optim.LAMB, flow.optim.NAdam, flow.optim.RAdam,
    flow.optim.Rprop, flow.optim.Muon,
]  # fmt: skip


def trained(kind: Any, key: str, graph: bool) -> list[list[float]]:
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    for layer, scale in ((first, 0.5), (second, 0.75)):
        layer.weight.data.copy_(flow.tensor([[1.0, -2.0], [0.5, 1.0]]) * scale)
    value = (0.1, 0.1) if (kind, key) == (flow.optim.Adafactor, "eps") else KEYS[key]
    group: dict[str, Any] = {"params": [second.weight], key: value}
    group |= {"momentum": 0.5} if key in ("nesterov", "dampening") else {}
    group |= {"clip_grad_max_norm": 0.25} if key == "clip_grad_norm_type" else {}
    optimizer = kind([{"params": [first.weight]}, group], lr=0.1)
    net = nn.Sequential(first, second)
    step = Trains(net, optimizer, lambda y: y.square().sum()) if graph else None
    for n in range(3):
        x = flow.tensor([[1.0, float(n)]])
        if step is not None:
            step(x)
        else:
            optimizer.zero_grad()
            net(x).square().sum().backward()
            optimizer.clip_grad()
            optimizer.step()
    found = [w.detach().flatten().tolist() for w in (first.weight, second.weight)]
    if step is not None:
        step.close()
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_a_graph_honours_every_key_of_a_group(kind: Any) -> None:
    some = kind([nn.Linear(2, 2, bias=False).weight], lr=0.1).param_groups[0]
    idle = "differentiable", "foreach", "fused", "capturable"
    known = {*KEYS, *idle, "params", "lr_scale", "ns_coefficients", "ns_steps", "adjust_lr_fn"}
    assert some.keys() <= known, "a key that no graph was tried with"
    for key in [k for k in KEYS if k in some or k.startswith("clip")]:
        for ours, theirs in zip(trained(kind, key, True), trained(kind, key, False), strict=True):
            assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-5), key
