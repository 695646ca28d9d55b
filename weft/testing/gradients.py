"""Gradient checks: first and second derivatives against torch's autograd of the same kernel, or finite differences
if torch has none.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from weft import autograd
from weft.core import random
from weft.core.errors import AutogradError
from weft.ops.declaration import Op
from weft.tensor.tensor import Tensor, of_torch
from weft.testing.cases import Skipped, copied, rand
from weft.testing.layouts import Args, close, replaced, run_kernel, tensors, written

# operands without a gradient: functions of other operands, or constants by definition
BY_VALUE = {
    "cross_entropy": ("weight",),
    "cross_entropy_grad": ("weight", "count"),
    "nll_loss": ("weight",),
    "layer_norm_grad": ("mean", "rstd"),
    "group_norm_grad": ("mean", "rstd"),
    "batch_norm_grad": ("running_mean", "running_var", "save_mean", "save_rstd"),
    "attention_grad": ("out", "logsumexp"),
}


def differentiable(op: Op, args: Args) -> list[int]:
    """The flattened operands whose gradients are compared: floating ones that the kernel doesn't overwrite."""
    without = set(written(op, args))
    counted = replaced(op, args, list(range(len(tensors(op, args)))))
    without.update(counted[op.names.index(n)] for n in BY_VALUE.get(op.name, ()))
    return [i for i, t in enumerate(tensors(op, args)) if t.is_floating_point() and i not in without]


def of_truth(op: Op, args: Args, which: list[int], dys: list[torch.Tensor], second: bool) -> Any:
    """Torch's gradients of the kernel, or those of their sum weighted by `dys`-like numbers; None if there are none."""
    leaves = _leaves(op, args, which)
    try:
        outputs = run_kernel(op, replaced(op, args, leaves))
        ys, dys = _chosen(op, outputs, dys)
        xs = [leaves[i] for i in which]
        if not any(y.requires_grad for y in ys):
            return None
        nothing = torch.stack([x.sum() * 0 for x in xs]).sum()  # for outputs that depend on no operand
        return _gradients(torch, [y if y.requires_grad else y + nothing for y in ys], xs, dys, second)
    except (RuntimeError, NotImplementedError):
        return None


def _leaves(op: Op, args: Args, which: list[int]) -> list[torch.Tensor]:
    return [t.detach().clone().requires_grad_(i in which) for i, t in enumerate(tensors(op, args))]


def of_ours(op: Op, args: Args, which: list[int], dys: list[torch.Tensor], second: bool) -> Any:
    return _gradients(autograd, *_called(op, args, which, dys), second)


def _called(op: Op, args: Args, which: list[int], dys: list[torch.Tensor]) -> tuple[Any, Any, Any]:
    """The outputs of a call that have gradients, the operands that need one, and the output gradients."""
    leaves = [of_torch(t.detach()).requires_grad_(t.requires_grad) for t in _leaves(op, args, which)]
    with random.seeded(11):
        result = op.compute(replaced(op, args, leaves), op)
    outputs = (result,) if isinstance(result, Tensor) else tuple(result)
    ys, given = _chosen(op, outputs, [of_torch(d) for d in dys])
    return ys, [leaves[i] for i in which], given


def _chosen(op: Op, outputs: Any, dys: list[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs that have gradients, with their output gradients."""
    pairs = [(y, d) for y, d, ok in zip(outputs, dys, op.differentiable, strict=False) if ok and y.is_floating_point()]
    return [y for y, _ in pairs], [d for _, d in pairs]


def _gradients(library: Any, ys: list[Any], xs: list[Any], dys: list[Any], second: bool) -> Any:
    """[dx, ...], or the gradients of sum(dx * weight) with respect to xs and dys. `library` is torch, or ours."""
    of = library.autograd.grad if library is torch else library.grad
    if second:
        for d in dys:
            d.requires_grad_()
    first = of(ys, xs, dys, create_graph=second, allow_unused=True)
    if not second:
        return list(first)
    kept = [(g, _weight(g)) for g in first if g is not None and g.requires_grad]
    if not kept:  # a constant first gradient
        return [None] * (len(xs) + len(dys))
    return list(of([g for g, _ in kept], [*xs, *dys], [w for _, w in kept], allow_unused=True))


def _weight(g: Any) -> Any:
    numbers = torch.linspace(-1.0, 2.0, max(g.numel(), 1), dtype=torch.float64)[: g.numel()].reshape(tuple(g.shape))
    return numbers if isinstance(g, torch.Tensor) else of_torch(numbers)


def numeric(op: Op, args: Args, which: list[int], dys: list[torch.Tensor], second: bool) -> list[torch.Tensor]:
    """Gradients by central differences: of sum(y * dy), or of Weft's own first gradients weighted."""
    given = tensors(op, args)

    def value(xs: list[torch.Tensor], weights: list[torch.Tensor]) -> float:
        full = replaced(op, args, xs)
        if second:
            firsts = of_ours(op, full, which, weights, False)
            return sum(float((g.to_torch() * _weight(g).to_torch()).sum()) for g in firsts if g is not None)
        ys = run_kernel(op, full)[: op.visible]
        return sum(float((y * d).sum()) for y, d in zip(ys, weights, strict=True) if y.is_floating_point())

    found = []
    moved_dys = [j for j, ok in enumerate(op.differentiable[: op.visible]) if ok] if second else []
    for i in [*which, *(-1 - j for j in moved_dys)]:
        target = given[i] if i >= 0 else dys[-1 - i]
        g = torch.zeros_like(target)
        for at in itertools.product(*map(range, target.shape)):
            ends = []
            for h in (1e-6, -1e-6):
                moved = target.clone()
                moved[at] += h
                xs = [moved if k == i else t.clone() for k, t in enumerate(given)]
                ends.append(value(xs, [moved if -1 - k == i else d for k, d in enumerate(dys)]))
            g[at] = (ends[0] - ends[1]) / 2e-6
        found.append(g)
    return found


def check_gradient(op: Op, args: Args, second: bool = False) -> None:
    """Weft's gradients against torch's autograd of the kernel, or finite differences if torch has none."""
    if op.vjp is None or op.conversion:
        raise Skipped("it declares no gradient")
    which = differentiable(op, args)
    if not which:
        raise Skipped("no operand is differentiable")
    wholes = run_kernel(op, copied(op, args))[: op.visible]
    dys = [rand(*y.shape) if y.is_floating_point() else torch.zeros(y.shape) for y in wholes]
    if not any(y.is_floating_point() for y in wholes):
        raise Skipped("no output is differentiable")

    def fresh() -> list[torch.Tensor]:
        return [d.clone() for d in dys]

    try:
        got = of_ours(op, args, which, fresh(), second)
    except AutogradError as error:
        raise AssertionError(f"{error}") from error
    truth = of_truth(op, args, which, fresh(), second)
    loose = truth is None
    if truth is None:
        truth = numeric(op, args, which, dys, second)
    names = [f"operand {i}" for i in which] + ["dy"] * (len(got) - len(which))
    for name, mine, theirs in zip(names, got, truth, strict=True):
        if mine is None or theirs is None:
            other = theirs if mine is None else mine.to_torch()
            assert other is None or not other.any(), f"{name}: one has a gradient and the other hasn't: {other}"
            continue
        a, b = mine.to_torch(), theirs
        assert a.shape == b.shape, f"{name}: a gradient of shape {list(a.shape)} for {list(b.shape)}"
        scale = max(1.0, float(b.abs().max()) if b.numel() else 1.0)
        good = torch.allclose(a, b, rtol=1e-4, atol=1e-5 * scale) if loose else close(a, b)
        assert good, f"{name}: {a}\ninstead of {b}"


def check_again(op: Op, args: Args) -> None:
    """A second backward, to all operands or to one, is refused only where torch refuses it; otherwise it gives what the
    first gave.
    """
    every = differentiable(op, args)
    if op.vjp is None or op.conversion or not every:
        raise Skipped("it has no gradient")
    for which in [every, *([i] for i in every if len(every) > 1)]:
        _check_again(op, args, which)


def _check_again(op: Op, args: Args, which: list[int]) -> None:
    wholes = run_kernel(op, copied(op, args))[: op.visible]
    dys = [torch.ones_like(y) for y in wholes]

    def twice(of: Any, ys: list[Any], xs: list[Any], given: list[Any]) -> Any:
        first = of(ys, xs, given, allow_unused=True)
        try:
            return first, of(ys, xs, given, allow_unused=True)
        except RuntimeError as refused:
            assert "backward through the graph a second time" in str(refused), refused
            return first, None

    leaves = _leaves(op, args, which)
    truth: Any = None
    try:
        ys, given = _chosen(op, run_kernel(op, replaced(op, args, leaves)), dys)
        truth = twice(torch.autograd.grad, ys, [leaves[i] for i in which], given)[1]
    except (RuntimeError, NotImplementedError, AssertionError):
        pass  # torch has no gradient for it
    first, second = twice(autograd.grad, *_called(op, args, which, dys))
    assert second is not None or truth is None, "torch goes back a second time, and we refuse"
    for a, b in zip(first, second or first, strict=True):
        assert a is b is None or close(a.to_torch(), b.to_torch()), f"the second backward gives {b}, the first {a}"
