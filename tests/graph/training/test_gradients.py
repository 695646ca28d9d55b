"""What a program does with `.grad` inside of build(): reads it, changes it, sets it, gives it; torch's beside."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import AutogradError, TraceError
from weft.launch import spawn_threads

pytestmark = pytest.mark.filterwarnings("ignore:Using backward.* with create_graph=True")

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


def penalized(m: Any, model: Any, x: Any) -> Any:
    loss = model(x).pow(2).sum()
    (g,) = m.autograd.grad(loss, model[0].weight, create_graph=True)
    loss = loss + g.pow(2).sum()
    loss.backward()
    return loss


def penalized_by_what_is_read(m: Any, model: Any, x: Any) -> Any:
    model(x).pow(2).sum().backward(create_graph=True)
    with m.no_grad():
        norm = model[0].weight.grad.norm()
    penalty = model[0].weight.grad.pow(2).sum() + model[2].bias.grad.sin().sum()
    model.zero_grad()
    penalty.backward()
    return norm, penalty


def moved_by_its_gradient(m: Any, model: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    loss = model(x + 0.3 * m.autograd.grad(model(x).sum(), x)[0]).pow(2).sum()
    loss.backward()
    return loss


def given_a_gradient(m: Any, model: Any, x: Any) -> Any:
    y = model(x).sin()
    y.backward(m.full_like(y, 0.5))
    return y.sum()


def held(m: Any, model: Any, x: Any) -> Any:
    params = list(model.parameters())
    flat, ends = m.zeros(26, dtype=m.float64), np.cumsum([p.numel() for p in params])
    for p, end in zip(params[:2], ends, strict=False):
        p.grad = flat[end - p.numel() : end].view(p.shape)
    model(x).pow(2).sum().backward()
    found = [p.grad for p in params[1:]]
    model(x).sin().sum().backward()
    return flat.norm(), *found


def cut_by_hand(m: Any, model: Any, x: Any) -> Any:
    y = model[0](x)
    z = y.detach().requires_grad_()
    loss = model[2](z.tanh()).pow(2).sum()
    loss.backward()
    y.backward(z.grad)
    return loss


def of_weights_alone(m: Any, model: Any, x: Any) -> Any:
    loss = model[0](x).pow(2).sum()
    loss.backward()
    model[2].weight.pow(2).sum().backward()
    return loss, model[2].weight.grad.norm()


def set_before(m: Any, model: Any, x: Any) -> Any:
    for p in model.parameters():
        p.grad = 0.3 * p.detach()
    loss = model(x).pow(2).sum()
    loss.backward()
    return loss


def set_to_tensors(m: Any, model: Any, x: Any) -> Any:
    model[0](x).sum().backward()
    model[0].bias.grad = m.tensor([1.0, -2.0, 3.0, 0.5], dtype=m.float64)
    model[2].bias.grad = m.tensor([0.5, -1.0], dtype=m.float64)
    return model[0].bias.grad + 1


def reversible(m: Any, model: Any, x: Any) -> Any:
    """What a network saves that computes its activations again: backward within backward."""

    class Coupled(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, h: Any, *_: Any) -> Any:
            ctx.save_for_backward(h)
            return model[2](h.tanh()).repeat(1, 2) + h

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            h = ctx.saved_tensors[0].detach().requires_grad_()
            with m.enable_grad():
                y = model[2](h.tanh()).repeat(1, 2)
            y.backward(dy)
            return dy + h.grad, None, None

    loss = Coupled.apply(model[0](x), *model[2].parameters()).pow(2).sum()
    loss.backward()
    model[2].bias.grad.add_(model[2].bias.detach())
    return loss, model[2].weight.grad


def hooked(m: Any, model: Any, x: Any) -> Any:
    y = model[0](x)

    def halve(p: Any) -> None:
        p.grad.mul_(0.5)

    y.register_hook(lambda g: g * 3)
    after = model[0].bias.register_post_accumulate_grad_hook(halve)
    loss = model[2](y).pow(2).sum()
    loss.backward()
    after.remove()
    return loss, model[0].weight.grad


PROGRAMS = [
    clipped, read, changed, in_turn, said_by_the_program, of_what_lies_between, penalized, penalized_by_what_is_read,
    moved_by_its_gradient, given_a_gradient, cut_by_hand, of_weights_alone, set_before, reversible, hooked,
    set_to_tensors, held,
]  # fmt: skip


LOSSES: list[Program] = [
    lambda m, model, x: model(x).pow(2).sum(), lambda m, model, x: model(x).abs().mean(),
    lambda m, model, x: model[2].weight.pow(2).sum(), lambda m, model, x: model[0](x).sin().sum(),
    lambda m, model, x: model(x)[:, 0].exp().sum() + model[0].bias.sum(),
]  # fmt: skip
USES: list[Callable[[Any, Any, Any, Any], Any]] = [  # of a parameter's gradient
    lambda m, model, x, p: p.grad.norm(), lambda m, model, x, p: p.grad * 2,
    lambda m, model, x, p: setattr(p, "grad", p.grad + m.autograd.grad(model(x).cos().sum(), p)[0]),
    lambda m, model, x, p: setattr(p, "grad", p.grad.tanh()), lambda m, model, x, p: setattr(p, "grad", None),
    lambda m, model, x, p: setattr(p, "grad", m.full_like(p, 0.25)), lambda m, model, x, p: model.zero_grad(),
    lambda m, model, x, p: p.grad.add_(0.1 * p.detach()), lambda m, model, x, p: p.grad.mul_(1 / (1 + p.grad.norm())),
    lambda m, model, x, p: p.grad.clamp_(-0.5, 0.5), lambda m, model, x, p: p.grad.copy_(p.detach()),
    lambda m, model, x, p: p.grad.data.mul_(-0.5), lambda m, model, x, p: p.grad.detach().view(-1)[1:].add_(0.2),
    lambda m, model, x, p: p.grad.__setitem__(0, 0.3), lambda m, model, x, p: setattr(p, "grad", p.grad.clone()),
    lambda m, model, x, p: p.sin().backward(p.grad.detach()), lambda m, model, x, p: p.exp().backward(p.detach().cos()),
    lambda m, model, x, p: m.nn.utils.clip_grad_norm_(params_of(model), 0.7),
    lambda m, model, x, p: m.nn.utils.clip_grad_value_(params_of(model), 0.4),
]  # fmt: skip


def params_of(model: Any) -> list[Any]:
    return list(model.parameters())


def drawn(seed: int, micro: int) -> Program:
    """A program of a few random uses of `.grad`; of clipping only without micro-batches."""

    def program(m: Any, model: Any, x: Any) -> Any:
        draw, found = random.Random(seed), []

        def backward(**options: Any) -> None:
            loss = draw.choice(LOSSES)(m, model, x)
            loss.backward(**options)
            found.append(loss)

        backward()
        for _ in range(draw.randint(1, 6)):
            p = draw.choice(params_of(model))
            if p.grad is None or draw.random() < 0.2:
                backward(create_graph=draw.random() < 0.3)
            elif (seen := draw.choice(USES[: -2 if micro > 1 else None])(m, model, x, p)) is not None:
                found.append(seen if draw.random() < 0.3 else seen.clone())  # to which is added
        if all(p.grad is None for p in params_of(model)):
            backward()
        return [*found, *(p.grad for p in params_of(model) if p.grad is not None)]

    return program


def layers(m: Any) -> Any:
    return m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Tanh(), m.nn.Linear(4, 2)).double()


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


def by_micro_batches(program: Program, model: Any, parts: list[Any]) -> list[Any]:
    """What torch finds for each of them by itself; `.grad` is the mean of what it is in the end."""
    found, params = [], list(model.parameters())
    for p in params:
        p.mean = None
    for part in parts:
        model.zero_grad()
        found.append(values(program(torch, model, part)))
        for p in [p for p in params if p.grad is not None]:
            p.mean = (0 if p.mean is None else p.mean) + p.grad.detach() / len(parts)
    for p in params:
        p.grad = p.mean
    return [np.concatenate([np.atleast_1d(y) for y in each]) for each in zip(*found, strict=True)]


def both(
    program: Program, micro: int = 1, scale: float | None = None, place: Any = None
) -> tuple[list[Any], list[Any]]:
    rng, theirs, ours = np.random.default_rng(2), layers(torch), layers(flow)
    for p in theirs.parameters():
        p.data = torch.from_numpy(rng.normal(size=p.shape) * 0.4)
    ours.load_state_dict(theirs.state_dict())
    given, ranks = torch.from_numpy(rng.normal(size=(12, 3))), 1 if place is None else place.size
    x = flow.tensor(given.numpy())
    if place is not None:
        ours.to_global(placement=place, sbp=flow.sbp.broadcast)
        x = x.to_global(placement=place, sbp=flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
    parts = [part.flatten(0, 1) for part in given.reshape(ranks, micro, -1, 3).unbind(1)]  # each rank cuts its rows
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.01, momentum=0.9)
    step = Step(program, ours, flow.optim.SGD(ours.parameters(), lr=0.01, momentum=0.9))
    step.config.set_gradient_accumulation_steps(micro)
    if scale is not None:
        step.set_grad_scaler(flow.amp.GradScaler(scale))
    wanted, found = [], []
    for _ in range(3):
        wanted += by_micro_batches(program, theirs, parts)
        optimizer.step()
        found += [np.atleast_1d(y) for y in values(step(x))]
    step.close()
    assert all(p.grad is None for p in ours.parameters())
    return [*wanted, *values(list(theirs.parameters()))], [*found, *values(list(ours.parameters()))]


def compare(wanted: list[Any], found: list[Any]) -> None:
    """With micro-batches a graph gives what is alike for all of them once."""
    for want, got in zip(wanted, found, strict=True):
        again = len(want) // len(got) if want.ndim == got.ndim and len(want) > len(got) else 1
        np.testing.assert_allclose(np.concatenate([got] * again), want, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [None, 64.0])
@pytest.mark.parametrize("micro", [1, 2, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program: Program, micro: int, scale: float | None) -> None:
    if program is not clipped or micro == 1:
        compare(*both(program, micro, scale))


@pytest.mark.parametrize("seed", range(24))
def test_as_in_torch_whatever_is_done_with_it(seed: int) -> None:
    micro, scale = random.Random(seed).choice([(1, None), (1, 64.0), (2, None), (2, 64.0), (3, None), (3, 64.0)])
    compare(*both(drawn(seed, micro), micro, scale))


@pytest.mark.parametrize(("micro", "scale"), [(1, None), (2, 64.0)])
def test_as_in_torch_on_two_ranks(micro: int, scale: float | None) -> None:
    left_out = [set_to_tensors, held]  # which make local tensors
    if micro > 1:  # refused; and rows are given in the order of the inputs'
        left_out += [clipped, of_what_lies_between]
    programs = [*(p for p in PROGRAMS if p not in left_out), *(drawn(seed, micro) for seed in range(5))]

    def run() -> list[Any]:
        return [both(program, micro, scale, flow.placement("cpu", ranks=[0, 1])) for program in programs]

    for each in spawn_threads(2, run)[0]:
        compare(*each)


def test_a_graph_may_give_gradients_to_whoever_updates() -> None:
    model = layers(flow)
    step, x = Step(read, model), flow.ones(4, 3, dtype=flow.float64)
    given = step(x)
    model(x).pow(2).sum().backward()
    for p, g in zip(model.parameters(), given, strict=True):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-5)


def dropped_first(m: Any, model: Any, x: Any) -> Any:
    model.zero_grad(set_to_none=False)
    return changed(m, model, x)


@pytest.mark.parametrize("program", [changed, set_before, said_by_the_program, set_to_tensors, dropped_first])
def test_what_was_in_grad_before_stays_there(program: Program) -> None:
    model = layers(flow)
    x = flow.ones(4, 3, dtype=flow.float64)
    model(x).sum().backward()
    before = [p.grad for p in model.parameters()]
    Step(program, model, flow.optim.SGD(model.parameters(), lr=0.1))(x)
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
        Step(lambda m, model, x: model(x).sum(), model)(flow.ones(4, 3, dtype=flow.float64)).backward()


def test_gradients_that_nobody_gets_are_told() -> None:
    def unused(m: Any, model: Any, x: Any) -> Any:
        loss = model(x).sum()
        loss.backward()
        return loss

    def dropped(m: Any, model: Any, x: Any) -> Any:
        loss = unused(m, model, x)
        model.zero_grad()
        return loss

    model, x = layers(flow), flow.ones(4, 3, dtype=flow.float64)
    with pytest.raises(TraceError, match="nothing uses the gradients"):
        Step(unused, model)(x)
    with pytest.raises(TraceError, match="drops every gradient"):
        Step(dropped, model, flow.optim.SGD(model.parameters(), lr=0.1))(x)
    half = Step(clipped, model, flow.optim.SGD(model.parameters(), lr=0.1))
    half.config.set_gradient_accumulation_steps(2)
    with pytest.raises(TraceError, match="one micro-batch"):
        half(x)
