"""Layout rules by brute force: an op on shards must give the shards of its result on the whole."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from weft.boxing import part, signature
from weft.boxing.signature import Signature
from weft.core import dtype as dtypes
from weft.core import random
from weft.core import sbp as sbps
from weft.core.placement import Placement
from weft.core.sbp import NdSbp, Sbp, broadcast, partial_max, partial_sum, split
from weft.core.spec import Spec
from weft.ops.declaration import Op
from weft.ops.notation import Rule

Args = tuple[Any, ...]


def run_kernel(op: Op, args: Args, kernel: Callable[..., Any] | None = None) -> tuple[torch.Tensor, ...]:
    """The outputs of a kernel on complete arguments; random draws are seeded."""
    with random.seeded(11):
        result = op.compute(args, kernel)
    return (result,) if len(op.returns) == 1 else tuple(result) if op.returns else ()


def tensors(op: Op, args: Args) -> list[torch.Tensor]:
    """The operands that are tensors, lists flattened: the order in which rules name them."""
    return signature.flatten(op, args)


def replaced(op: Op, args: Args, values: Sequence[Any]) -> Args:
    """The arguments with the tensors replaced."""
    todo = iter(values)
    new = signature.replaced(op, args, lambda _: next(todo))
    return tuple(list(v) if op.params[i].kind == "tensors" else v for i, v in enumerate(new))


def written(op: Op, args: Args) -> list[int]:
    """Which of the flattened tensors the kernel overwrites."""
    marks = iter(range(len(tensors(op, args))))
    numbered = replaced(op, args, list(marks))
    found: list[int] = []
    for i in op.writes:
        value = numbered[i]
        found.extend(v for v in (value if isinstance(value, list) else [value]) if v is not None)
    return found


def rules_of(op: Op, args: Args, outputs: Sequence[torch.Tensor]) -> tuple[Rule, ...]:
    shapes = [tuple(t.shape) for t in tensors(op, args)]
    # lists become tuples here as they do in the interpreters
    shaped = signature.replaced(op, args, lambda t: tuple(t.shape))
    return op.rules(shaped, tuple(shapes), tuple(tuple(y.shape) for y in outputs))


def shards(t: torch.Tensor, nd_sbp: NdSbp, placement: Placement) -> dict[tuple[int, ...], torch.Tensor]:
    """The shard of a whole tensor at each coordinate; partial ones get random parts."""
    g = torch.Generator().manual_seed(5)
    pieces: dict[tuple[int, ...], torch.Tensor] = {(): t}
    for size, s in zip(placement.shape, nd_sbp, strict=True):
        pieces = {(*c, i): v for c, whole in pieces.items() for i, v in enumerate(_parts(whole, s, size, g))}
    spec = Spec(tuple(t.shape), dtypes.of_torch(t.dtype), placement, nd_sbp)
    held = {}
    for c, v in pieces.items():
        box = spec.box(placement.at(c))
        assert box is not None
        held[c] = v[tuple(slice(a, b) for a, b in box)].clone(memory_format=torch.contiguous_format)
    return held


def _parts(t: torch.Tensor, s: Sbp, n: int, g: torch.Generator) -> list[torch.Tensor]:
    if not s.is_partial:
        return [t] * n
    if t.dtype == torch.bool:
        raise TypeError("truth values have no parts")
    if t.is_floating_point():
        noise = [torch.randn(t.shape, generator=g, dtype=t.dtype) for _ in range(n)]
    else:
        noise = [torch.randint(0, 9, t.shape, generator=g, dtype=t.dtype) for _ in range(n)]
    if s is partial_sum:
        rest = t - sum(noise[1:])
        return [rest, *noise[1:]]
    if t.dtype == torch.uint8:
        noise = [torch.minimum(d, t) for d in noise]  # nothing is less than 0
    owner = torch.randint(0, n, t.shape, generator=g)
    away = [t - d.abs() if s is partial_max else t + d.abs() for d in noise]
    return [torch.where(owner == i, t, d) for i, d in enumerate(away)]


def assemble(held: dict[tuple[int, ...], torch.Tensor], nd_sbp: NdSbp) -> torch.Tensor | None:
    """The whole tensor from its shards; None if they contradict each other."""
    for s in reversed(nd_sbp):
        groups: dict[tuple[int, ...], list[torch.Tensor]] = {}
        for c in sorted(held):
            groups.setdefault(c[:-1], []).append(held[c])
        held = {}
        for c, parts in groups.items():
            joined = _join(parts, s)
            if joined is None:
                return None
            held[c] = joined
    return held[()]


def _join(parts: list[torch.Tensor], s: Sbp) -> torch.Tensor | None:
    if s.is_split:
        rest = {(*p.shape[: s.dim], *p.shape[s.dim + 1 :]) for p in parts if p.dim() > s.dim}
        return torch.cat(parts, s.dim) if len(rest) == 1 and all(p.dim() > s.dim for p in parts) else None
    if any(p.shape != parts[0].shape for p in parts):
        return None
    if s is broadcast:
        return parts[0] if all(close(p, parts[0]) for p in parts) else None
    if parts[0].dtype == torch.bool:
        return None
    stacked = torch.stack(parts)
    if s is partial_sum:
        return stacked.sum(0, dtype=stacked.dtype)
    return stacked.amax(0) if s is partial_max else stacked.amin(0)


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not (a.is_floating_point() or a.is_complex()):
        return torch.equal(a, b)
    return torch.allclose(
        a, b, rtol=1e-5 if a.dtype in (torch.float64, torch.complex128) else 1e-3, atol=1e-7, equal_nan=True
    )


def possible(rules: Sequence[Rule], placement: Placement) -> bool:
    """Whether these rules, one per axis, can be combined: some need sizes that divide."""
    return signature._fits(tuple(rules), placement)


def disagreements(op: Op, args: Args, rules: Sequence[Rule], placement: Placement) -> dict[str, str]:
    """Per output, how an op on shards differs from the whole; empty if the rules, one per axis, hold."""
    given = tensors(op, args)
    fresh = [t.clone() for t in given]
    whole = run_kernel(op, replaced(op, args, fresh))
    ins = [tuple(r.inputs[i] for r in rules) for i in range(len(given))]
    outs = [tuple(r.outputs[i] for r in rules) for i in range(len(whole))]
    specs = [_spec(t, placement, s) for t, s in zip(given, ins, strict=True)]
    results = [_spec(t, placement, s) for t, s in zip(whole, outs, strict=True)]
    chosen = Signature(placement, tuple(specs), tuple(results), any(r.ranked for r in rules))
    local_inputs = [shards(t, s, placement) for t, s in zip(given, ins, strict=True)]
    local_outputs: list[dict[tuple[int, ...], torch.Tensor]] = [{} for _ in whole]
    for c in placement.coordinates():
        rank = placement.at(c)
        local = part.local_arguments(op, args, chosen, rank)
        local = replaced(op, local, [held[c] for held in local_inputs])
        kernel = part.kernel_of(op, part.where_of(chosen, rank))
        for y, held in zip(run_kernel(op, local, kernel), local_outputs, strict=True):
            held[c] = y
    checks = [(op.returns[i], local_outputs[i], outs[i], whole[i]) for i in range(len(whole))]
    checks += [(f"written operand {i}", local_inputs[i], ins[i], fresh[i]) for i in written(op, args)]
    found = {}
    for spec, held, name in zip(results, local_outputs, op.returns, strict=True):
        for c, y in held.items():
            expected = spec.local_shape(placement.at(c))
            if tuple(y.shape) != expected:
                found[name] = f"the part at {c} has shape {list(y.shape)}; {sbps.show(spec.nd_sbp)} wants {expected}"
    for name, held, nd_sbp, truth in checks:
        if name in found:
            continue
        got = assemble(held, nd_sbp)
        if got is None:
            found[name] = f"the ranks' parts don't fit together as {sbps.show(nd_sbp)}"
        elif not close(got, truth):
            found[name] = f"shards give {_shown(got)}, the whole gives {_shown(truth)}"
    return found


def _spec(t: torch.Tensor, placement: Placement, nd_sbp: NdSbp) -> Spec:
    return Spec(tuple(t.shape), dtypes.of_torch(t.dtype), placement, nd_sbp)


def _shown(t: torch.Tensor) -> str:
    text = str(t.tolist())
    return f"{list(t.shape)} {text if len(text) < 160 else text[:157] + '...'}"


def undeclared(op: Op, args: Args) -> Iterator[str]:
    """Layouts that hold by brute force, over 2 and 3 ranks, but that no rule declares."""
    given = tensors(op, args)
    if not 0 < len(given) <= 3 or op.writes or op.dynamic or op.random or math.prod(t.dim() + 3 for t in given) > 300:
        return
    whole = run_kernel(op, args)
    if not all(y.is_floating_point() for y in whole):
        return  # too many agree by accident
    declared = {r.inputs for r in rules_of(op, args, whole)}
    for ins in itertools.product(*(_candidates(t, len(given) == 1) for t in given)):
        if ins in declared or all(s is broadcast for s in ins):
            continue
        found = [set(_fitting(op, args, ins, whole, n, i) for n in (2, 3)) for i in range(len(whole))]
        if all(len(f) == 1 and None not in f for f in found):
            outs = ", ".join(str(next(iter(f))) for f in found)
            yield f"{', '.join(map(str, ins))} -> {outs}"


def _candidates(t: torch.Tensor, alone: bool) -> list[Sbp]:
    partial = [] if t.dtype == torch.bool else [partial_sum, partial_max]
    return [broadcast, *partial[: 2 if alone else 1], *(split(d) for d in range(t.dim()) if t.shape[d] >= 3)]


def _fitting(op: Op, args: Args, ins: tuple[Sbp, ...], whole: Any, n: int, output: int) -> Sbp | None:
    placement = Placement("cpu", list(range(n)))
    for s in _candidates(whole[output], True):
        outs = tuple(s if i == output else broadcast for i in range(len(whole)))
        try:
            wrong = disagreements(op, args, [Rule(ins, outs)], placement)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
        if op.returns[output] not in wrong:
            return s
    return None
