"""Custom functions, views that are overwritten, hooks and checkpoints, beside torch: the same program in both libraries
gives the same gradients, or is refused by both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import AutogradError, WeftError

T = Any  # torch, or Weft


def leaf(T: T, *shape: int, wants: bool = True) -> Any:
    n = torch.Size(shape).numel()
    return (T.arange(n, dtype=T.float64).reshape(*shape) * 0.37 % 1.7 + 0.2).requires_grad_(wants)


def numbers(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, flow.Tensor)):
        return str(value.dtype).rpartition(".")[2], tuple(value.shape), value.detach().flatten().tolist()
    return [numbers(v) for v in value] if isinstance(value, (list, tuple)) else value


def ended(program: Callable[[T], Any], library: T) -> Any:
    """What it gives; the builtin class of torch's error, and Weft's error."""
    try:
        return numbers(program(library))
    except Exception as error:
        return next(k for k in type(error).__mro__ if k.__module__ == "builtins") if library is torch else error


PROGRAMS: list[Callable[[T], Any]] = []


def program(f: Callable[[T], Any]) -> Callable[[T], Any]:
    PROGRAMS.append(f)
    return f


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_ends_as_in_torch(program: Callable[[T], Any]) -> None:
    if program is by_name and torch.__version__ < "2.13":
        pytest.skip("apply takes keywords from torch 2.13 on")
    theirs, ours = ended(program, torch), ended(program, flow)
    if isinstance(theirs, type):
        assert isinstance(ours, theirs) and isinstance(ours, WeftError), f"{theirs} for {ours!r}"
    else:
        assert ours == theirs


# ---- custom functions --------------------------------------------------------------------------------


def function(T: T, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    return type("Made", (T.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def square(T: T) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    return function(T, forward, lambda ctx, g: g * 2 * ctx.saved_tensors[0])


def tripling(T: T) -> Any:
    def forward(ctx: Any, x: Any, *others: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(3)
        return (x, *(x * o for o in others)) if others else x

    return function(T, forward, lambda ctx, g, *gs: (g * 3, *gs))


@program
def saved_and_overwritten(T: T) -> Any:
    y = leaf(T, 3) * 1
    z = square(T).apply(y[:2])
    y.add_(1)
    z.sum().backward()


@program
def saved_output_overwritten(T: T) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    y = function(T, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(T, 3))
    y.mul_(2)
    y.sum().backward()


@program
def overwritten_input(T: T) -> Any:
    x = leaf(T, 3)
    y = x * 1
    z = tripling(T).apply(y)
    return z is y, T.autograd.grad((y * y).sum(), x)


@program
def overwritten_view(T: T) -> Any:
    x = leaf(T, 4)
    y = x * 1
    tripling(T).apply(y[:2])
    return T.autograd.grad((y * y).sum(), x)


@program
def overwritten_among_several(T: T) -> Any:
    x, b = leaf(T, 3), leaf(T, 3)
    y = x * 1
    z, w = tripling(T).apply(y, b)
    return z is y, T.autograd.grad((y * y).sum() + w.sum(), [x, b])


@program
def overwritten_leaf(T: T) -> Any:
    tripling(T).apply(leaf(T, 3))


@program
def overwritten_and_not_returned(T: T) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x * 1

    function(T, forward, lambda ctx, g: g).apply(leaf(T, 3) * 1)


@program
def returned_as_given(T: T) -> Any:
    x, w = leaf(T, 3, wants=False), leaf(T, 3)
    y, z = function(T, lambda ctx, x, w: (x, w * 2), lambda ctx, g, h: (g * 7, h * 2)).apply(x, w)
    return y is x, y.requires_grad, x.requires_grad, T.autograd.grad(z.sum(), w)


@program
def a_view_of_its_own_overwritten(T: T) -> Any:
    h = leaf(T, 2, 2) * 1
    y = function(T, lambda ctx, x: x.view(-1), lambda ctx, g: g.view(2, 2) * 5).apply(h)
    y.mul_(2)


GIVEN_BACK: dict[str, Callable[[T, Any], Any]] = {
    "a sum": lambda T, g: g.sum(), "another shape": lambda T, g: T.ones(5, dtype=T.float64),
    "what was broadcast": lambda T, g: T.ones(4, 3, dtype=T.float64), "another dtype": lambda T, g: g.float(),
    "a number": lambda T, g: 3.0, "too many": lambda T, g: (g, g), "too many, one for nothing": lambda T, g: (g, None),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN_BACK)
def test_a_gradient_fits_its_input_or_is_refused(name: str) -> None:
    def run(T: T) -> Any:
        x = leaf(T, 3)
        function(T, lambda ctx, x: x * 2, lambda ctx, g: GIVEN_BACK[name](T, g)).apply(x).sum().backward()
        return x.grad

    test_ends_as_in_torch(run)


@program
def a_gradient_of_a_number(T: T) -> Any:
    function(T, lambda ctx, x, k: x * k, lambda ctx, g: (g, g)).apply(leaf(T, 3), 2).sum().backward()


@program
def saved_number(T: T) -> Any:
    function(T, lambda ctx, x: ctx.save_for_backward(3) or x * 2, lambda ctx, g: g).apply(leaf(T, 3))


@program
def by_name(T: T) -> Any:
    return function(T, lambda ctx, x, k=3: x * k, lambda ctx, g: (g * 3, None)).apply(leaf(T, 3), k=2)


# ---- views ---------------------------------------------------------------------------------------------


@program
def views_read_several_times(T: T) -> Any:
    """Views are made anew at their first read: what reads them comes after them on the tape."""
    x = leaf(T, 4)
    h = x * 1
    v, w = h[:2], h[2:]
    h.exp_()
    y, z, q = v.exp() * w, v + w, v * v
    return T.autograd.grad((y + z + q).sum(), x)


@program
def views_of_what_gains_a_gradient(T: T) -> Any:
    x, b, w = leaf(T, 3), T.zeros(4, 3, dtype=T.float64), leaf(T, 3)
    v, deep, apart = b[1], b[1:][0][:2], b[1].detach()
    b[:2].copy_(x)
    seen = v.requires_grad, deep.requires_grad, apart.requires_grad
    return seen, T.autograd.grad((v * w).sum() + (deep * deep).sum(), [x, w])


@program
def hooks_before_and_after(T: T) -> Any:
    x, seen = leaf(T, 3), []
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", numbers(g))))
    y.retain_grad()
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("after", numbers(g))))
    y.sum().backward()
    return seen, y.grad, x.grad


def test_what_has_no_scatter_is_refused_before_it_is_written() -> None:
    h = leaf(flow, 4) * 1
    before = h.tolist()
    with pytest.raises(AutogradError, match="its gradient isn't known"):
        h.unfold(0, 2, 2).mul_(2)
    assert h.tolist() == before


# ---- checkpoints and saved tensors ---------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [True, False])
def test_an_argument_of_a_checkpoint_stays_as_it_is(reentrant: bool) -> None:
    def run(T: T) -> Any:
        h = leaf(T, 3) * 1
        y = T.utils.checkpoint.checkpoint(lambda x: (x * x).exp(), h, use_reentrant=reentrant)
        with T.no_grad():
            h.add_(1)
        y.sum().backward()

    test_ends_as_in_torch(run)


@program
def packing_overwrites(T: T) -> Any:
    x = leaf(T, 3)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        return x * x


# ---- going back twice ----------------------------------------------------------------------------------


@program
def gradient_by_a_step_twice(T: T) -> Any:
    x = leaf(T, 5)
    y = T.gradient(x, spacing=2.0)[0].sum() + T.gradient(x, spacing=None, edge_order=2)[0].square().sum() * 0
    T.gradient(x, spacing=0.5, edge_order=2)[0].sum().backward()
    z = T.gradient(x, spacing=2.0)[0].sum()
    z.backward()
    z.backward()
    return x.grad, y


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_nearest_exact_twice(dims: int) -> None:
    def run(T: T) -> Any:
        x = leaf(T, 1, 1, *(4,) * dims)
        y = T.nn.functional.interpolate(x, scale_factor=1.7, mode="nearest-exact").sum()
        y.backward()
        y.backward()
        return x.grad, y

    test_ends_as_in_torch(run)


class Adjoint(flow.autograd.Function):
    """Differentiates once more by the parameter that forward saved, as solvers of differential equations do."""

    @staticmethod
    def forward(ctx: Any, layer: Any, x: Any, weight: Any) -> Any:
        ctx.layer = layer
        ctx.save_for_backward(x, weight)
        return layer(x)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        x, weight = ctx.saved_tensors
        with flow.enable_grad():
            x = x.detach().requires_grad_()
            return None, *flow.autograd.grad(ctx.layer(x), (x, weight), dy, allow_unused=True)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_saved_parameter_is_that_parameter(compiled: bool) -> None:
    layer = flow.nn.Linear(2, 3, bias=False)

    class Run(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def build(self, x: Any) -> Any:
            Adjoint.apply(layer, x, layer.weight).sum().backward()
            return layer.weight.grad

    run, x = Run(), flow.tensor([[1.0, 2.0]])
    assert (run(x) if compiled else run.build(x)).tolist() == [[1.0, 2.0]] * 3
