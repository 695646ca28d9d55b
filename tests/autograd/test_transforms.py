"""`flow.func`: functions made of functions, beside torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError


def flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in flat(part)]
    assert not tree.requires_grad, "nobody outside wants a gradient"
    return [tree.tolist()]


def x_of(lib: Any, *shape: int) -> Any:
    return (lib.arange(float(torch.Size(shape).numel())).reshape(shape) - 1.5) / 2


def layers(lib: Any) -> Any:
    lib.manual_seed(2)
    return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 2))


def gradients(lib: Any) -> Any:
    g, x = lib.func.grad, x_of(lib, 4)
    yield g(lambda x: (x.sin() * x).sum())(x)
    yield g(g(g(lambda x: x**4)))(lib.tensor(2.0))
    yield g(lambda a, b: (a * b).sum(), argnums=(1, 0))(x, x + 1)
    yield g(lambda p, y: (p["a"] * y + p["b"][0] ** 2).sum())({"a": x, "b": [x * 2]}, x)
    yield g(lambda x: ((x * x).sum(), {"largest": x.max()}), has_aux=True)(x)
    yield lib.func.grad_and_value(lambda x, *, by: (x * by).sum())(x, by=3.0)
    yield g(lambda x: g(lambda y: (x * y * y).sum())(x).sum())(x)  # closes over what the outer one follows


def products(lib: Any) -> Any:
    x = x_of(lib, 3)
    y, back = lib.func.vjp(lambda a, b: (a * b, {"s": a.sin()}), x, x + 1)
    yield y, back((x, {"s": x})), back((x + 1, {"s": x}))
    yield lib.func.jvp(lambda a, b: (a * b).cos(), (x, x + 1), (x, x * 2))
    yield lib.func.jvp(lambda a: (a.sum(), a.max()), (x,), (x,), has_aux=True)


def jacobians(lib: Any) -> Any:
    x, w = x_of(lib, 3), x_of(lib, 2, 3)
    for jacobian in (lib.func.jacrev, lib.func.jacfwd):
        yield jacobian(lambda w, x: (w @ x).sin(), argnums=(0, 1))(w, x)
        yield jacobian(lambda x: {"a": x.exp(), "b": x.sum()})(x)
    yield lib.func.hessian(lambda x: (x**3).sum() * x[0])(x)


def batches(lib: Any) -> Any:
    x, f = x_of(lib, 4, 3), lib.nn.functional
    vmap = lib.func.vmap
    yield vmap(lib.dot)(x, x), vmap(lambda a, b: a + b, in_dims=(1, None), out_dims=1)(x, x[:, 0])
    yield vmap(vmap(lambda a, b: a * b))(x, x), vmap(lambda p: p["k"] * 2, in_dims=({"k": 0},))({"k": x})
    yield vmap(lambda a: (a.sum(), a.flip(0)), out_dims=(0, 1))(x), lib.vmap(lib.func.jacrev(lib.sin))(x)
    model = layers(lib)
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        scores = lib.func.functional_call(model, parameters, (x[None],))
        return f.cross_entropy(scores, y[None])

    yield vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, lib.tensor([0, 1, 1, 0]))
    several = [layers(lib) for _ in range(2)]
    stacked = lib.func.stack_module_state(several)
    with lib.no_grad():
        yield vmap(lambda p, b, x: lib.func.functional_call(several[0], (p, b), x), in_dims=(0, 0, None))(*stacked, x)


@pytest.mark.parametrize("program", [gradients, products, jacobians, batches])
def test_the_same_as_torchs(program: Any) -> None:
    for ours, theirs in zip(program(flow), program(torch), strict=True):
        for a, b in zip(flat(ours), flat(theirs), strict=True):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b))


def test_a_batch_of_nothing() -> None:
    results = []
    for lib in (torch, flow):
        x = lib.zeros(0, 3, requires_grad=True)
        y, positive = lib.vmap(lambda x: ((x * 2).sum(), x > 0), out_dims=(0, 1))(x)
        y.sum().backward()
        of_rows = lib.vmap(lambda i: i + 1, in_dims=1, out_dims=1)(lib.zeros(2, 0, dtype=lib.int64))
        forms = [(tuple(t.shape), str(t.dtype).rpartition(".")[2]) for t in (y, positive, x.grad, of_rows)]
        results.append(forms)
    assert results[0] == results[1]


def test_what_wants_a_gradient_outside_gets_it() -> None:
    results = []
    for lib in (torch, flow):
        a, x = lib.tensor([2.0, 3.0], requires_grad=True), lib.tensor([1.0, -1.0], requires_grad=True)
        inner = lib.func.grad(lambda x, a=a: (a * x**3).sum())(x)
        inner.sum().backward()
        lib.vmap(lambda p, q: p * q)(a, x).sum().backward()
        results.append([inner.tolist(), a.grad.tolist(), x.grad.tolist()])
    assert results[0] == results[1]


def test_modules_as_functions() -> None:
    for lib in (torch, flow):
        model = lib.nn.Sequential(lib.nn.Linear(2, 2, bias=False), lib.nn.Linear(2, 2, bias=False))
        model[1].weight = model[0].weight
        call, twice = lib.func.functional_call, {"0.weight": lib.eye(2) * 2}
        before = model[0].weight
        assert call(model, twice, lib.ones(1, 2)).tolist() == [[4.0, 4.0]]
        assert model[0].weight is before and model[1].weight is before
        untied = call(model, {**twice, "1.weight": lib.eye(2)}, (lib.ones(1, 2),), tie_weights=False)
        assert untied.tolist() == [[2.0, 2.0]]
        norm = lib.nn.BatchNorm1d(2)
        given = {"running_mean": lib.zeros(2), "running_var": lib.ones(2)}
        call(norm, [dict(norm.named_parameters()), given], lib.ones(3, 2))
        assert norm.running_mean.tolist() == [0.0, 0.0] and given["running_mean"].sum() > 0
    with pytest.raises(ArgumentError, match=r"also has 1\.weight"):
        flow.func.functional_call(model, twice, flow.ones(1, 2), strict=True)
    with pytest.raises(ArgumentError, match=r"'0\.weight' appears in two"):
        flow.func.functional_call(model, [twice, twice], flow.ones(1, 2))


def test_slices_draw_as_is_said() -> None:
    draw = lambda x: x + flow.rand(1)  # noqa: E731
    x = flow.zeros(3)
    same, different = (flow.vmap(draw, randomness=r)(x).flatten().tolist() for r in ("same", "different"))
    assert len(set(same)) == 1 and len(set(different)) == 3
    with pytest.raises(ArgumentError, match="draws random numbers"):
        flow.vmap(draw)(x)


def test_vmap_goes_through_one_graph_for_each_slice():
    found = []
    for lib, take in ((torch, torch.tensor), (flow, flow.tensor)):
        x = take([1.0, 2.0, 3.0], requires_grad=True)
        y = x**3
        rows = lib.vmap(lambda v, x=x, y=y, lib=lib: lib.autograd.grad(y, x, v)[0])(torch.eye(3))
        found.append(rows.tolist())
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            lib.autograd.grad(y, x, take([1.0, 1.0, 1.0]))
    assert found[0] == found[1]


def test_what_cannot_be_is_said() -> None:
    x = flow.ones(2)
    with pytest.raises(ArgumentError, match=r"must return a 0-d tensor.*shape \[2\]"):
        flow.func.grad(lambda x: x * 2)(x)
    with pytest.raises(ArgumentError, match="argument 1, but 1 were given"):
        flow.func.grad(flow.sum, argnums=1)(x)
    with pytest.raises(ArgumentError, match=r"must have one size.*\[2, 3\]"):
        flow.vmap(flow.add)(x, flow.ones(3))
    with pytest.raises(ArgumentError, match="have one shape"):
        flow.vmap(lambda i: flow.ones(int(i.item())))(flow.tensor([1, 2]))
    with pytest.raises(ArgumentError, match="only floating"):
        flow.func.grad(flow.sum)(flow.tensor([1]))
