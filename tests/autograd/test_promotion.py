"""Operands of several dtypes: each gets a gradient of its own, as in torch, eagerly, on global tensors, in graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.autograd.call import call
from weft.autograd.entry import make_entry
from weft.launch import spawn_threads
from weft.ops import OPS
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.cases import copied
from weft.testing.layouts import replaced, tensors

PAIRS = [("float32", "float64"), ("float16", "bfloat16"), ("bfloat16", "float32"), ("float32", "complex64")]
F: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda m, x, y: x + y,
    "sub, the one broadcast": lambda m, x, y: x[:1] - y,
    "mul, then a kernel that takes one dtype": lambda m, x, y: m.nn.functional.gelu(x @ x.T).sum(0) * y,
    "div": lambda m, x, y: m.exp(x * 0.1) / y,
    "where": lambda m, x, y: m.where(m.tensor([True, False, True]), x, y),
    "cat": lambda m, x, y: m.cat([x, y, x]),
    "stack": lambda m, x, y: m.stack([x, y]),
    "in place": lambda m, x, y: (y * 1).add_(x),
    "copied into": lambda m, x, y: (y * 1).copy_(x * 2),
    "twice": lambda m, x, y: (x * y) + x,
    "the second derivative": lambda m, x, y: m.autograd.grad((x * x * y).abs().sum(), x, create_graph=True)[0] * y,
}


def gradients(m: Any, f: Callable[[Any, Any, Any], Any], first: str, second: str) -> list[Any]:
    x = m.tensor([[1.0, -2.0, 3.0]] * 3, dtype=getattr(m, first)).requires_grad_()
    y = m.tensor([[2.0, 1.0, 0.5]] * 3, dtype=getattr(m, second)).requires_grad_()
    z = f(m, x, y)
    (z.abs() if z.is_complex() else z).sum().backward()
    return [z, x.grad, y.grad]


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("name", F)
def test_gradients_are_of_the_operands_dtypes(name: str, first: str, second: str) -> None:
    if second == "complex64" and name == "where":
        return  # torch refuses its gradient
    found = [gradients(m, F[name], first, second) for m in (flow, torch)]
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine.detach().to_torch(), theirs.detach(), rtol=2e-2, atol=2e-2)


def test_a_number_that_makes_a_tensor_complex() -> None:
    for m in (flow, torch):
        x = m.ones(2).requires_grad_()
        (x * 1j).abs().sum().backward()
        assert x.grad.dtype == m.float32 and x.grad.tolist() == [1.0, 1.0]


def test_a_gradient_that_is_given_takes_the_dtype_of_what_it_is_of() -> None:
    for m in (flow, torch):
        x = m.ones(2, 2).requires_grad_()
        (x @ x).backward(m.ones(2, 2, dtype=m.float64))
        assert x.grad.dtype == m.float32 and x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def target_in_double(m: Any, model: Any, x: Any, target: Any) -> Any:
    """What a program does whose targets come from numpy."""
    return m.nn.functional.mse_loss(model(x), target) + (model(x) - target).pow(2).mean()


def test_targets_of_another_dtype() -> None:
    theirs: Any = torch.nn.Linear(3, 2)
    mine = nn.Linear(3, 2)
    mine.load_state_dict({k: flow.tensor(v.detach()) for k, v in theirs.state_dict().items()})
    x, target = torch.randn(4, 3), torch.randn(4, 2, dtype=torch.float64)
    double = copy.deepcopy(theirs).double()  # an older torch refuses two dtypes in a loss
    target_in_double(torch, double, x.double(), target).backward()
    expected = double.weight.grad.float()
    target_in_double(flow, mine, flow.tensor(x), flow.tensor(target)).backward()
    torch.testing.assert_close(mine.weight.grad.to_torch(), expected)  # type: ignore[union-attr]

    class Step(nn.Graph):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=1.0))

        def build(self, x: Any, target: Any) -> Any:
            loss = target_in_double(flow, self.model, x, target)
            loss.backward()
            return loss

    before = mine.weight.detach().clone().to_torch()
    step = Step(mine)
    step(flow.tensor(x), flow.tensor(target))
    torch.testing.assert_close(mine.weight.detach().to_torch(), before - expected, rtol=1e-4, atol=1e-5)
    step.close()

    def on_two_ranks() -> None:
        placement = flow.placement("cpu", [0, 1])
        w = flow.tensor(theirs.weight.detach(), placement=placement, sbp=flow.sbp.broadcast).requires_grad_()
        b = flow.tensor(theirs.bias.detach(), placement=placement, sbp=flow.sbp.broadcast)
        split = {"placement": placement, "sbp": flow.sbp.split(0)}
        model = lambda x: nn.functional.linear(x, w, b)  # noqa: E731
        target_in_double(flow, model, flow.tensor(x, **split), flow.tensor(target, **split)).backward()
        torch.testing.assert_close(torch.as_tensor(w.grad.numpy()), expected)  # type: ignore[union-attr]

    spawn_threads(2, on_two_ranks)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_two_dtypes(name: str, reduction: str) -> None:
    kinds = ["float32", "float64", "float16", "bfloat16", "bool", "int64", "complex64"]
    for first, second in [(a, b) for a in kinds for b in kinds]:
        for shape in ((3,), ()):
            found = []
            for m in (flow, torch):
                a = (m.ones(shape) * 2).to(getattr(m, first))
                b = m.ones(3).to(getattr(m, second))
                try:
                    loss = getattr(m.nn.functional, name)(a, b, reduction=reduction)
                    found.append((str(loss.dtype).rpartition(".")[2], loss.tolist()))
                except (RuntimeError, flow.errors.DtypeError):
                    found.append(None)
            assert found[0] == found[1], (first, second, shape)


NORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "layer": lambda F, x, w: F.layer_norm(x, (6,), w, w * 2),
    "rms": lambda F, x, w: F.rms_norm(x, (6,), w, 1e-5),
    "group": lambda F, x, w: F.group_norm(x, 2, w[:4], w[:4] * 2),
    "instance": lambda F, x, w: F.instance_norm(x, None, None, w[:4], w[:4] * 2),
}


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("name", NORMS)
def test_normalisations_whose_weights_have_more_digits(name: str, kind: str) -> None:
    data, found = torch.linspace(-2, 3, 48).reshape(2, 4, 6), []
    for m in (flow, torch):
        x = m.as_tensor(data).to(getattr(m, kind)).requires_grad_()
        w = m.linspace(0.5, 2, 6).requires_grad_()
        y = NORMS[name](m.nn.functional, x, w)
        (y * y).sum().backward()
        found.append([t.detach().to_torch() if m is flow else t.detach() for t in (y, x.grad, w.grad)])
    for mine, theirs in zip(*found, strict=True):
        assert mine.dtype == theirs.dtype
        near = 1e-4 if kind == "float32" else 3e-2
        torch.testing.assert_close(mine.float(), theirs.float(), rtol=near, atol=near)


def mixing() -> list[str]:
    return [n for n, op in OPS.items() if op.vjp and len(op.operands) > 1 and not (op.conversion or op.dynamic)]


FLOATS = (torch.float32, torch.float64)


@pytest.mark.parametrize("way", ["written", "general"])
@pytest.mark.parametrize("name", mixing())
def test_whatever_dtypes_an_op_takes_gradients_are_of_their_operands(name: str, way: str) -> None:
    """Each operand of floats in turn is of another dtype than the rest; most kernels refuse that."""
    op = OPS[name]
    entry = make_entry(op)
    for row in list(registry.cases(op))[:3]:
        given = tensors(op, copied(op, row))
        for odd in [i for i, t in enumerate(given) if t.dtype in FLOATS]:
            mine = [
                of_torch(t.to(FLOATS[i != odd]) if t.dtype in FLOATS else t).requires_grad_(t.dtype.is_floating_point)
                for i, t in enumerate(given)
            ]
            args = replaced(op, row, mine)
            try:
                result = entry(**dict(zip(op.names, args, strict=True))) if way == "written" else call(op, args)
                roots = [y for y in (result if isinstance(result, tuple) else (result,)) if y.requires_grad]
                flow.autograd.backward(roots, [flow.ones_like(y) for y in roots])
            except RuntimeError:
                continue  # one dtype, please
            assert all(t.grad is None or t.grad.dtype is t.dtype for t in mine), [t.dtype for t in mine]
