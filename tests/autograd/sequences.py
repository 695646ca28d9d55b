"""Made-up programs of views, writes in place, indexing and gradients on shared memory, run here and in torch.

python -m tests.autograd.sequences [programs] [seed]
"""

from __future__ import annotations

import math
import random
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

import weft as flow

SHAPES = [(), (3,), (2, 3), (3, 3), (2, 2, 3), (1, 3), (0, 3)]
VIEWS = """
    {x}[0] | {x}[1:] | {x}[..., 0] | {x}[::2] | {x}[None] | {x}.transpose(0, -1) | {x}.view(-1) | {x}.reshape(-1) |
    {x}.unsqueeze(0) | {x}.squeeze() | {x}.narrow(0, 0, 1) | {x}.select(-1, 0) | {x}.diagonal() |
    {x}.expand(2, *{x}.shape) | {x}.view_as({x}) | {x}.unbind(0)[0] | {x}.split(1)[0] |
    {x}.chunk(2, -1)[0] | {x}.permute(tuple(range({x}.dim()))[::-1]) | {x}.movedim(0, -1) | {x}.swapaxes(0, -1) |
    {x}.ravel() | {x}.contiguous() | {x}.to(lib.float32) | {x}.float() | {x}.squeeze(0) | 
    {x}.real | {x}.unflatten(0, (1, -1))
"""
WRITES = """
    {x}.add_(1) | {x}.mul_(2) | {x}.mul_({y}) | {x}.add_({y}, alpha=2) | {x}.sub_({y}) | {x}.copy_({y}) |
    {x}.fill_(3) | {x}.zero_() | {x}.relu_() | {x}.sigmoid_() | {x}.exp_() | {x}.neg_() | {x}.clamp_(-1, 1) |
    {x}.sqrt_() | {x}.tanh_() | {x}.div_(2) | {x}.masked_fill_({x} > 0, 0.5) | {x}.__setitem__(0, 2.0) |
    {x}.__setitem__(slice(1, None), {y}) | {x}.__setitem__((Ellipsis, 0), {y}) | {x}.__setitem__({x} > 0, 0.0) |
    {x}.__setitem__(lib.tensor([0, 0]), {y}) | {x}.index_fill_(0, lib.tensor([0]), 5.0) |
    {x}.index_add_(0, lib.tensor([0]), {y}) | 
    {x}.scatter_(0, lib.zeros({x}.shape, dtype=lib.int64), 1.0) | {x}.t_() | {x}.unsqueeze_(0) | {x}.squeeze_() |
    {x}.transpose_(0, -1) | {x}.addcmul_({x}, {y}) | {x}.lerp_({y}, 0.5) |
    {x}.__iadd__({y}) | {x}.__imul__({x}) | {x}.tril_() | {x}.fill_diagonal_(0.0) | {x}.cumsum_(0) | {x}.abs_() |
    {x}.floor_() | {x}.round_() | {x}.put_(lib.tensor([0]), lib.ones(1)) | {x}.swapaxes_(0, -1) |
    {x}.copy_({x}.flip(0)) | lib.mul({x}, {y}, out={x}) |
    setattr({x}, "requires_grad", False) | lib.nn.functional.relu({x}, inplace=True) |
    {x}.zero_().add_({y}) | {x}.random_(1, 2) | {x}.bernoulli_(1.0) | {x}.clamp_min_({y}) |
    {x}.where({x} > 0, {y}).add_(1) | {x}.index_put_((lib.tensor([0]),), {y}, accumulate=True) |
    {x}.__setitem__(0, {x}[-1]) | {x}.__setitem__(slice(None), {x} * 2) | {x}.erf_() | {x}.sin_() | {x}.logit_(0.1)
"""
MAKES = """
    {x} + {y} | {x} * {y} | {x}.sum() | {x}.sum(0) | {x}.clone() | {x}.exp() | {x}.relu() | {x} @ {y} | {x} * 2 |
    {x}.mean(-1) | lib.cat([{x}, {x}]) | lib.stack([{x}, {y}]) | {x}.masked_fill({x} > 0, 0.0) | {x}.sort(0)[0] |
    {x}[lib.tensor([0])] | {x}.gather(0, lib.zeros({x}.shape, dtype=lib.int64)) | {x}.softmax(-1) |
    lib.where({x} > 0, {x}, {y}) | {x}.abs() | {x}.max(0)[0] | {x}.norm() | {x}.index_select(0, lib.tensor([0])) |
    {x}.tanh() | {x}.cumsum(0) | {x}.flip(0) | {x}.roll(1) | {x}.pow(2) | {x}.tril() |
    lib.einsum("...i,...i->...", {x}, {x}) | {x}.prod() | {x}.std(unbiased=False)
"""
GRADS = """
    {x}.sum().backward(retain_graph=True) |
    lib.autograd.grad({x}.sum(), {y}, allow_unused=True, retain_graph=True)[0] | {x}.grad | {x}.grad.zero_() |
    setattr({x}, "grad", None) | {x}.grad.add_(1) | {x}.backward(lib.ones_like({x}), retain_graph=True) |
    lib.autograd.grad(({x} * {x}).sum(), {x}, create_graph=True)[0]
"""


# what torch refuses and Weft answers, and the other way round
KNOWN = (
    "is a view and|returns multiple|no_grad mode|torch Runtime.*out=",  # results of unbind, split; out= with gradients
    "refer to a single memory",  # operands that overlap
    r"torch Runtime\w+: one of the variables needed.*; here None",  # torch saves what Weft doesn't
    "torch None; here .*gradient of `(pow|variance)`",  # and the other way round
    "torch None; here .*(single memory|in place on a view made by|out has shape)",
    r"__setitem__\((0, (\w+)\[-1\]|slice\(1).*view of a leaf",  # nothing is written
)


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", "").split("|")]


KINDS = [(_words(VIEWS), 5), (_words(WRITES), 6), (_words(MAKES), 2), (_words(GRADS), 1)]


def program(seed: int) -> list[str]:
    """Statements: each makes or changes one of the tensors t0, t1, ..."""
    draw = random.Random(seed)
    names, lines = [], []
    for i in range(draw.choice((1, 2, 2))):
        shape = draw.choice(SHAPES[:5] if draw.random() < 0.9 else SHAPES)
        lines.append(f"t{i} = start({shape}, {i}, {draw.random() < 0.6})")
        names.append(f"t{i}")
        if draw.random() < 0.5 and lines[-1].endswith("True)"):
            names.append(f"u{i}")
            lines.append(f"u{i} = t{i} * 1")
    for i in range(draw.randint(3, 8)):
        kind = draw.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
        x = draw.choice(names[-3:])
        text = draw.choice(kind).format(x=x, y=draw.choice(names))
        if text.startswith("setattr") or "__setitem__" in text:
            lines.append(text)
        else:
            lines.append(f"v{i} = {text}")
            names.append(f"v{i}")
    return lines


def start(lib: Any) -> Callable[..., Any]:
    def make(shape: tuple[int, ...], salt: int, grad: bool) -> Any:
        n = 1
        for s in shape:
            n *= s
        data = [((k * 7 + salt * 3) % 11 - 4) / 4 for k in range(n)]
        return lib.tensor(data).reshape(shape).requires_grad_(grad)

    return make


def run_line(lib: Any, line: str, space: dict[str, Any]) -> str | None:
    """Run a statement; the class of its error, if it fails."""
    before = dict(space)
    try:
        exec(line, {"lib": lib, "start": start(lib)}, space)
    except Exception as error:
        space.clear()
        space.update(before)
        return f"{type(error).__name__}: {str(error).splitlines()[0][:110] if str(error) else ''}"
    return None


def facts(lib: Any, t: Any) -> dict[str, Any]:
    if not isinstance(t, lib.Tensor):
        return {"value": repr(t)}
    grad = t.grad if t.is_leaf or t.retains_grad else None
    return {
        "shape": tuple(t.shape), "stride": tuple(t.stride()), "offset": t.storage_offset(),
        "dtype": str(t.dtype).rpartition(".")[2], "requires_grad": t.requires_grad, "leaf": t.is_leaf,
        "grad": None if grad is None else grad.detach().flatten().tolist(), "retains": t.retains_grad,
        "value": t.detach().flatten().tolist(), "recorded": t.grad_fn is None,
    }  # fmt: skip


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4) or (math.isnan(a) and math.isnan(b))
    return a == b


def difference(where: str, theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    for name in theirs:
        try:
            a = facts(torch, theirs[name])
        except RuntimeError:  # a view that torch no longer takes
            return None
        b = facts(flow, ours[name])
        differ = [k for k in a if not same(a[k], b.get(k))]
        if differ:
            return f"{where}: {name} " + "; ".join(f"{k}: torch {a[k]}; here {b.get(k)}" for k in differ)
    return None


def differences(lines: list[str]) -> str | None:
    """The first difference between the two libraries, None if there is none that counts."""
    spaces: list[dict[str, Any]] = [{}, {}]
    for line in [*lines, "backward"]:
        errors = []
        for lib, space in zip((torch, flow), spaces, strict=True):
            if line == "backward":
                wanting = [n for n, t in space.items() if isinstance(t, lib.Tensor) and t.requires_grad]
                text = "+".join(f"{n}.sum()" for n in wanting)
                errors.append(run_line(lib, f"({text}).backward()" if text else "None", space))
            else:
                errors.append(run_line(lib, line, space))
        if any(re.search(words, f"{line}: torch {errors[0]}; here {errors[1]}") for words in KNOWN):
            return None
        if (errors[0] is None) != (errors[1] is None):
            return f"{line}: torch {errors[0]}; here {errors[1]}"
        if errors[0] is None and (found := difference(line, *spaces)) is not None:
            return found
    return None


def shrunk(lines: list[str]) -> list[str]:
    """A shorter program that differs, too."""
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(lines))):
            fewer = lines[:i] + lines[i + 1 :]
            if fewer and (found := differences(fewer)) is not None and "NameError" not in found:
                lines, changed = fewer, True
                break
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    count, seed = (int(w) for w in (*sys.argv[1:], "1000", "0")[:2])
    seen: dict[str, int] = {}
    for i in range(seed, seed + count):
        lines = program(i)
        found = differences(lines)
        if found is None:
            continue
        short = shrunk(lines)
        found = differences(short) or found
        key = found.partition(": ")[2][:0] + " / ".join(short)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 1:
            print(f"--- {i}\n  " + "\n  ".join(short) + f"\n  => {found[:400]}", flush=True)
    print(f"{count} programs, {sum(seen.values())} differ")


if __name__ == "__main__":
    main()
