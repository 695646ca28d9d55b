"""What bypasses `__torch_function__` in modules of torch's, with torch as the oracle, eagerly and in graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import weft as flow
from weft import nn
from weft.core.dispatch import here
from weft.core.errors import ArgumentError
from weft.interop.functions import Mode
from weft.interpreter import stack

Method = Callable[[Any, torch.Tensor], torch.Tensor]


class Square(torch.autograd.Function):
    """Its gradient is five times too large: so one sees that it is asked."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        assert not torch.is_grad_enabled() and ctx.needs_input_grad == (True, False)
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * factor

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.mul(gradients[0], 10 * x * ctx.factor), None


class Parted(torch.autograd.Function):
    """Two outputs, one of which has no gradient, and a context that is set up by another method."""

    @staticmethod
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        return x.exp(), (x > 0).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[0])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        return 3 * gradients[0] * ctx.saved_tensors[0]


class Overwriting(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(5)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 7


early = Square.apply  # a name that was taken before any module was


def parted(m: Any, x: torch.Tensor) -> torch.Tensor:
    y, sign = Parted.apply(m.layer(x))
    assert y.requires_grad and not sign.requires_grad
    return y * sign


def overwriting(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = m.layer(x) * 1
    Overwriting.apply(y)
    return y * y


def cast(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = m.layer(x)
        assert y.dtype == torch.bfloat16 and torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", enabled=False):
            z = m.layer(x)
            assert z.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")
    return y.float() + z


def watched(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = m.layer(x)
    y.register_hook(lambda g: torch.mul(g, 2))
    return y


def unrecorded(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        bias = m.layer(x).mean()
    assert not bias.requires_grad
    return m.layer(x) - bias.clone()


def differentiated(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = m.layer(x)
    return torch.autograd.grad((y**3).sum(), y, create_graph=True)[0]


def gradient(m: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda w: (w * x).sin().sum())(m.layer.weight.sum()).reshape(1) * m.layer(x)


def adapted(m: Any, x: torch.Tensor) -> torch.Tensor:
    """A step within, as in MAML."""
    y = m.layer(x).mean().square()
    params = dict(m.layer.named_parameters())
    steps = torch.autograd.grad(y, list(params.values()), create_graph=True)
    return torch.func.functional_call(m.layer, {n: p - g for (n, p), g in zip(params.items(), steps, strict=True)}, x)


def seeded(m: Any, x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(7)
    return m.inner(m.layer(x)) + torch.randn(4, generator=torch.Generator().manual_seed(3))


@torch.jit.script
def scanned(a: list[torch.Tensor], b: list[torch.Tensor]) -> torch.Tensor:
    return torch.addcmul(b[1], b[0], a[1]) * a[0]


CASES: dict[str, Method] = {
    "a function": lambda m, x: early(m.layer(x), 3.0),
    "a function whose context is set up": parted,
    "a function that overwrites": overwriting,
    "reentrant checkpoint": lambda m, x: checkpoint(m.inner, m.layer(x), use_reentrant=True),
    "checkpoint": lambda m, x: checkpoint(m.inner, m.layer(x), use_reentrant=False),
    "checkpoint of a module": lambda m, x: checkpoint(m.layer, m.layer(x), use_reentrant=False),
    "sequential": lambda m, x: checkpoint_sequential([m.layer, m.inner], 2, m.layer(x), use_reentrant=False),
    "vmap": lambda m, x: torch.vmap(lambda row: m.layer(row).sin())(x),
    "func.grad": gradient,
    "autocast": cast,
    "a hook": watched,
    "inference mode": unrecorded,
    "autograd.grad": differentiated,
    "functional_call": adapted,
    "stft": lambda m, x: torch.stft(m.layer(x), 4, window=torch.hann_window(4), return_complex=True).abs().sum(-1),
    "a scripted function of lists": lambda m, x: scanned([m.layer(x), x], [m.inner(x), x * 2]),
    "Tensor of a tensor": lambda m, x: m.layer(x) * torch.Tensor(torch.zeros(4) + 2).to(x.device),
    "random numbers": seeded,
}


class Model(torch.nn.Module):
    def __init__(self, method: Method) -> None:
        super().__init__()
        self.layer, self.drop, self.method = torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), method

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.tanh(self.layer(x)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.method(self, x)


class Two(torch.nn.Sequential):
    layer = property(lambda self: self[0])


def eagerly(m: Any, x: Any) -> Any:
    y = m(x)
    (y * y).sum().backward()
    return y


def as_a_graph(m: Any, x: Any) -> Any:
    class Train(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.m = m
            self.add_optimizer(flow.optim.SGD(m.parameters(), lr=1.0))

        def build(self, x: Any) -> Any:
            return eagerly(self.m, x)

    before = m.layer.weight.detach().clone()
    y = Train()(x)
    m.layer.weight.grad = before - m.layer.weight.detach()
    return y


@pytest.mark.parametrize("road", [eagerly, as_a_graph])
@pytest.mark.parametrize("name", CASES)
def test_it_is_as_in_torch(name: str, road: Any):
    torch.manual_seed(0)
    theirs, x = Model(CASES[name]), torch.randn(3, 4)
    ours = flow.from_torch(copy.deepcopy(theirs))
    torch.manual_seed(1)
    expected = eagerly(theirs, x.clone())
    flow.manual_seed(1)
    found = road(ours, flow.from_torch(x))
    assert found.detach().numpy() == pytest.approx(expected.detach().numpy(), rel=1e-5, abs=1e-6)
    assert ours.layer.weight.grad.numpy() == pytest.approx(theirs.layer.weight.grad.numpy(), rel=1e-4, abs=1e-5)


def test_what_is_saved_passes_hooks():
    def doubled(m: Any, x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: [torch.mul(t, 2)], lambda kept: kept[0]):
            return m.layer(x).sin()

    torch.manual_seed(0)
    theirs, x = Model(doubled), torch.randn(3, 4)
    ours = flow.from_torch(copy.deepcopy(theirs))
    eagerly(theirs, x), eagerly(ours, flow.from_torch(x))
    assert ours.layer.weight.grad.numpy() == pytest.approx(theirs.layer.weight.grad.numpy(), rel=1e-4)


def test_torchs_own_stay_torchs():
    flow.from_torch(torch.nn.Linear(2, 2))
    torch.manual_seed(0)
    theirs, x = Model(CASES["reentrant checkpoint"]), torch.randn(3, 4)
    state = torch.get_rng_state()
    eagerly(theirs, x)
    gradient = theirs.layer.weight.grad
    theirs.zero_grad()
    torch.set_rng_state(state)
    with torch.autocast("cpu", enabled=False):
        eagerly(theirs, x)
    assert type(gradient) is torch.Tensor and torch.equal(theirs.layer.weight.grad, gradient)


@pytest.mark.parametrize("backward_within", [False, True])
def test_torchs_autocast_around_a_model(backward_within: bool) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 3)
    )
    x, target, ours = torch.randn(5, 1, 6, 6), torch.arange(5) % 3, flow.from_torch(copy.deepcopy(theirs))
    losses = []
    for m in (theirs, ours):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = m(x)
            with torch.autocast("cpu", enabled=False):
                assert (y.float() @ y.float().T).dtype == torch.float32
            loss = torch.nn.functional.cross_entropy(y, target)
            if backward_within:
                loss.backward()
        if not backward_within:
            loss.backward()
        assert y.dtype == torch.bfloat16
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1]) and not flow.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu") and (flow.ones(2, 2) @ flow.ones(2, 2)).dtype == flow.float32
    for a, b in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert b.grad.dtype == flow.float32 and b.grad.numpy() == pytest.approx(a.grad.numpy(), rel=0.05, abs=1e-3)


def test_within_torchs_autocast_calls_take_the_fast_path_and_kernels_cast_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, w = flow.randn(4, 4), flow.randn(4, 4, requires_grad=True)
    kept = (x @ w).double()  # the entries are written
    monkeypatch.setattr(stack, "run", None)  # the general path's
    theirs = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = (x @ w).relu().view(2, 8).softmax(0) + flow.zeros(8)
        (x * w).square_()
        with flow.autocast("cpu", enabled=False):  # a kernel that torch would cast
            assert torch.equal((x @ w).double().to_torch(), kept.to_torch())
        assert y.dtype is flow.float32 and (x @ w).dtype is flow.bfloat16
        assert (theirs @ theirs).dtype is torch.bfloat16 and here.torchs and not here.plain
    assert here.plain and not here.torchs


def test_a_gradient_that_has_none_is_refused():
    def twice(m: Any, x: torch.Tensor) -> torch.Tensor:
        y = m.layer(x)
        return torch.autograd.grad(Parted.apply(y)[0].square().sum(), y, create_graph=True)[0]

    with pytest.raises(Exception, match="once_differentiable"):
        eagerly(flow.from_torch(Model(twice)), flow.ones(3, 4))


def test_what_weft_has_not_is_named():
    model = flow.from_torch(Model(lambda m, x: torch.func.functionalize(m.layer)(x)))
    with pytest.raises(ArgumentError, match=r"torch\.func\.functionalize: .* Weft has no function of this name"):
        model(flow.ones(3, 4))


@pytest.mark.parametrize("road", [eagerly, as_a_graph])
@pytest.mark.parametrize("first", [True, False])
def test_hooks_on_gradients_run(road: Any, first: bool):
    seen: list[Any] = []

    def after(module: Any, given: Any, made: Any) -> Any:
        seen.append((tuple(given[0].shape), tuple(made[0].shape)))
        return (torch.mul(given[0], 2.0),)

    def hooked(m: Any) -> Any:
        m[1].register_full_backward_hook(after)
        m[1].register_full_backward_pre_hook(lambda module, made: (torch.mul(made[0], 3.0),))
        return m

    torch.manual_seed(0)
    theirs, x = Two(torch.nn.Linear(4, 5), torch.nn.Linear(5, 2)), torch.randn(3, 4)
    ours = flow.from_torch(hooked(copy.deepcopy(theirs))) if first else hooked(flow.from_torch(copy.deepcopy(theirs)))
    eagerly(hooked(theirs), x)
    road(ours, flow.from_torch(x))
    assert seen == [((3, 5), (3, 2))] * 2
    assert ours.layer.weight.grad.numpy() == pytest.approx(theirs.layer.weight.grad.numpy(), rel=1e-4, abs=1e-5)


def test_one_mode_at_most():
    """A function of torch's code that Weft calls finds one mode on, as two would see each other's work."""
    found: list[int] = []

    def count(row: torch.Tensor) -> torch.Tensor:
        found.append(sum(type(m) is Mode for m in torch.overrides._get_current_function_mode_stack()))
        return row * 2

    flow.from_torch(Model(lambda m, x: torch.vmap(count)(x)))(flow.ones(3, 4))
    assert found == [1, 1, 1]


def test_a_graph_is_called_in_and_after_torchs_inference_mode() -> None:
    layer = flow.from_torch(torch.nn.Linear(2, 2))

    class Run(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def build(self, x: Any) -> Any:
            return self.layer(x)

    run, x = Run(), flow.ones(1, 2)
    with torch.inference_mode():
        inside = [run(x).numpy(), run(x).numpy(), layer(x).numpy()]
        assert (x + 1).is_inference()
    assert not (x + 1).is_inference()
    assert all((y == run(x).numpy()).all() for y in inside)


class Drawn(torch.utils.data.Dataset[float]):
    """What a worker of torch's loader draws of Weft's numbers, from the seed that torch gives it."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> float:
        return flow.rand(1).item()


def test_torchs_seed_is_wefts_too() -> None:
    dropout = flow.from_torch(torch.nn.Dropout(0.5))
    given = torch.ones(20)
    for seed in (1, 2):
        torch.manual_seed(seed)
        theirs = torch.nn.functional.dropout(given)
        assert torch.equal(dropout(flow.from_torch(given)).to_torch(), theirs)
    torch.manual_seed(3)
    first, second = flow.rand(2).tolist(), flow.rand(2).tolist()
    torch.manual_seed(3)
    assert flow.rand(2).tolist() == first
    with torch.random.fork_rng():
        torch.manual_seed(1)
        flow.rand(5)
    kept = torch.get_rng_state()
    torch.seed()
    torch.set_rng_state(kept)
    assert flow.rand(2).tolist() == second
    flow.manual_seed(4)
    assert torch.rand(2).tolist() == first  # torch's stay
    seen = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        seen.append([x.item() for x in torch.utils.data.DataLoader(Drawn(), num_workers=1)])
    assert seen[0] == seen[1] != seen[2]
    torch.manual_seed(3)
    if not torch.cuda.is_available():
        flow.cuda.manual_seed_all(9)  # has no effect
        assert flow.rand(2).tolist() == first
