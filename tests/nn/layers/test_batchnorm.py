"""Statistics over ranks against those of the whole batch on one."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft.launch import spawn_threads
from weft.tensor.tensor import of_torch

WHOLE = torch.linspace(-2, 3, 5 * 2 * 3).reshape(5, 2, 3).sin()
PARTS = (WHOLE[:2], WHOLE[2:])  # uneven


def test_batches_of_all_ranks_are_one() -> None:
    x = WHOLE.clone().requires_grad_()
    theirs = torch.nn.BatchNorm1d(2)
    expected = theirs(x)
    expected.pow(3).sum().backward()
    assert x.grad is not None

    def run() -> Any:
        net = flow.nn.SyncBatchNorm.convert_sync_batchnorm(flow.nn.Sequential(flow.nn.BatchNorm1d(2)))
        mine = of_torch(PARTS[flow.env.get_rank()].clone()).requires_grad_()
        y = net(mine)
        y.pow(3).sum().backward()
        layer = net[0]
        return [t.detach().numpy() for t in (y, mine.grad, layer.running_mean, layer.running_var, layer.weight.grad)]

    first, second = spawn_threads(2, run)
    np.testing.assert_allclose(np.concatenate([first[0], second[0]]), expected.detach(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([first[1], second[1]]), x.grad, rtol=1e-3, atol=1e-5)
    for mine in (first, second):
        np.testing.assert_allclose(mine[2], theirs.running_mean, rtol=1e-5)
        np.testing.assert_allclose(mine[3], theirs.running_var, rtol=1e-5)
    np.testing.assert_allclose(first[4] + second[4], theirs.weight.grad, rtol=1e-4)


def test_a_group_of_ranks_shares_its_batches_alone() -> None:
    def run() -> Any:
        pair = [0, 1] if flow.env.get_rank() < 2 else [2, 3]
        net = flow.nn.SyncBatchNorm(2, affine=True, process_group=pair, **unbiased)
        return net(of_torch(PARTS[flow.env.get_rank() % 2].clone() + pair[0])).detach().numpy()

    has_bias = "bias" not in inspect.signature(torch.nn.SyncBatchNorm).parameters  # always, before torch 2.12
    unbiased: dict[str, Any] = {} if has_bias else {"bias": False}
    expected = torch.nn.BatchNorm1d(2)(WHOLE).detach()
    made = spawn_threads(4, run)
    for pair in (made[:2], made[2:]):  # each is centred, wherever it was
        np.testing.assert_allclose(np.concatenate(pair), expected, rtol=1e-4, atol=1e-5)


def test_alone_it_is_batch_norm() -> None:
    ours, plain = flow.nn.SyncBatchNorm(2), flow.nn.BatchNorm1d(2)
    assert list(ours.state_dict()) == list(plain.state_dict())
    x = of_torch(WHOLE)
    assert ours(x).equal(plain(x)) and ours.eval()(x).equal(plain.eval()(x))


def test_sums_over_ranks_carry_gradients() -> None:
    def run() -> tuple[list[float], list[float]]:
        x = flow.tensor([flow.env.get_rank() + 1.0], requires_grad=True)
        y = flow.nn.AllReduce()(x * x)
        (y * y).sum().backward()
        assert x.grad is not None
        return y.tolist(), x.grad.tolist()

    assert spawn_threads(2, run) == [([5.0], [40.0]), ([5.0], [80.0])]


SHAPES = [(0, 3), (0, 3, 2), (2, 3, 0), (0, 3, 0, 4)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("training", [True, False])
def test_of_an_empty_batch(shape: tuple[int, ...], training: bool) -> None:
    found: list[Any] = []
    for lib in (torch, flow):
        x, w, b = (lib.ones(*s, requires_grad=True) for s in (shape, (3,), (3,)))
        mean, var = lib.zeros(3), lib.ones(3)
        y = lib.nn.functional.batch_norm(x, mean, var, w, b, training)
        grads = lib.autograd.grad(y.sum(), [x, w, b], create_graph=True)
        found.append([tuple(y.shape), mean.tolist(), var.tolist(), [(tuple(g.shape), g.tolist()) for g in grads]])
    assert found[0] == found[1]


def test_of_an_empty_batch_over_ranks() -> None:
    def run() -> list[Any]:
        where = {"placement": flow.placement("cpu", ranks=[0, 1]), "sbp": flow.sbp.broadcast}
        mean, var = flow.zeros(3, **where), flow.ones(3, **where)
        x = flow.ones(0, 3, 4, placement=where["placement"], sbp=flow.sbp.split(0), requires_grad=True)
        flow.nn.functional.batch_norm(x, mean, var, None, None, True).sum().backward()
        return [mean.numpy().tolist(), var.numpy().tolist(), tuple(x.grad.shape)]

    assert spawn_threads(2, run) == [[[0.0] * 3, [1.0] * 3, (0, 3, 4)]] * 2


def _parts(dtype: torch.dtype, rank: int) -> torch.Tensor:
    """A batch of which the last rank has nothing."""
    whole = (torch.linspace(0, 900, 80 * 2 * 40).reshape(80, 2, 40).sin() * 3 + 20).to(dtype)
    return whole[rank * 40 : rank * 40 + 40]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_of_batches_of_any_dtype_and_empty_ones_over_ranks(dtype: torch.dtype) -> None:
    x = torch.cat([_parts(dtype, r) for r in range(3)]).requires_grad_()
    theirs = torch.nn.BatchNorm1d(2, dtype=dtype if dtype is torch.float64 else None)
    expected = theirs(x)
    expected.float().pow(3).sum().backward()
    assert x.grad is not None

    def run() -> Any:
        layer = flow.nn.SyncBatchNorm(2, dtype=flow.float64 if dtype is torch.float64 else None)
        mine = of_torch(_parts(dtype, flow.env.get_rank())).requires_grad_()
        y = layer(mine)
        y.float().pow(3).sum().backward()
        assert y.dtype is mine.dtype and mine.grad is not None
        return [t.detach().float().numpy() for t in (y, mine.grad, layer.running_mean, layer.running_var)]

    made = spawn_threads(3, run)
    close: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4} if dtype.itemsize > 2 else {"rtol": 2e-2, "atol": 2e-2}
    np.testing.assert_allclose(np.concatenate([m[0] for m in made]), expected.detach().float(), **close)
    np.testing.assert_allclose(np.concatenate([m[1] for m in made]), x.grad.float(), **close)
    for mine in made:
        np.testing.assert_allclose(mine[2], theirs.state_dict()["running_mean"].float(), rtol=1e-5)
        np.testing.assert_allclose(mine[3], theirs.state_dict()["running_var"].float(), rtol=1e-4)


def test_a_rank_may_evaluate_alone() -> None:
    def run() -> Any:
        layer = flow.nn.SyncBatchNorm(2, track_running_stats=False).eval()
        return layer(of_torch(WHOLE)).numpy() if flow.env.get_rank() == 0 else None

    expected = torch.nn.BatchNorm1d(2, track_running_stats=False).eval()(WHOLE).detach()
    np.testing.assert_allclose(spawn_threads(2, run)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("momentum", [None, 0.1])
def test_batches_need_not_be_counted(momentum: float | None) -> None:
    found: list[Any] = []
    for lib in (torch, flow):
        layer: Any = lib.nn.BatchNorm1d(2, momentum=momentum)
        layer.num_batches_tracked = None
        y = layer(lib.as_tensor(WHOLE))
        found.append([y.detach().numpy(), layer.running_mean.numpy(), layer.running_var.numpy()])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def _layouts() -> list[Any]:
    place, split = flow.placement("cpu", ranks=[0, 1]), flow.sbp.split
    mean, var = (f(3, placement=place, sbp=flow.sbp.broadcast) for f in (flow.zeros, flow.ones))
    x = flow.randn(4, 3, 2, placement=place, sbp=split(0))
    return [flow.nn.functional.batch_norm(x, mean, var, training=True).sbp, mean.sbp, var.sbp]


def test_a_split_batch_stays_split() -> None:
    for y, mean, var in spawn_threads(2, _layouts):
        assert y == (flow.sbp.split(0),) and mean == var == (flow.sbp.broadcast,)
