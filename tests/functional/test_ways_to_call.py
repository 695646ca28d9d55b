"""Calls in the forms that programs also write: torch's values, its gradients, and the types of its results."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import weft as flow

X = torch.linspace(-2, 3, 24, dtype=torch.float64).reshape(2, 3, 4)
ROW, SQUARE = X[0, 0].clone(), (X[0, :, :3] + 3 * torch.eye(3, dtype=torch.float64)).clone()
EDGE = torch.eye(3, 4, dtype=torch.float64)
HOLE = torch.tensor([float("nan")], dtype=torch.float64)


def lower(t: Callable[[torch.Tensor], Any]) -> Any:
    """A complex triangle."""
    return t(SQUARE.tril()) * (1 + 0.5j)


CALLS: dict[str, Callable[[Any, Callable[[torch.Tensor], Any]], Any]] = {
    "powers of complex numbers": lambda m, t: m.linalg.vander(t(ROW) * (1 + 0.5j), N=3).abs(),
    "powers of zero": lambda m, t: m.linalg.vander(t(ROW) * 0),
    "covariance of weighted complex numbers": lambda m, t: m.cov(t(X[0]) * (1 + 0.5j), aweights=t(ROW).abs()).abs(),
    "waves of a complex window": lambda m, t: m.istft(
        m.complex(t(X[0, :, :3]), t(SQUARE)), 3, 1, window=m.complex(t(ROW[:3]), t(ROW[1:])), return_complex=True
    ).abs(),
    "no images, normalized": lambda m, t: m.nn.functional.local_response_norm(t(X[:0]), 2),
    "alpha dropout of rows, when it is over": lambda m, t: m.nn.functional.feature_alpha_dropout(t(ROW), 0.5, False),
    "cosine of short vectors": lambda m, t: m.nn.functional.cosine_embedding_loss(
        t(X[0]) * 1e-7, t(X[1]) * 1e-7, m.ones(3), reduction="none"
    ),
    "cosine of whole numbers": lambda m, t: m.nn.functional.cosine_embedding_loss(
        m.arange(6).view(2, 3), m.ones(2, 3).long(), m.ones(2)
    ),
    "complex equations by factors": lambda m, t: m.linalg.lu_solve(
        *m.linalg.lu_factor(t(SQUARE) * (1 + 0.5j)), t(X[0].mT) + 1j, left=False
    ).abs(),
    "complex equations by factors, adjoint": lambda m, t: m.linalg.lu_solve(
        *m.linalg.lu_factor(t(SQUARE) * (1 + 0.5j)), t(X[0].mT) + 1j, left=False, adjoint=True
    ).abs(),
    "as another format": lambda m, t: t(X).float(memory_format=m.contiguous_format).double(),
    "norm of all, nuclear": lambda m, t: m.norm(t(SQUARE), "nuc"),
    "norm over two dimensions": lambda m, t: t(X).norm("fro", (1, 2)),
    "cosine of what broadcasts": lambda m, t: m.nn.functional.cosine_similarity(t(X[:1]), t(X[:, :1] + 1), -2),
    "symmetric by the upper triangle": lambda m, t: m.linalg.eigvalsh(t(SQUARE), UPLO="U"),
    "Cholesky, upper": lambda m, t: m.linalg.cholesky(t(SQUARE @ SQUARE.T), upper=True),
    "Cholesky, upper, as a method": lambda m, t: (
        m.linalg.cholesky(t(SQUARE @ SQUARE.T), upper=True) if m is torch else t(SQUARE @ SQUARE.T).cholesky(True)
    ),  # torch 2.15 has no such method
    "rank by two limits": lambda m, t: m.linalg.matrix_rank(t(SQUARE), atol=3.0, rtol=0.1),
    "renorm by the largest": lambda m, t: m.renorm(t(X), float("inf"), 1, 0.5),
    "hinge of other targets": lambda m, t: m.nn.functional.hinge_embedding_loss(t(ROW), t(ROW.round())),
    "no difference": lambda m, t: m.diff(t(X), 0, 1, prepend=t(X)),
    "covariance of one variable": lambda m, t: m.cov(t(X[0, :1])),
    "correlation of one variable": lambda m, t: m.corrcoef(t(X[0, :1])),
    "variance, short": lambda m, t: t(X).var(False),
    "deviation, short": lambda m, t: t(X).std(False),
    "variance and mean, short": lambda m, t: m.var_mean(t(X), False)[0],
    "at least another tensor": lambda m, t: m.clamp_min(t(X), t(ROW)),
    "at most another tensor": lambda m, t: t(X).clamp_max(t(ROW)),
    "shapes of numbers": lambda m, t: m.zeros(m.broadcast_shapes((5, 1), 5), dtype=m.float64),
    "from tensor to tensor": lambda m, t: m.linspace(t(ROW[0]), t(ROW[3]), 3, dtype=m.float64),
    "filled with a tensor": lambda m, t: t(X).masked_fill(t(X) > 0, t(ROW[1])),
    "filled with a tensor in place": lambda m, t: (t(X) * 1).masked_fill_(t(X) > 0, t(ROW[1])),
    "scattered where more is": lambda m, t: m.masked_scatter(t(ROW), t(X) > 0, t(X)),
    "softmin in another dtype": lambda m, t: m.nn.functional.softmin(t(X), 1, dtype=m.float32),
    **{
        f"{name} of {len(shape)} dimensions, none named": lambda m, t, name=name, shape=shape: getattr(
            m.nn.functional, name
        )(t(X).reshape(shape))
        for name in ("softmax", "log_softmax", "softmin")
        for shape in ((-1,), (-1, 4), X.shape, (*X.shape, 1), (1, *X.shape, 1))
    },
    "split by a tensor": lambda m, t: m.tensor_split(t(X), m.tensor([1, 3]), 2)[1],
    "integral along another dimension": lambda m, t: m.trapezoid(t(X), t(X + X), dim=1),
    "solved by complex triangles": lambda m, t: m.cholesky_solve(t(SQUARE).cdouble(), lower(t).detach()).abs(),
    **{
        f"solved by a triangle{', of the upper half' * up}{', turned' * turned}{', of ones' * ones}": (
            lambda m, t, flags=(up, turned, ones): m.triangular_solve(t(X[0]), t(SQUARE), *flags).solution
        )
        for up in (False, True)
        for turned in (False, True)
        for ones in (False, True)
    },
    "scales first, added": lambda m, t: t(X).clone().add_(2, t(X)),
    "scales first, subtracted": lambda m, t: m.sub(t(X), 0.5, t(X)),
    "scales first, quotients": lambda m, t: t(X).addcdiv(-0.5, t(X), t(X) ** 2 + 1),
    "scales first, matrices": lambda m, t: m.addmm(2, t(SQUARE), 3, t(SQUARE), t(SQUARE)),
    "scales first, matrices, one": lambda m, t: t(SQUARE).addmm(0.5, t(SQUARE), t(SQUARE)),
    "undone, complex": lambda m, t: m.linalg.pinv(lower(t)).abs(),
    "covariance of complex numbers": lambda m, t: m.cov(lower(t)).abs(),
    "covariance, weighed": lambda m, t: m.cov(m.tensor([1, 2, 4]), aweights=t(ROW[:3].abs())),
    "a power of complex numbers": lambda m, t: m.float_power(lower(t) + 1, 2).abs(),
    "a sum of whole numbers": lambda m, t: m.nansum(m.tensor([1, 2])),
    "between complex numbers": lambda m, t: m.lerp(lower(t), t(SQUARE) * 1j, lower(t) + 1).abs(),
    "sums of complex exponents": lambda m, t: m.logaddexp(lower(t), t(SQUARE) * 1j).abs(),
    "a wide matrix made orthogonal": lambda m, t: m.linalg.qr(t(X + EDGE))[1].abs(),
    "a tall matrix made orthogonal": lambda m, t: m.linalg.qr(t(X[0].T + EDGE.T))[1].abs(),
    "undone, complex and of low rank": lambda m, t: m.linalg.pinv(lower(t) @ (t(EDGE) * (1 + 1j))).abs(),
    "a number filled": lambda m, t: t(ROW[1]).index_fill(0, m.tensor([0]), 5.0),
    "a number copied": lambda m, t: t(ROW[1]).index_copy(0, m.tensor([0]), t(ROW[2])),
    "complex of what broadcasts": lambda m, t: m.complex(t(X), t(ROW[1])).abs(),
    "nothing of what is no number": lambda m, t: m.addmm(t(HOLE), t(SQUARE), t(SQUARE), beta=0),
    "integers clamped by a fraction and a tensor": lambda m, t: m.arange(4).clamp(0.5, m.tensor(2)),
    "tensors of one element as numbers": lambda m, t: m.tensor([[m.ones(1)], [m.ones(1, 1)]]),
    "undone by the largest": lambda m, t: m.linalg.pinv(t(SQUARE), 0.5),
    "rank of a symmetric matrix's lower triangle": lambda m, t: m.linalg.matrix_rank(t(SQUARE), hermitian=True),
    "rank of nothing": lambda m, t: m.linalg.matrix_rank(t(X[:, :0]).long(), 0.5),
    "one vector for several matrices": lambda m, t: m.linalg.solve_ex(t(SQUARE).expand(4, 3, 3), t(ROW[:3]))[0],
    "one vector for several matrices, checked": lambda m, t: m.linalg.solve(t(SQUARE).expand(4, 3, 3), t(ROW[:3])),
    "rolled as if flat": lambda m, t: t(X).roll(2, None),
    "a complex constant": lambda m, t: m.full([2], 1j).abs(),
    "the integral of bytes": lambda m, t: m.trapezoid(m.tensor([[200, 100, 9], [1, 2, 255]], dtype=m.uint8), dx=2),
    "the integral over nothing": lambda m, t: m.trapezoid(t(X[:, :0]), dim=1),
    "repeats alone": lambda m, t: m.repeat_interleave(m.tensor([2, 0, 1], dtype=m.int32)),
    "repeats in a number": lambda m, t: t(ROW).repeat_interleave(m.tensor(3)),
    "filled with a number of another dtype": lambda m, t: t(X).index_fill(1, m.tensor([0, 2]), m.tensor(3)),
    "filled with a real complex number": lambda m, t: t(X).masked_fill(t(X) > 0, m.tensor(2 + 0j)),
    "quantile of bytes": lambda m, t: m.special.ndtri(m.tensor([0, 1], dtype=m.uint8)),
    "halves and an odd zero point": lambda m, t: m.fake_quantize_per_tensor_affine(t(X).float(), 0.5, 1, -8, 7),
    "halves and an odd zero point for each": lambda m, t: m.fake_quantize_per_channel_affine(
        (t(X) * 4).round().float() / 4, m.full((3,), 0.5), m.ones(3, dtype=m.int32), 1, -8, 7
    ),
    "a zero point between numbers for each": lambda m, t: m.fake_quantize_per_channel_affine(
        t(X).float(), m.full((3,), 0.3), m.tensor([0.4, 1.0, -0.6]), 1, -8, 7
    ),
    "attention without heads": lambda m, t: m.nn.functional.scaled_dot_product_attention(t(X), t(X + 1), t(X)),
    "attention without heads or batch": lambda m, t: m.nn.functional.scaled_dot_product_attention(
        t(X[0]), t(X[0] + 1), t(X[0]), is_causal=True
    ),
    "attention whose queries broadcast": lambda m, t: m.nn.functional.scaled_dot_product_attention(
        t(X[0]), t(X + 1), t(X), attn_mask=t(torch.linspace(0, 1, 9, dtype=torch.float64).reshape(3, 3))
    ),
    "full matrices' singular values": lambda m, t: m.linalg.svd(t(X), full_matrices=True)[1],
    "what full matrices make again": lambda m, t: (lambda u, s, v: (u * s[:, None]) @ v[:, :3])(
        *m.linalg.svd(t(X), full_matrices=True)
    ),
}


def found(m: Any, name: str) -> list[torch.Tensor]:
    """The value and the gradients of what goes in."""
    leaves: list[Any] = []

    def leaf(x: torch.Tensor) -> Any:
        made = flow.tensor(x) if m is flow else x.clone()
        leaves.append(made.requires_grad_())
        return made * 1

    y = CALLS[name](m, leaf)
    if y.requires_grad:
        (y * y).sum().backward()
    grads = [torch.zeros(x.shape, dtype=torch.float64) if x.grad is None else x.grad for x in leaves]
    return [t.detach().to_torch() if isinstance(t, flow.Tensor) else t.detach() for t in (y, *grads)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_forms_of_calls(name: str) -> None:
    for mine, theirs in zip(found(flow, name), found(torch, name), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_full_matrices_are_orthogonal() -> None:
    for shape in ((4, 2), (2, 4), (3, 3), (2, 4, 3)):
        x = flow.randn(*shape, dtype=flow.float64)
        u, s, vh = flow.linalg.svd(x, full_matrices=True)
        v = flow.svd(x, some=False)[2]
        for q in (u, vh, v):
            assert q.shape[-1] == q.shape[-2]
            flow.testing.assert_close(q @ q.mT, flow.eye(q.shape[-1], dtype=flow.float64).expand(q.shape))
        k = s.shape[-1]
        flow.testing.assert_close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], x)


# ---- named results -----------------------------------------------------------------------------------

FURTHER: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("max", "min", "topk", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin"), (1,)),
    **dict.fromkeys(("linalg_lstsq", "linalg_solve_ex", "triangular_solve"), (torch.eye(3),)),
    "histogram": (4,),
    "lu_unpack": (torch.tensor([1, 2, 3], dtype=torch.int32),),
}


def returned(root: Any, name: str, x: Any) -> Any:
    place = root.linalg if name.startswith("linalg_") else root
    return getattr(place, name.removeprefix("linalg_"))(x, *FURTHER.get(name, ()))


def present() -> list[str]:
    """The names of torch's types whose functions are here."""
    public = [n for n in torch.return_types.__all__ if not n.endswith("_out") and n[0] != "_"]
    return [
        n for n in public
        if hasattr(flow.linalg if n.startswith("linalg_") else flow, n.removeprefix("linalg_"))
        and n not in ("pytree_register_structseq", "all_return_types")
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:torch.qr is deprecated")
@pytest.mark.parametrize("name", present())
def test_results_are_torchs_types_and_print_as_torchs(name: str) -> None:
    x = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
    ours, theirs = returned(flow, name, flow.from_torch(x)), returned(torch, name, x)
    assert type(ours) is type(theirs) is getattr(torch.return_types, name)
    assert repr(ours)[: repr(ours).index("=")] == repr(theirs)[: repr(theirs).index("=")]
    if not name.startswith("linalg_") and hasattr(flow.Tensor, name):
        method = getattr(flow.from_torch(x), name)(*FURTHER.get(name, ()))
        assert type(method) is type(theirs)


def test_results_go_through_copies_trees_graphs_and_transforms() -> None:
    class Largest(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            return x.max(1), x.topk(2)

    x = flow.tensor([[1.0, 3.0, 2.0], [6.0, 5.0, 4.0]])
    largest = x.max(1)
    values, indices = largest
    assert values is largest.values is largest[0] and indices is largest.indices
    assert repr(largest) == repr(x.to_torch().max(1))
    for y in (
        copy.deepcopy(largest),
        pickle.loads(pickle.dumps(largest)),
        pytree.tree_map(lambda t: t.clone(), largest),
        Largest()(x)[0],
        flow.vmap(lambda row: row.max(0))(x),
        flow.nn.utils.stateless.functional_call(flow.from_torch(Rows()), {}, (x,)),
    ):
        assert type(y) is torch.return_types.max
        assert y.values.tolist() == [3.0, 6.0] and y.indices.tolist() == [1, 0]


class Rows(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        y = x.max(1)
        assert isinstance(y, torch.return_types.max) and torch.is_tensor(y.values)
        return y


def test_results_with_out_are_named_as_torchs() -> None:
    x = flow.tensor([[1.0, 3.0]])
    out = flow.empty(1), flow.empty(1, dtype=flow.int64)
    made = flow.max(x, 1, out=out)
    assert type(made) is torch.return_types.max_out and made.values is out[0]
