"""OneFlow's forms of `flow._C`, beside what they say in torch's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import weft as flow
from tests.functional.test_values import rand
from weft.core.errors import ArgumentError
from weft.launch.threads import spawn_threads
from weft.tensor.tensor import of_torch

F: Any = flow.nn.functional
C: Any = flow._C  # some of its forms are told by their arguments alone
A, IDS = rand(2, 3, 4), torch.tensor([[1, 0], [2, 2]])


def same(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours.to_torch(), theirs)


def test_slices_along_an_axis() -> None:
    same(C.gather(of_torch(A[0]), of_torch(IDS), axis=0), A[0][IDS])
    same(C.gather(of_torch(A), of_torch(IDS), 1), A[:, IDS])
    same(C.gather(of_torch(A[0]), 0, of_torch(IDS)), A[0].gather(0, IDS))


def test_a_table_whose_rows_are_split() -> None:
    def run() -> Any:
        placement = flow.placement("cpu", [0, 1])
        table = of_torch(A[0]).to_global(placement, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
        rows = C.gather(table, of_torch(IDS).to_global(placement, flow.sbp.broadcast), axis=0)
        return rows.sbp, rows.numpy()

    for sbp, rows in spawn_threads(2, run):
        assert sbp == (flow.sbp.partial_sum,)
        torch.testing.assert_close(torch.from_numpy(rows), A[0][IDS])


def test_norms_from_a_dimension_on() -> None:
    plain = C.layer_norm(of_torch(A), begin_norm_axis=1, begin_params_axis=1, epsilon=1e-3)
    same(plain, TF.layer_norm(A, (3, 4), eps=1e-3))
    same(C.layer_norm(of_torch(A), (4,)), TF.layer_norm(A, (4,)))


def test_losses() -> None:
    scores, labels = of_torch(A[0]), of_torch(IDS.flatten()[:3])
    expected = TF.cross_entropy(A[0], IDS.flatten()[:3], reduction="none")
    same(C.sparse_softmax_cross_entropy(scores, labels), expected)
    same(C.cross_entropy(scores, labels.int(), None, -100, "none", 0.0), expected)
    same(C.nll_loss(scores, labels.int(), None, -100, "sum"), TF.nll_loss(A[0], IDS.flatten()[:3], reduction="sum"))


def test_ctc_with_the_width_of_the_targets() -> None:
    scores = A[:, :2].log_softmax(-1)
    given = scores, torch.tensor([[1], [3]]), torch.tensor([2, 2]), torch.tensor([1, 1])
    ours = [of_torch(t) for t in given]
    same(C.ctc_loss(*ours, 1, 0, True, "sum"), TF.ctc_loss(*given, 0, "sum", True))
    same(C.ctc_loss(*ours, blank=2, reduction="none"), TF.ctc_loss(*given, 2, "none"))


IN_PLACE: dict[str, Any] = {
    "add": lambda f, x, **o: f([x, flow.ones(3), flow.ones(3)], **o),
    "bernoulli": lambda f, x, **o: f(x, 1.0, **o),
    "comm_broadcast": lambda f, x, **o: f([x], **o)[0],
    "dropout": lambda f, x, **o: f(x, 1.0, True, **o),
    "hardshrink": lambda f, x, **o: f(x, 1.0, **o),
    "scatter": lambda f, x, **o: f(x, 0, flow.tensor([1]), 5.0, **o),
    "scatter_add": lambda f, x, **o: f(x, 0, flow.tensor([1]), flow.ones(1), **o),
    "softshrink": lambda f, x, **o: f(x, 1.0, **o),
    "tensor_scatter_nd_update": lambda f, x, **o: f(x, flow.tensor([[1]]), flow.tensor([5.0]), **o),
    "trunc_divide": lambda f, x, **o: f(x, 2, **o),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_inplace_by_keyword(name: str) -> None:
    call, x = IN_PLACE[name], flow.tensor([0.5, -1.5, 3.0])
    expected = call(getattr(C, name), x.clone())
    assert call(getattr(C, name), x, inplace=True) is x
    assert x.tolist() == expected.tolist()

    class Overwrites(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            y = x * 1.0
            call(getattr(C, name), y, inplace=True)
            return y

    if name != "comm_broadcast":
        assert Overwrites()(flow.tensor([0.5, -1.5, 3.0])).tolist() == expected.tolist()


@pytest.mark.parametrize("given", [(1.0, 0.0, (2,)), (flow.ones(2), 0.0)])
def test_normal_draws_into_out(given: Any) -> None:
    out = flow.zeros(2)
    assert flow.normal(*given, out=out) is out and out.tolist() == [1, 1]


def test_forms_of_what_pytorch_names_otherwise() -> None:
    x, index = of_torch(A[0]), of_torch(IDS)
    same(C.dim_gather(x, 1, index, False), A[0].gather(1, IDS))
    same(C.arg_sort(x, "DESCENDING"), A[0].argsort(descending=True))
    same(C.pixel_shuffle(flow.ones(1, 4, 3, 3), 2, 2), torch.ones(1, 1, 6, 6))
    same(C.unsorted_segment_sum(x, flow.tensor([0, 2, 0, 0]), 1, 3)[:, 2], A[0][:, 1])
    same(C.trunc_divide(input=x, other=0.3), torch.div(A[0], 0.3, rounding_mode="trunc"))
    with pytest.raises(ArgumentError, match="ASCENDING"):
        C.arg_sort(x, "down")


def test_losses_whose_options_stand_in_oneflows_order() -> None:
    x, y, w = A[0], A[1].sigmoid(), A[0, 0].abs()
    ours, target = of_torch(x), of_torch(y)
    same(F.smooth_l1_loss(ours, target, 0.3, "sum"), TF.smooth_l1_loss(x, y, beta=0.3, reduction="sum"))
    same(F.kl_div(ours, target, False, "sum"), TF.kl_div(x, y, reduction="sum"))
    same(F.kl_div(ours, target, True, "sum"), TF.kl_div(x, y, reduction="sum", log_target=True))
    expected = TF.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction="sum")
    same(F.binary_cross_entropy_with_logits(ours, target, None, of_torch(w), "sum"), expected)


def test_slices_by_lists() -> None:
    same(C.slice(of_torch(A), [0, 1, 0], [2, 3, 4], [1, 1, 2]), A[0:2, 1:3, 0:4:2])
    written = C.slice_update(flow.ones(5), flow.tensor([2.0, 3.0]), [1], [4], [2])
    assert written.tolist() == [1.0, 2.0, 1.0, 3.0, 1.0]


def test_attention_weights() -> None:
    scores = rand(2, 3, 3)
    hidden = torch.where(torch.ones(3, 3).tril().bool(), scores * 0.5, -10000.0).softmax(-1)
    dropped, weights = C.fused_scale_tril_softmax_mask_scale(
        of_torch(scores), p=0.0, diagonal=0, tril_scale_value=0.5, tril_fill_value=-10000.0
    )
    same(weights, hidden)
    same(dropped, hidden)
    source = flow.Generator().manual_seed(1)
    dropped, _ = C.fused_scale_tril_softmax_mask_scale(
        of_torch(scores), p=1.0, diagonal=0, tril_scale_value=0.5, generator=source
    )
    assert dropped.abs().sum().item() == 0
    mask = torch.tensor([[1, 1, 0]] * 3, dtype=torch.int8)
    got = C.fused_scale_mask_softmax_dropout(of_torch(scores), of_torch(mask), fill_value=-9.0, scale=2.0, p=0.0)
    same(got[0], torch.where(mask.bool(), scores * 2, -9.0).softmax(-1))


@pytest.mark.parametrize("training", [True, False])
def test_normalization_says_whether_it_trains(training: bool) -> None:
    x, mean, variance = A, torch.zeros(3), torch.ones(3)
    mean, variance = mean.double(), variance.double()
    expected = TF.batch_norm(x, mean.clone(), variance.clone(), training=training)
    got = C.normalization(of_torch(x), of_torch(mean), of_torch(variance), is_training=training)
    same(got, expected)


def test_a_norm_whose_weight_comes_before_its_shape() -> None:
    weight = rand(4)
    expected = TF.rms_norm(A, (4,), weight, 1e-3)
    same(C.rms_norm(of_torch(A), of_torch(weight), (4,), 1e-3), expected)
    same(C.rms_norm(of_torch(A), (4,), of_torch(weight), 1e-3), expected)
    same(C.rms_norm(of_torch(A), None, [3, 4], 1e-3), TF.rms_norm(A, (3, 4), eps=1e-3))


def test_one_hot_of_other_values() -> None:
    assert C.one_hot(of_torch(IDS), 3).tolist() == TF.one_hot(IDS, 3).tolist()
    assert C.one_hot(of_torch(IDS[0]), 2, 0.5, -1.0).tolist() == [[-1.0, 0.5], [0.5, -1.0]]


def test_an_argument_too_many_is_counted_behind_defaults() -> None:
    with pytest.raises(flow.errors.ArgumentError, match="takes 4 positional arguments but 5 were given"):
        C.one_hot(of_torch(IDS), 3, 1, 0, flow.float32)


def test_bounds_of_draws_by_either_name() -> None:
    bounds: Any = (np.float32(-3), np.int64(-2))
    drawn = [flow.empty(50).uniform_(**{low: -3, high: -2}) for low, high in (("a", "b"), ("from_", "to"))]
    drawn.append(flow.empty(50).uniform_(*bounds))
    assert all(-3 <= x.min().item() < x.max().item() <= -2 for x in drawn)
    with pytest.raises(flow.errors.ArgumentError, match="unexpected argument 'low'"):
        flow.empty(2).uniform_(**{"low": 1})


N, H = np.int64(2), np.float32(0.5)
OF_NUMPY = {
    "leaky_relu": lambda x, F: F.leaky_relu(x, H),
    "elu, overwriting": lambda x, F: F.elu_(x.clone(), H),
    "avg_pool2d": lambda x, F: F.avg_pool2d(x, N, stride=np.int64(1)),
    "conv2d": lambda x, F: F.conv2d(x, x[:, :, :2, :2], padding=np.int64(1)),
    "pool of a tuple": lambda x, F: F.max_pool2d(x, (N, N)),
    "split": lambda x, F: x.split(int(N), np.int64(3))[1],
    "chunk": lambda x, F: x.chunk(N, np.int64(2))[1],
    "sum": lambda x, F: x.sum(dim=N, keepdim=True),
    "std": lambda x, F: x.std(dim=N),
}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_numpys_numbers_fit_where_pythons_do(name: str) -> None:
    f, x = OF_NUMPY[name], rand(1, 1, 4, 4)
    ours, theirs = of_torch(x.clone()).requires_grad_(), x.clone().requires_grad_()
    got, expected = f(ours, flow.nn.functional), f(theirs, TF)
    same(got.detach(), expected.detach())
    got.sum().backward()
    expected.sum().backward()
    same(ours.grad, theirs.grad)
    same(f(of_torch(x.clone()), flow.nn.functional), expected.detach())  # without a gradient, by the shorter way
