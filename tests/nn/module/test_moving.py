"""A module that becomes global, local and global again keeps its value, whatever the layouts, and so do the states of
its optimizer."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import SbpError
from weft.launch import spawn_threads

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
LINE = [(S(0),), (S(1),), (B,), (P,)]
GRID = [(S(0), S(1)), (S(0), S(0)), (B, S(1)), (S(0), B), (P, S(0)), (S(1), P), (B, P)]
PLACES = {"line": ([0, 1, 2, 3], LINE), "some": ([1, 2], LINE), "grid": ([[0, 1], [2, 3]], GRID)}


def exchanged(m: Any) -> Any:
    m.weight = nn.Parameter(m.weight.detach().clone())
    return m


def cast(m: Any) -> Any:
    m.weight.data = m.weight.data.double()
    return m


# what may happen to a module while it is local
MEANWHILE: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda m: m,
    "another dtype": lambda m: m.double(),
    "another dtype by hand": cast,
    "a new parameter": exchanged,
    "a copy": copy.deepcopy,
    "a copy through bytes": lambda m: pickle.loads(pickle.dumps(m)),
    "a state loaded": lambda m: [m, m.load_state_dict({k: v.clone() for k, v in m.state_dict().items()})][0],
    "a state assigned": lambda m: [m, m.load_state_dict(m.state_dict(), assign=True)][0],
}


@pytest.mark.parametrize("place", PLACES)
def test_the_value_stays(place: str) -> None:
    ranks, layouts = PLACES[place]

    def each() -> None:
        where = flow.placement("cpu", ranks)
        whole = (B,) * where.ndim
        for n, (first, then) in enumerate(itertools.product(layouts, layouts)):
            m: Any = nn.Linear(3, 5, bias=False)  # 5 over 4 ranks is uneven, and 3 leaves one of them nothing
            flow.manual_seed(n)
            nn.init.normal_(m.weight)
            value = m.weight.tolist()
            m.to_global(where, first).weight.square().sum().backward()
            change = list(MEANWHILE.values())[n % len(MEANWHILE)]
            m = change(m.to_local()).to_global(where, then)
            assert m.weight.shape == (5, 3) and m.weight.sbp == then
            for t, by in ((m.weight, 1), (m.weight.grad, 2)):
                got = None if t is None else t.to_global(sbp=whole).to_local()
                if got is not None and got.numel():
                    assert flow.allclose(got.float(), flow.tensor(value) * by, atol=1e-5), (first, then, change)

    spawn_threads(4, each, deadline=60)


@on(2)
def test_a_parameter_of_its_own_keeps_its_value_too() -> None:
    where = flow.placement("cpu", [0, 1])
    w = nn.Parameter(flow.arange(10.0).reshape(5, 2)).to_global(where, S(0))
    again = nn.Parameter(w.detach().to_local().double().float().contiguous()).to_global(where, S(1))
    assert again.detach().numpy().tolist() == w.detach().numpy().tolist()
    assert w.detach().to_local().to_global(where, S(0)).shape == (5, 2)  # no parameter: parts, as any tensor


@on(2)
def test_gradients_that_were_found_for_a_part() -> None:
    where = flow.placement("cpu", [0, 1])
    m = nn.Linear(2, 4, bias=False).to_global(where, S(0)).to_local()
    (m.weight * (flow.env.get_rank() + 1.0)).sum().backward()
    assert m.to_global(where, S(0)).weight.grad.numpy()[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize("of", [nn.Linear, torch.nn.Linear])
@pytest.mark.parametrize(
    "like", [flow.ones(1).double(), torch.ones(1).double(), torch.device("cpu"), flow.device("cpu")]
)
def test_devices_and_tensors_of_either_kind_say_where_to(of: Any, like: Any) -> None:
    options = [] if isinstance(like, (flow.Tensor, torch.Tensor)) else [flow.float64]
    if of is nn.Linear and isinstance(like, torch.Tensor):
        like = flow.from_torch(like)
    assert of(2, 2).to(like, *options).weight.dtype == flow.float64


@on(2)
def test_other_memory_is_no_part() -> None:
    where = flow.placement("cpu", [0, 1])
    m = nn.Linear(2, 4, bias=False).to_global(where, S(0)).to_local()
    m.weight.data = flow.ones(4, 2)  # the whole
    assert m.to_global(where, S(0)).weight.shape == (4, 2)
    m.to_local().weight.data = flow.ones(3 + flow.env.get_rank(), 2)
    with pytest.raises(SbpError, match="holds a part of shape"):
        m.to_global(where, S(0))


@pytest.mark.parametrize("kind", ["SGD", "Adam", "LAMB", "NAdam"])
def test_an_optimizer_goes_on_with_a_module_that_moves(kind: str) -> None:
    def run(layouts: list[Any]) -> Any:
        where = flow.placement("cpu", [0, 1])
        m = nn.Linear(3, 5)
        for p in m.parameters():
            nn.init.constant_(p, 0.5)
        options = {"momentum": 0.9} if kind == "SGD" else {}
        optimizer = getattr(flow.optim, kind)(m.parameters(), lr=0.1, **options)
        for layout in layouts:
            if layout is not None:
                m.to_global(where, layout)
            elif m.weight.is_global:
                m.to_local()
            for p, value in zip(m.parameters(), (0.5, -1.0), strict=True):
                place = {"placement": where, "sbp": p.sbp} if p.is_global else {}
                p.grad = flow.full(tuple(p.shape), value, **place)
            optimizer.step()
        again = getattr(flow.optim, kind)(m.parameters(), lr=0.1, **options)
        again.load_state_dict(optimizer.state_dict())
        m.to_global(where, B)
        return m.weight.detach().numpy(), m.bias.detach().numpy()

    def each() -> None:
        alone = run([None] * 5)
        locally = [S(0), None, None, S(0), B] if kind != "LAMB" else [S(0), B, S(0), B, None]  # a part's own length
        for layouts in ([None, S(0), S(0), B, S(0)], locally, [B, None, S(0), B, None]):
            for got, wanted in zip(run(layouts), alone, strict=True):
                assert got == pytest.approx(wanted, rel=1e-5), layouts

    spawn_threads(2, each, deadline=60)


def test_a_rule_of_layouts_sees_whole_tensors_on_ranks_that_hold_nothing() -> None:
    def rule(path: str, t: flow.Tensor) -> Any:
        return S(0) if t.ndim else B

    def each() -> None:
        m, some, all_ = nn.BatchNorm1d(5), flow.placement("cpu", [1]), flow.placement("cpu", [0, 1, 2])
        m.to_global(some, rule).to_local().to_global(all_, rule).to_local().to_global(some, rule)
        assert m.running_var.shape == (5,) and m.num_batches_tracked.shape == ()

    spawn_threads(3, each, deadline=60)


def test_parameters_on_meta_take_a_layout_and_values_later() -> None:
    def run() -> list[Any]:
        where = flow.placement("cpu", [0, 1])
        with pytest.raises(flow.errors.DeviceError, match="on meta has no values"):
            flow.ones(2, device="meta").to_global(where, S(0))
        net = nn.Conv1d(2, 4, 3, device="meta").to_global(where, S(0))
        assert not net.weight.is_meta and net.weight.to_local().shape == (2, 2, 3)
        net.to_empty(device="cpu")
        flow.manual_seed(0)
        net.reset_parameters()
        assert net.weight.sbp == (S(0),) and isinstance(net.weight, nn.Parameter)
        return [p.numpy().tolist() for p in net.parameters()]

    torch.manual_seed(0)
    expected = [p.tolist() for p in torch.nn.Conv1d(2, 4, 3).parameters()]
    assert spawn_threads(2, run) == [expected, expected]
