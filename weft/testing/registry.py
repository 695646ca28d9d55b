"""Generic tests of every op's declaration.

`cases(op)` are its samples; each `check_` takes one and raises AssertionError, or Skipped with a reason. Oracles:
torch's autograd of the same kernel, finite differences where torch has none, and the whole tensor for its shards.

    python -m weft.testing.registry        # per op: how many rules hold, which could be added, what has no gradient
"""

from __future__ import annotations

import doctest
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from weft.boxing import signature
from weft.core import dtype as dtypes
from weft.core import random
from weft.core.placement import Placement
from weft.core.sbp import broadcast
from weft.core.spec import Spec
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.ops.form import Form
from weft.ops.infer import freeze, infer
from weft.ops.notation import Rule
from weft.tensor.tensor import of_torch
from weft.testing.cases import Skipped, cases, copied, rand, shown
from weft.testing.gradients import check_gradient, differentiable
from weft.testing.layouts import (
    Args,
    close,
    disagreements,
    possible,
    replaced,
    rules_of,
    run_kernel,
    tensors,
    undeclared,
)

# ops that the generic tests can't run, and why
WITHOUT_SAMPLES = {
    "empty": "its values are whatever the memory held",
    "empty_like": "its values are whatever the memory held",
    "to_global": "boxing does it: tests/boxing, tests/interpreter",
    "to_local": "boxing does it: tests/boxing, tests/interpreter",
    "from_local": "boxing does it: tests/boxing, tests/interpreter",
}
# ops whose derivative is refused
UNDERIVED = {name: "torch has no derivative of it either" for name in ("heaviside", "binomial")}
PAIR = Placement("cpu", [0, 1])
UNEVEN = (2, 3)  # ranks: samples have sizes that don't divide by all of them


# ---- shapes, memory, examples ----------------------------------------------------------------------------


def check_inference(op: Op, args: Args) -> None:
    got = infer(op, replaced(op, args, [Form(tuple(t.shape), dtypes.of_torch(t.dtype)) for t in tensors(op, args)]))
    expected = tuple(Form(tuple(y.shape), dtypes.of_torch(y.dtype)) for y in run_kernel(op, copied(op, args)))
    if op.dynamic:  # its shape depends on data, but not how many dimensions it has, which other ranks wait for
        got, expected = ([(len(f.shape), f.dtype) for f in forms] for forms in (got, expected))
    assert got == expected, f"inferred {got}, got {expected}"


def check_strides(op: Op, args: Args) -> None:
    """Strides of operands must not matter: neither the order of their dimensions, nor gaps between elements."""
    operands = tensors(op, args)
    if op.view or op.random:
        raise Skipped("its result has x's strides" if op.view else "it draws in memory order, as torch")
    if not any(t.dim() for t in operands):
        raise Skipped("no operand has strides")
    expected = run_kernel(op, copied(op, args))
    for lie in (_turned, _gapped):
        for kernel in filter(None, (op.kernel, op.out_kernel)):
            given = replaced(op, args, [lie(t.detach()) for t in operands])
            got = run_kernel(op, given) if kernel is op.kernel else _into_new(op, given, expected)
            for name, y, e in zip(op.returns, got, expected, strict=True):
                assert close(y, e), (
                    f"{name}: {y} instead of {e}, with operands of strides that {lie.__name__[1:]} gives"
                )


def _turned(t: torch.Tensor) -> torch.Tensor:
    """The tensor with its last dimension outermost in memory."""
    return t.movedim(-1, 0).contiguous().movedim(0, -1) if t.dim() > 1 else _gapped(t)


def _gapped(t: torch.Tensor) -> torch.Tensor:
    """The tensor with gaps between its elements."""
    return torch.stack([t, t], -1)[..., 0]


def _into_new(op: Op, args: Args, like: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The result of the out-variant kernel."""
    assert op.out_kernel is not None
    given = tuple(torch.empty_like(y, memory_format=torch.contiguous_format) for y in like)
    for y in given:
        y.fill_(float("nan") if y.is_floating_point() else 0)
    places = [y.data_ptr() for y in given]
    with random.seeded(11):
        op.out_kernel(given[0] if len(given) == 1 else given, *args)
    for name, y, place in zip(op.returns, given, places, strict=True):
        assert y.data_ptr() == place and y.is_contiguous(), f"{name}: the memory was replaced"
    return given


def check_memory(op: Op, args: Args) -> None:
    """A result shares memory with an operand only if the op is a view, and with another result never."""
    for lie in (torch.clone,) if op.view else (torch.clone, _turned, _gapped):
        given = replaced(op, args, [lie(t.detach()) for t in tensors(op, args)])
        results = _places(run_kernel(op, given))
        assert len(results) == len({*results}), "two results share memory"
        if not op.view:
            assert not {*results} & {*_places(tensors(op, given))}, "a result shares memory with an operand"


def _places(given: Sequence[torch.Tensor]) -> list[int]:
    """Where the memory of those begins that have any."""
    return [t.untyped_storage().data_ptr() for t in given if t.numel() and t.device.type != "meta"]


def check_out(op: Op, args: Args) -> None:
    """The out-variant kernel gives what the kernel gives."""
    if op.out_kernel is None:
        raise Skipped("no out-variant kernel")
    expected = run_kernel(op, copied(op, args))
    given = _into_new(op, copied(op, args), expected)
    for name, y, e in zip(op.returns, given, expected, strict=True):
        assert close(y, e), f"{name}: {y} instead of {e}"


def check_inplace(op: Op, args: Args) -> None:
    """The in-place kernel leaves in its first operand what the kernel gives."""
    if op.inplace_kernel is None:
        raise Skipped("no in-place kernel")
    expected = run_kernel(op, copied(op, args))[0]
    mine = copied(op, args)
    if not isinstance(mine[0], torch.Tensor) or mine[0].shape != expected.shape or mine[0].dtype != expected.dtype:
        raise Skipped("the result doesn't fit into the first operand")
    with random.seeded(11):
        op.inplace_kernel(*mine)
    assert close(mine[0], expected), f"{mine[0]} instead of {expected}"


def check_scattered(op: Op, args: Args) -> None:
    """A view's scatter gives what writing through the view leaves in the base."""
    if op.scatter is None:
        raise Skipped("no scatter")
    base = args[op.operands[0]]
    expected = base.clone()
    view = run_kernel(op, replaced(op, args, [expected]))[0]
    part = rand(*view.shape).to(view.dtype)
    view.copy_(part)
    attributes = [a for i, a in enumerate(args) if i not in op.operands]
    assert close(op.scatter(of_torch(base), of_torch(part), *attributes).to_torch(), expected)


def check_example(op: Op, flow: Any) -> None:
    """Run the docstring's example, with the package as `flow`."""
    test = doctest.DocTestParser().get_doctest(op.__doc__ or "", {"flow": flow}, op.name, None, None)
    if not test.examples:
        raise Skipped("no example")
    if not hasattr(flow, "ones"):
        raise Skipped("the root package has no ops")
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


# ---- layouts -----------------------------------------------------------------------------------------------


def check_layouts(op: Op, args: Args) -> int:
    """Check every rule over 2 and 3 ranks, also with uneven shards; returns how many held."""
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


def check_integers(op: Op, args: Args) -> None:
    """Check every layout over 2 ranks with integers, which wrap and may be rounded, in place of floating numbers."""
    if op.random or op.dynamic or op.conversion or not op.operands:
        raise Skipped("no kernel of it runs on parts")
    ran = False
    for kind in (torch.uint8, torch.int64):
        numbers = [(t.real * 3).round().abs().to(kind) if t.dtype.is_floating_point else t for t in tensors(op, args)]
        given = replaced(op, args, numbers)
        try:
            run_kernel(op, copied(op, given))
        except (RuntimeError, TypeError, ValueError, IndexError):
            continue
        ran = True
        whole = replaced(
            op, args, [Spec(tuple(t.shape), dtypes.of_torch(t.dtype), PAIR, (broadcast,)) for t in numbers]
        )
        for s in signature.candidates(op.name, freeze(whole)):
            ins, outs = (tuple(spec.nd_sbp[0] for spec in specs) for specs in (s.inputs, s.outputs))
            rule = Rule(ins, outs, s.ranked)
            if not any(t.dtype == torch.bool and i.is_partial for t, i in zip(numbers, rule.inputs, strict=True)):
                wrong = disagreements(op, given, [rule], PAIR)
                assert not wrong, f"{rule} of {kind} over 2 ranks: {wrong}"
    if not ran:
        raise Skipped("it has no kernel for integers")


def check_empty_parts(op: Op, args: Args) -> None:
    """Check every rule over more ranks than there are elements, so that some shards are empty."""
    if op.random or op.dynamic or op.conversion:
        raise Skipped("no kernel of it runs on parts")
    for rule in rules_of(op, args, run_kernel(op, copied(op, args))):
        split = [t.shape[s.dim] for t, s in zip(tensors(op, args), rule.inputs, strict=True) if s.is_split]
        placement = Placement("cpu", list(range(min(split, default=0) + 1)))
        if split and possible([rule], placement):
            wrong = disagreements(op, args, [rule], placement)
            assert not wrong, f"{rule} over {placement.size} ranks, of which some hold nothing: {wrong}"


def check_grids(op: Op, args: Args) -> None:
    """Check every pair of rules on a 2x2 grid."""
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


__all__ = ["WITHOUT_SAMPLES", "Skipped", "cases", "check_gradient", "shown"]

if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in report():
        print(line)
        sys.stdout.flush()
