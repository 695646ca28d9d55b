"""Scaled losses: the steps are those without a scale, and infinite gradients are left out."""

from __future__ import annotations

import pytest

import weft as flow
from weft.amp import GradScaler
from weft.core.errors import CheckpointError, OptionError


def trained(scaler: flow.amp.GradScaler | flow.amp.StaticGradScaler | None) -> flow.Tensor:
    w = flow.nn.Parameter(flow.tensor([1.0, -2.0]))
    optimizer = flow.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        loss = (w * w).sum()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return w


@pytest.mark.parametrize("scaler", [
    flow.amp.GradScaler(growth_interval=2), flow.amp.StaticGradScaler(128.0), flow.amp.GradScaler(enabled=False),
])  # fmt: skip
def test_steps_are_those_without_a_scale(scaler: flow.amp.GradScaler) -> None:
    assert trained(scaler).equal(trained(None))
    assert scaler.get_scale() == {True: 2.0**17, False: 1.0}.get(scaler.is_enabled()) or scaler.get_scale() == 128.0


def test_infinite_gradients_make_no_step_and_a_smaller_scale() -> None:
    w = flow.nn.Parameter(flow.ones(2))
    optimizer, scaler = flow.optim.SGD([w], lr=1.0), flow.amp.GradScaler(init_scale=8.0)
    (scaler.scale((w * float("inf")).sum())).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [1.0, 1.0] and scaler.get_scale() == 4.0


def test_gradients_can_be_clipped_between() -> None:
    w = flow.nn.Parameter(flow.tensor([3.0, 4.0]))
    optimizer, scaler = flow.optim.SGD([w], lr=1.0), flow.amp.GradScaler(init_scale=1024.0)
    scaler.scale((w * w / 2).sum()).backward()
    scaler.unscale_(optimizer)
    assert flow.nn.utils.clip_grad_norm_([w], 1.0).item() == pytest.approx(5.0)
    scaler.step(optimizer)
    assert w.tolist() == pytest.approx([2.4, 3.2], abs=1e-5)
    with pytest.raises(OptionError, match="already been called"):
        scaler.unscale_(optimizer)


def test_its_state_travels() -> None:
    first, second = flow.amp.GradScaler(init_scale=4.0, growth_interval=7), flow.amp.GradScaler()
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == first.state_dict()
    assert [s.item() for s in second.scale([flow.ones(1), flow.ones(1)])] == [4.0, 4.0]
    with pytest.raises(CheckpointError, match="lacks _growth_tracker"):
        second.load_state_dict({"scale": 1.0})
    with pytest.raises(OptionError, match="no gradients were checked"):
        second.update()
    with pytest.raises(OptionError, match="growth_factor is above 1"):
        flow.amp.GradScaler(growth_factor=1.0)


def test_a_device_may_stand_in_front() -> None:
    scalers = [GradScaler("cpu", init_scale=8.0), GradScaler(8.0), GradScaler(device="cuda", init_scale=8.0)]
    assert [s.get_scale() for s in (*scalers, GradScaler("cuda", 8.0))] == [8.0] * 4
    assert not GradScaler("cuda", enabled=False).is_enabled()
    with pytest.raises(OptionError, match="a device and 5 options"):
        GradScaler(1.0, 2.0, 0.5, 3, True, 4)


def test_its_rule_is_read_and_set() -> None:
    scaler = flow.amp.GradScaler(growth_factor=4.0, growth_interval=3)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_factor(scaler.get_growth_factor() + 1)
    scaler.set_growth_interval(scaler.get_growth_interval() + 1)
    state = scaler.state_dict()
    assert (state["growth_factor"], state["backoff_factor"], state["growth_interval"]) == (5.0, 0.25, 4)
    assert scaler.get_backoff_factor() == 0.25


def test_a_constant_scale_is_no_state_of_a_graph() -> None:
    class Train(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.net = flow.nn.Linear(2, 1)
            self.add_optimizer(flow.optim.SGD(self.net.to(flow.nn.Module).parameters(), lr=0.1, momentum=0.9))
            self.set_grad_scaler(flow.amp.StaticGradScaler(8.0))

        def build(self, x: flow.Tensor) -> flow.Tensor:
            loss = self.net(x).sum()
            loss.backward()
            return loss

    first, second, x = Train(), Train(), flow.ones(3, 2)
    first(x)
    second.load_state_dict(first.state_dict())
    assert [first(x).item() for _ in range(2)] == [second(x).item() for _ in range(2)]
