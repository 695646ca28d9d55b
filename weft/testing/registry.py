"""One test for every op: what a declaration says of itself must be true.

`cases(op)` are its samples; each `check_` takes one and raises AssertionError, or Skipped with a reason. Oracles:
torch's autograd of the same kernel, finite differences where torch has none, and the whole tensor for its shards.

    python -m weft.testing.registry        # per op: how many rules hold, which could be added, what has no gradient
"""

from __future__ import annotations

import doctest
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import torch

from weft import autograd
from weft.core import dtype as dtypes
from weft.core import random
from weft.core.errors import AutogradError
from weft.core.placement import Placement
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.ops.infer import Form, infer
from weft.tensor.tensor import Tensor, of_torch
from weft.testing.layouts import (
    CPU,
    Args,
    close,
    disagreements,
    possible,
    replaced,
    rules_of,
    run_kernel,
    tensors,
    undeclared,
    written,
)  # fmt: skip

# ops that the generic test can't run, and why
WITHOUT_SAMPLES = {
    "empty": "its values are whatever the memory held",
    "empty_like": "its values are whatever the memory held",
    "to_global": "boxing does it: tests/boxing, tests/interpreter",
    "to_local": "boxing does it: tests/boxing, tests/interpreter",
    "from_local": "boxing does it: tests/boxing, tests/interpreter",
}
# operands that are functions of other operands, whose gradient includes theirs, or constants by definition
BY_VALUE = {
    "cross_entropy": ("weight",),
    "cross_entropy_grad": ("weight", "count"),
    "nll_loss": ("weight",),
    "layer_norm_grad": ("mean", "rstd"),
    "group_norm_grad": ("mean", "rstd"),
    "batch_norm_grad": ("running_mean", "running_var", "save_mean", "save_rstd"),
    "attention_grad": ("out", "logsumexp"),
}
UNEVEN = (2, 3)  # ranks: samples have sizes that don't divide by all of them


class Skipped(Exception):
    """A check that doesn't apply to this op, with the reason."""


def rand(*shape: int) -> torch.Tensor:
    """What samples are made of: float64, repeatable within a case."""
    return torch.randn(shape, dtype=torch.float64)


def cases(op: Op) -> list[Args]:
    """The op's samples as complete arguments."""
    if op.sample_function is None:
        return []
    torch.manual_seed(len(op.name))
    rows = []
    for row in op.sample_function(rand):
        row = row if isinstance(row, tuple) else (row,)
        keyed = len(row) == 2 and isinstance(row[0], tuple) and isinstance(row[1], dict)
        rows.append(op.bind(*row) if keyed else op.bind(row, {}))
    return rows


def shown(op: Op, args: Args) -> str:
    return ", ".join(
        f"{n}={list(a.shape) if isinstance(a, torch.Tensor) else type(a).__name__ if isinstance(a, list) else a}"
        for n, a in zip(op.names, args, strict=True)
    )


def copied(op: Op, args: Args) -> Args:
    return replaced(op, args, [t.detach().clone() for t in tensors(op, args)])


# ---- shapes, memory, examples ----------------------------------------------------------------------------


def check_inference(op: Op, args: Args) -> None:
    if op.dynamic:
        raise Skipped("its shape depends on data")
    got = infer(op, replaced(op, args, [Form(tuple(t.shape), dtypes.of_torch(t.dtype)) for t in tensors(op, args)]))
    expected = tuple(Form(tuple(y.shape), dtypes.of_torch(y.dtype)) for y in run_kernel(op, copied(op, args)))
    assert got == expected, f"inferred {got}, got {expected}"


def check_out(op: Op, args: Args) -> None:
    """The kernel that writes into given memory gives what the kernel gives."""
    if op.out_kernel is None:
        raise Skipped("no kernel of that kind")
    expected = run_kernel(op, copied(op, args))
    given = tuple(torch.empty_like(y, memory_format=torch.contiguous_format) for y in expected)
    for y in given:
        y.fill_(float("nan") if y.is_floating_point() else 0)
    places = [y.data_ptr() for y in given]
    with random.seeded(11, CPU):
        op.out_kernel(given[0] if len(given) == 1 else given, *copied(op, args))
    for name, y, e, place in zip(op.returns, given, expected, places, strict=True):
        assert y.data_ptr() == place, f"{name}: the memory was exchanged"
        assert close(y, e), f"{name}: {y} instead of {e}"


def check_inplace(op: Op, args: Args) -> None:
    """The kernel that overwrites its first operand leaves there what the kernel gives."""
    if op.inplace_kernel is None:
        raise Skipped("no kernel of that kind")
    expected = run_kernel(op, copied(op, args))[0]
    mine = copied(op, args)
    if not isinstance(mine[0], torch.Tensor) or mine[0].shape != expected.shape or mine[0].dtype != expected.dtype:
        raise Skipped("the result doesn't fit into the first operand")
    with random.seeded(11, CPU):
        op.inplace_kernel(*mine)
    assert close(mine[0], expected), f"{mine[0]} instead of {expected}"


def check_scattered(op: Op, args: Args) -> None:
    """A view's scatter gives what writing through the view leaves in the base."""
    if op.scatter is None:
        raise Skipped("no scatter")
    base = args[op.operands[0]]
    expected = base.clone()
    view = run_kernel(op, replaced(op, args, [expected]))[0]
    part = rand(*view.shape)
    view.copy_(part)
    attributes = [a for i, a in enumerate(args) if i not in op.operands]
    assert close(op.scatter(of_torch(base), of_torch(part), *attributes).to_torch(), expected)


def check_example(op: Op, flow: Any) -> None:
    """The docstring's example, with the package as `flow`."""
    test = doctest.DocTestParser().get_doctest(op.__doc__ or "", {"flow": flow}, op.name, None, None)
    if not test.examples:
        raise Skipped("no example")
    if not hasattr(flow, "ones"):
        raise Skipped("the root package has no ops")
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


# ---- gradients ---------------------------------------------------------------------------------------------


def differentiable(op: Op, args: Args) -> list[int]:
    """The flattened operands whose gradients are compared: floating ones that the kernel doesn't overwrite."""
    without = set(written(op, args))
    counted = replaced(op, args, list(range(len(tensors(op, args)))))
    without.update(counted[op.names.index(n)] for n in BY_VALUE.get(op.name, ()))
    return [i for i, t in enumerate(tensors(op, args)) if t.is_floating_point() and i not in without]


def of_truth(op: Op, args: Args, which: list[int], dys: list[torch.Tensor], second: bool) -> Any:
    """Torch's gradients of the kernel, or the gradients of their sum weighted by `dys`-like numbers; None: it can't."""
    leaves = [t.detach().clone() for t in tensors(op, args)]
    for i in which:
        leaves[i].requires_grad_()
    try:
        outputs = run_kernel(op, replaced(op, args, leaves))
        ys, dys = _chosen(op, outputs, dys)
        nothing = torch.stack([leaves[i].sum() * 0 for i in which]).sum()  # for outputs that no operand changes
        return _gradients(
            torch, [y if y.requires_grad else y + nothing for y in ys], [leaves[i] for i in which], dys, second
        )
    except (RuntimeError, NotImplementedError):
        return None


def of_ours(op: Op, args: Args, which: list[int], dys: list[torch.Tensor], second: bool) -> Any:
    leaves = [of_torch(t.detach().clone()) for t in tensors(op, args)]
    for i in which:
        leaves[i].requires_grad_()
    with random.seeded(11, CPU):
        result = op(*(full := replaced(op, args, leaves))[: len(full) - len(op.keywords)], **_keywords(op, full))
    outputs = (result,) if isinstance(result, Tensor) else tuple(result)
    ys, given = _chosen(op, outputs, [of_torch(d) for d in dys])
    return _gradients(autograd, ys, [leaves[i] for i in which], given, second)


def _keywords(op: Op, args: Args) -> dict[str, Any]:
    return {k: args[op.names.index(k)] for k in op.keywords}


def _chosen(op: Op, outputs: Any, dys: list[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs that have gradients, with those that are given for them."""
    pairs = [(y, d) for y, d, ok in zip(outputs, dys, op.differentiable, strict=False) if ok and _floating(y)]
    return [y for y, _ in pairs], [d for _, d in pairs]


def _floating(y: Any) -> bool:
    return bool(y.is_floating_point())


def _gradients(library: Any, ys: list[Any], xs: list[Any], dys: list[Any], second: bool) -> Any:
    """[dx, ...], or the gradients of sum(dx * weight) with respect to xs and dys. `library` is torch or ours."""
    of = library.autograd.grad if library is torch else library.grad
    if second:
        for d in dys:
            d.requires_grad_()
    first = of(ys, xs, dys, create_graph=second, allow_unused=True)
    if not second:
        return list(first)
    kept = [(g, _weight(g)) for g in first if g is not None and g.requires_grad]
    if not kept:
        return "constant"
    return list(of([g for g, _ in kept], [*xs, *dys], [w for _, w in kept], allow_unused=True))


def _weight(g: Any) -> Any:
    numbers = torch.linspace(-1.0, 2.0, max(g.numel(), 1), dtype=torch.float64)[: g.numel()].reshape(tuple(g.shape))
    return numbers if isinstance(g, torch.Tensor) else of_torch(numbers)


def numeric(op: Op, args: Args, which: list[int], dys: list[torch.Tensor], second: bool) -> list[torch.Tensor]:
    """Gradients by central differences: of sum(y * dy), or of our own first gradients weighted."""
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
    """Ours against torch's autograd of the kernel, or against finite differences where torch has none."""
    if op.vjp is None or op.conversion:
        raise Skipped("it declares no gradient")
    which = differentiable(op, args)
    if not which:
        raise Skipped("no operand can have one")
    wholes = run_kernel(op, copied(op, args))[: op.visible]
    dys = [rand(*y.shape) if y.is_floating_point() else torch.zeros(y.shape) for y in wholes]
    if not any(y.is_floating_point() for y in wholes):
        raise Skipped("no output can have one")

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
    if "constant" in (got if isinstance(got, str) else "", truth if isinstance(truth, str) else ""):
        assert _zero(got) and _zero(truth), f"our second gradient is {got}; torch's is {truth}"
        return
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


def _zero(gradients: Any) -> bool:
    if isinstance(gradients, str):
        return True
    return all(g is None or not (g if isinstance(g, torch.Tensor) else g.to_torch()).any() for g in gradients)


# ---- layouts -----------------------------------------------------------------------------------------------


def check_layouts(op: Op, args: Args) -> int:
    """Every rule, over 2 and 3 ranks, also with uneven parts; how many held."""
    if op.random or op.dynamic or op.conversion:
        raise Skipped("no kernel of it runs on parts")
    rules = rules_of(op, args, run_kernel(op, copied(op, args)))
    held = 0
    for rule in rules:
        for n in UNEVEN:
            placement = Placement("cpu", list(range(n)))
            if possible([rule], placement):
                wrong = disagreements(op, args, [rule], placement)
                assert not wrong, f"{rule} over {n} ranks: {wrong}"
                held += 1
    return held


def check_grids(op: Op, args: Args) -> None:
    """Every pair of rules on a 2x2 grid."""
    grid = Placement("cpu", [[0, 1], [2, 3]])
    rules = rules_of(op, args, run_kernel(op, copied(op, args)))
    for pair in itertools.product(rules, repeat=2):
        if possible(pair, grid):
            wrong = disagreements(op, args, pair, grid)
            assert not wrong, f"{pair[0]} and {pair[1]} on a 2x2 grid: {wrong}"


# ---- the report --------------------------------------------------------------------------------------------


def report() -> Iterator[str]:
    for op in OPS.values():
        rows = cases(op)
        if not rows:
            yield f"{op.name:28} not run: {WITHOUT_SAMPLES.get(op.name, 'NO SAMPLES')}"
            continue
        missing: dict[str, None] = {}
        for args in rows:
            missing.update(dict.fromkeys(undeclared(op, args)))
        rules = len(rules_of(op, rows[0], run_kernel(op, copied(op, rows[0])))) if not op.random else 0
        floats = any(differentiable(op, args) for args in rows)
        wanted = {"gradient": op.vjp, "out": op.out_kernel, "example": ">>>" in (op.__doc__ or "")}
        lacks = [what for what, there in wanted.items() if not there]
        yield f"{op.name:28} {rules} rules" + (f"; without {', '.join(lacks)}" if lacks and floats else "")
        for text in missing:
            yield f"{'':28}     also holds: {text}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in report():
        print(line)
        sys.stdout.flush()
