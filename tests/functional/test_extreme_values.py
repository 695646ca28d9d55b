"""Values and gradients at the edges of what functions take, beside torch's: zeros, infinite orders, single numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow

SOME = [[3.0, 0.0, -4.0], [0.0, 0.0, 0.0]]  # one row has no direction

NORMS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("norm", lambda m, x: m.norm(x, dim=1)),
    ("norm of order 3", lambda m, x: m.linalg.vector_norm(x, 3.0, dim=1)),
    ("norm of order 1.5", lambda m, x: m.linalg.vector_norm(x, 1.5)),
    ("matrix norm", lambda m, x: m.linalg.norm(x * 0)),
    ("std", lambda m, x: x.std(1)),
    ("normalize", lambda m, x: m.nn.functional.normalize(x, dim=1, eps=0.5)),
    ("normalize by the largest", lambda m, x: m.nn.functional.normalize(x, float("inf"), 1, eps=0.5)),
    ("cosine", lambda m, x: m.nn.functional.cosine_similarity(x, x + 1)),
    ("distance", lambda m, x: m.nn.functional.pairwise_distance(x, x + 1, p=float("inf"))),
    ("distance to itself", lambda m, x: m.nn.functional.pairwise_distance(x, x * 2, eps=0.0)),
    ("distances", lambda m, x: m.cdist(x, x * 2)),
    ("norm of order -1", lambda m, x: m.linalg.vector_norm(x, -1.0, dim=1)),
    ("norm of order -0.5", lambda m, x: m.norm(x, -0.5)),
    ("spectral norm", lambda m, x: m.linalg.matrix_norm(x * 0, 2)),
    ("nuclear norm", lambda m, x: m.linalg.matrix_norm(x.mT * 0, "nuc")),
    ("singular values", lambda m, x: m.linalg.svdvals(x * 0)),
    ("eigenvalues", lambda m, x: m.linalg.eigvalsh(x[:, :2] * 0)),
]


@pytest.mark.parametrize("run", [run for _, run in NORMS], ids=[name for name, _ in NORMS])
def test_a_norm_of_zero_has_a_gradient_of_zero(run: Callable[[Any, Any], Any]) -> None:
    grads, values = [], []
    for m in (flow, torch):
        x = m.tensor(SOME, dtype=m.float64, requires_grad=True)
        y = run(m, x)
        y.sum().backward()
        values.append(y.detach().flatten().tolist())
        grads.append(x.grad.flatten().tolist())
    assert values[0] == pytest.approx(values[1])
    assert grads[0] == pytest.approx(grads[1])


HALVES: dict[str, Callable[[Any, Any], Any]] = {  # squares and products beyond 65504, in float16
    "norm": lambda m, x: m.linalg.vector_norm(x, dim=1), "norm of order 3": lambda m, x: m.norm(x, 3),
    "norm of order -3": lambda m, x: m.linalg.vector_norm(x, -3), "method": lambda m, x: x.norm(2, 0, True),
    "std": lambda m, x: x.std(1), "std_mean": lambda m, x: m.std_mean(x, 1)[0], "dist": lambda m, x: m.dist(x, -x),
    "normalize": lambda m, x: m.nn.functional.normalize(x), "renorm": lambda m, x: m.renorm(x, 2, 0, 5.0),
    "cosine": lambda m, x: m.nn.functional.cosine_similarity(x, x + 1),
    "distance": lambda m, x: m.nn.functional.pairwise_distance(x, -x),
    "addcmul": lambda m, x: m.addcmul(-x * 50, x, x, value=0.25),
    "addcmul_": lambda m, x: (x * -50).addcmul_(x, x, value=0.5),
    "addcdiv": lambda m, x: m.addcdiv(-x, x * 50, x * 1e-3, value=0.01),
    "addcdiv_": lambda m, x: (-x).addcdiv_(x * 50, x * 1e-3, value=0.01),
    "pool": lambda m, x: m.nn.functional.adaptive_avg_pool3d(x[None, None] * 100, 1),
}  # fmt: skip


@pytest.mark.parametrize("run", HALVES.values(), ids=HALVES)
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_16_bits_are_computed_in_32(run: Callable[[Any, Any], Any], kind: str) -> None:
    given = torch.tensor([[300.0, 301.0, 299.0], [-200.0, 310.0, 320.0]]).to(getattr(torch, kind))
    mine, theirs = flow.tensor(given).requires_grad_(), given.float().requires_grad_()  # torch's own gradients overflow
    y, expected = run(flow, mine), run(torch, theirs)
    y.sum().backward()
    expected.sum().backward()
    assert mine.grad is not None and theirs.grad is not None and y.dtype is mine.grad.dtype is mine.dtype
    ulps = 4 * torch.finfo(given.dtype).eps
    torch.testing.assert_close(y.detach().to_torch().float(), expected.detach(), rtol=ulps, atol=0)
    torch.testing.assert_close(mine.grad.to_torch().float(), theirs.grad, rtol=ulps, atol=0.02)


SINGULAR = [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[3.0, 1.0], [2.0, 5.0]]]


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_a_determinant_of_zero_has_a_gradient(kind: str) -> None:
    """Torch's with create_graph; without, it gives zeros, by which nothing would ever leave that point."""
    grads = []
    for m in (flow, torch):
        x = (m.tensor(SINGULAR) * (1.0 if kind == "float64" else 1 + 0.5j)).to(getattr(m, kind)).requires_grad_()
        (g,) = m.autograd.grad(m.linalg.det(x).real.sum(), x, create_graph=True)
        grads.append(g.detach())
    torch.testing.assert_close(grads[0].to_torch(), grads[1])


def test_norms_of_no_numbers_are_zero() -> None:
    for shape in ((0, 0), (5, 0), (0, 5), (2, 0, 3)):
        for order in (1, 2, float("inf"), "nuc", "fro"):
            try:
                expected = torch.linalg.matrix_norm(torch.ones(shape), order)
            except IndexError as error:
                with pytest.raises(IndexError, match=str(error)[:4]):
                    flow.linalg.matrix_norm(flow.ones(shape), order)
                continue
            torch.testing.assert_close(flow.linalg.matrix_norm(flow.ones(shape), order).to_torch(), expected)
        with pytest.raises(IndexError):
            flow.linalg.matrix_norm(flow.ones(shape), -2)


def test_tolerances_are_of_each_matrix() -> None:
    for m in (flow, torch):
        x = m.eye(3) * m.tensor([1.0, 2.0, 3.0])[:, None, None] + m.tensor([[0.0, 0.0, 9.0]])
        assert m.linalg.matrix_rank(x, atol=m.tensor([0.5, 2.5, 20.0])).tolist() == [3, 1, 0]
        assert m.linalg.matrix_rank(x, rtol=m.tensor([0.0, 0.1, 0.5])).tolist() == [3, 2, 1]
        tiny = m.diag(m.tensor([1.0, 1e-9]))
        assert [m.linalg.matrix_rank(tiny, **{k: 0.0}).item() for k in ("atol", "rtol", "tol")] == [1, 2, 2]
        assert m.linalg.matrix_rank(tiny, atol=m.tensor(0.0)).item() == 1
        assert m.linalg.pinv(m.ones(2, 0, 3), rtol=m.tensor(0.5)).shape == (2, 3, 0)
        assert m.linalg.lstsq(m.diag(m.tensor([1.0, 0.1])), m.ones(2, 1), rcond=0.5).rank.item() == 1


def test_the_second_derivative_of_a_norm_is_finite_too() -> None:
    x = flow.tensor([0.0, 2.0], dtype=flow.float64, requires_grad=True)
    y = flow.linalg.vector_norm(x.unsqueeze(1), dim=1).pow(2).sum()
    (first,) = flow.autograd.grad(y, x, create_graph=True)
    assert first is not None
    (second,) = flow.autograd.grad(first.sum(), x)
    assert second is not None
    assert first.tolist() == [0.0, 4.0] and second.tolist() == [0.0, 2.0]


def test_a_divergence_from_what_is_no_distribution_is_no_number() -> None:
    for target in ([0.5, 0.0, -0.5], [0.2, 0.3, 0.5]):
        ours, theirs = (
            m.nn.functional.kl_div(m.tensor([-1.0, -2.0, -3.0]), m.tensor(target), reduction="none").tolist()
            for m in (flow, torch)
        )
        assert ours == pytest.approx(theirs, nan_ok=True)


EMPTY: list[tuple[str, Callable[..., Any], list[tuple[int, ...]]]] = [
    ("index_select of a number", lambda m, x: x.index_select(0, m.tensor([0])), [()]),
    ("gather of a number", lambda m, x: x.gather(0, m.tensor(0)), [()]),
    ("a product of none", lambda m, x: x.prod(0), [(0, 3)]),
    ("no products", lambda m, x: x.prod(0), [(3, 0)]),
    ("the product of nothing", lambda m, x: x.prod(), [(0,)]),
    ("linear of no features, of a vector", lambda m, x, w: m.nn.functional.linear(x, w), [(0,), (0,)]),
    ("linear of no features", lambda m, x, w: m.nn.functional.linear(x, w), [(2, 0), (3, 0)]),
    ("linear of no rows", lambda m, x, w: m.nn.functional.linear(x, w), [(4, 0, 2), (3, 2)]),
]


@pytest.mark.parametrize(("run", "shapes"), [row[1:] for row in EMPTY], ids=[row[0] for row in EMPTY])
def test_of_nothing_and_of_a_number(run: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    """Eagerly with gradients, and in a graph."""
    found = []
    for m in (flow, torch):
        xs = [m.ones(s).requires_grad_() for s in shapes]
        y = run(m, *xs)
        y.sum().backward()
        found.append([(tuple(t.shape), t.tolist()) for t in (y, *(x.grad for x in xs))])
    assert found[0] == found[1]

    class Calling(flow.nn.Graph):
        def build(self, *xs: Any) -> Any:
            return run(flow, *xs)

    assert Calling()(*(flow.ones(s) for s in shapes)).tolist() == found[1][0][1]


@pytest.mark.parametrize("name", ["margin_ranking_loss", "hinge_embedding_loss", "cosine_embedding_loss",
                                  "multi_margin_loss", "multilabel_margin_loss"])  # fmt: skip
def test_a_loss_at_its_margin_has_torchs_gradient(name: str) -> None:
    x, same = torch.tensor([[0.5, 1.5, 0.5]]), torch.tensor([[0.5, 1.5, 0.5]])
    given = {
        "margin_ranking_loss": (x, same, torch.ones(1, 3)), "hinge_embedding_loss": (x * 2, torch.full((1, 3), -1.0)),
        "cosine_embedding_loss": (torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([-1])),
        "multi_margin_loss": (x, torch.tensor([1])),
        "multilabel_margin_loss": (x, torch.tensor([[1, -1, -1]])),
    }[name]  # fmt: skip
    answers = []
    for library, take in ((torch, torch.clone), (flow, flow.from_torch)):
        first, *rest = (take(v) if isinstance(v, torch.Tensor) else v for v in given)
        first.requires_grad_()
        getattr(library.nn.functional, name)(first, *rest).backward()
        answers.append(first.grad)
    torch.testing.assert_close(answers[1].to_torch(), answers[0])
