"""Hooks on what the tape keeps: called as often as torch's, and gradients of every order as without them."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import pytest
import torch
from torch.autograd.graph import get_gradient_edge

import weft as flow
from weft.autograd.graph import at_end_of_backward
from weft.core.errors import ArgumentError, AutogradError


def second_order(lib: Any, hooks: Any) -> list[Any]:
    """A gradient's gradient, through saved operands, saved outputs, leaves and values between."""
    x, w = lib.ones(3, 4, requires_grad=True), lib.full((4, 4), 0.3, requires_grad=True)
    with hooks:
        y = (lib.matmul(x, w).sigmoid() * x).exp().sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    (g**2).sum().backward()
    return [x.grad.tolist(), w.grad.tolist()]


def test_gradients_are_those_without_hooks_and_calls_those_of_torch() -> None:
    counts = {}
    found = {}
    for lib in (flow, torch):
        packed: list[Any] = []

        def pack(t: Any, packed: list[Any] = packed) -> Any:
            packed.append(t)
            return (t.detach().numpy().copy(),)

        hooks = lib.autograd.graph.saved_tensors_hooks(pack, lambda kept, lib=lib: lib.tensor(kept[0]))
        found[lib] = second_order(lib, hooks)
        counts[lib] = len(packed)
        assert all(isinstance(t, lib.Tensor) and not t.requires_grad for t in packed) or lib is torch
    assert counts[flow] == counts[torch]
    for ours, theirs in zip(found[flow], found[torch], strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


def test_what_unpack_gives_is_what_backward_sees() -> None:
    x = flow.tensor([3.0], requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 10):
        y = x * x
    outside = x * x
    y.backward()
    assert x.grad.tolist() == [60.0]
    outside.backward()
    assert x.grad.tolist() == [66.0]


def test_the_innermost_hooks_count_and_a_function_of_ones_own_goes_through_them() -> None:
    seen: list[str] = []

    class Square(flow.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: flow.Tensor) -> flow.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: flow.Tensor) -> flow.Tensor:
            return 2 * ctx.saved_tensors[0] * dy

    def hooks(name: str) -> Any:
        return flow.autograd.graph.saved_tensors_hooks(lambda t: seen.append(name) or t, lambda t: t)

    x = flow.tensor([3.0], requires_grad=True)
    with hooks("outer"):
        with hooks("inner"):
            y = Square.apply(x)
        z = y.exp()
    z.backward()
    assert seen == ["inner", "outer"]
    torch.testing.assert_close(x.grad.item(), 6 * torch.tensor(9.0).exp().item())


def test_what_is_packed_small_keeps_no_memory() -> None:
    x = flow.ones(4, requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(lambda t: t.shape, lambda shape: flow.ones(*shape)):
        y = x * 1.0
        z = (y * y).sum()
    memory = weakref.ref(y.blob)
    del y
    assert memory() is None
    z.backward()
    assert x.grad.tolist() == [2.0] * 4


def test_on_the_cpu_what_is_saved_stays_where_it_is() -> None:
    assert second_order(flow, flow.autograd.graph.save_on_cpu()) == second_order(flow, contextlib.nullcontext())


def test_global_tensors_are_packed_too() -> None:
    seen: list[flow.Tensor] = []
    x = flow.ones(4, placement=flow.placement("cpu", [0]), sbp=flow.sbp.split(0)).requires_grad_()
    with flow.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        y = (x * x).sum()
    y.backward()
    assert seen[0].is_global and x.grad.numpy().tolist() == [2.0] * 4


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ArgumentError, match="two functions"):
        flow.autograd.graph.saved_tensors_hooks(None, None)  # type: ignore[arg-type]
    x = flow.ones(1, requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):  # type: ignore[arg-type,return-value]
        y = x * x
    with pytest.raises(AutogradError, match="unpack must give a tensor; got int"):
        y.backward()


def test_a_variable_is_a_tensor() -> None:
    for lib in (torch, flow):
        x = lib.ones(2, requires_grad=True)
        v = lib.autograd.Variable(x * 2, requires_grad=True)
        (v * 3).sum().backward()
        assert isinstance(x, lib.autograd.Variable) and v.grad.tolist() == [3.0, 3.0] and x.grad is None


@pytest.mark.parametrize("lib", [flow, torch])
def test_a_hook_on_several_tensors(lib: Any) -> None:
    x, w, apart = (lib.tensor([float(i), 2.0], requires_grad=True) for i in (1, 3, 5))
    y = x * x * w
    log: list[Any] = []

    def note(gradients: Any) -> None:
        log.append([None if g is None else g.tolist() for g in gradients])

    hook = lib.autograd.graph.register_multi_grad_hook((x, w, apart, y), note)
    y.sum().backward(retain_graph=True)
    assert log == [[[6.0, 8.0], [1.0, 4.0], None, [1.0, 1.0]]]
    y.sum().backward()
    assert len(log) == 2 and log[0] == log[1]
    hook.remove()
    (x * w).sum().backward()
    assert len(log) == 2
    with lib.autograd.graph.register_multi_grad_hook((x, w), lambda g: log.append(g.tolist()), mode="any"):
        (x * 2 + w * 2).sum().backward()
    assert log[2:] == [[2.0, 2.0]]


@pytest.mark.parametrize("lib", [flow, torch])
def test_what_is_queued_amid_backward_comes_after_it(lib: Any) -> None:
    x, log = lib.ones(1, requires_grad=True), []
    queue = lib.autograd.Variable._execution_engine.queue_callback
    y = x * 2
    y.register_hook(lambda g: queue(lambda: log.append(x.grad.item())))
    y.backward()
    assert log == [2.0]
    with pytest.raises(RuntimeError):
        queue(lambda: None)


@pytest.mark.parametrize("lib", [flow, torch])
def test_hooks_on_what_is_saved_can_be_refused(lib: Any) -> None:
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


@pytest.mark.parametrize("lib", [flow, torch])
def test_gradients_of_a_batch_of_directions(lib: Any) -> None:
    x, w = lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([3.0, 4.0], requires_grad=True)
    found = lib.autograd.grad(x * x * w, (x, w), lib.eye(2), is_grads_batched=True)
    assert [g.tolist() for g in found] == [[[6.0, 0.0], [0.0, 16.0]], [[1.0, 0.0], [0.0, 4.0]]]
    (first,) = lib.autograd.grad(x * w, x, lib.ones(3, 2), is_grads_batched=True, create_graph=True)
    assert tuple(first.shape) == (3, 2) and first.requires_grad


@pytest.mark.parametrize("lib", [flow, torch])
def test_gradient_edges_stand_for_tensors(lib: Any) -> None:
    """`get_gradient_edge` names a result without keeping it: backward begins and ends there."""
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x.unbind()
    begin, inner, leaf = map(get_gradient_edge, (first * second, second, x))
    g = lib.tensor([1.0, 0.5])
    found = lib.autograd.grad(begin, [inner, leaf], g, retain_graph=True)
    assert [d.tolist() for d in found] == [[1.0, 1.0], [[3.0, 2.0], [1.0, 1.0]]]
    lib.autograd.backward([begin], [g], retain_graph=True)
    lib.autograd.backward(begin, g)
    assert x.grad.tolist() == [[6.0, 4.0], [2.0, 2.0]]
    with pytest.raises(RuntimeError):
        lib.autograd.backward(begin)


@pytest.mark.parametrize(("failure", "undone"), [(ValueError("its own"), 2), (KeyboardInterrupt(), 0)])
def test_a_backward_that_fails_is_undone_and_raises_its_own_failure(failure: BaseException, undone: int) -> None:
    """But for Ctrl-C, after which nothing is waited for."""
    seen: list[int] = []

    def undo() -> None:
        seen.append(1)
        raise RuntimeError("another")

    def fails(g: Any) -> None:
        for _ in range(2):
            at_end_of_backward(lambda: None, outermost=True, undo=undo)
        raise failure

    x = flow.ones(1, requires_grad=True)
    y = x * 2
    handle = y.register_hook(fails)
    with pytest.raises(type(failure)) as raised:
        y.backward(retain_graph=True)
    assert raised.value is failure and len(seen) == undone
    handle.remove()
    y.backward()
    assert len(seen) == undone and x.grad is not None and x.grad.tolist() == [2.0]
