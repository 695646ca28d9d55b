from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import AutogradError


def test_hook_on_a_leaf_changes_its_gradient() -> None:
    x, tx = flow.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for a in (x, tx):
        a.register_hook(lambda g: g * 3)
        a.register_hook(lambda g: g + 1)
        (a * 2).sum().backward()
    assert x.grad.tolist() == tx.grad.tolist() == [7.0] * 3


def test_hook_sees_the_whole_gradient_of_a_leaf_once() -> None:
    seen: list[list[float]] = []
    x = flow.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5.0, 5.0]]


def test_hook_between_changes_what_flows_on() -> None:
    x, tx = flow.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for a in (x, tx):
        h = a * 2
        h.register_hook(lambda g: g * 10)
        (h * h).sum().backward()
    assert x.grad.tolist() == tx.grad.tolist()


def test_hook_can_be_removed() -> None:
    x = flow.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_handles_are_torchs() -> None:
    x, layer = flow.ones(2, requires_grad=True), flow.nn.Linear(2, 2)
    optimizer = flow.optim.SGD([x], lr=0.1)
    called: list[str] = []
    handles = (
        x.register_hook(lambda g: called.append("tensor")),
        (x * 2).grad_fn.register_hook(lambda *_: None),
        layer.register_forward_hook(lambda *_: called.append("second")),
        layer.register_forward_hook(lambda *_: called.append("first"), prepend=True),
        optimizer.register_step_post_hook(lambda *_: called.append("step")),
    )
    assert all(isinstance(h, torch.utils.hooks.RemovableHandle) for h in handles)
    layer(x).sum().backward()
    optimizer.step()
    assert called == ["first", "second", "tensor", "step"]
    for h in handles:
        h.remove()
    layer(x).sum().backward()
    assert len(called) == 4


def test_hook_of_one_output_of_several() -> None:
    x = flow.ones(4, requires_grad=True)
    a, b = x.split(2)
    b.register_hook(lambda g: g * 5)
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [1.0, 1.0, 5.0, 5.0]


def test_hook_needs_a_gradient() -> None:
    with pytest.raises(AutogradError):
        flow.ones(2).register_hook(lambda g: g)


def test_retain_grad() -> None:
    x, tx = flow.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    kept = []
    for a in (x, tx):
        h = a * 2
        h.retain_grad()
        (h * h).sum().backward()
        kept.append(h.grad.tolist())
    assert kept[0] == kept[1]


def test_retained_gradient_is_own_memory_and_after_the_hook() -> None:
    x = flow.ones(3, requires_grad=True)
    h = x + 0.0
    h.register_hook(lambda g: g * 2)
    h.retain_grad()
    h.sum().backward()
    assert h.grad.tolist() == [2.0] * 3
    h.grad.mul_(9.0)
    assert x.grad.tolist() == [2.0] * 3


def _kept(lib: Any, way: str) -> list[Any]:
    """What a hook or a function of two backward passes kept of their gradients."""
    x, kept = lib.ones(2, 3, requires_grad=True), []

    class Keeps(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            kept.append(gradients[0])
            return gradients[0]

    layer = lib.nn.Identity()
    if way == "leaf":
        x.register_hook(kept.append)
    elif way == "module":
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: kept.append(grad_input[0]))
    for _ in range(2):
        y = Keeps.apply(layer(x)) if way == "function" else layer(x) * 1
        if way == "between":
            y.register_hook(kept.append)
        elif way == "node":
            y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: kept.extend(grad_inputs[:1]))
        (y * 2).sum().backward()
    return [t.tolist() for t in (*kept, x.grad)]


@pytest.mark.parametrize("way", ["leaf", "between", "node", "module", "function"])
def test_what_a_hook_kept_stays_as_it_was_when_more_is_added(way: str) -> None:
    assert _kept(flow, way) == _kept(torch, way)


def test_post_accumulate_hook_sees_grad() -> None:
    x = flow.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    x.sum().backward()
    x.sum().backward()
    assert seen == [(True, [1.0, 1.0]), (True, [2.0, 2.0])]


def random_program(lib: Any, seed: int, factor: float) -> tuple[list[Any], list[Any]]:
    """The order in which hooks ran, and the gradients, each multiplied in place by its leaf's hook."""
    choose = Random(seed)
    leaves = [lib.full((2,), 0.5 + i, requires_grad=True) for i in range(3)]
    order: list[Any] = []

    def scaled(i: int) -> Any:
        def hook(p: Any) -> None:
            order.append(i)
            p.grad.mul_(factor)

        return hook

    for i, leaf in enumerate(leaves):
        leaf.register_post_accumulate_grad_hook(scaled(i))
    values = list(leaves)
    for _ in range(choose.randint(2, 8)):
        a, b = choose.choice(values), choose.choice(values)
        makers = (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a.sin(), lambda a, b: a.view(2) + b)
        values.append(choose.choice(makers)(a, b))
    values[3].register_hook(lambda g: order.append("between"))
    sum(v.sum() for v in values[-3:]).backward()
    return order, [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]


@pytest.mark.parametrize("seed", range(40))
def test_hooks_run_once_each_amid_backward_and_spoil_no_other_gradient(seed: int) -> None:
    order, scaled = random_program(flow, seed, 3.0)
    theirs, plain = random_program(torch, seed, 1.0)
    assert sorted(map(str, order)) == sorted(map(str, theirs))
    for ours, one in zip(scaled, plain, strict=True):
        assert (ours is None) == (one is None)
        if one is not None:
            torch.testing.assert_close(torch.tensor(ours), 3 * torch.tensor(one))


def test_a_hook_runs_as_soon_as_its_gradient_is_there() -> None:
    order: list[str] = []
    x = flow.ones(2, 2)
    net = flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.Linear(2, 2))
    for name, p in net.named_parameters():
        p.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name))
    middle = net[0](x)
    middle.register_hook(lambda g: order.append("middle"))
    net[1](middle).sum().backward()
    assert set(order[:2]) == {"1.weight", "1.bias"} and order[2] == "middle"


def test_post_accumulate_hook_is_for_leaves() -> None:
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(AutogradError):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)


def test_hook_runs_in_autograd_grad() -> None:
    x = flow.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 4)
    assert flow.autograd.grad(x.sum(), x)[0].tolist() == [4.0, 4.0]
    assert x.grad is None


def test_an_error_in_a_hook_comes_out() -> None:
    x = flow.ones(2, requires_grad=True)

    def hook(g: flow.Tensor) -> None:
        raise KeyError("mine")

    x.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        x.sum().backward()


RETURNED: dict[str, Callable[[Any], Any]] = {
    "a number": lambda f: 3,
    "a list": lambda f: [f.ones(2)],
    "more": lambda f: f.ones(5),
    "what broadcasts": lambda f: f.ones(1),
    "a column": lambda f: f.ones(2, 1),
    "whole numbers": lambda f: f.ones(2, dtype=f.int64),
    "wider": lambda f: f.ones(2, dtype=f.float64),
}


@pytest.mark.parametrize("what", RETURNED)
@pytest.mark.parametrize("leaf", [True, False])
def test_a_hook_returns_a_gradient_of_the_same_tensor(what: str, leaf: bool) -> None:
    """Where torch refuses, so do we, in its class and with its phrase."""
    said = []
    for f in (torch, flow):
        x = f.ones(2, requires_grad=True)
        y = x * 2

        def replace(g: Any, f: Any = f) -> Any:
            return RETURNED[what](f)

        (x if leaf else y).register_hook(replace)
        with pytest.raises((TypeError, RuntimeError)) as caught:
            y.sum().backward()
        said.append(caught)
    theirs, ours = said
    assert issubclass(ours.type, theirs.type)
    assert str(theirs.value).split(" (")[0] in str(ours.value)


def test_a_hook_after_accumulation_returns_nothing() -> None:
    for f in (torch, flow):
        x = f.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda p: p.grad)
        with pytest.raises(RuntimeError, match="hooks should return None"):
            x.sum().backward()


def test_the_nodes_of_the_tape_take_hooks_as_torchs() -> None:
    found = []
    for lib in (torch, flow):
        x, seen = lib.ones(3, requires_grad=True), []
        y = x * lib.ones(3) * 2
        y.grad_fn.metadata["mine"] = 1
        y.grad_fn.register_hook(lambda made, given, seen=seen: seen.append(given[0].tolist()))
        y.grad_fn.register_prehook(lambda given: tuple(g * 3 for g in given))
        inner = y.grad_fn.next_functions[0][0]
        gone = inner.register_hook(lambda made, given: tuple(g * 100 for g in made))
        gone.remove()
        inner.register_hook(lambda made, given: tuple(None if g is None else g * 5 for g in made))
        leaf, _ = inner.next_functions[0]
        leaf.register_prehook(lambda given: (given[0] + 1,))
        leaf.register_hook(lambda *_, x=x, seen=seen: seen.append(x.grad.tolist()))
        y.sum().backward()
        ends = [None if f is None else f.name().rpartition("::")[2] for f, _ in inner.next_functions]
        found.append((x.grad.tolist(), seen, y.grad_fn.metadata, leaf.variable is x, ends))
        parts = lib.split(x * 2, 2)
        parts[0].grad_fn.register_prehook(lambda given, seen=seen: seen.append([g is None for g in given]))
        parts[1].sum().backward()
    assert found[0] == found[1]


def test_a_nodes_hook_returns_as_many_gradients() -> None:
    y = flow.ones(3, requires_grad=True) * 2
    y.grad_fn.register_prehook(lambda given: (*given, None))
    with pytest.raises(AutogradError, match="got 1 gradients and returned 2"):
        y.sum().backward()


INPUTS = ("x", "w", "y", "z", "u", "xy", "zx", "uw", "yy", "xyz")


@pytest.mark.parametrize("road", ["grad", "backward"])
@pytest.mark.parametrize("names", INPUTS)
def test_only_what_is_on_the_way_to_inputs_is_hooked_and_retained(names: str, road: str) -> None:
    def facts(lib: Any) -> list[Any]:
        x, w = (lib.tensor([value], requires_grad=True) for value in (2.0, 3.0))
        y = x * x
        z = y * w
        u = w * 2
        tensors, seen = {"x": x, "w": w, "y": y, "z": z, "u": u}, []

        def watched(name: str, t: Any) -> None:
            t.register_hook(lambda g: (seen.append((name, g.tolist())), g * 2)[1])
            if not t.is_leaf:
                t.grad_fn.register_prehook(lambda gs: (seen.append((name, "before")), (gs[0] * 10,))[1])
                t.grad_fn.register_hook(lambda *_: seen.append((name, "after")))

        for name, t in tensors.items():
            watched(name, t)
        y.retain_grad()
        z.retain_grad()
        inputs, out = [tensors[name] for name in names], (z + u).sum()
        for _ in range(2):
            if road == "grad":
                seen.append([g.tolist() for g in lib.autograd.grad(out, inputs, retain_graph=True)])
            else:
                out.backward(inputs=inputs, retain_graph=True)
        held = [t.grad if t.is_leaf or t.retains_grad else None for t in tensors.values()]
        return [seen, [None if g is None else g.tolist() for g in held], [t.retains_grad for t in tensors.values()]]

    assert facts(flow) == facts(torch)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("retained", [False, True])
def test_a_second_gradient_adds_where_torch_adds_it(retained: bool, create_graph: bool) -> None:
    def facts(lib: Any) -> Any:
        x = lib.tensor([2.0], requires_grad=True)
        y = x * x if retained else x
        if retained:
            y.retain_grad()
        loss = (y * y).sum()
        loss.backward(create_graph=create_graph, retain_graph=True)
        first = y.grad
        loss.backward()
        return first.tolist(), y.grad.tolist(), first is y.grad, y.grad.requires_grad

    assert facts(flow) == facts(torch)
