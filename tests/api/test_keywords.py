"""Arguments by the names that PyTorch's documents give them, and in its places: a call says the same in both."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import weft as flow
from weft.api.table import ADAPTERS
from weft.core.errors import OpError, WeftError
from weft.tensor.tensor import of_torch

MATRIX = torch.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
VECTOR = torch.tensor([0.3, -1.2, 2.0])

# S is a matrix, v a vector, ii an index
CALLS = """
    lib.linalg.inv(A=S)
    lib.linalg.det(A=S)
    lib.linalg.solve(A=S, B=S)
    lib.linalg.solve(S, S, left=False)
    lib.linalg.svd(A=S, full_matrices=False)
    lib.linalg.svd(S, driver=None)
    lib.linalg.svdvals(A=S)
    lib.linalg.svdvals(S, driver=None)
    lib.linalg.qr(A=S, mode="reduced")
    lib.linalg.cholesky(input=S)
    lib.linalg.cholesky(S, upper=True)
    lib.linalg.vector_norm(x=S)
    lib.linalg.norm(input=S)
    lib.linalg.slogdet(A=S)
    lib.linalg.diagonal(A=S)
    lib.linalg.lu(A=S)
    lib.linalg.lu(S * 0)
    lib.linalg.matrix_rank(S[:0])
    lib.linalg.lu_factor(A=S)
    lib.linalg.lu_solve(*lib.linalg.lu_factor(S), B=S)
    lib.linalg.vander(x=v, N=3)
    lib.linalg.vander(ii)
    lib.linalg.cond(S[:0])
    lib.split(S[:0], 0)[0]
    lib.max_pool1d(S.reshape(1, 3, 3), 2, [])
    lib.linalg.multi_dot(tensors=[S, S])
    lib.linalg.cross(input=v, other=v)
    lib.linalg.vecdot(x=v, y=v)
    lib.linalg.tensorinv(S.reshape(3, 3), ind=1)
    lib.addmm(input=S, mat1=S, mat2=S)
    lib.addmv(input=v, mat=S, vec=v)
    lib.addr(input=S, vec1=v, vec2=v)
    lib.baddbmm(input=S[None], batch1=S[None], batch2=S[None])
    lib.mv(input=S, vec=v)
    lib.outer(input=v, vec2=v)
    lib.ger(v, vec2=v)
    lib.cholesky_solve(input=S, input2=S)
    lib.cholesky_inverse(S)
    lib.lerp(input=v, end=v, weight=0.5)
    lib.polar(abs=v, angle=v)
    lib.isin(elements=v, test_elements=v)
    lib.promote_types(type1=lib.float32, type2=lib.int32)
    lib.result_type(tensor=v, other=1)
    lib.outer(v, v)
    lib.tile(v, dims=(2,))
    lib.tile(input=v, dims=(2,))
    lib.permute(S, dims=(1, 0))
    lib.flip(S, dims=(0, ))
    lib.roll(S, shifts=1, dims=0)
    lib.zeros(size=(2, 3))
    lib.ones(size=(2, 3))
    lib.empty(size=(2, 3)).shape
    lib.rand(size=(2, 3)).shape
    lib.randn(size=(2, 3)).shape
    lib.randint(low=0, high=3, size=(2,)).shape
    lib.randint(3, (2,)).shape
    lib.full(size=(2,), fill_value=1.)
    lib.hann_window(window_length=4, periodic=False, dtype=lib.float64)
    lib.bartlett_window(window_length=4)
    lib.normal(mean=0., std=1., size=(2,)).shape
    lib.binomial(v.abs(), v.abs()*0, generator=lib.Generator())
    lib.poisson(v.abs(), generator=lib.Generator()).shape
    S.expand(size=(1, 3, 3))
    S.view(size=(9,))
    S.reshape(shape=(9,))
    S.repeat(repeats=(1, 2))
    S.new_zeros(size=(2,))
    S.permute(dims=(1, 0))
    S.squeeze(dim=0)
    S.sum_to_size(size=(1, 3))
    S.type(dtype=lib.float64)
    S.is_pinned()
    v.clone().index_put_(indices=(ii,), values=v[:2])
    v.clone().index_add_(dim=0, index=ii, source=v[:2], alpha=2)
    v.clone().index_copy_(dim=0, index=ii, source=v[:2])
    v.clone().index_fill_(dim=0, index=ii, value=2.)
    v.clone().masked_scatter_(mask=v>0, source=v)
    v.clone().scatter_(dim=0, index=ii, src=v[:2])
    v.clone().scatter_reduce_(dim=0, index=ii, src=v[:2], reduce="sum", include_self=False)
    S.clone().addmm_(mat1=S, mat2=S, beta=0.5)
    v.clone().lerp_(end=v, weight=0.3)
    v.clone().random_(0, 5).shape
    v.clone().uniform_(0, 5).shape
    lib.tensor_split(S, sections=2)[0]
    lib.hsplit(S, sections=3)[0]
    lib.vsplit(S, indices=[1])[0]
    lib.einsum("ij, jk->ik", S, S)
    lib.meshgrid(v, v, indexing="ij")[0]
    lib.cat(tensors=(v, v), dim=0)
    lib.stack(tensors=[v, v])
    lib.squeeze(S[None], dim=0)
    lib.std(input=S, dim=0, correction=0)
    lib.var_mean(S, dim=0, unbiased=False)[0]
    lib.histogram(v.clone(), bins=3, range=(-1., 1.), weight=v, density=False)[0]
    lib.quantile(input=v, q=0.3, interpolation="lower")
    lib.searchsorted(sorted_sequence=v.sort()[0], input=v, side="right")
    lib.bucketize(v, boundaries=v.sort()[0], right=True)
    lib.unique(S, return_inverse=True, dim=0)[0]
    lib.as_tensor(data=[1.])
    lib.asarray(obj=[1.])
    lib.tensor(data=[1.])
    lib.sort(input=v, descending=True, stable=True)[0]
    lib.topk(input=v, k=2, largest=False, sorted=True)[0]
    lib.clamp(v, min=v, max=v+1)
    lib.special.round(v, decimals=1)
    lib.round(v, decimals=1)
    lib.special.softmax(v, 0, dtype=lib.float64)
    lib.special.log_softmax(ii, 0, dtype=lib.float64)
    lib.norm(v, p=1)
    lib.dist(v, v, p=1)
    lib.cdist(S, S, p=1.0)
    lib.renorm(S, p=1, dim=0, maxnorm=1)
    lib.cosine_similarity(S, S, dim=0)
    lib.nn.functional.embedding(input=ii, weight=S)
    lib.nn.functional.pad(input=S, pad=(1, 1), mode="constant", value=2.)
    lib.nn.functional.gelu(v, approximate="tanh")
    lib.nn.functional.huber_loss(v, v+1, reduction="mean", delta=1., weight=None)
    lib.nn.functional.mse_loss(v, v+1, weight=v.abs())
    lib.nn.functional.l1_loss(v, v+1, weight=v.abs())
    lib.nn.functional.huber_loss(v, v+3, weight=v.abs())
    lib.nn.functional.dropout(input=v, p=0., training=True, inplace=False)
    lib.nn.functional.interpolate(input=S[None, None], scale_factor=2, mode="nearest", recompute_scale_factor=True)
    lib.nn.functional.grid_sample(S[None, None], lib.zeros(1, 2, 2, 2), padding_mode="border", align_corners=False)
    lib.nn.functional.layer_norm(input=S, normalized_shape=[3])
    lib.nn.functional.rms_norm(S, (3, ))
    lib.nn.functional.batch_norm(S, None, None, training=True)
    lib.nn.functional.elu_(v.clone(), alpha=0.5)
    lib.fft.fft(input=v, n=4, dim=-1, norm="ortho").abs()
    lib.fft.fftfreq(n=4, d=0.5, dtype=lib.float64)
    lib.stft(lib.ones(16), n_fft=4, return_complex=True, window=lib.ones(4)).abs()
    lib.autograd.grad((v.clone().requires_grad_()*2).sum(), [S.clone().requires_grad_()], allow_unused=True)[0] is None
    lib.sum(S, dim=0, keepdim=True, dtype=lib.float64)
    lib.sum(S, axis=0)
    lib.cumsum(v, dim=0, dtype=lib.float64)
    lib.prod(S, dim=1)
    lib.addcmul(v, v, v, value=2)
    lib.sub(v, v, alpha=2)
    lib.add(input=v, other=v, alpha=2)
    lib.div(v, 2, rounding_mode="floor")
    lib.pow(input=v, exponent=2)
    lib.where(condition=v>0, input=v, other=0.)
    lib.gather(input=v, dim=0, index=ii, sparse_grad=False)
    lib.take_along_dim(v, indices=ii, dim=0)
    lib.triu_indices(row=3, col=3, offset=1)
    lib.svd(S, some=True, compute_uv=True)[1]
    lib.pinverse(S, rcond=1e-10)
    lib.logsumexp(S, dim=(0, 1))
    lib.bincount(ii, weights=v[:2], minlength=5)
    lib.multinomial(v.abs(), num_samples=1, replacement=True).shape
    lib.bernoulli(v*0, generator=None)
    lib.nan_to_num(v, nan=0., posinf=1., neginf=2.)
    lib.diff(v, n=1, prepend=v[:1])
    lib.trapezoid(y=v, x=v)
    lib.cov(S, correction=0, fweights=None)
    lib.allclose(input=v, other=v, rtol=1e-3)
    lib.equal(v, v)
    lib.nonzero(v, as_tuple=True)[0]
    lib.argsort(v, dim=0, descending=True, stable=True)
    lib.repeat_interleave(v, repeats=2, dim=0, output_size=6)
    lib.unflatten(v, dim=0, sizes=(3, 1))
    lib.rot90(S, k=1, dims=(0, 1))
    lib.linalg.svd(S[:2]).Vh.shape
    lib.linalg.svd(S[:2], full_matrices=False).Vh.shape
    lib.linalg.qr(S[:, :2], mode="complete").Q.shape
    lib.linalg.qr(S, mode="r")
    lib.linalg.cholesky_ex(S)
    lib.linalg.cholesky_ex(-S).info
    lib.linalg.inv_ex(S)
    lib.linalg.inv_ex(S * 0).info
    lib.linalg.solve_ex(S, v)
    lib.linalg.solve_ex(A=S, B=S, left=False)
    lib.linalg.lu_factor_ex(S)
    lib.lu_unpack(*lib.linalg.lu_factor(S), unpack_data=False)
    lib.lu_unpack(*lib.linalg.lu_factor(S), unpack_pivots=False)
    lib.linalg.lstsq(S[:, :2], S, driver="gels").residuals
    lib.nn.functional.huber_loss(v, v + 3, weight=v.abs(), reduction="sum")
"""


def plain(value: Any) -> Any:
    """What a call gave, as torch's tensors and as text."""
    if isinstance(value, (tuple, list)) and not isinstance(value, (torch.Size, flow.Size)):
        return [plain(v) for v in value]
    if isinstance(value, flow.Tensor):
        return value.detach().to_torch()
    return value.detach().resolve_conj() if isinstance(value, torch.Tensor) else str(value).replace("weft", "torch")


def same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif isinstance(theirs, torch.Tensor):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=True)
    else:
        assert ours == theirs


def given(lib: Any, call: str) -> Any:
    made = (lambda t: t.clone()) if lib is torch else (lambda t: of_torch(t.clone()))
    space = {"lib": lib, "S": made(MATRIX), "v": made(VECTOR), "ii": lib.tensor([0, 2])}
    return plain(eval(call, space))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_a_call_says_the_same(call: str) -> None:
    same(given(flow, call), given(torch, call))


def test_what_may_not_be_is_said_only_if_asked_for() -> None:
    singular = flow.zeros(2, 2)
    for f in (flow.linalg.inv_ex, flow.linalg.cholesky_ex, flow.linalg.lu_factor_ex):
        assert f(singular).info.item() > 0
        with pytest.raises(OpError, match="info is"):
            f(singular, check_errors=True)
    with pytest.raises(OpError, match="no inverse"):
        flow.linalg.solve_ex(singular, flow.ones(2), check_errors=True)


def test_they_have_the_gradient_of_the_others() -> None:
    for name, plain_name in (("inv_ex", "inv"), ("cholesky_ex", "cholesky")):
        grads = []
        for n in (name, plain_name):
            x = of_torch(MATRIX.clone()).requires_grad_()
            y = getattr(flow.linalg, n)(x)
            (y[0] if n == name else y).square().sum().backward()
            grads.append(x.grad)
        assert grads[0].equal(grads[1])


def test_an_argument_given_by_place_and_by_another_name_is_refused() -> None:
    """Rather than one of the two passing unseen."""
    x, tried = flow.ones(2, 3), 0
    for where, home in (("flow", flow), ("neural", flow.nn.functional), ("tensor", flow.Tensor)):
        for name, f in ADAPTERS[where].items():
            if next(iter(inspect.signature(f).parameters), None) == "x" and hasattr(home, name):
                with pytest.raises(WeftError):
                    getattr(home, name)(x, input=flow.zeros(4))
                tried += 1
    assert tried > 400
