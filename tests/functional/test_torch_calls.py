"""More names of PyTorch's, called alike in both libraries: values, and gradients where torch has them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from tests.functional.test_values import agree, called, listed, rand
from weft.tensor.tensor import of_torch

A, B, C, V, W = rand(3, 4), rand(3, 4), rand(2, 3, 4), rand(5), rand(5)
SQUARE = rand(3, 3) + 4 * torch.eye(3, dtype=torch.float64)
IDS, MASK = torch.tensor([3, 0, 3, 1]), A > 0
HOLES = torch.where(A > 0.5, torch.nan, A)
PLACES = torch.tensor([[0, 1, 1], [2, 2, 0]])
POSITIVE = (A.abs() + 0.5).detach()
Z = torch.complex(A, B)

# (name, arguments, options): functions
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("count_nonzero", (IDS,), {}), ("count_nonzero", (A, 0), {}), ("aminmax", (A,), {"dim": 1}),
    ("trace", (SQUARE,), {}), ("var_mean", (A, 1), {}), ("std_mean", (A,), {"dim": 0, "correction": 0}),
    ("nanmean", (HOLES, 1), {}), ("nanmedian", (HOLES,), {}),
    ("bucketize", (V, torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)), {}),
    ("isin", (IDS, torch.tensor([3, 4])), {}), ("isin", (IDS, torch.tensor([3])), {"invert": True}),
    ("gradient", (IDS,), {"spacing": 2.1}), ("gradient", (A,), {"spacing": (2.0, 2.1)}),
    ("istft", (torch.complex(rand(6, 3), rand(6, 3)), 6), {"onesided": False}),
    ("istft", (torch.complex(rand(6, 3), rand(6, 3)), 6), {"return_complex": True}),
    ("diff", (V,), {}), ("diff", (A, 2), {"dim": 0}), ("diff", (V,), {"prepend": V[:1]}),
    ("trapezoid", (A,), {"dx": 0.5}), ("trapz", (V, V.sort()[0]), {}), ("cov", (A,), {}),
    ("cov", (A,), {"correction": 0, "fweights": IDS + 1}), ("cov", (A,), {"aweights": V[:4].abs()}), ("cov", (V,), {}),
    ("corrcoef", (A,), {}), ("histc", (V, 4, -1, 1), {}), ("histc", (V, 3), {}),
    ("unique_consecutive", (torch.tensor([1, 1, 2, 2, 1]),), {"return_inverse": True}),
    ("unique_consecutive", (torch.tensor([[1, 1, 2], [1, 1, 2]]),), {"return_counts": True, "dim": 1}),
    ("inner", (A, B), {}), ("inner", (A, V[:4]), {}), ("vdot", (V, W), {}), ("addr", (A, V[:3], W[:4]), {"alpha": 2}),
    ("addbmm", (rand(3, 3), rand(2, 3, 4), rand(2, 4, 3)), {"beta": 0.5}), ("kron", (A, SQUARE), {}),
    ("kron", (V, A), {}), ("dist", (A, B), {}), ("dist", (A, B, 1), {}), ("cdist", (A, B), {}),
    ("cdist", (C, rand(2, 5, 4), 1.0), {}), ("matrix_power", (SQUARE, 3), {}), ("matrix_power", (SQUARE, -2), {}),
    ("pinverse", (A,), {}), ("logdet", (SQUARE,), {}), ("block_diag", (A, SQUARE, V), {}),
    ("lu", (SQUARE,), {}), ("lu", (SQUARE,), {"get_infos": True}),
    ("chain_matmul", (A, rand(4, 2), rand(2, 5)), {}), ("index_copy", (A, 1, torch.tensor([2, 0]), rand(3, 2)), {}),
    ("index_fill", (A, 0, torch.tensor([2, 0]), 1.5), {}),
    ("scatter_reduce", (A[:2, :3], 1, PLACES, rand(2, 3), "sum"), {}),
    ("scatter_reduce", (A[:2, :3], 1, PLACES, rand(2, 3), "mean"), {"include_self": False}),
    ("scatter_reduce", (A[:2, :3], 1, PLACES, rand(2, 3), "amax"), {}),
    ("scatter_reduce", (A[:2, :3], 1, PLACES, rand(2, 3), "prod"), {"include_self": False}),
    ("select_scatter", (A, V[:3], 1, 2), {}), ("slice_scatter", (A, rand(3, 2), 1, 0, 4, 2), {}),
    ("diagonal_scatter", (SQUARE, V[:3]), {}), ("take", (A, torch.tensor([0, 7])), {}),
    ("masked_scatter", (A, MASK, rand(12)), {}), ("ravel", (A,), {}),
    ("masked_scatter", (A, MASK & False, rand(0)), {}), ("fliplr", (A,), {}), ("flipud", (A,), {}),
    ("rot90", (A,), {}), ("rot90", (A, 2), {}), ("rot90", (C, -1, (1, 2)), {}), ("msort", (A,), {}),
    ("diag_embed", (A,), {}), ("diag_embed", (A, 1, 0, 2), {}), ("diagflat", (A[:2, :2],), {}),
    ("cartesian_prod", (V[:2], W[:3]), {}), ("combinations", (V,), {}), ("tril_indices", (3, 4, 1), {}),
    ("triu_indices", (3, 3), {}), ("float_power", (A.abs(), 2), {}), ("ldexp", (A, IDS), {}),
    ("renorm", (A, 2, 0, 1.0), {}), ("cummax", (A, 1), {}), ("cummin", (A, 0), {}), ("kthvalue", (A, 2), {}),
    ("mode", (torch.tensor([[1, 2, 2], [3, 3, 1]]),), {}), ("angle", (A,), {}), ("is_complex", (Z,), {}),
    ("linalg.multi_dot", ([A, rand(4, 2), rand(2, 5)],), {}), ("linalg.pinv", (A,), {}),
    ("linalg.matrix_rank", (A,), {}), ("linalg.cond", (SQUARE,), {}), ("linalg.lstsq", (rand(5, 3), rand(5, 2)), {}),
    ("linalg.solve_triangular", (SQUARE.tril(), A), {"upper": False}), ("linalg.vecdot", (A, B), {}),
    ("linalg.eigvalsh", (SQUARE + SQUARE.T,), {}), ("linalg.vander", (V,), {"N": 3}), ("special.expit", (A,), {}),
    ("special.entr", (A.abs(),), {}), ("special.ndtr", (A,), {}), ("special.ndtri", (A.sigmoid(),), {}),
    ("special.xlog1py", (A, B.abs()), {}), ("special.polygamma", (1, A.abs()), {}), ("polygamma", (1, A.abs()), {}),
    ("fft.rfft", (A,), {"norm": "ortho"}), ("fft.fft2", (Z,), {}), ("fft.irfft", (Z, 7), {}),
    ("fft.hfft", (Z,), {}), ("fft.hfft", (Z, 5), {"norm": "ortho"}), ("fft.ihfft", (A,), {"norm": "forward"}),
    ("linalg.lu_factor", (SQUARE,), {}), ("linalg.lu", (SQUARE,), {}), ("linalg.lu", (rand(2, 3, 3),), {}),
    ("linalg.tensorinv", (rand(2, 3, 6),), {}), ("linalg.tensorsolve", (rand(2, 3, 6), rand(2, 3)), {}),
    ("linalg.tensorsolve", (rand(2, 6, 3), rand(2, 3)), {"dims": (1,)}), ("linalg.eigvals", (SQUARE,), {}),
    ("special.i0e", (A,), {}), ("special.i1e", (A,), {}), ("special.erfcx", (A,), {}), ("special.log_ndtr", (A,), {}),
    ("special.gammaincc", (POSITIVE, A.abs()), {}), ("igamma", (POSITIVE, A.abs()), {}),
    ("nanquantile", (HOLES, 0.3), {}), ("nanquantile", (HOLES, 0.7, 1), {"keepdim": True}),
    ("nanquantile", (HOLES, torch.tensor([0.1, 0.9], dtype=torch.float64), 0), {"interpolation": "higher"}),
    ("nanquantile", (A, 0.25), {"interpolation": "midpoint"}), ("frexp", (A,), {}), ("isreal", (Z,), {}),
    ("isreal", (A,), {}), ("index_reduce", (A, 1, torch.tensor([2, 0, 2]), rand(3, 3), "amax"), {}),
    ("index_reduce", (A, 0, torch.tensor([1]), rand(1, 4), "mean"), {"include_self": False}),
    ("frobenius_norm", (A,), {"dim": (0, 1)}), ("nuclear_norm", (SQUARE,), {}),
    ("constant_pad_nd", (A, (1, 2), 0.5), {}),
    ("kaiser_window", (7,), {"dtype": None}), ("kaiser_window", (6,), {"periodic": False, "beta": 3.0}),
    ("fft.fftshift", (A,), {}), ("fft.ifftn", (Z,), {}), ("fft.fftfreq", (5, 0.5), {}), ("fft.rfftfreq", (6,), {}),
]  # fmt: skip


def parts(T: Any, y: Any) -> list[Any]:
    """What a function gives, complex numbers as pairs."""
    return [T.view_as_real(v.resolve_conj()) if v.dtype.is_complex else v for v in listed(y)]


@pytest.mark.parametrize(("name", "args", "options"), CALLS, ids=lambda v: v if isinstance(v, str) else "")
def test_functions_do_what_torchs_do(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    made = {k: of_torch(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    if name == "is_complex" or name.endswith("freq"):
        got = called(flow, name, tuple(of_torch(a) if isinstance(a, torch.Tensor) else a for a in args), made)
        expected = called(torch, name, args, options)
        assert got.tolist() == pytest.approx(expected.tolist()) if name != "is_complex" else got is expected
    elif name == "linalg.multi_dot":
        agree(lambda *a: torch.linalg.multi_dot(a), lambda *a: flow.linalg.multi_dot(a), tuple(args[0]))
    elif name == "linalg.lstsq":  # gradients of the solution; its rank has none
        agree(lambda *a: torch.linalg.lstsq(*a).solution, lambda *a: flow.linalg.lstsq(*a).solution, args)
    else:
        agree(
            lambda *a: parts(torch, called(torch, name, a, options)),
            lambda *a: parts(flow, called(flow, name, a, made)),
            args,
        )


OVERWRITING: list[tuple[str, tuple[Any, ...]]] = [
    ("index_copy_", (1, torch.tensor([2, 0]), rand(3, 2))), ("index_fill_", (0, torch.tensor([1]), 2.0)),
    ("masked_scatter_", (MASK, rand(12))), ("put_", (torch.tensor([0, 5]), rand(2))),
    ("addmm_", (rand(3, 2), rand(2, 4))), ("addr_", (V[:3], W[:4])), ("eq_", (B,)), ("lt_", (0.0,)),
    ("logical_and_", (B,)), ("cumsum_", (1,)), ("atan2_", (B,)), ("copysign_", (B,)), ("hypot_", (B,)),
    ("xlogy_", (B.abs(),)), ("nan_to_num_", ()), ("unsqueeze_", (0,)), ("transpose_", (0, 1)), ("t_", ()),
    ("squeeze_", ()), ("resize_", (2, 3)), ("fill_diagonal_", (7.0,)), ("deg2rad_", ()), ("frac_", ()),
    ("scatter_reduce_", (1, PLACES, rand(2, 3), "amax")), ("scatter_", (1, PLACES, 2.0)),
    ("ldexp_", (IDS,)), ("float_power_", (2,)), ("renorm_", (2, 0, 1.0)),
    ("index_reduce_", (1, torch.tensor([2, 0, 2]), rand(3, 3), "prod")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), OVERWRITING, ids=lambda v: v if isinstance(v, str) else "")
def test_methods_that_overwrite(name: str, args: tuple[Any, ...]) -> None:
    mine = of_torch(A.clone())
    expected = getattr(A.clone(), name)(*args)
    got = getattr(mine, name)(*(of_torch(a) if isinstance(a, torch.Tensor) else a for a in args))
    assert got is mine
    torch.testing.assert_close(got.to_torch(), expected)


HISTOGRAMS: list[dict[str, Any]] = [
    {"bins": 4}, {"bins": 3, "range": (-1.0, 0.5)}, {"bins": 4, "density": True}, {"bins": 5, "weight": B.abs()},
    {"bins": torch.tensor([-1.0, 0.0, 0.25, 2.0], dtype=torch.float64)},
]  # fmt: skip


@pytest.mark.parametrize("options", HISTOGRAMS)
def test_histograms(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {k: of_torch(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    got, expected = flow.histogram(of_torch(A), **given), torch.histogram(A, **options)
    torch.testing.assert_close(got.hist.to_torch(), expected.hist)
    torch.testing.assert_close(got.bin_edges.to_torch(), expected.bin_edges)


def test_equations_solved_by_factors() -> None:
    factors, same = flow.linalg.lu_factor(of_torch(SQUARE)), torch.linalg.lu_factor(SQUARE)
    for left, adjoint, b in ((True, False, A), (True, True, A), (False, False, A.T), (False, True, A.T)):
        got = flow.linalg.lu_solve(*factors, of_torch(b), left=left, adjoint=adjoint)
        torch.testing.assert_close(got.to_torch(), torch.linalg.lu_solve(*same, b, left=left, adjoint=adjoint))
    for upper, x in ((False, SQUARE.tril()), (True, SQUARE.triu())):
        inverse = flow.cholesky_inverse(of_torch(x), upper)
        torch.testing.assert_close(inverse.to_torch(), torch.cholesky_inverse(x, upper))
    torch.testing.assert_close(flow.lu_solve(of_torch(A), *factors).to_torch(), torch.linalg.solve(SQUARE, A))


def test_matrices_taken_apart() -> None:
    for shape in ((4, 3), (3, 4), (2, 3, 3)):
        x = rand(*shape)
        p, lower, upper = flow.linalg.lu(of_torch(x))
        torch.testing.assert_close((p @ lower @ upper).to_torch(), x)
    values, vectors = flow.linalg.eig(of_torch(SQUARE))
    torch.testing.assert_close((of_torch(SQUARE).cdouble() @ vectors).to_torch(), (vectors * values).to_torch())
    with pytest.raises(flow.linalg.LinAlgError, match="singular"):
        flow.linalg.inv(flow.zeros(2, 2))


@pytest.mark.parametrize("options", [{}, {"q": None, "niter": None}, {"q": 2, "niter": 4}], ids=str)
@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (2, 3, 7)], ids=str)
def test_a_few_singular_vectors(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    """Found from random directions: the same ones, so what is drawn afterwards is the same, too."""
    given, (x, mean) = rand(*shape), (rand(*shape).requires_grad_(), rand(*shape[:-2], 1, shape[-1]))
    for made, ours, theirs in (
        ("svd_lowrank", (of_torch(x.detach()).requires_grad_(), {}), (x, {})),
        ("svd_lowrank", (of_torch(given), {"M": of_torch(mean)}), (given, {"M": mean})),
        ("pca_lowrank", (of_torch(given), {}), (given, {})),
    ):
        chosen = {**options, "niter": 2} if options.get("niter", 2) is None and made == "pca_lowrank" else options
        torch.manual_seed(3)
        flow.manual_seed(3)
        expected = getattr(torch, made)(theirs[0], **chosen, **theirs[1])
        got = getattr(flow, made)(ours[0], **chosen, **ours[1])
        for a, b in zip(got, expected, strict=True):
            torch.testing.assert_close(a.detach().to_torch(), b.detach())
        assert flow.rand(1).item() == torch.rand(1).item()
        if x.requires_grad and theirs[0] is x:
            got[1].sum().backward()
            expected[1].sum().backward()
            torch.testing.assert_close(ours[0].grad.to_torch(), x.grad)


def test_numbers_of_components_that_matrices_lack() -> None:
    for lib in (torch, flow):
        with pytest.raises(ValueError, match="must be non-negative integer and not greater than"):
            lib.pca_lowrank(lib.ones(3, 4), q=4)
        with pytest.raises(ValueError, match="must be non-negative integer"):
            lib.pca_lowrank(lib.ones(3, 4), niter=-1)


def test_bessels_functions_and_their_slopes() -> None:
    x = POSITIVE.clone()
    for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
        f = getattr(flow.special, name)
        torch.testing.assert_close(f(of_torch(x)).to_torch(), getattr(torch.special, name)(x))
        assert flow.autograd.gradcheck(f, (of_torch(x).requires_grad_(),))


def test_memory_and_modes() -> None:
    x = flow.arange(6.0)
    assert x.untyped_storage().data_ptr() == x[2:].untyped_storage().data_ptr() == x.data_ptr()
    assert flow.frombuffer(b"\x01\x00\x02\x00", dtype=flow.int16, offset=2).tolist() == [2]
    assert flow.get_device(x) == -1 and not x.is_neg() and x.resolve_neg() is x and x.cfloat().dtype is flow.complex64
    assert flow.tensor([1j]).resolve_conj().tolist() == [1j] and flow.tensor([1j]).conj_physical().tolist() == [-1j]
    assert [t.tolist() for t in x.unsafe_split([2, 4])] == [[0.0, 1.0], [2.0, 3.0, 4.0, 5.0]]
    with flow.inference_mode():
        assert flow.is_inference_mode_enabled()
    assert not flow.is_inference_mode_enabled() and not flow.is_anomaly_enabled()
    flow.set_anomaly_enabled(True, False)
    assert flow.is_anomaly_enabled() and not flow.is_anomaly_check_nan_enabled()
    flow.set_anomaly_enabled(False)
    assert not flow.is_anomaly_enabled()


IMAGES = rand(2, 3, 4, 6)
NEURAL: list[tuple[str, tuple[Any, ...]]] = [
    ("celu_", (0.5,)), ("selu_", ()), ("hardtanh_", (-0.5, 0.5)), ("threshold_", (0.1, 3.0)),
    ("max_pool2d_with_indices", (2,)), ("adaptive_max_pool2d_with_indices", (3,)), ("upsample_nearest", (None, 2)),
    ("upsample_bilinear", ((5, 7),)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*is deprecated")
@pytest.mark.parametrize(("name", "args"), NEURAL, ids=lambda v: v if isinstance(v, str) else "")
def test_short_forms_of_what_layers_do(name: str, args: tuple[Any, ...]) -> None:
    mine = of_torch(IMAGES.clone())
    expected = getattr(torch.nn.functional, name)(IMAGES.clone(), *args)
    got = getattr(flow.nn.functional, name)(mine, *args)
    for a, b in zip(parts(flow, got), parts(torch, expected), strict=True):
        torch.testing.assert_close(a.to_torch(), b)
    assert not name.endswith("_") or got is mine


@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.parametrize("src", [2.0, rand(2, 3)], ids=["number", "tensor"])
def test_scatter_that_adds_or_multiplies(src: Any, reduce: str) -> None:
    mine: Any = of_torch(A.clone())
    given = of_torch(src) if isinstance(src, torch.Tensor) else src
    expected = A.clone().scatter_(1, PLACES, src, reduce=reduce)
    assert mine.scatter_(1, of_torch(PLACES), given, reduce=reduce) is mine
    torch.testing.assert_close(mine.to_torch(), expected)
    assert mine.scatter_(1, of_torch(PLACES), value=0.0).sum().item() == pytest.approx(
        A.clone().scatter_(1, PLACES, src, reduce=reduce).scatter_(1, PLACES, value=0.0).sum().item()
    )


def test_a_tensor_that_became_its_view_has_a_gradient() -> None:
    x = of_torch(A.clone()).requires_grad_()
    y: Any = x * 2
    y.unsqueeze_(0).transpose_(1, 2)
    assert y.shape == (1, 4, 3)
    (y * y).sum().backward()
    torch.testing.assert_close(x.grad.to_torch(), 8 * A)  # type: ignore[union-attr]
    with pytest.raises(flow.errors.AutogradError, match="leaf"):
        x.t_()


COMPLEX = [
    lambda T, z, w: (z * w).abs().sum(), lambda T, z, w: (z / w).angle().sum(), lambda T, z, w: (z @ w.mT).abs().sum(),
    lambda T, z, w: T.view_as_real(z * w.conj()).pow(2).sum(), lambda T, z, w: (z.real * w.imag).sum(),
    lambda T, z, w: T.view_as_real(T.polar(z.abs(), w.angle())).sum(), lambda T, z, w: (z * (2 + 1j)).exp().abs().sum(),
    lambda T, z, w: T.fft.fft(z).abs().sum() + T.fft.irfft(w).sum(), lambda T, z, w: (z + w - z * z).abs().sum(),
]  # fmt: skip


@pytest.mark.parametrize("f", COMPLEX)
def test_gradients_of_complex_numbers(f: Any) -> None:
    def leaf(T: Any, a: torch.Tensor) -> Any:
        return a.clone().requires_grad_() if T is torch else of_torch(a.clone()).requires_grad_()

    found = []
    for T in (torch, flow):
        leaves = [leaf(T, A), leaf(T, B)]
        z = T.complex(*leaves)
        f(T, z, T.view_as_complex(T.stack(leaves[::-1], -1))).backward()
        found.append([x.grad if T is torch else x.grad.to_torch() for x in leaves])
    for mine, theirs in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(mine, theirs)


def test_rotary_embeddings() -> None:
    """As language models turn their queries: pairs of numbers as complex ones."""

    def turned(T: Any, x: Any) -> Any:
        freqs = 1.0 / (10000 ** (T.arange(0, 4, 2).float() / 4))
        turn = T.polar(T.ones(3, 2), T.outer(T.arange(3).float(), freqs))
        pairs = T.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return T.view_as_real(pairs * turn[None]).flatten(2)

    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    agree(lambda x: turned(torch, x), lambda x: turned(flow, x), (x,))


WAVE, WINDOW = torch.randn(2, 64, generator=torch.Generator().manual_seed(1)), torch.hann_window(16)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"center": False}, {"normalized": True, "pad_mode": "constant"}, {"win_length": 8},
        {"win_length": 9, "center": False, "align_to_window": True},
    ],
)  # fmt: skip
def test_transforms_over_time_and_back(options: dict[str, Any]) -> None:
    window = torch.ones(options["win_length"]) if "win_length" in options else WINDOW
    expected = torch.stft(WAVE, 16, 4, window=window, return_complex=True, **options)
    got = flow.stft(of_torch(WAVE), 16, 4, window=of_torch(window), return_complex=True, **options)
    torch.testing.assert_close(got.to_torch(), expected)
    torch.testing.assert_close(
        flow.stft(of_torch(WAVE), 16, 4, window=of_torch(window), **options).to_torch(), torch.view_as_real(expected)
    )
    if options.get("center", True):
        options = {k: v for k, v in options.items() if k != "pad_mode"}
        back = flow.istft(got, 16, 4, window=of_torch(window), length=64, **options)
        torch.testing.assert_close(back.to_torch(), WAVE, rtol=1e-4, atol=1e-5)
    leaf, mine = WAVE.clone().requires_grad_(), of_torch(WAVE.clone()).requires_grad_()
    torch.stft(leaf, 16, 4, window=WINDOW, return_complex=True).abs().pow(2).sum().backward()
    flow.stft(mine, 16, 4, window=of_torch(WINDOW), return_complex=True).abs().pow(2).sum().backward()
    torch.testing.assert_close(mine.grad.to_torch(), leaf.grad, rtol=1e-4, atol=1e-3)  # type: ignore[union-attr]


def test_roc_auc_score() -> None:
    score = flow.roc_auc_score(flow.tensor([0, 1, 1, 0, 1]), flow.tensor([0.2, 0.3, 0.9, 0.3, 0.1]))
    assert score.tolist() == pytest.approx([3.5 / 6])  # of six pairs three are right, and one is a tie


def test_equations_by_a_triangular_factor() -> None:
    factor = torch.linalg.cholesky(SQUARE @ SQUARE.T)
    for upper in (False, True):
        given = factor.T.contiguous() if upper else factor
        agree(
            lambda x, g=given, u=upper: torch.cholesky_solve(x, g, u),
            lambda x, g=given, u=upper: flow.cholesky_solve(x, of_torch(g), u),
            (A,),
        )
    right = torch.linalg.solve_triangular(SQUARE.triu(), A.T, upper=True, left=False)
    got = flow.linalg.solve_triangular(of_torch(SQUARE.triu()), of_torch(A.T), upper=True, left=False)
    torch.testing.assert_close(got.to_torch(), right)


def test_what_a_tensor_answers() -> None:
    x = flow.tensor([1.0, 2.0])
    assert (x.itemsize, x.nbytes, x.is_cpu, x.is_sparse, x.is_signed(), x.is_conj()) == (4, 8, True, False, True, False)
    assert not x.is_consistent and x.to_consistent(flow.placement("cpu", [0]), flow.sbp.broadcast).is_consistent
    assert complex(flow.tensor(2.0)) == 2 and x.new([3.0]).tolist() == [3.0] and x.new(2, 3).shape == (2, 3)
    with pytest.raises(flow.errors.IndexingError, match="can't be deleted"):
        del x[0]
    y = flow.arange(6).view(2, 3).t()
    assert not y.is_contiguous() and y.contiguous_().is_contiguous() and y.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.set_(y) is x and x.shape == (3, 2) and x.apply_(lambda v: v + 1)[0, 0].item() == 1


def test_results_have_torchs_names() -> None:
    for name, args in (
        ("sort", ()), ("sort", (1, True)), ("topk", (2,)), ("kthvalue", (2,)), ("mode", ()), ("cummax", (1,)),
        ("cummin", (0,)), ("median", (1,)), ("max", (0,)), ("min", (1, True)), ("nanmedian", (1,)),
    ):  # fmt: skip
        expected, got = getattr(A, name)(*args), getattr(of_torch(A), name)(*args)
        values, indices = got
        assert values is got.values and indices is got.indices
        torch.testing.assert_close(got.values.to_torch(), expected.values)
        torch.testing.assert_close(got.indices.to_torch(), expected.indices)
    x = of_torch(SQUARE + SQUARE.T)
    found, theirs = flow.linalg.eigh(x), torch.linalg.eigh(SQUARE + SQUARE.T)
    torch.testing.assert_close(found.eigenvalues.to_torch(), theirs.eigenvalues)
    assert flow.linalg.slogdet(x).logabsdet.item() == pytest.approx(
        torch.linalg.slogdet(SQUARE + SQUARE.T).logabsdet.item()
    )
    assert flow.linalg.qr(x).R.shape == (3, 3) and flow.linalg.svd(x, full_matrices=False).Vh.shape == (3, 3)
    assert flow.svd(x).V.shape == (3, 3) and found.eigenvectors.shape == (3, 3)


def test_least_squares_give_what_the_driver_gives() -> None:
    wide, tall, deep = (torch.randn(*shape, dtype=torch.complex128) for shape in ((2, 3), (4, 3), (2, 4, 3)))
    for driver, x in itertools.product((None, "gels", "gelsy", "gelsd", "gelss"), (wide, tall, deep)):
        y = torch.randn(*x.shape[:-1], 2, dtype=x.dtype)
        found = flow.linalg.lstsq(of_torch(x), of_torch(y), driver=driver)
        for mine, theirs in zip(found, torch.linalg.lstsq(x, y, driver=driver), strict=True):
            torch.testing.assert_close(mine.to_torch(), theirs)
    with pytest.raises(RuntimeError, match="one of"):
        flow.linalg.lstsq(of_torch(wide), of_torch(wide), driver="gesv")


@pytest.mark.parametrize("of", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]])
def test_the_size_of_a_singular_determinant_has_torchs_gradient(of: list[list[float]]) -> None:
    agree(lambda a: torch.linalg.slogdet(a)[1], lambda a: flow.linalg.slogdet(a)[1], (torch.tensor(of),))


def test_sums_to_no_dimensions_are_new_and_of_bools_whole_numbers() -> None:
    for m in (torch, flow):
        x, bools = m.tensor(2.0), m.tensor([True, True])
        assert x.sum_to_size(()) is not x and bools.sum_to_size(()).item() == 2


def test_rows_of_a_table_are_held_to_a_norm() -> None:
    theirs = torch.nn.Embedding(5, 3, max_norm=1.0, dtype=torch.float64)
    ours = flow.nn.Embedding(5, 3, max_norm=1.0, dtype=flow.float64)
    ours.load_state_dict({"weight": of_torch(theirs.weight.detach().clone())})
    torch.testing.assert_close(ours(of_torch(IDS)).detach().to_torch(), theirs(IDS).detach())
    torch.testing.assert_close(ours.weight.detach().to_torch(), theirs.weight.detach())


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf")])
def test_norms_of_matrices(ord: Any) -> None:
    agree(lambda x: torch.linalg.norm(x, ord), lambda x: flow.linalg.norm(x, ord), (A,))
    if ord is not None:
        agree(lambda x: torch.linalg.norm(x, ord, (0, 2), True), lambda x: flow.linalg.norm(x, ord, (0, 2), True), (C,))


def test_exponentials_of_matrices() -> None:
    agree(torch.linalg.matrix_exp, flow.linalg.matrix_exp, (SQUARE / 4,))
    x = of_torch(A.clone())
    torch.testing.assert_close(x.div_(0.3, rounding_mode="floor").to_torch(), A.div(0.3, rounding_mode="floor"))
    counts = flow.arange(3).cumsum(0, dtype=flow.float32)
    assert counts.dtype is flow.float32 and counts.tolist() == [0.0, 1.0, 3.0]


def test_bounds_that_are_tensors_and_decimals() -> None:
    low, high = V[:4] - 0.5, V[:4] + 0.5
    agree(lambda x, a, b: x.clamp(a, b), lambda x, a, b: x.clamp(a, b), (A, low, high))
    agree(lambda x, a: torch.clip(x, max=a), lambda x, a: flow.clip(x, max=a), (A, high))
    for decimals in (0, 2, -1):
        x = A * 100
        torch.testing.assert_close(flow.round(of_torch(x), decimals=decimals).to_torch(), x.round(decimals=decimals))
    assert of_torch(A).view(flow.int64).tolist() == A.view(torch.int64).tolist()
    assert of_torch(A).view(flow.int32).shape == (3, 8)


COPIES: list[Callable[[Any, Any], Any]] = [
    lambda T, x: T.diag(x), lambda T, x: T.diff(x, 0), lambda T, x: x.t().ravel(), lambda T, x: x.ravel(),
    lambda T, x: x[:, ::2].ravel(), lambda T, x: T.nn.functional.pixel_shuffle(x[None], 1),
    lambda T, x: T.nn.functional.pixel_unshuffle(x[None], 1), lambda T, x: T.nn.functional.channel_shuffle(x[None], 4),
    lambda T, x: T.histogram(x, x[0].sort()[0])[1], lambda T, x: x.diagonal(),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(COPIES)))
def test_who_writes_a_result_writes_its_operand_where_torch_does(place: int) -> None:
    found = []
    for T in (flow, torch):
        x = T.arange(16.0).reshape(4, 4)
        COPIES[place](T, x).fill_(-1.0)
        found.append(x.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
def test_shuffles_keep_the_channels_innermost(name: str) -> None:
    x = torch.arange(64.0).reshape(1, 4, 4, 4).to(memory_format=torch.channels_last)
    ours, theirs = (getattr(lib.nn.functional, name)(x, 2) for lib, x in ((flow, of_torch(x)), (torch, x)))
    assert torch.equal(ours.to_torch(), theirs) and ours.stride() == theirs.stride()


def test_a_gradient_of_whole_numbers_takes_steps_of_fractions() -> None:
    steps = {"spacing": (2.1, 0.5), "dim": (0, 1)}
    for mine, theirs in zip(flow.gradient(of_torch(IDS), spacing=2.1), torch.gradient(IDS, spacing=2.1), strict=True):
        torch.testing.assert_close(mine.to_torch(), theirs)
    whole = IDS[:, None] * IDS
    for mine, theirs in zip(flow.gradient(of_torch(whole), **steps), torch.gradient(whole, **steps), strict=True):
        torch.testing.assert_close(mine.to_torch(), theirs)
