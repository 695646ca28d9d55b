"""Names beyond the daily ones, against torch: values, and gradients where torch has them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import weft as flow

_g = torch.Generator().manual_seed(3)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=_g)


A, B, C, V = rand(3, 4), rand(4, 5), rand(2, 3, 4), rand(5)
SQUARE = rand(4, 4) + 4 * torch.eye(4, dtype=torch.float64)
IDS = torch.tensor([3, 0, 3, 1])

# (name, arguments, options): called alike in both libraries
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("einsum", ("ij,jk->ik", A, B), {}), ("einsum", ("ij,jk", A, B), {}),
    ("einsum", (A, [0, 1], B, [1, 2], [0, 2]), {}), ("einsum", (A, [0, 1], B, [1, 2]), {}),
    ("einsum", (C, [..., 3], A.T, [3, 9], [9, ...]), {}), ("einsum", ("ii->", SQUARE), {}),
    ("einsum", ("ii->i", SQUARE), {}), ("einsum", ("...ij->...", C), {}), ("einsum", ("bij,jk", C, B), {}),
    ("einsum", ("...i,i...->...i", A, rand(4, 1)), {}), ("einsum", ("i,j->ij", V, V), {}),
    ("einsum", ("bij,kj->bik", C, rand(1, 4)), {}), ("einsum", ("ij,kl->i", A, B), {}),
    ("tensordot", (C, B, 1), {}), ("tensordot", (C, rand(4, 3, 2), ([1, 2], [1, 0])), {}), ("outer", (V, V), {}),
    ("median", (V,), {}), ("median", (A, 1), {}), ("median", (A,), {"dim": 0, "keepdim": True}),
    ("nansum", (torch.tensor([[1.0, math.nan], [2.0, 3.0]]), 1), {}), ("quantile", (V, 0.3), {}),
    ("quantile", (C, torch.tensor([0.1, 0.5], dtype=torch.float64), 1), {}),
    ("quantile", (C, 0.7), {"dim": 0, "keepdim": True}), ("quantile", (A, 0.4, 1), {"interpolation": "nearest"}),
    ("quantile", (A, 0.4), {"interpolation": "lower"}), ("quantile", (A, 0.4), {"interpolation": "higher"}),
    ("quantile", (A, 0.4), {"interpolation": "midpoint"}), ("quantile", (A, 0.4), {"keepdim": True}),
    ("unique", (IDS,), {}), ("unique", (IDS,), {"return_inverse": True, "return_counts": True}),
    ("bincount", (IDS,), {}), ("bincount", (IDS, rand(4), 6), {}),
    ("searchsorted", (torch.arange(5.0), torch.tensor([[0.5, 2.0]])), {"right": True}),
    ("hann_window", (5,), {}), ("hann_window", (6, False), {}),
    ("repeat_interleave", (A, 2), {}), ("repeat_interleave", (A, 3, 1), {}),
    ("repeat_interleave", (A, torch.tensor([2, 0, 1]), 0), {}),
    ("meshgrid", (V, rand(3), rand(2)), {"indexing": "ij"}), ("meshgrid", (V, rand(3), rand(2)), {"indexing": "xy"}),
    ("hsplit", (A, 2), {}), ("vsplit", (A, (1, 2)), {}), ("dsplit", (C, 2), {}), ("hsplit", (V, (2,)), {}),
    ("diag", (V,), {}), ("diag", (V, -1), {}), ("diag", (A, 1), {}), ("as_strided", (V, (2, 2), (2, 1)), {}),
    ("as_strided", (V, (2, 2), (1, 1), 1), {}),
    ("add", (A, A), {"alpha": 2}), ("add", (A, 2), {"alpha": 0.5}), ("sub", (A, A), {"alpha": 3}), ("add", (A, A), {}),
    ("div", (A, 0.3), {"rounding_mode": "trunc"}), ("div", (A, 0.3), {"rounding_mode": "floor"}),
    ("div", (torch.tensor([7, -7, 6]), 2), {"rounding_mode": "trunc"}), ("div", (A, A), {}),
    ("baddbmm", (rand(2, 3, 5), C, rand(2, 4, 5)), {"beta": 2, "alpha": 3}),
    ("addmv", (rand(3), A, rand(4)), {}), ("inverse", (SQUARE,), {}), ("det", (SQUARE,), {}),
    ("cross", (rand(2, 3), rand(2, 3), 1), {}), ("cross", (rand(3, 2), rand(3, 2), 0), {}),
    ("lgamma", (A.abs(),), {}), ("erfinv", (A.tanh(),), {}), ("logaddexp", (A, rand(4)), {}),
    ("digamma", (A.abs(),), {}),
    ("linalg.inv", (SQUARE,), {}), ("linalg.slogdet", (SQUARE,), {}), ("linalg.solve", (SQUARE, rand(4)), {}),
    ("linalg.solve", (SQUARE, rand(4, 2)), {}), ("linalg.cross", (rand(2, 3), rand(1, 3)), {}),
    ("linalg.diagonal", (C,), {"offset": 1}), ("linalg.svdvals", (A,), {}), ("linalg.matrix_norm", (C,), {}),
    ("linalg.vector_norm", (C, 3, 1), {}), ("linalg.cholesky", (SQUARE @ SQUARE.T,), {}),
    ("linalg.matmul", (A, B), {}),
]  # fmt: skip


def called(library: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    f = library
    for part in name.split("."):
        f = getattr(f, part)
    return f(*args, **options)


def listed(y: Any) -> list[Any]:
    return list(y) if isinstance(y, (tuple, list)) else [y]


def mapped(args: Any, f: Any) -> Any:
    return tuple(f(a) if isinstance(a, torch.Tensor) else a for a in args)


def agree(theirs: Any, ours: Any, args: tuple[Any, ...]) -> None:
    """The same values, and the same gradients of all floating arguments."""
    leaves = mapped(args, lambda a: a.clone().requires_grad_() if a.is_floating_point() else a)
    mine = mapped(args, lambda a: flow.tensor(a, requires_grad=a.is_floating_point()))
    expected, got = theirs(*leaves), ours(*mine)
    if type(expected).__module__ == torch.return_types.__name__:  # such as .values and .indices
        assert type(got) is type(expected)
    expected, got = listed(expected), listed(got)
    assert len(got) == len(expected)
    total: Any = None
    mirrored: Any = None
    for g, e in zip(got, expected, strict=True):
        assert g.dtype.torch == e.dtype
        torch.testing.assert_close(g.to_torch(), e.detach(), equal_nan=True)
        if e.requires_grad and g.requires_grad:
            weight = torch.linspace(0.5, 1.5, e.numel(), dtype=e.dtype).reshape(e.shape)
            part, mirror = (e * weight).sum(), (g * flow.tensor(weight)).sum()
            total, mirrored = (part, mirror) if total is None else (total + part, mirrored + mirror)
    if total is None:
        return
    try:
        total.backward()
    except RuntimeError as refused:  # an older torch that has no derivative of it
        assert "derivative for" in str(refused)
        return
    mirrored.backward()
    for leaf, x in zip(leaves, mine, strict=True):
        if isinstance(leaf, torch.Tensor) and leaf.grad is not None:
            torch.testing.assert_close(x.grad.to_torch(), leaf.grad, equal_nan=True)


@pytest.mark.parametrize(("name", "args", "options"), CALLS, ids=lambda v: v if isinstance(v, str) else "")
def test_functions_do_what_torchs_do(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    agree(lambda *a: called(torch, name, a, options), lambda *a: called(flow, name, a, options), args)


def test_decompositions_multiply_back() -> None:
    x: Any = flow.tensor(A)
    u: Any
    u, s, vh = flow.linalg.svd(x, full_matrices=False)
    torch.testing.assert_close(((u * s) @ vh).to_torch(), A)
    u, s, v = flow.svd(x)
    torch.testing.assert_close(((u * s) @ v.T).to_torch(), A)
    q, r = flow.linalg.qr(x.T)
    torch.testing.assert_close((q @ r).to_torch(), A.T)
    symmetric = flow.tensor(SQUARE + SQUARE.T)
    values, vectors = flow.linalg.eigh(symmetric)
    torch.testing.assert_close((vectors * values @ vectors.T).to_torch(), symmetric.to_torch())


def test_places_listed_in_the_last_dimension() -> None:
    agree(lambda x: x[[0, 2], [1, 3]], lambda x: flow.gather_nd(x, flow.tensor([[0, 1], [2, 3]])), (A,))
    index = torch.tensor([[1, 1], [1, 1], [0, 2]])
    zeros = torch.zeros(2, 3, dtype=torch.float64)
    agree(
        lambda u: zeros.index_put((index[:, 0], index[:, 1]), u, accumulate=True),
        lambda u: flow.scatter_nd(flow.tensor(index), u, [2, 3]),
        (rand(3),),
    )
    agree(
        lambda x, u: x.index_put((torch.tensor([2, 0]),), u),
        lambda x, u: flow.tensor_scatter_nd_update(x, flow.tensor([[2], [0]]), u),
        (A, rand(2, 4)),
    )
    agree(
        lambda x: x.gather(1, torch.tensor([[2, 0], [1, 1]])[..., None].expand(2, 2, 4)),
        lambda x: flow.batch_gather(x, flow.tensor([[2, 0], [1, 1]])),
        (C,),
    )
    agree(
        lambda x: torch.zeros(4, 4, dtype=torch.float64).index_add(0, torch.tensor([3, 0, 3]), x),
        lambda x: flow._C.unsorted_segment_sum(x, flow.tensor([3, 0, 3]), 0, 4),
        (A,),
    )


def test_slices_told_by_lists() -> None:
    agree(lambda x: x[1:3:2, :2], lambda x: flow.slice(x, [[1, 3, 2], [None, 2, None]]), (A,))
    x = flow.zeros(2, 4)
    assert flow.slice_update(x, flow.ones(2, 2), [[None, None, None], [0, 4, 2]]) is x
    assert x.tolist() == [[1.0, 0.0, 1.0, 0.0]] * 2
    with pytest.raises(flow.errors.ShapeError, match="2 slices"):
        flow.slice(flow.ones(2), [[0, 1, 1], [0, 1, 1]])


def test_oneflows_own_names() -> None:
    assert flow.broadcast_like(flow.ones(3), flow.zeros(2, 3)).shape == (2, 3)
    assert flow.broadcast_like(flow.ones(3), flow.zeros(3, 2), broadcast_axes=[1]).shape == (3, 2)
    scores = flow.tensor([[0.1, 0.9, 0.5], [0.2, 0.8, 0.9]])
    assert flow.in_top_k(flow.tensor([2, 0]), scores, 2).tolist() == [True, False]
    assert flow.unique(flow.tensor([2, 1]), return_inverse=True, dtype=flow.int32)[1].dtype is flow.int32


def test_windows_along_a_dimension_are_views() -> None:
    agree(lambda x: x.unfold(1, 2, 1), lambda x: x.unfold(1, 2, 1), (A,))
    x = flow.zeros(4)
    x.unfold(0, 2, 2)[1] = 5.0
    assert x.tolist() == [0.0, 0.0, 5.0, 5.0]


def windows(lib: Any, x: Any) -> Any:
    """Windows of four rows, half of which overlap, as Longformer cuts them."""
    x = x.transpose(0, 1).view(3, 2, 4, 2)
    (a, b, c, d), step = x.shape, x.stride()
    return lib.as_strided(x, (a, 2 * b - 1, c, d), (step[0], step[1] // 2, *step[2:])).square()


@pytest.mark.parametrize("ours", [windows, lambda lib, x: lib.as_strided(x.t(), (2, 3), (1, 5), 2)])
def test_memory_of_a_transposed_tensor_in_strides(ours: Any) -> None:
    x = rand(8, 3, 2) if ours is windows else rand(5, 4)
    theirs = x.clone().requires_grad_()
    mine = flow.from_torch(x.clone()).requires_grad_()
    expected, found = ours(torch, theirs), ours(flow, mine)
    assert torch.equal(expected, found.to_torch())
    expected.sum().backward()
    found.sum().backward()
    assert theirs.grad is not None and mine.grad is not None and torch.equal(theirs.grad, mine.grad.to_torch())


def test_windows_of_a_transposed_tensor_in_a_graph() -> None:
    class Windows(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            return windows(flow, x)

    x = rand(8, 3, 2)
    assert torch.equal(Windows()(flow.from_torch(x)).to_torch(), windows(torch, x))
    with pytest.raises(flow.errors.ShapeError, match="gaps"):
        flow.as_strided(flow.from_torch(x)[:, :, 1], (2, 2), (1, 1))


@pytest.mark.parametrize("repeated", [lambda x: x.repeat(2, 1, 1), lambda x: x.tile(2, 1, 1),
                                      lambda x: x.repeat_interleave(2, 0)])  # fmt: skip
def test_repeated_tensors_are_contiguous(repeated: Any) -> None:
    turned = C.permute(1, 2, 0)
    expected, found = repeated(turned), repeated(flow.from_torch(turned))
    assert torch.equal(expected, found.to_torch()) and found.stride() == expected.stride()


def test_in_place_with_a_factor() -> None:
    for name, args, options in [
        ("add_", (A,), {"alpha": 2}), ("sub_", (2,), {"alpha": 3}), ("addcmul_", (A, A), {"value": 2}),
        ("addcdiv_", (A, A), {}), ("clamp_min_", (0.0,), {}), ("erfinv_", (), {}), ("arctan_", (), {}),
    ]:  # fmt: skip
        x, expected = flow.tensor(A.tanh()), A.tanh()
        getattr(expected, name)(*args, **options) if hasattr(expected, name) else None
        assert getattr(x, name)(*mapped(args, flow.tensor), **options) is x
        torch.testing.assert_close(x.to_torch(), expected)


def test_bad_equations_say_what_is_wrong() -> None:
    a = flow.ones(2, 3)
    for equation, operands, text in [
        ("ij,jk", (a,), "2 terms, but 1"), ("ijk", (a,), "doesn't fit"), ("ij->k", (a,), "only axes of the operands"),
        ("ij,jk->ik", (a, a), "axis j has size 2, which does not broadcast with previously seen size 3"),
    ]:  # fmt: skip
        with pytest.raises(flow.errors.WeftError, match=text):
            flow.einsum(equation, *operands)
    for args, text in [((a, [0, 1], a), "numbers of their axes"), ((a, [0, 52]), "from 0 to 51")]:
        with pytest.raises(flow.errors.ArgumentError, match=text):
            flow.einsum(*args)
