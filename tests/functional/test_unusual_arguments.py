"""Forms of calls that are rare, with their gradients: positions named twice, numbers for rows, borders below zero."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError, WeftError
from weft.launch import spawn_threads
from weft.tensor.tensor import of_torch

DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(4, 6)).astype(np.float32)
SQUARE = DRAW.normal(size=(4, 4)).astype(np.float32)
IMAGE = DRAW.normal(size=(1, 2, 4, 4)).astype(np.float32)
NUMBER = np.array(-0.7, np.float32)
SLOPE = np.array([0.25], np.float32)

CALLS: dict[str, tuple[Any, ...]] = {
    "filled twice": (lambda f, x, i, v: f.index_fill(x, 1, i, v), ROWS, np.array([0, 2, 2, 5]), NUMBER),
    "filled along the first": (lambda f, x, i, v: x.index_fill(0, i, v), ROWS, np.array([1, 1]), NUMBER),
    "triangles of wide": (lambda f, x: f.linalg.lu(x)[1:], ROWS),
    "triangles of tall": (lambda f, x: f.linalg.lu(x)[1:], ROWS.T.copy()),
    "triangles of many": (lambda f, x: f.linalg.lu_factor(x)[0], np.stack([ROWS, ROWS[::-1]])),
    "undone, of one size": (lambda f, x: f.linalg.pinv(x), np.eye(3, dtype=np.float32) * 2),
    "undone, of lesser rank": (lambda f, x: f.linalg.pinv(x), np.array([[1, 2], [2, 4], [0, 0]], np.float32)),
    "undone, a triangle": (lambda f, x: f.linalg.pinv(x, hermitian=True), SQUARE),
    "undone, nothing": (lambda f, x: f.linalg.pinv(x), np.zeros((0, 0), np.float32)),
    "circular, cut at the left": (lambda f, x: f.nn.functional.pad(x, (-1, 1, -2, 1), mode="circular"), IMAGE),
    "circular, cut at the right": (lambda f, x: f.nn.functional.pad(x, (2, -1), mode="circular"), IMAGE[0]),
    "circular, cut at both": (lambda f, x: f.nn.functional.pad(x, (-1, -1, 1, 0), mode="circular"), IMAGE),
    "along, from the last": (
        lambda f, x, i: f.take_along_dim(x, i, 1),
        ROWS,
        np.array([[-1, 0], [2, -6], [1, 1], [5, -2]]),
    ),
    "products with zeros": (
        lambda f, x, i, v: x.scatter_reduce(1, i, v, "prod"),
        np.array([[1, 0, 3], [2, 4, 0]], np.float32),
        np.array([[0, 0, 1, 2], [0, 2, 2, 1]]),
        np.array([[0, 2, 5, 0], [0, 3, 0, 2]], np.float32),
    ),
    "products along, with zeros": (
        lambda f, x, i, v: x.index_reduce(0, i, v, "prod"),
        np.array([1, 2, 0], np.float32),
        np.array([0, 0, 1, 1]),
        np.array([1, 2, 0, 4], np.float32),
    ),
    "the middle, three times": (lambda f, x: f.median(x), np.array([1, 2, 2, 2, 3], np.float32)),
    "the middle, beside NaN": (lambda f, x: f.nanmedian(x), np.array([1, 2, np.nan, 2, 3], np.float32)),
    "towards zero, by zero": (
        lambda f, x, y: f.div(x, y, rounding_mode="trunc"),
        np.array([1, 0, -3, 5], np.float32),
        np.array([0, 0, 2, 2], np.float32),
    ),
    "ranks at the margin": (
        lambda f, x, y: f.nn.functional.margin_ranking_loss(x, y, f.sign(x)),
        np.array([1, -2, 3], np.float32),
        np.array([1, -2, 1], np.float32),
    ),
    "distances at the margin": (
        lambda f, x, y: f.nn.functional.hinge_embedding_loss(x, y),
        np.array([1, 1, 0], np.float32),
        np.array([1, -1, -1]),
    ),
    "the sum of no probability": (lambda f, x: f.logsumexp(x, 1), np.array([[-np.inf] * 2, [np.inf, 1]], np.float32)),
    "prelu of a number": (lambda f, x, w: f.nn.functional.prelu(x, w), NUMBER, SLOPE),
    "prelu by a number": (lambda f, x, w: f.nn.functional.prelu(x, w), ROWS, SLOPE[0]),
    "quantile of a number": (lambda f, x: f.quantile(x, 0.5, dim=0), NUMBER),
    "quantiles of a number": (lambda f, x: f.quantile(x, f.tensor([0.2, 0.5]), dim=-1, keepdim=True), NUMBER),
    "distances of equal rows": (lambda f, x: f.nn.functional.pdist(x), ROWS[[0, 1, 0]]),
    "logcumsumexp of a number": (lambda f, x: f.logcumsumexp(x, 0), NUMBER),
    "powers of a number": (lambda f, x: f.linalg.vander(x, N=3), NUMBER),
    "largest of bags, padded from the last": (
        lambda f, w, i, o: f.nn.functional.embedding_bag(i, w, o, mode="max", padding_idx=-1),
        SQUARE,
        np.array([0, 3, 1, 3, 3, 2]),
        np.array([0, 3]),
    ),
    "sums of bags, padded from the last": (
        lambda f, w, i, o: f.nn.functional.embedding_bag(i, w, o, mode="sum", padding_idx=-1),
        SQUARE,
        np.array([0, 3, 1, 3, 3, 2]),
        np.array([0, 3]),
    ),
}


def results(lib: Any, call: Callable[..., Any], data: list[np.ndarray]) -> list[np.ndarray]:
    given = [lib.tensor(d, requires_grad=d.dtype == np.float32) for d in data]
    found = call(lib, *given)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    loss: Any = sum((y * y + y * 2).sum() for y in found)
    loss.backward()
    return [t.detach().numpy() for t in (*found, *(t.grad for t in given if t.requires_grad))]


@pytest.mark.parametrize(("call", "data"), [(c, d) for c, *d in CALLS.values()], ids=CALLS.keys())
def test_values_and_gradients_are_those_of_torch(call: Callable[..., Any], data: list[np.ndarray]) -> None:
    for got, expected in zip(results(flow, call, data), results(torch, call, data), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_pairs_that_differ_are_counted() -> None:
    found, expected = (f.nn.functional.pdist(f.tensor(ROWS), 0.0).tolist() for f in (flow, torch))
    assert found == expected


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles_where_some_elements_are_nan(name: str, interpolation: str) -> None:
    x = torch.from_numpy(ROWS.copy())
    x[0], x[2, 1] = math.nan, math.nan
    for q, dim, keepdim in itertools.product((0.3, [0.0, 0.5, 1.0]), (None, 0, -1), (False, True)):
        found, expected = (
            getattr(f, name)(t, q if isinstance(q, float) else f.tensor(q), dim, keepdim, interpolation=interpolation)
            for f, t in ((flow, of_torch(x)), (torch, x))
        )
        torch.testing.assert_close(found.to_torch(), expected, equal_nan=True)


def test_the_rank_of_a_complex64_matrix_is_found_with_its_own_precision() -> None:
    rows = torch.from_numpy(DRAW.normal(size=(40, 3)).astype(np.complex64))
    x = rows @ rows.mH * (1 + 0.5j)  # of rank 3, with singular values above 1e-15 beside them
    assert torch.linalg.matrix_rank(x) == flow.linalg.matrix_rank(of_torch(x)).item() == 3
    torch.testing.assert_close(flow.linalg.pinv(of_torch(x)).to_torch(), torch.linalg.pinv(x), rtol=1e-2, atol=1e-3)


NUMBERS = (1, True, False, 2, 0, 0.5)
KINDS = ("bool", "uint8", "int64", "float16", "float32")


@pytest.mark.parametrize("kinds", itertools.product(KINDS, KINDS, KINDS), ids="-".join)
def test_addr_keeps_the_dtype_of_its_operands(kinds: tuple[str, ...]) -> None:
    for beta, alpha in itertools.product(NUMBERS, NUMBERS):
        x, v, w = (torch.ones(s).to(getattr(torch, k)) for s, k in zip(((2, 2), (2,), (2,)), kinds, strict=True))
        try:
            want = torch.addr(x, v, w, beta=beta, alpha=alpha)
        except RuntimeError as refused:
            if "Boolean" not in str(refused):  # a truth is a number here
                with pytest.raises(WeftError):
                    flow.addr(*map(of_torch, (x, v, w)), beta=beta, alpha=alpha)
            continue
        made = flow.addr(*map(of_torch, (x, v, w)), beta=beta, alpha=alpha).to_torch()
        assert made.dtype is want.dtype and torch.equal(made, want), (beta, alpha)


def test_sums_of_products_of_small_integers_keep_their_dtype() -> None:
    a, b = torch.ones(2, 2, dtype=torch.uint8), torch.ones(3, 2, 2, dtype=torch.uint8)
    made = flow.addbmm(*map(of_torch, (a, b, b))).to_torch()
    assert made.dtype is torch.uint8 and torch.equal(made, torch.addbmm(a, b, b))


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "int64"])
def test_many_in_a_bin_are_all_counted(kind: str) -> None:
    x = (flow.arange(9000) % 3).to(getattr(flow, kind))
    counts = flow.histc(x, 3)
    assert counts.dtype is x.dtype and (counts.float() - 3000).abs().max().item() <= 8  # bfloat16's steps are 16 there


def test_a_value_that_is_a_tensor_fills_like_a_number() -> None:
    two = flow.tensor(2.0)
    for made in (
        flow.full((2,), two), flow.full([], two, flow.float64), flow.full_like(flow.ones(3), two), flow.arange(two),
        flow.ones(2).new_full((2,), two), flow.linspace(0, two, 3),
    ):  # fmt: skip
        assert type(made.to_torch()) is torch.Tensor and type(made.blob.data) is torch.Tensor


DTYPES: list[Callable[[Any], Any]] = [
    lambda f: f.special.xlog1py(f.ones(2, dtype=f.float16), 0),
    lambda f: f.ldexp(f.ones(2, dtype=f.float16), f.tensor([1, 2])),
    lambda f: f.ldexp(f.ones((), dtype=f.float64), f.tensor([1, 2])),
    lambda f: f.isclose(f.tensor([True]), f.tensor([False])),
    lambda f: f.vander(f.tensor([7, 9], dtype=f.uint8), 4),
    lambda f: f.block_diag(f.ones(2, 0, dtype=f.float16), f.tensor(2.0), f.tensor([[3]])),
]


@pytest.mark.parametrize("call", DTYPES)
def test_dtypes_beside_torch(call: Callable[[Any], Any]) -> None:
    ours, theirs = call(flow).to_torch(), call(torch)
    assert ours.dtype is theirs.dtype and torch.equal(ours, theirs)


NOTHING: list[Callable[[Any], Any]] = [
    lambda f: f.block_diag(),
    lambda f: f.unique_consecutive(f.ones(2, 0), return_inverse=True, return_counts=True),
    lambda f: f.unique_consecutive(f.ones(0, 2), return_inverse=True, return_counts=True, dim=0),
    lambda f: f.ones(2, 0).nanmedian(),
    lambda f: f.ones(0).half().median(),
    lambda f: f.histc(f.ones(0)),
    lambda f: f.ones(0).histogram(3),
    lambda f: f.fft.fftfreq(3, 0.0),
    lambda f: f.fft.rfftfreq(0, 0.5),
    lambda f: f.combinations(f.ones(3), 0),
    lambda f: f.cumulative_trapezoid(f.ones(2, 0)),
    lambda f: f.vander(f.ones(0)),
    lambda f: f.vander(f.ones(2), 0),
]


@pytest.mark.parametrize("call", NOTHING)
def test_of_nothing_there_is_what_torch_makes(call: Callable[[Any], Any]) -> None:
    ours, theirs = ([*y] if isinstance(y, tuple) else [y] for y in (call(flow), call(torch)))
    for y, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(y.to_torch(), expected, equal_nan=True)


def test_several_numbers_are_one_sequence() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4) % 5
    y = of_torch(x)
    assert torch.equal(y.count_nonzero(0, 2).to_torch(), x.count_nonzero(0, 2))
    assert [p.shape for p in y.hsplit(1, 2)] == [p.shape for p in x.hsplit(1, 2)]


def test_several_dimensions_are_squeezed() -> None:
    x = flow.ones(1, 2, 1)
    assert x.squeeze(0, 2).shape == x.squeeze_(0, 2).shape == x.shape == (2,)


def test_an_inplace_by_position_is_named() -> None:
    with pytest.raises(ArgumentError, match="'inplace' must be bool, not 5"):
        flow.nn.functional.relu(flow.ones(2), 5)


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda f: f.ones(2, 0).unflatten(0, [3, 3, 3]), "don't multiply up to the size of dim 0"),
    (lambda f: f.ones(2).unflatten(0, [-1, -1]), "unflatten"),
    (lambda f: f.ones(1).unflatten(0, []), "unflatten"),
    (lambda f: f.rms_norm(f.ones(4, 6), [6], f.ones(())), "Expected weight to be of same shape as normalized_shape"),
    (lambda f: f.index_fill(f.zeros(()), 3, f.tensor([0]), 1.0), "Dimension out of range"),
    (lambda f: f.index_fill(f.zeros(2), 0, f.zeros(2, 0, dtype=f.int64), 1.0), "Index has to be a vector/scalar"),
    (lambda f: f.hinge_embedding_loss(1, f.ones(2), 0.5, [f.ones(0)]), "must be"),
    (lambda f: f.histogram(f.ones(2), 0), "bins must be > 0, but got 0"),
    (lambda f: f.fft.irfftn(f.ones(4, 5), dim=(0, 0)), "FFT dims must be unique"),
    (lambda f: f.index_fill(f.ones(3), 0, f.tensor([0.5]), 2.0), "Expected dtype int"),
    (lambda f: f.nn.functional.multilabel_margin_loss(f.ones(3), f.ones(3)), "expected scalar type Long"),
    (lambda f: f.conv1d(f.ones(1, 1, 2), f.ones(1, 1, 1), f.ones(1, dtype=f.complex64)), "should be the same"),
    (lambda f: f.take_along_dim(f.ones(2, 3), f.tensor([0]), 0), "should have the same number of dimensions"),
    (lambda f: f.nn.functional.binary_cross_entropy(f.ones(2), f.ones(2) * 9), "elements of target should be between"),
    (lambda f: f.div(f.tensor([1]), f.tensor([0]), rounding_mode="floor"), "ZeroDivisionError"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_has_no_answer_is_refused_in_torchs_words(call: Callable[[Any], Any], words: str) -> None:
    for lib, kind in ((torch, Exception), (flow, WeftError)):
        with pytest.raises(kind, match=words):
            call(lib)


def test_solvers_keep_their_digits_under_autocast() -> None:
    a, b = of_torch(torch.from_numpy(SQUARE)), of_torch(torch.from_numpy(ROWS))
    solve: list[Callable[[], Any]] = [
        lambda: flow.linalg.lstsq(a, b)[0], lambda: flow.linalg.lu_solve(*flow.linalg.lu_factor(a), b),
        lambda: flow.linalg.qr(b)[1], lambda: flow.linalg.pinv(b),
    ]  # fmt: skip
    for f in solve:
        with flow.autocast("cpu", dtype=flow.bfloat16):
            shorter = f()
        assert shorter.dtype is flow.float32 and shorter.equal(f())


def test_means_of_whole_numbers_are_alike_in_every_layout() -> None:
    def run() -> list[str]:
        where = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
        whole = (flow.sbp.broadcast,) * 2
        wrong = []
        for dims, shape in ((1, (2, 4, 4)), (2, (2, 2, 4, 4)), (3, (2, 2, 4, 4, 2))):
            pool = getattr(flow.nn.functional, f"avg_pool{dims}d")
            x = (flow.arange(math.prod(shape)) % 5).reshape(shape)
            parts = (*map(flow.sbp.split, range(len(shape))), flow.sbp.broadcast, flow.sbp.partial_sum)
            for sbp in itertools.product(parts, parts):
                try:
                    spread = x.to_global(where, whole).to_global(where, sbp)
                except WeftError:  # more parts than elements
                    continue
                if not pool(spread, 2).to_global(where, whole).to_local().equal(pool(x, 2)):
                    wrong.append(f"{dims}: {sbp}")
        return wrong

    assert spawn_threads(4, run) == [[]] * 4


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "nansum", "cumsum_"])
def test_sums_have_the_dtype_that_is_asked_for(name: str) -> None:
    for dtype in ("uint8", "int8", "int16", "int32", "int64", "float16", "float64"):
        results = []
        for lib in (torch, flow):
            kind: Any = getattr(lib, dtype)
            x: Any = lib.tensor([[100, 3], [90, 2]], dtype=kind if name.endswith("_") else lib.int32)
            results.append(getattr(x, name)(*[0] * name.startswith("cum"), dtype=kind))
        theirs, ours = results
        assert str(ours.dtype) == str(theirs.dtype).replace("torch", "weft") and ours.tolist() == theirs.tolist()


def test_integers_up_to_the_end_and_dtypes_of_none() -> None:
    assert flow.range(0, 3, dtype=flow.int64).tolist() == [0, 1, 2, 3]
    assert flow.range(3, 1, -1, dtype=flow.int64).tolist() == [3, 2, 1]
    for start, end, step in ((0, 1.6, 1), (-1, 0.5, 2.5), (0, 1, 0.1), (3, -3.2, -0.7)):
        assert np.array_equal(flow.range(start, end, step), torch.range(start, end, step))
    assert flow.scalar_tensor(2, dtype=None).dtype is flow.fft.fftfreq(4, dtype=None).dtype is flow.float32
    assert flow.scalar_tensor(2, layout=torch.strided, device="cpu").tolist() == 2
    assert flow.tensor([1.26]).round_(decimals=1).tolist() == flow.tensor([1.3]).tolist()
    halves = flow.tensor([1, 2, 3]).scatter_reduce(
        0, flow.tensor([0, 0]), flow.tensor([4, 5]), "mean", include_self=False
    )
    assert halves.tolist() == [4, 2, 3]


def test_lists_of_tensors_are_computed_one_by_one() -> None:
    means, values = [flow.zeros(2), flow.zeros(3)], [flow.ones(2), flow.ones(3)]
    flow._foreach_lerp_(means, values, 0.25)
    assert [m.tolist() for m in means] == [[0.25] * 2, [0.25] * 3]
    assert flow._foreach_norm(values)[0].item() == pytest.approx(math.sqrt(2))


@pytest.mark.filterwarnings("ignore")
def test_integers_keep_their_dtype_in_products_and_sums() -> None:
    def results(m: Any) -> list[Any]:
        i: Any = m.tensor([[1, 2], [3, 4]], dtype=m.int32)
        scaled = {"beta": 1.5, "alpha": 2.5}
        return [
            m.addmm(i, i, i, **scaled), m.addmv(i[0], i, i[0], **scaled), m.addbmm(i, i[None], i[None], **scaled),
            m.baddbmm(i[None], i[None], i[None], **scaled), m.vdot(i[0], i[0]),
            m.nn.functional.bilinear(i, i, i[None], i[:1, 0]),
            m.nn.functional.softmin(i.to(m.uint8), 0, dtype=m.float32),
        ]  # fmt: skip

    for ours, theirs in zip(results(flow), results(torch), strict=True):
        assert ours.dtype.torch is theirs.dtype
        torch.testing.assert_close(ours.to_torch(), theirs)


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [2.0, 4.0]], [[0.0]], [[-1.0]], [[math.nan]], [[2.0]]])
def test_the_logarithm_of_a_determinant(rows: list[list[float]]) -> None:
    expected = torch.logdet(torch.tensor(rows))
    torch.testing.assert_close(flow.logdet(flow.tensor(rows)).to_torch(), expected, equal_nan=True)


def test_bytes_as_a_mask_are_told() -> None:
    x, mask = flow.arange(3), flow.tensor([1, 0, 1], dtype=flow.uint8)
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert x[mask].tolist() == [0, 2]


def test_a_tensor_made_of_a_tensor_is_part_of_its_computation() -> None:
    for m in (torch, flow) if torch.__version__ >= "2.12" else (flow,):  # before, what torch's asarray made was none
        x = m.ones(2, dtype=m.float64, requires_grad=True)
        made = [m.asarray(x), m.asarray(x, copy=True), m.asarray(x, dtype=m.float32), m.DoubleTensor(x), x.new(x)]
        assert made[0] is x and [y.data_ptr() == x.data_ptr() for y in made] == [True, False, False, True, True]
        sum(y.sum() for y in made).backward()
        assert x.grad.tolist() == [5.0, 5.0]
        assert not m.asarray(x * 1, requires_grad=False).requires_grad
        z = m.ones(2, requires_grad=True)
        h = z * 2
        y = m.Tensor(h)
        h.mul_(3)  # the same memory
        (y + m.Tensor(z)).sum().backward()
        assert z.grad.tolist() == [7.0, 7.0]


@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
@pytest.mark.filterwarnings("ignore")
def test_second_derivatives_of_products_with_zeros(name: str) -> None:
    x, src = [[0.0, 13.0], [0.0, 0.0], [15.0, 19.0]], [[2.0, 0.0], [0.0, 0.0], [2.0, 3.0], [2.0, 2.0]]

    def product(x: Any, src: Any) -> Any:
        at = flow.tensor([0, 1, 2, 0])
        at = at if name == "index_reduce" else at[:, None].expand(4, 2)
        return getattr(flow, name)(x, 0, at, src, "prod")

    given = [flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (x, src)]
    assert flow.autograd.gradcheck(product, given) and flow.autograd.gradgradcheck(product, given)


@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (2, 1, 3), (1, 1)])
def test_sizes_of_one_are_in_order_of_memory_wherever_they_step(shape: tuple[int, ...]) -> None:
    for x in (torch.zeros(shape), torch.zeros(shape).transpose(0, -1), torch.zeros(*shape, 2).transpose(0, -1)):
        assert of_torch(x).dim_order() == x.dim_order()


def test_a_distance_of_halves_and_complex_numbers_keeps_its_digits() -> None:
    x, y = torch.ones(2, 3).half(), torch.full((2, 3), 2j, dtype=torch.complex64)
    ours = flow.nn.functional.pairwise_distance(of_torch(x), of_torch(y)).to_torch()
    torch.testing.assert_close(ours, torch.nn.functional.pairwise_distance(x, y))


@pytest.mark.parametrize("where", [{"device": [2, 3]}, {"sbp": flow.ones(2)}])
def test_a_typed_tensor_checks_where_it_shall_be(where: dict[str, Any]) -> None:
    with pytest.raises(WeftError):
        flow.FloatTensor(flow.ones(2), **where)


@pytest.mark.parametrize("name", ["and", "or", "xor", "left_shift", "right_shift"])
def test_a_number_comes_first_in_bits_too(name: str) -> None:
    x = torch.tensor([1, 2, 0])
    ours, theirs = getattr(flow, f"bitwise_{name}"), getattr(torch, f"bitwise_{name}")
    assert ours(5, of_torch(x)).tolist() == theirs(5, x).tolist()


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "a distance of rows": lambda f, x: f.cdist(x[0], x),
    "a stack at an end": lambda f, x: f.linalg.multi_dot([x, x[None]]),
    "a row amid": lambda f, x: f.linalg.multi_dot([x, x[0], x]),
    "a row's slices": lambda f, x: f.renorm(x[0], 2, 0, 1.0),
    "a row's slices, in place": lambda f, x: x[0].renorm_(0.5, 0, 1.0),
    "a negative eps": lambda f, x: f.nn.functional.batch_norm(x, None, None, training=True, eps=-0.5),
}


@pytest.mark.pinned
@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused(name: str) -> None:
    x = torch.ones(3, 3)
    with pytest.raises((RuntimeError, ValueError)):
        REFUSED[name](torch, x)
    with pytest.raises(WeftError):
        REFUSED[name](flow, of_torch(x))


@pytest.mark.parametrize("sizes", [((3,), (1,)), ((2, 3), (2, 1)), ((2, 3), (3, 2))])
def test_multilabel_margin_loss_takes_a_target_of_the_inputs_shape(sizes: Any) -> None:
    x, target = torch.rand(sizes[0]), torch.zeros(sizes[1], dtype=torch.int64)
    with pytest.raises(RuntimeError, match="target"):
        torch.nn.functional.multilabel_margin_loss(x, target)
    with pytest.raises(WeftError, match="target"):
        flow.nn.functional.multilabel_margin_loss(flow.tensor(x.numpy()), flow.tensor(target.numpy()))


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: f.histc(x, 4, min=f.tensor(0.25), max=f.tensor(0.75)),
        lambda f, x: f.dist(x, x * 2, f.tensor(3.0)),
        lambda f, x: f.renorm(x, 2, 0, f.tensor(0.5)),
        lambda f, x: x.clone().uniform_(f.tensor(2.0), f.tensor(2.0)),
        lambda f, x: f.cdist(x, x * 2, p=f.tensor(1.0)),
    ],
)
def test_a_tensor_is_taken_as_an_option(call: Any) -> None:
    x = torch.rand(2, 3)
    torch.testing.assert_close(call(flow, of_torch(x.clone())).to_torch(), call(torch, x))


@pytest.mark.filterwarnings("ignore:.*read as rtol")
def test_a_tensor_as_a_tolerance_is_refused_at_once() -> None:
    with pytest.raises(ArgumentError, match="'rtol' must be float") as refused:
        flow.allclose(flow.ones(3), flow.ones(3), flow.tensor([0.5]))  # type: ignore[arg-type]
    chain: BaseException | None = refused.value
    while chain is not None:
        assert not isinstance(chain, RecursionError)  # torch, given the tensor, would ask Weft again
        chain = chain.__context__
