"""Random programs on global tensors of every layout, size and dtype: values and gradients are torch's on the whole.

A program is made on torch, which drops the steps that it refuses; then every rank runs what is left.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import weft as flow
from weft.launch import spawn_threads

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
PLACES: list[Any] = [[0], [0, 1], [2, 0], [0, 1, 2], [[0, 1], [2, 3]], [[0], [1]], [[0, 1, 2, 3]], [1, 3]]
RANKS = 4
DTYPES = ["float32"] * 5 + ["float64", "int64", "int32", "bool", "float16", "bfloat16", "complex64"]
SHORT = ("float16", "bfloat16")

ONE: list[Callable[[Any, Any], Any]] = [
    lambda m, a: m.relu(a), lambda m, a: m.exp(a * 0.1), lambda m, a: -a, lambda m, a: a * a, lambda m, a: a.abs(),
    lambda m, a: a.sum(), lambda m, a: a.sum(-1, keepdim=True), lambda m, a: a.mean(0), lambda m, a: a.amax(),
    lambda m, a: a.max(0)[0], lambda m, a: (a * 0.5).prod(0), lambda m, a: a.var(0), lambda m, a: a.std(-1),
    lambda m, a: a.logsumexp(-1), lambda m, a: a.norm(), lambda m, a: a.any(), lambda m, a: (a != 0).all(0),
    lambda m, a: a.transpose(0, -1), lambda m, a: a.flatten(), lambda m, a: a.reshape(-1, 1), lambda m, a: a[None],
    lambda m, a: a.unsqueeze(-1), lambda m, a: a.squeeze(), lambda m, a: a.squeeze(0),
    lambda m, a: a[1:], lambda m, a: a[..., :2],
    lambda m, a: a[::2], lambda m, a: a[0], lambda m, a: a[..., -1], lambda m, a: a[[0, -1]], lambda m, a: a[:0],
    lambda m, a: a.cumsum(0), lambda m, a: m.softmax(a, -1), lambda m, a: a.sort(-1)[0], lambda m, a: a.topk(1, -1)[0],
    lambda m, a: a.flip(0), lambda m, a: a.roll(1, 0), lambda m, a: a.tril(), lambda m, a: a.diagonal(),
    lambda m, a: m.cat([a, a * 2], 0), lambda m, a: m.stack([a, a]), lambda m, a: a.chunk(2, 0)[-1],
    lambda m, a: a.expand(3, *a.shape), lambda m, a: a.clamp(-0.5, 0.5), lambda m, a: a >= 0, lambda m, a: a.double(),
    lambda m, a: a.long(), lambda m, a: a.bool(), lambda m, a: a.masked_fill(a > 0, 0.5), lambda m, a: a.nonzero(),
    lambda m, a: a[a > 0], lambda m, a: m.unique(a), lambda m, a: a.clone(), lambda m, a: a.argmax(0),
    lambda m, a: m.nn.functional.layer_norm(a, a.shape[-1:]), lambda m, a: m.nn.functional.pad(a, (1, 2)),
    lambda m, a: m.outer(a.flatten()[:3], a.flatten()[:2]), lambda m, a: a.transpose(0, -1).clone().contiguous(),
]  # fmt: skip
TWO: list[Callable[[Any, Any, Any], Any]] = [
    lambda m, a, b: a + b, lambda m, a, b: a - 2 * b, lambda m, a, b: a * b, lambda m, a, b: a / (b.abs() + 1),
    lambda m, a, b: a @ b, lambda m, a, b: a @ b.transpose(-1, -2), lambda m, a, b: m.maximum(a, b),
    lambda m, a, b: m.where(a > b, a, b), lambda m, a, b: m.cat([a, b], 0), lambda m, a, b: m.cat([a, b], -1),
    lambda m, a, b: a > b, lambda m, a, b: a == b, lambda m, a, b: a + b.sum(0), lambda m, a, b: m.stack([a, b], 1),
    lambda m, a, b: a * b.mean(-1, keepdim=True), lambda m, a, b: a.gather(0, (b.abs() * 0).long()),
    lambda m, a, b: a.index_select(0, (b.flatten()[:2] * 0).long()), lambda m, a, b: a[(b.flatten()[:3] * 0).long()],
    lambda m, a, b: m.einsum("ij,kj->ik", a, b), lambda m, a, b: m.nn.functional.linear(a, b),
    lambda m, a, b: a.scatter_add(0, (b * 0).long(), b), lambda m, a, b: m.nn.functional.mse_loss(a, b),
]  # fmt: skip
WRITES: list[Callable[[Any, Any, Any], Any]] = [
    lambda m, a, b: a.mul_(2), lambda m, a, b: a.add_(b), lambda m, a, b: a.zero_(), lambda m, a, b: a.clamp_(-1, 1),
    lambda m, a, b: a.__setitem__(0, 1), lambda m, a, b: a.__setitem__((..., slice(0, 1)), 2),
    lambda m, a, b: a.__setitem__(a > 0, 0), lambda m, a, b: a.transpose(0, -1).mul_(3), lambda m, a, b: a[1:].add_(1),
    lambda m, a, b: m.relu_(a), lambda m, a, b: a.copy_(b), lambda m, a, b: a.__setitem__(slice(0, 1), b[:1]),
]  # fmt: skip


class Input(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    layout: int
    learns: bool


Step = tuple[str, int, int, int]  # what, of which values, a choice
KINDS = ["one", "one", "one", "two", "two", "write", "box", "move"]


class Program(NamedTuple):
    inputs: list[Input]
    steps: list[Step]
    ranks: Any


def written(seed: int) -> Program:
    """A program by its number."""
    r = random.Random(seed)

    def shape() -> tuple[int, ...]:
        return tuple(r.choice([0, 1, 2, 3, 3, 4, 5, 7]) for _ in range(r.randint(0, 3)))

    def one(shape: tuple[int, ...], dtype: str) -> Input:
        return Input(shape, dtype, r.randrange(1000), r.random() < 0.5)

    if r.random() < 0.7:  # inputs that go together
        same = shape(), r.choice(DTYPES)
        inputs = [one(*same) for _ in range(r.randint(2, 3))]
    else:
        inputs = [one(shape(), r.choice(DTYPES)) for _ in range(r.randint(1, 3))]
    steps = [(r.choice(KINDS), r.randrange(1000), r.randrange(1000), r.randrange(1000)) for _ in range(r.randint(1, 7))]
    return Program(inputs, steps, r.choice(PLACES))


def layout(choice: int, ndim: int, dtype: str, axes: int) -> list[Any]:
    found = []
    for _ in range(axes):
        options = [B, *map(S, range(ndim)), *([] if dtype == "bool" else [P])]
        found.append(options[choice % len(options)])
        choice = choice // len(options) + 1
    return found


def data(given: Input, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=given.shape) * 1.5
    if given.dtype == "complex64":
        x = x + 1j * rng.normal(size=given.shape)
    return torch.tensor(np.round(x * 2) if given.dtype.startswith("int") else x).to(getattr(torch, given.dtype))


def started(m: Any, inputs: list[Input], place: Any) -> tuple[list[Any], list[Any]]:
    leaves, values = [], []
    for seed, one in enumerate(inputs):
        x: Any = data(one, seed)
        if m is flow:
            sbp = layout(one.layout, x.ndim, one.dtype, place.ndim)
            x = flow.tensor(x, placement=place, sbp=sbp)
        if one.learns and one.dtype in ("float32", "float64"):
            leaves.append(x.requires_grad_())
        values.append(x * 1 if x.requires_grad else x)
    return leaves, values


def stepped(m: Any, values: list[Any], step: Step, place: Any) -> list[Any]:
    what, i, j, choice = step
    a, b = values[i % len(values)], values[j % len(values)]
    if what == "one":
        return [*values, ONE[choice % len(ONE)](m, a)]
    if what == "two":
        return [*values, TWO[choice % len(TWO)](m, a, b)]
    if what == "write":
        WRITES[choice % len(WRITES)](m, a, b)
        return values
    if m is torch:
        return [*values, a.clone()]
    kind = str(a.dtype).rpartition(".")[2]
    if what == "move":
        there = flow.placement("cpu", ranks=PLACES[j % len(PLACES)])
        a = a.to_global(placement=there, sbp=layout(choice, a.ndim, kind, there.ndim))
    return [*values, a.to_global(placement=place, sbp=layout(choice, a.ndim, kind, place.ndim)).clone()]


def finished(leaves: list[Any], values: list[Any]) -> list[Any]:
    """The last values, and the gradients of their sum."""
    outs = values[-4:]
    sums = [v.double().sum() for v in outs if v.requires_grad]
    if sums:
        sum(sums[1:], sums[0]).backward()
    found = [*outs, *(x.grad for x in leaves)]
    return [
        None if v is None else (v.detach().float() if "bfloat16" in str(v.dtype) else v.detach()).numpy() for v in found
    ]


def in_torch(inputs: list[Input], steps: list[Step]) -> tuple[list[Step], list[Any]]:
    """The steps that torch can do, one after the other and backward again, and what comes out."""
    taken: list[Step] = []
    for step in steps:
        try:
            again(inputs, [*taken, step])
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
        taken.append(step)
    return taken, again(inputs, taken)


def again(inputs: list[Input], steps: list[Step]) -> list[Any]:
    leaves, values = started(torch, inputs, None)
    for step in steps:
        values = stepped(torch, values, step, None)
    return finished(leaves, values)


def on_a_rank(programs: list[tuple[list[Input], list[Step], Any]]) -> list[list[Any]]:
    results = []
    for inputs, steps, ranks in programs:
        place = flow.placement("cpu", ranks=ranks)
        leaves, values = started(flow, inputs, place)
        for step in steps:
            values = stepped(flow, values, step, place)
        results.append(finished(leaves, values))
    return results


@pytest.mark.filterwarnings("ignore")  # of operands made whole, of variances of one element
@pytest.mark.parametrize("seed", range(0, 320, 8))
def test_programs_on_any_layout_are_those_on_the_whole(seed: int) -> None:
    programs, expected = [], []
    for inputs, steps, ranks in map(written, range(seed, seed + 8)):
        taken, values = in_torch(inputs, steps)
        programs.append((inputs, taken, ranks))
        expected.append(values)
    found = spawn_threads(RANKS, on_a_rank, programs, deadline=60)
    for (inputs, _, ranks), wanted, got in zip(programs, expected, zip(*found, strict=True), strict=True):
        near = 5e-2 if any(one.dtype in SHORT for one in inputs) else 1e-4
        for rank in np.unique(ranks):
            for a, b in zip(got[rank], wanted, strict=True):
                assert (a is None) == (b is None)
                if b is not None:
                    assert a.shape == b.shape and a.dtype == b.dtype
                    np.testing.assert_allclose(a, b, rtol=near, atol=near)
