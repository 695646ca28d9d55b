"""First values: bounds and moments against torch's formulas, seeds, layouts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import ShapeError
from weft.launch.threads import spawn_threads
from weft.nn import init

SHAPE = (60, 20, 3)
LAWS: list[tuple[str, dict[str, Any]]] = [
    ("uniform_", {"a": -2.0, "b": 3.0}),
    ("normal_", {"mean": 1.0, "std": 0.5}),
    ("trunc_normal_", {"mean": 0.5, "std": 2.0, "a": -1.0, "b": 1.5}),
    ("xavier_uniform_", {"gain": 2.0}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {"a": 0.3}),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
]


@pytest.mark.parametrize("row", LAWS, ids=lambda r: r[0])
def test_a_law_has_torchs_moments(row: tuple[str, dict[str, Any]]) -> None:
    name, options = row
    torch.manual_seed(0)
    flow.manual_seed(0)
    theirs = getattr(torch.nn.init, name)(torch.empty(SHAPE), **options)
    x = flow.nn.Parameter(flow.empty(*SHAPE))
    assert getattr(init, name)(x, **options) is x and x.is_leaf and x.requires_grad
    ours = x.detach().to_torch()
    spread = theirs.std().item()
    assert ours.mean().item() == pytest.approx(theirs.mean().item(), abs=0.08 * spread)
    assert ours.std().item() == pytest.approx(spread, rel=0.05)
    if "uniform" in name or "trunc" in name:
        assert ours.min().item() == pytest.approx(theirs.min().item(), abs=0.05 * spread)
        assert ours.max().item() == pytest.approx(theirs.max().item(), abs=0.05 * spread)


@pytest.mark.parametrize("row", [*LAWS, ("orthogonal_", {}), ("sparse_", {"sparsity": 0.0})], ids=lambda r: r[0])
def test_a_generator_draws_torchs_numbers(row: tuple[str, dict[str, Any]]) -> None:
    name, options = row
    shape = (6, 4) if name == "sparse_" else SHAPE
    theirs = getattr(torch.nn.init, name)(torch.empty(shape), **options, generator=torch.Generator().manual_seed(3))
    before = flow.get_rng_state()
    ours = getattr(init, name)(flow.empty(*shape), **options, generator=flow.Generator().manual_seed(3))
    torch.testing.assert_close(ours.to_torch(), theirs)
    assert name == "sparse_" or flow.get_rng_state().equal(before)  # whose order is the rank's


def test_values() -> None:
    assert init.constant_(flow.empty(2), 3.0).tolist() == [3.0, 3.0]
    assert init.ones_(flow.empty(2)).tolist() == [1.0, 1.0] and init.zeros_(flow.empty(1)).tolist() == [0.0]
    assert init.eye_(flow.empty(2, 3)).tolist() == torch.eye(2, 3).tolist()
    expected = torch.nn.init.dirac_(torch.empty(4, 2, 3), groups=2)
    assert init.dirac_(flow.empty(4, 2, 3), groups=2).tolist() == expected.tolist()
    for shape in ((4, 6), (6, 4)):
        q = init.orthogonal_(flow.empty(*shape), gain=2.0).to_torch()
        small = q @ q.t() if shape[0] < shape[1] else q.t() @ q
        torch.testing.assert_close(small, 4.0 * torch.eye(4), rtol=1e-4, atol=1e-4)


def test_fans_and_gains_are_torchs() -> None:
    assert [init.calc_fan(SHAPE, m) for m in ("fan_in", "fan_out", "fan_sum", "fan_avg")] == [60, 180, 240, 120]
    assert init.calc_fan((8, 3, 3, 4), "fan_in", "NHWC") == 36
    for name in ("linear", "conv2d", "tanh", "relu", "selu", "leaky_relu"):
        assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


def test_a_global_parameter_gets_the_same_values_in_any_layout() -> None:
    def run() -> Any:
        placement, found = flow.placement("cpu", [0, 1]), []
        for sbp in (flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)):
            flow.manual_seed(7)
            x = flow.nn.Parameter(flow.empty(5, 3, placement=placement, sbp=sbp))
            found.append([getattr(init, n)(x).detach().numpy().tolist() for n in ("xavier_uniform_", "orthogonal_")])
            assert x.sbp == (sbp,)
        return found

    for found in spawn_threads(2, run):
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: init.xavier_uniform_(flow.empty(3)), "fewer than 2 dimensions"),
        (lambda: init.eye_(flow.empty(3)), "2 dimensions are supported"),
        (lambda: init.dirac_(flow.empty(3, 2, 1), groups=2), "divisible by groups"),
        (lambda: init.calculate_gain("swish"), "Unsupported nonlinearity"),
        (lambda: init.kaiming_normal_(flow.empty(2, 2), mode="fan"), "not supported"),
        (lambda: init.get_data_format("CHWN"), "NCHW or NHWC"),
    ],
)
def test_what_has_no_first_values(make: Any, says: str) -> None:
    with pytest.raises(flow.errors.WeftError, match=says):
        make()


def test_a_share_of_each_column_is_zero() -> None:
    torch.manual_seed(2)
    flow.manual_seed(2)
    expected, got = torch.nn.init.sparse_(torch.empty(5, 3), 0.5), flow.nn.init.sparse_(flow.empty(5, 3), 0.5)
    assert torch.equal(got.to_torch(), expected)
    assert flow.nn.init.xavier_normal is flow.nn.init.xavier_normal_
    with pytest.raises(ShapeError, match="takes a matrix"):
        flow.nn.init.sparse_(flow.empty(3), 0.5)
