"""Softmax in clusters, tables trained by frequency, modules that stand for others: torch's values and gradients."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import IndexingError, OptionError, ShapeError
from weft.launch import spawn_threads

LABELS = torch.tensor([0, 9, 4, 2, 5, 1, 9])


def pair(**options: Any) -> tuple[Any, Any]:
    """torch's layer, and ours with its weights."""
    torch.manual_seed(0)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.0, **options)
    mine = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.0, **options)
    mine.load_state_dict({k: flow.tensor(v) for k, v in theirs.state_dict().items()})
    return theirs, mine


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("labels", [LABELS, torch.tensor([0, 1]), torch.tensor([7]), torch.tensor(3)])
def test_a_softmax_in_clusters(bias: bool, labels: torch.Tensor) -> None:
    theirs, mine = pair(head_bias=bias)
    x = torch.randn(*labels.shape, 8)
    expected = theirs(x, labels)
    expected.loss.backward()
    got = mine(flow.tensor(x), flow.tensor(labels))
    got.loss.backward()
    torch.testing.assert_close(got.output.detach().to_torch(), expected.output.detach())
    torch.testing.assert_close(got.loss.detach().to_torch(), expected.loss.detach())
    for (name, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        wanted = torch.zeros_like(q) if q.grad is None else q.grad
        torch.testing.assert_close(torch.zeros_like(q) if p.grad is None else p.grad.to_torch(), wanted, msg=name)
    if labels.ndim:
        torch.testing.assert_close(mine.log_prob(flow.tensor(x)).detach().to_torch(), theirs.log_prob(x).detach())
        assert mine.predict(flow.tensor(x)).tolist() == theirs.predict(x).tolist()


def test_a_softmax_in_clusters_in_a_graph_and_over_ranks() -> None:
    theirs, mine = pair()
    x = torch.randn(7, 8)
    expected = theirs(x, LABELS)

    class Scores(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = mine

        def build(self, x: Any, labels: Any) -> Any:
            return tuple(self.layer(x, labels))

    output, loss = Scores()(flow.tensor(x), flow.tensor(LABELS))
    torch.testing.assert_close(output.detach().to_torch(), expected.output.detach())
    torch.testing.assert_close(loss.detach().to_torch(), expected.loss.detach())

    layers = [pair()[1] for _ in range(2)]  # here: torch's seeds are those of all threads

    def on_two_ranks() -> None:
        placement = flow.placement("cpu", [0, 1])
        layer = layers[flow.env.get_rank()].to_global(placement=placement, sbp=flow.sbp.broadcast)
        split = {"placement": placement, "sbp": flow.sbp.split(0)}
        got = layer(flow.tensor(x, **split), flow.tensor(LABELS, **split))
        torch.testing.assert_close(torch.as_tensor(got.output.detach().numpy()), expected.output.detach())

    spawn_threads(2, on_two_ranks)


def test_what_a_softmax_in_clusters_refuses() -> None:
    _, mine = pair()
    for cutoffs in ([], [3, 3], [5, 2], [0, 2], [2, 10]):
        with pytest.raises(OptionError, match="cutoffs should be a sequence of"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs)
    with pytest.raises(IndexingError, match=r"labels are 0 to 9; got 10"):
        mine(flow.ones(2, 8), flow.tensor([1, 10]))
    with pytest.raises(ShapeError, match=r"\(batch, in_features\).*\[2, 8\] and \[3\]"):
        mine(flow.ones(2, 8), flow.tensor([1, 2, 3]))


IDS = torch.tensor([[0, 1, 1], [5, 1, 0]])


@pytest.mark.parametrize("padding", [None, 1])
def test_a_table_trained_by_frequency(padding: int | None) -> None:
    table, weights = torch.randn(6, 3), torch.randn(2, 3, 3)
    found = []
    for m in (flow, torch):
        layer: Any = m.nn.Embedding.from_pretrained(m.as_tensor(table), False, padding, scale_grad_by_freq=True)
        (layer(m.as_tensor(IDS)) * m.as_tensor(weights)).sum().backward()
        found.append(torch.as_tensor(layer.weight.grad.numpy()))
    torch.testing.assert_close(found[0], found[1])


def test_a_table_that_is_frozen() -> None:
    table = flow.ones(6, 3)
    for frozen in (True, False):
        for layer in (
            nn.Embedding.from_pretrained(table, frozen), nn.Embedding(6, 3, _weight=table, _freeze=frozen),
            nn.Embedding(6, 3, None, None, 2.0, False, False, None, frozen),
        ):  # fmt: skip
            assert layer.weight.requires_grad is not frozen


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_a_table_trained_by_frequency_are_sums_of_its_rows(mode: str) -> None:
    found = []
    for bagged in (True, False):
        table = flow.ones(6, 3, requires_grad=True)
        if bagged:
            y = nn.functional.embedding_bag(flow.tensor(IDS), table, mode=mode, scale_grad_by_freq=True)
        else:
            y = getattr(nn.functional.embedding(flow.tensor(IDS), table, scale_grad_by_freq=True), mode)(1)
        (y * flow.tensor([[1.0], [3.0]])).sum().backward()
        found.append(table.grad)
    assert flow.allclose(found[0], found[1])
    with pytest.raises(OptionError, match="max"):
        nn.EmbeddingBag(3, 2, mode="max", scale_grad_by_freq=True)(flow.tensor([[1]]))


@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("starts", [None, [0, 2, 2, 5]])
@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted"])
def test_bags_and_their_derivatives(mode: str, starts: Any, padding: int | None) -> None:
    found = []
    for lib in (flow, torch):
        torch.manual_seed(0)
        table, factors, ids = torch.randn(6, 3), torch.randn(6), torch.tensor([1, 4, 2, 1, 5, 4])
        if starts is None:
            factors, ids = factors.reshape(2, 3), ids.reshape(2, 3)
        table, factors, ids = (t if lib is torch else flow.from_torch(t) for t in (table, factors, ids))
        options: dict[str, Any] = {"mode": "sum", "per_sample_weights": factors.requires_grad_()}
        if mode != "weighted":
            options = {"mode": mode}
        wanted = [table.requires_grad_(), *([factors] if mode == "weighted" else [])]
        offsets = None if starts is None else lib.tensor(starts)
        y = lib.nn.functional.embedding_bag(ids, table, offsets, padding_idx=padding, **options)
        first = lib.autograd.grad((y * y).sum(), wanted, retain_graph=True)
        found.append([y.detach(), *first])
        if lib is flow:  # torch has no second derivatives: those of ops are the first ones
            again = lib.autograd.grad((y * y).sum(), wanted, create_graph=True)
            for a, b in zip(first, again, strict=True):
                torch.testing.assert_close(b.detach().to_torch(), a.to_torch())
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine.to_torch(), theirs)


def test_bags_of_rows_held_to_a_norm() -> None:
    table, found = torch.randn(6, 3), []
    for m in (flow, torch):
        layer: Any = m.nn.EmbeddingBag(6, 3, max_norm=0.5, mode="sum", _weight=m.as_tensor(table).clone())
        found += [layer(m.as_tensor(IDS)).tolist(), layer.weight.tolist()]
    assert found[0] == [pytest.approx(row, rel=1e-5) for row in found[2]]
    assert found[1] == [pytest.approx(row, rel=1e-5) for row in found[3]]


OFFSETS: list[tuple[Any, Any, dict[str, Any]]] = [
    (IDS[0], [1, 2], {}), (IDS[0], [0, 9], {}), (IDS[0], [1, 0], {}),
    (IDS[0], [[0]], {}), (IDS[0], [0.0, 1.0], {}), (IDS[0], None, {}), (IDS, [0, 1], {}), (IDS[None], None, {}),
    (IDS[0], [0], {"padding_idx": 6}), (IDS[0], [0], {"padding_idx": -7}),
    (IDS, None, {"per_sample_weights": [1.0] * 6, "mode": "sum"}),
]  # fmt: skip


@pytest.mark.parametrize(("ids", "offsets", "options"), OFFSETS)
def test_bags_that_do_not_partition_their_input(ids: Any, offsets: Any, options: dict[str, Any]) -> None:
    for lib in (torch, flow):
        given = {n: lib.tensor(v) if n == "per_sample_weights" else v for n, v in options.items()}
        starts = None if offsets is None else lib.tensor(offsets)
        with pytest.raises((ValueError, RuntimeError)):
            lib.nn.functional.embedding_bag(lib.as_tensor(ids), lib.ones(6, 3), starts, **given)


def test_what_lies_after_the_last_bag_is_in_none() -> None:  # in torch of sums; its means and maxima take it in
    table = torch.randn(6, 3)
    found = [
        lib.nn.functional.embedding_bag(
            lib.tensor([4, 1, 5, 2]), lib.as_tensor(table), lib.tensor([0, 1, 3]), mode="sum", include_last_offset=True
        ).tolist()
        for lib in (flow, torch)
    ]
    assert found[0] == [pytest.approx(row, rel=1e-5) for row in found[1]]


def test_a_padding_row_that_is_not_there() -> None:
    for lib in (torch, flow):
        with pytest.raises((AssertionError, ValueError), match="adding_idx must be within"):
            lib.nn.functional.embedding(lib.as_tensor(IDS), lib.ones(6, 3), padding_idx=6)


def test_data_parallel_is_the_module_itself() -> None:
    inner = nn.Linear(3, 2)
    model = nn.DataParallel(inner)
    x = flow.ones(4, 3)
    assert flow.equal(model(x), inner(x)) and model.module is inner
    assert list(model.state_dict()) == list(torch.nn.DataParallel(torch.nn.Linear(3, 2)).state_dict())
    model.load_state_dict({k: flow.zeros_like(v) for k, v in model.state_dict().items()})
    assert model.eval()(x).sum().item() == 0.0 and not inner.training
    with pytest.raises(OptionError, match=r"one process drives one device.*DistributedDataParallel"):
        nn.DataParallel(inner, device_ids=[0, 1])


def test_layers_that_learn_their_size() -> None:
    for lazy, usual, shape in (
        (nn.LazyConvTranspose1d(2, 3), nn.ConvTranspose1d, (2, 4, 5)),
        (nn.LazyConvTranspose2d(2, 3), nn.ConvTranspose2d, (2, 4, 5, 5)),
        (nn.LazyConvTranspose3d(2, 3), nn.ConvTranspose3d, (2, 4, 5, 5, 5)),
        (nn.LazyInstanceNorm1d(), nn.InstanceNorm1d, (2, 4, 5)),
        (nn.LazyInstanceNorm2d(affine=True), nn.InstanceNorm2d, (2, 4, 5, 5)),
        (nn.LazyInstanceNorm3d(), nn.InstanceNorm3d, (2, 4, 5, 5, 5)),
    ):
        y: Any = lazy(flow.randn(*shape))
        assert type(lazy) is usual and y.ndim == len(shape)


def test_lazy_layers_have_the_defaults_of_torchs() -> None:
    for name in (n for n in nn.__all__ if n.startswith("Lazy")):
        ours, theirs = (inspect.signature(getattr(lib, name).__init__).parameters for lib in (nn, torch.nn))
        told = {k: p.default for k, p in theirs.items() if p.default is not inspect.Parameter.empty}
        assert {k: ours[k].default for k in told} == told, name
    for args in ((), (1e-5, 0.1, False), (1e-5, 0.1, False, False)):
        ours, theirs = nn.LazyInstanceNorm1d(*args), torch.nn.LazyInstanceNorm1d(*args)  # type: ignore[assignment]
        ours(flow.ones(2, 3, 4)), theirs(torch.ones(2, 3, 4))  # type: ignore[operator]
        assert list(ours.state_dict()) == list(theirs.state_dict())  # type: ignore[attr-defined]


def test_norms_of_windows_of_volumes() -> None:
    x = torch.rand(2, 3, 4, 4, 4)
    rows: list[Any] = [(2.0, 2), (3.0, (2, 1, 2), 1)]
    for args in rows:
        expected = torch.nn.functional.lp_pool3d(x, *args)
        torch.testing.assert_close(nn.LPPool3d(*args)(flow.tensor(x)).to_torch(), expected)
