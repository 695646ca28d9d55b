"""What a program does with `.grad` inside of build(): reads it, changes it, sets it, gives it; torch's beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import AutogradError, TraceError
from weft.launch import spawn_threads

Program = Callable[[Any, Any, Any], Any]  # (module, model, x) to what the step gives


def clipped(m: Any, model: Any, x: Any) -> Any:
    loss = model(x).pow(2).sum()
    loss.backward()
    norm = m.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    m.nn.utils.clip_grad_value_(model.parameters(), 0.3)
    return loss, norm


def read(m: Any, model: Any, x: Any) -> Any:
    model(x).pow(2).sum().backward()
    return [p.grad for p in model.parameters()]


def changed(m: Any, model: Any, x: Any) -> Any:
    loss = model(x).pow(2).sum()
    loss.backward()
    model[0].weight.grad.mul_(0.5)
    model[0].bias.grad = model[0].bias.grad + 1
    model[2].bias.grad = None
    return loss


def in_turn(m: Any, model: Any, x: Any) -> Any:
    model(x).sum().backward()
    first = model[0].weight.grad.clone()
    model(x).pow(2).sum().backward()
    return first, model[0].weight.grad


def said_by_the_program(m: Any, model: Any, x: Any) -> Any:
    loss = model(x).abs().sum()
    params = list(model.parameters())
    for p, g in zip(params, m.autograd.grad(loss, params), strict=True):
        p.grad = g.sign()
    return loss


def of_what_lies_between(m: Any, model: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    hidden = model[0](x)
    hidden.retain_grad()
    model[2](hidden.tanh()).pow(2).sum().backward()
    return x.grad, hidden.grad


PROGRAMS = [clipped, read, changed, in_turn, said_by_the_program, of_what_lies_between]


def layers(m: Any) -> Any:
    return m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Tanh(), m.nn.Linear(4, 2))


def values(found: Any) -> list[Any]:
    return [t.detach().numpy() for t in (found if isinstance(found, (list, tuple)) else [found])]


class Step(nn.Graph):
    def __init__(self, program: Program, model: Any, *optimizers: Any) -> None:
        super().__init__()
        self.model, self.program = model, program
        for optimizer in optimizers:
            self.add_optimizer(optimizer)

    def build(self, x: Any) -> Any:
        return self.program(flow, self.model, x)


def both(program: Program, place: Any = None) -> tuple[list[Any], list[Any]]:
    torch.manual_seed(2)
    theirs, given = layers(torch), torch.randn(4, 3)
    ours = layers(flow)
    ours.load_state_dict({k: flow.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = flow.tensor(given.numpy())
    if place is not None:
        ours.to_global(placement=place, sbp=flow.sbp.broadcast)
        x = x.to_global(placement=place, sbp=flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
    step = Step(program, ours, flow.optim.SGD(ours.parameters(), lr=0.1, momentum=0.9))
    wanted, found = [], []
    for _ in range(3):
        optimizer.zero_grad()
        wanted += values(program(torch, theirs, given))
        optimizer.step()
        found += values(step(x))
    step.close()
    assert all(p.grad is None for p in ours.parameters())
    return [*wanted, *values(list(theirs.parameters()))], [*found, *values(list(ours.parameters()))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program: Program) -> None:
    for want, got in zip(*both(program), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_as_in_torch_on_two_ranks() -> None:
    def run() -> list[Any]:
        return [both(program, flow.placement("cpu", ranks=[0, 1])) for program in PROGRAMS]

    for wanted, found in spawn_threads(2, run)[0]:
        for want, got in zip(wanted, found, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_a_graph_may_give_gradients_to_whoever_updates() -> None:
    model = layers(flow)
    step, x = Step(read, model), flow.ones(4, 3)
    given = step(x)
    model(x).pow(2).sum().backward()
    for p, g in zip(model.parameters(), given, strict=True):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-5)


def test_what_was_in_grad_before_stays_there() -> None:
    model = layers(flow)
    x = flow.ones(4, 3)
    model(x).sum().backward()
    before = [p.grad for p in model.parameters()]
    Step(changed, model, flow.optim.SGD(model.parameters(), lr=0.1))(x)
    assert all(p.grad is g for p, g in zip(model.parameters(), before, strict=True))


def test_data_has_a_gradient_where_build_asks_for_it() -> None:
    class Asks(nn.Graph):
        def build(self, x: Any, asks: bool) -> Any:
            if asks:
                x.requires_grad_()
            (x * x).sum().backward()
            return x.grad

    x = flow.ones(3, requires_grad=True)
    assert Asks()(x, True).tolist() == [2.0] * 3 and x.grad is None
    with pytest.raises(AutogradError, match=r"A graph's inputs are data.*requires_grad_\(\) in build"):
        Asks()(x, False)
    model = layers(flow)
    with pytest.raises(AutogradError, match=r"For a graph's outputs.*build\(\)"):
        Step(lambda m, model, x: model(x).sum(), model)(flow.ones(4, 3)).backward()


def test_gradients_that_nobody_gets_are_told() -> None:
    def unused(m: Any, model: Any, x: Any) -> Any:
        loss = model(x).sum()
        loss.backward()
        return loss

    def dropped(m: Any, model: Any, x: Any) -> Any:
        loss = unused(m, model, x)
        model.zero_grad()
        return loss

    model, x = layers(flow), flow.ones(4, 3)
    with pytest.raises(TraceError, match="nothing uses the gradients"):
        Step(unused, model)(x)
    with pytest.raises(TraceError, match="drops every gradient"):
        Step(dropped, model, flow.optim.SGD(model.parameters(), lr=0.1))(x)
    half = Step(clipped, model, flow.optim.SGD(model.parameters(), lr=0.1))
    half.config.set_gradient_accumulation_steps(2)
    with pytest.raises(TraceError, match="one micro-batch"):
        half(x)


# ---- what is a share of the mean over micro-batches, and scaled, and what isn't -------------------------

Begin = Callable[[Any], Any]  # of a gradient or a loss, what a loop that averages and scales by hand begins with


def penalized(m: Any, model: Any, x: Any, begin: Begin) -> Any:
    loss = model(x).pow(2).sum()
    (g,) = m.autograd.grad(loss, model[0].weight, create_graph=True)
    loss = loss + g.pow(2).sum()
    begin(loss).backward()
    return loss


def moved_by_its_gradient(m: Any, model: Any, x: Any, begin: Begin) -> Any:
    x = x.clone().requires_grad_()
    loss = model(x + 0.3 * m.autograd.grad(model(x).sum(), x)[0]).pow(2).sum()
    begin(loss).backward()
    return loss


def set_to_signs(m: Any, model: Any, x: Any, begin: Begin) -> Any:
    loss, params = model(x).abs().sum(), list(model.parameters())
    for p, g in zip(params, m.autograd.grad(loss, params), strict=True):
        p.grad = begin(g.sign()) if m is flow or p.grad is None else p.grad + begin(g.sign())
    return loss


def given_a_gradient(m: Any, model: Any, x: Any, begin: Begin) -> Any:
    y = model(x).sin()
    y.backward(begin(m.full_like(y, 0.5)))
    return y.sum()


def cut_by_hand(m: Any, model: Any, x: Any, begin: Begin) -> Any:
    y = model[0](x)
    z = y.detach().requires_grad_()
    loss = model[2](z.tanh()).pow(2).sum()
    begin(loss).backward()
    y.backward(z.grad)
    return loss


def of_weights_alone(m: Any, model: Any, x: Any, begin: Begin) -> Any:
    loss = model[0](x).pow(2).sum()
    begin(loss).backward()
    begin(model[2].weight.pow(2).sum()).backward()
    return loss


def set_before(m: Any, model: Any, x: Any, begin: Begin) -> Any:
    for p in model.parameters():
        p.grad = begin(0.3 * p.detach()) + (0 if m is flow or p.grad is None else p.grad)
    loss = model(x).pow(2).sum()
    begin(loss).backward()
    return loss


@pytest.mark.parametrize("scale", [None, 64.0])
@pytest.mark.parametrize("micro", [1, 2])
@pytest.mark.parametrize(
    "program",
    [penalized, moved_by_its_gradient, set_to_signs, given_a_gradient, cut_by_hand, of_weights_alone, set_before],
    ids=lambda p: p.__name__,
)
def test_a_loss_has_its_share_and_a_gradient_that_is_asked_for_is_whole(
    program: Callable[..., Any], micro: int, scale: float | None
) -> None:
    torch.manual_seed(2)
    theirs, x = layers(torch), torch.randn(4, 3)
    ours = layers(flow)
    ours.load_state_dict(theirs.state_dict())
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    step = Step(lambda m, model, x: program(m, model, x, lambda g: g), ours, flow.optim.SGD(ours.parameters(), lr=0.1))
    step.config.set_gradient_accumulation_steps(micro)
    if scale is not None:
        step.set_grad_scaler(flow.amp.GradScaler(scale))
    for _ in range(2):
        optimizer.zero_grad()
        wanted = [program(torch, theirs, part, lambda g: g * (scale or 1) / micro) for part in x.chunk(micro)]
        for p in theirs.parameters():
            if p.grad is not None:
                p.grad /= scale or 1
        optimizer.step()
        np.testing.assert_allclose(step(x).numpy().reshape(-1), [w.item() for w in wanted], rtol=1e-5)
    step.close()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-6)
