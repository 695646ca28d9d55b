"""Products that broadcast: their values, gradients and second gradients against torch's, whichever axes have size 1."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import weft as flow
from weft.functional.pointwise import clamping
from weft.ops.neural import activations
from weft.ops.pointwise import numbers
from weft.tensor.tensor import of_torch

EQUATIONS = [
    "ab,ab->b", "ab,ab->", "ab,ab->ab", "ab,bc->ac", "ab,bc", "ab,ba->", "a,b->ab", "abc,cb->a", "ab,b,a->",
    "ab,ab,b->a", "aab->b", "ab->ba", "aa,ab->b", "aab,ab->", "...a,ab->...b", "...a,...a->...", "ab...,b->a...",
    "ab,ab,ab->b", "aa,a->a",
]  # fmt: skip
LETTERS = {"a": 3, "b": 2, "c": 4}
MATRIX = [(2, 3), (1, 3), (2, 1), (3,), ()]
Shapes = list[tuple[int, ...]]


def sized(equation: str) -> Iterator[Shapes]:
    """The operands' shapes, with any of their axes of size 1; and with one empty."""
    terms = [t.replace("...", ".") for t in equation.partition("->")[0].split(",")]
    count = sum(c != "." for t in terms for c in t)
    for ones in itertools.product((False, True), repeat=count):
        one = iter(ones)
        yield [tuple(2 if c == "." else 1 if next(one) else LETTERS[c] for c in t) for t in terms]
    yield [tuple(0 if c == "a" else 2 if c == "." else LETTERS[c] for c in t) for t in terms]


def pairs(*shapes: Shapes) -> list[Shapes]:
    return [list(s) for s in itertools.product(*shapes)]


def found(m: Any, f: Callable[..., Any], data: list[torch.Tensor]) -> Any:
    """What f gives, the gradients of its operands, and those of all of these with respect to operands and dy; or its
    refusal."""
    grad = torch.autograd.grad if m is torch else flow.autograd.grad
    xs = [(x.clone() if m is torch else of_torch(x.clone())).requires_grad_() for x in data]
    try:
        y = f(m, *xs)
    except (RuntimeError, IndexError):
        return None
    numbers = torch.linspace(-1.0, 2.0, y.numel() or 1, dtype=torch.float64)[: y.numel()].reshape(tuple(y.shape))
    dy = (numbers if m is torch else of_torch(numbers)).requires_grad_()
    first = grad(y, xs, dy, create_graph=True)
    kept = [g for g in first if g.requires_grad]
    second = grad(kept, [*xs, dy], [m.ones_like(g) for g in kept], allow_unused=True) if kept else []
    return [y, *first, *second]


def check(f: Callable[..., Any], shapes: Shapes) -> None:
    torch.manual_seed(0)
    data = [torch.rand(s, dtype=torch.float64) + 0.5 for s in shapes]
    theirs, ours = found(torch, f, data), found(flow, f, data)
    assert (theirs is None) == (ours is None), f"of shapes {shapes}: one refuses, {theirs} and {ours}"
    for a, b in zip(theirs or [], ours or [], strict=True):
        if a is None or b is None:
            assert a is b or not (b if a is None else a).any(), f"of shapes {shapes}: one has no gradient"
        else:
            torch.testing.assert_close(b.detach().to_torch(), a.detach(), msg=lambda m: f"of shapes {shapes}: {m}")


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    for shapes in itertools.islice(sized(equation), 0, None, 1 if len(equation) < 11 else 3):
        check(lambda m, *xs: m.einsum(equation, *xs), shapes)


@pytest.mark.parametrize("dims", [0, 1, 2, ([0], [1]), ([1], [0]), ([0, 1], [1, 0]), ([0, 1], [0, 1])])
def test_tensordot(dims: Any) -> None:
    sizes = list(itertools.product((1, 3), repeat=2))
    for shapes in pairs(sizes, sizes):
        check(lambda m, a, b: m.tensordot(a, b, dims=dims), shapes)


PRODUCTS: dict[str, list[Shapes]] = {
    "matmul": pairs(
        [(3,), (2, 3), (1, 3), (1, 2, 3), (5, 1, 2, 3)], [(3,), (3, 1), (4, 3, 2), (1, 3, 2), (5, 4, 3, 2)]
    ),
    "inner": pairs([(3,), (2, 3), (1, 3), (), (4, 2, 3)], [(3,), (2, 3), (1, 3), ()]),
    "kron": pairs([(3,), (2, 3), (1, 3), (), (2, 1, 3)], [(3,), (2, 2), (1, 1), ()]),
    "outer": pairs([(3,), (1,)], [(2,), (1,)]),
    "baddbmm": [[i, (2, 3, 4), (2, 4, 5)] for i in [(2, 3, 5), (1, 3, 5), (3, 5), (5,), (1,), (2, 1, 1), ()]],
    "addbmm": [[i, (2, 3, 4), (2, 4, 5)] for i in [(3, 5), (1, 5), (5,), (1,), ()]],
    "addmm": [[i, (3, 4), (4, 5)] for i in [(3, 5), (1, 5), (3, 1), (5,), (1,), ()]],
    "addmv": [[i, (3, 4), (4,)] for i in [(3,), (1,), ()]],
    "addr": [[i, (3,), (4,)] for i in [(3, 4), (1, 4), (4,), (3, 1), ()]],
    "addcmul": pairs(MATRIX, MATRIX, [(2, 3), (1,)]),
    "addcdiv": pairs(MATRIX, MATRIX, [(2, 3), (1,)]),
    "lerp": pairs(MATRIX[:3], MATRIX[:3], MATRIX),
    "pow": pairs(MATRIX, MATRIX),
    "atan2": pairs(MATRIX, MATRIX),
    "logaddexp": pairs(MATRIX, MATRIX),
    "maximum": pairs(MATRIX, [(2, 3)]),
    "remainder": pairs(MATRIX, MATRIX),
    "cross": [[(2, 3), (2, 3)], [(2, 3), (1, 3)], [(1, 3), (4, 3)]],
    "dist": pairs(MATRIX, [(2, 3)]),
    "cosine_similarity": [[(2, 3), (1, 3)], [(4, 1, 3), (2, 3)]],
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    for shapes in PRODUCTS[name]:
        check(lambda m, *xs: getattr(m, name)(*xs), shapes)


def test_rows_and_columns_that_are_none() -> None:
    for a, b in [((2, 0), (3, 0)), ((0, 3), (2, 3)), ((0,), (0,)), ((2, 3), (0, 3))]:
        check(lambda m, *xs: m.inner(*xs), [a, b])
    for columns in (0, 3):
        x, y = torch.ones(2, columns), torch.zeros(3 - columns, columns)
        far = flow.cdist(of_torch(x), of_torch(y), p=float("inf")).to_torch()
        torch.testing.assert_close(far, torch.cdist(x, y, p=float("inf")))


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances_of_rows_that_share_a_coordinate(p: float) -> None:
    data = torch.tensor([[0.5, 1.0, 2.0], [0.5, -1.0, 2.5]], dtype=torch.float64)
    theirs, ours = data.clone().requires_grad_(), of_torch(data.clone()).requires_grad_()
    torch.cdist(theirs, data[:1] + torch.tensor([0.0, 1.0, 1.5]), p=p).sum().backward()
    flow.cdist(ours, of_torch(data[:1] + torch.tensor([0.0, 1.0, 1.5])), p=p).sum().backward()
    torch.testing.assert_close(ours.grad.to_torch(), theirs.grad)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["fmax", "fmin", "maximum", "minimum"])
def test_ties_and_what_is_no_number(name: str) -> None:
    data = [torch.tensor([1.0, 2.0, 3.0, torch.nan, 4.0]), torch.tensor([1.0, 3.0, 2.0, 1.0, torch.nan])]
    data = data if name.startswith("f") else [x[:3] for x in data]
    theirs, ours = [x.clone().requires_grad_() for x in data], [of_torch(x.clone()).requires_grad_() for x in data]
    getattr(torch, name)(*theirs).sum().backward()
    getattr(flow, name)(*ours).sum().backward()
    for a, b in zip(theirs, ours, strict=True):
        torch.testing.assert_close(b.grad.to_torch(), a.grad)  # type: ignore[union-attr]


def test_ties_are_those_of_the_installed_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch 2.15 gives nothing on a number that bounds, and a half each to equal tensors."""
    for home in (activations, numbers, clamping):
        monkeypatch.setattr(home, "part_of_first", lambda name, number=False: 0.0 if number else 0.5)
    a, b = (flow.tensor([1.0, 2.0, 3.0], requires_grad=True), flow.tensor([1.0, 3.0, 2.0], requires_grad=True))
    for y, da, db in (
        (flow.fmax(a, b), [0.5, 0.0, 1.0], [0.5, 1.0, 0.0]),
        (flow.fmin(a, b), [0.5, 1.0, 0.0], [0.5, 0.0, 1.0]),
        (flow.clamp(a, b), [0.5, 0.0, 1.0], [0.5, 1.0, 0.0]),
        (flow.clamp(a, max=b), [0.5, 1.0, 0.0], [0.5, 0.0, 1.0]),
    ):
        found = flow.autograd.grad(y.sum(), (a, b), create_graph=True)  # by the composition, not by torch's kernel
        assert [g.tolist() for g in found] == [da, db]
    assert flow.autograd.grad(flow.clamp(a, 1, 3).sum(), a)[0].tolist() == [0.0, 1.0, 0.0]
    one = flow.tensor([1.0, float("nan")], requires_grad=True)
    (d,) = flow.autograd.grad(flow.fmax(one, flow.tensor([1.0, 2.0])).sum() * float("inf"), one)
    assert d.tolist() == [float("inf"), 0.0]


@pytest.mark.parametrize("rows", [(2,), (1,), (4, 2), ()])
def test_layers(rows: tuple[int, ...]) -> None:
    for bias in ([], [(5,)]):
        check(lambda m, *xs: m.nn.functional.linear(*xs), [(*rows, 3), (5, 3), *bias])
        check(lambda m, *xs: m.nn.functional.bilinear(*xs), [(*rows, 3), (*rows, 2), (5, 3, 2), *bias])
