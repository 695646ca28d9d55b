"""Backward and grad against torch: shared subgraphs, several outputs, retained and higher graphs, freed memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError, AutogradError, ShapeError


def pair(*shape: int, seed: int = 0) -> tuple[flow.Tensor, torch.Tensor]:
    data = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return flow.tensor(data.numpy(), requires_grad=True), data.clone().requires_grad_()


def same(a: flow.Tensor | None, b: torch.Tensor | None) -> None:
    if b is None:
        assert a is None
        return
    assert a is not None
    torch.testing.assert_close(torch.from_numpy(a.detach().numpy()), b.detach(), rtol=1e-5, atol=1e-6)


def test_shared_subgraph() -> None:
    (x, tx), (w, tw) = pair(3, 4), pair(4, 4, seed=1)
    for m, a, b in ((flow, x, w), (torch, tx, tw)):
        h = m.tanh(a @ b)
        (h * h + m.exp(h) * a).sum().backward()
    same(x.grad, tx.grad)
    same(w.grad, tw.grad)


def test_the_same_tensor_twice_in_one_op() -> None:
    x, tx = pair(3, 3)
    (x @ x * x).sum().backward()
    (tx @ tx * tx).sum().backward()
    same(x.grad, tx.grad)


def test_several_outputs_of_one_op() -> None:
    x, tx = pair(4, 6)
    for m, a in ((flow, x), (torch, tx)):
        p, q, r = m.split(a, 2, dim=1)
        (p * r).sum().backward(retain_graph=True)  # q gets no gradient
        (q * q).sum().backward()
    same(x.grad, tx.grad)


def test_values_and_indices() -> None:
    x, tx = pair(4, 6)
    values, indices = x.max(1)
    wanted, places = tx.max(1)
    (values * 3).sum().backward()
    (wanted * 3).sum().backward()
    same(x.grad, tx.grad)
    assert not indices.requires_grad and indices.tolist() == places.tolist()


def test_several_outputs_of_backward() -> None:
    x, tx = pair(3)
    g = flow.tensor([1.0, 2.0, 3.0])
    flow.autograd.backward([x * 2, (x * x).sum()], [g, None])
    torch.autograd.backward([tx * 2, (tx * tx).sum()], [torch.tensor([1.0, 2.0, 3.0]), None])
    same(x.grad, tx.grad)


def test_gradients_add_up() -> None:
    x, tx = pair(3)
    for _ in range(3):
        (x * x).sum().backward()
        (tx * tx).sum().backward()
    same(x.grad, tx.grad)


def test_grad_of_leaves_and_of_values_between() -> None:
    (x, tx), (w, tw) = pair(3, 4), pair(4, 2, seed=1)
    h, th = x @ w, tx @ tw
    found = flow.autograd.grad((h * h).sum(), [x, h, w])
    wanted = torch.autograd.grad((th * th).sum(), [tx, th, tw])
    for a, b in zip(found, wanted, strict=True):
        same(a, b)
    assert x.grad is None and w.grad is None


def test_unused_inputs() -> None:
    (x, _), (w, _) = pair(3), pair(3, seed=1)
    with pytest.raises(AutogradError, match="allow_unused=True"):
        flow.autograd.grad((x * 2).sum(), [x, w])
    found = flow.autograd.grad((x * 2).sum(), [x, w], allow_unused=True)
    assert found[0] is not None and found[0].tolist() == [2.0] * 3 and found[1] is None


def test_backward_to_named_inputs_only() -> None:
    (x, _), (w, _) = pair(3), pair(3, seed=1)
    (x * w).sum().backward(inputs=[x])
    same(x.grad, torch.from_numpy(w.detach().numpy()))
    assert w.grad is None


@pytest.mark.parametrize("inputs", [(2,), (0, 2), (3,)])
def test_backward_to_what_requires_no_gradient_is_refused(inputs: tuple[int, ...]) -> None:
    for lib in (flow, torch):
        x = lib.ones(3, requires_grad=True)
        y = x * 2
        tensors = [x, y, lib.ones(3), y.detach()]
        with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
            y.sum().backward(inputs=[tensors[i] for i in inputs])
        assert x.grad is None


def test_a_gradient_by_a_view_is_by_what_it_is_now() -> None:
    for lib in (flow, torch):
        base = lib.ones(3, requires_grad=True) * 2
        view = base[:2]
        out = (view * 3).sum()
        base.mul_(2)
        assert lib.autograd.grad(out, view, allow_unused=True) == (None,)


@pytest.mark.parametrize("times", [2, 3])
def test_retained_graph(times: int) -> None:
    x, tx = pair(3)
    y, ty = (x.exp() * x).sum(), (tx.exp() * tx).sum()
    for _ in range(times):
        y.backward(retain_graph=True)
        ty.backward(retain_graph=True)
    same(x.grad, tx.grad)


def test_second_backward_names_the_node() -> None:
    x, _ = pair(3)
    y = (x.exp() * x).sum()
    y.backward()
    with pytest.raises(AutogradError, match=r"a second time.*mul_backward.*retain_graph=True"):
        y.backward()  # sum saved nothing: torch's error, too, comes from the product


@pytest.mark.parametrize("dim", [None, 0, -1])
def test_products_with_zeros_in_them_to_second_order(dim: int | None) -> None:
    data = [[0.0, 2.0, 3.0, -1.0], [1.5, 0.0, -2.0, 0.0], [0.5, 1.0, 2.0, 3.0]]

    def run(m: Any, of: Callable[[Any], Any]) -> list[Any]:
        x = m.tensor(data, requires_grad=True)
        y = of(x)
        weight = m.arange(float(y.numel())).reshape(y.shape) + 1
        (g,) = m.autograd.grad((y * weight).sum(), x, create_graph=True)
        (h,) = m.autograd.grad((g * g).sum(), x)
        return [g.detach().numpy(), h.numpy()]

    ways: list[Callable[[Any], Any]] = [lambda x: x.prod() if dim is None else x.prod(dim, keepdim=True)]
    ways += [] if dim is None else [lambda x: x.cumprod(dim)]
    for of in ways:
        for ours, theirs in zip(run(flow, of), run(torch, of), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_create_graph_to_third_order() -> None:
    x, tx = pair(4)
    for m, a, out in ((flow, x, []), (torch, tx, [])):
        y = (m.sin(a) * a * a).sum()
        for _ in range(3):
            (g,) = m.autograd.grad(y, [a], create_graph=True)
            out.append(g)
            y = (g * g).sum()
        y.backward()
    same(x.grad, tx.grad)


def test_second_order_through_matmul_and_softmax() -> None:
    (x, tx), (w, tw) = pair(3, 4), pair(4, 4, seed=1)
    for m, a, b in ((flow, x, w), (torch, tx, tw)):
        y = (m.softmax(a @ b, 1) ** 2).sum()
        (g,) = m.autograd.grad(y, [a], create_graph=True)
        (g * g).sum().backward()
    same(x.grad, tx.grad)
    same(w.grad, tw.grad)


@pytest.mark.parametrize("bend", ["relu", "leaky_relu"])
def test_penalty_on_a_gradient_gives_zeros_to_what_only_shifts_a_bend(bend: str) -> None:
    """Not nothing: Adam goes on moving by what it remembers."""
    (x, tx), (b, tb), (w, tw) = pair(3, 4), pair(4, seed=1), pair(4, seed=2)
    for m, at, bias, weight in ((flow, x, b, w), (torch, tx, tb, tw)):
        y = getattr(m.nn.functional, bend)(at * weight + bias)
        (g,) = m.autograd.grad((y * weight).sum(), [at], create_graph=True)
        (g * g).sum().backward()
    assert tb.grad is not None
    same(b.grad, tb.grad)
    same(w.grad, tw.grad)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_penalty_on_a_gradient_adds_to_grad() -> None:
    x, tx = pair(4)
    for a in (x, tx):
        (a**3).sum().backward(create_graph=True)
        (a.grad * a.grad).sum().backward()
    same(x.grad, tx.grad)


@pytest.mark.parametrize(
    ("make", "match", "error"),
    [
        (lambda x: (x * 2).backward(), "implicitly created only for scalar", AutogradError),
        (lambda x: x.detach().sum().backward(), "does not require grad", AutogradError),
        (lambda x: (x * 2).backward(flow.ones(7)), r"\[7\].*\[3\]", ShapeError),
        (lambda x: flow.autograd.grad((x * 2).sum(), [x.detach()]), "requires_grad_", AutogradError),
        (
            lambda x: (x * 2).sum().backward(inputs=[]),
            "`inputs` argument to `backward\\(\\)` cannot be empty",
            AutogradError,
        ),
    ],
)
def test_wrong_use(make, match: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=match):
        make(pair(3)[0])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda x: flow.autograd.backward([x.sum(), x.sum()], [None]), "gradient"),
        (lambda x: flow.autograd.grad(x.sum(), [3]), "tensor"),
        (lambda x: flow.autograd.grad(3, [x]), "tensor"),
        (lambda x: (x * 2).backward(3), "tensor"),
        (lambda x: x.sum().backward(inputs=[3]), "tensor"),
    ],
)
def test_wrong_arguments_get_a_named_error(make, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        make(pair(3)[0])


def test_gradient_of_integers_is_refused() -> None:
    with pytest.raises(Exception, match="floating"):
        flow.ones(2, dtype=flow.int32, requires_grad=True)


def test_chain_of_many_ops_needs_no_recursion() -> None:
    x = flow.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert x.grad is not None and x.grad.item() == 1.0
    del y


def test_chain_of_many_ops_is_freed_unused() -> None:
    x = flow.ones(1, requires_grad=True)
    y = x
    for _ in range(30_000):
        y = y * 1.0
    end = weakref.ref(y.node)
    del y
    assert end() is None


def test_chain_through_views_and_slots_is_freed() -> None:
    x = flow.ones(2, 2, requires_grad=True)
    y = x
    for _ in range(10_000):
        y = y.t().split(1, 0)[0].expand(2, 2)
    end = weakref.ref(y.node)
    del y
    assert end() is None


@pytest.mark.parametrize("run", [lambda y: y.backward(), lambda y: None], ids=["after backward", "without"])
def test_memory_of_a_graph_returns_at_once(run) -> None:
    gc.collect()
    gc.disable()
    try:
        x = flow.ones(4, requires_grad=True)
        h = (x * 2).exp()
        y = (h * h).sum()
        seen = [weakref.ref(h.blob.data), weakref.ref(y.node), weakref.ref(h)]
        run(y)
        del h, y
        assert [s() for s in seen] == [None] * 3
    finally:
        gc.enable()


def test_backward_lets_go_of_what_was_saved() -> None:
    gc.disable()
    try:
        x = flow.ones(4, requires_grad=True)
        h = x * 2
        y = (h * h).sum()
        held = weakref.ref(h.blob.data)
        del h
        assert held() is not None
        y.backward()
        assert held() is None
    finally:
        gc.enable()


def test_the_users_gradient_is_not_shared() -> None:
    x = flow.ones(3, requires_grad=True)
    g = flow.ones(3)
    (x + 0.0).backward(g)
    g.mul_(5.0)
    assert x.grad is not None and x.grad.tolist() == [1.0] * 3


def test_expanded_gradient_is_own_memory() -> None:
    x, _ = pair(3)
    x.sum().backward()
    x.grad.add_(flow.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [2.0, 3.0, 4.0]


def test_two_leaves_with_one_gradient_keep_apart() -> None:
    a, b = flow.ones(3, requires_grad=True), flow.ones(3, requires_grad=True)
    (a + b).backward(flow.ones(3))
    a.grad.mul_(7.0)
    assert b.grad.tolist() == [1.0] * 3


def test_gradients_grow_where_they_are() -> None:
    w = flow.ones(3, requires_grad=True)
    (w * 2).sum().backward()
    held = w.grad
    assert held is not None
    seen = held.view(3, 1)
    (w * 3).sum().backward()
    assert w.grad is held and held.tolist() == [5.0] * 3 and seen.tolist() == [[5.0]] * 3
    buffer = flow.zeros(6)  # a flat one, as optimizers of one's own have
    w.grad = buffer[2:5]
    (w * 4).sum().backward()
    assert buffer.tolist() == [0.0, 0.0, 4.0, 4.0, 4.0, 0.0]
    given = flow.full((3,), 7.0)
    x = flow.ones(3, requires_grad=True)
    for _ in range(2):
        x.backward(given)
    assert x.grad is not None and x.grad.tolist() == [14.0] * 3 and given.tolist() == [7.0] * 3


PAIR = (torch.tensor([0.3, -0.7, 2.0, 2.0]), torch.tensor([0.3, 0.7, -1.0, 2.0]))
FLAT = ["round", "floor", "ceil", "trunc", "sign", "angle"]
TAKING = ["maximum", "minimum", "fmax", "fmin", "copysign"]
WRITING = (
    "x.fill_(3)",
    "x.logit_(0.1)",
    "x[1:].fill_(3)",
    "x[0].zero_()",
    "x[1:].copy_(x[:-1].clone())",
    "x.masked_fill_(x > 0, 1)",
)


@pytest.mark.parametrize("gradient", [float("inf"), float("nan")])
@pytest.mark.parametrize("text", [*(f"lib.{n}(x)" for n in FLAT), *(f"lib.{n}(x, y)" for n in TAKING), *WRITING])
def test_a_gradient_of_infinity_reaches_only_what_it_is_of(text: str, gradient: float) -> None:
    found = []
    for lib in (torch, flow):
        x, y = (lib.tensor(t.tolist(), requires_grad=True) for t in PAIR)
        space = {"lib": lib, "x": x * 1, "y": y}
        made = eval(text, space)
        (space["x"] if "_(" in text else made).backward(lib.tensor([gradient] * 4))
        found.append([[] if t.grad is None else t.grad.tolist() for t in (x, y)])
    torch.testing.assert_close(torch.tensor(found[1][0]), torch.tensor(found[0][0]), equal_nan=True)
    torch.testing.assert_close(torch.tensor(found[1][1]), torch.tensor(found[0][1]), equal_nan=True)


def test_a_leaf_that_was_frozen_since_gets_no_gradient() -> None:
    for lib in (torch, flow):
        x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
        product = (x * y).sum()
        x.requires_grad_(False)
        product.backward()
        assert x.grad is None and y.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("road", ["local", "graph", "global"])
def test_views_stay_what_they_are_when_their_base_takes_another_shape(road: str) -> None:
    def program(lib: Any, a: Any) -> Any:
        u = a * 1
        row, column, flat = u[0], u[:, 1], u.view(-1)
        u.t_()
        row.mul_(3)
        u[0] = 7.0
        u.unsqueeze_(0)
        column.add_(1)
        return row * 1, column * 2, flat * 3, u * 4

    values = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    theirs, ours = torch.tensor(values, requires_grad=True), flow.tensor(values, requires_grad=True)
    expected = program(torch, theirs)

    class Calling(flow.nn.Graph):
        def build(self, a: Any) -> Any:
            return program(flow, a)

    if road == "graph":
        found = Calling()(ours.detach())
    else:
        place = flow.placement("cpu", [0])
        found = program(flow, ours if road == "local" else ours.to_global(place, flow.sbp.broadcast))
        sum(y.sum() for y in found).backward()
        sum(y.sum() for y in expected).backward()
        assert ours.grad.tolist() == theirs.grad.tolist()
    assert [y.tolist() for y in found] == [y.tolist() for y in expected]


def test_a_tensor_that_takes_another_shape_in_place_is_told_to_the_tape() -> None:
    for change in (lambda x, lib: x.t_(), lambda x, lib: x.unsqueeze_(0), lambda x, lib: x.set_(lib.ones(2, 2))):
        for lib in (torch, flow):
            w = lib.ones(2, 2, requires_grad=True)
            x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
            y = x @ w
            change(x, lib)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()


@pytest.mark.parametrize("view", ["x[0][1:]", "x.view(-1)", "x[1:].t()"])
def test_a_view_of_a_view_of_a_leaf_is_not_written(view: str) -> None:
    for lib in (torch, flow):
        x = lib.ones(6).view(2, 3).requires_grad_()
        with pytest.raises(RuntimeError, match="view of a leaf"):
            eval(view, {"x": x}).mul_(2)


@pytest.mark.parametrize("use", ["x @ w.t()", "w.t() @ x", "(w.t() * 2)", "w.permute(1, 0).exp()", "w.expand(2, 3, 3)"])
def test_a_gradient_lies_as_its_tensor(use: str) -> None:
    for lib in (torch, flow):
        w, x = lib.arange(9.0).view(3, 3).requires_grad_(), lib.ones(3, 3)
        total = eval(use, {"w": w, "x": x}) * lib.arange(9.0).view(3, 3)
        total.sum().backward()
        assert w.grad.stride() == w.stride() and w.grad.view(-1).shape == (9,)
