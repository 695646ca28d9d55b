"""A test written with OneFlow's helpers runs on PyTorch and on Weft, and tells where they differ."""

from __future__ import annotations

import unittest
from typing import Any, cast

import numpy as np
import pytest
import torch as pytorch

import weft as flow
from tests.ranks import on
from weft.interop.oneflow import lazy_mode
from weft.oneflow.test_utils import automated_test_util as util
from weft.oneflow.test_utils.automated_test_util import (
    autotest,
    constant,
    globaltest,
    nothing,
    oneof,
    random,
    random_bool,
    random_tensor,
    torch,
)
from weft.oneflow.test_utils.test_util import (
    Array2Numpy,
    Coordinate2Index,
    FlattenArray,
    GenArgDict,
    GenArgList,
    Index2Coordinate,
)

theirs: Any = cast(Any, flow).unittest


def test_cases_run() -> None:
    class Case(theirs.TestCase):
        @autotest(n=3, check_dtype=True)
        def test_layer(self) -> Any:
            layer = torch.nn.Conv2d(3, random(2, 4), random(2, 4), bias=random_bool(), padding=random(0, 2) | nothing())
            x = random_tensor(ndim=4, dim1=3, dim2=8, dim3=8)
            return torch.nn.functional.relu(layer(x))

        @autotest(n=2)
        def test_methods_operators_and_lists(self) -> Any:
            x, k = random_tensor(ndim=2, dim1=4), random(1, 4).to(int)
            x.sort(dim=1, descending=oneof(True, False))
            y = torch.cat([x[:, :2] * k, 1 - x, x @ x.t() @ x], dim=1)
            return y.chunk(constant(2), dim=1)[1]

        @theirs.skip_unless_1n4d()
        def test_for_four(self) -> None:
            raise AssertionError

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful() and result.testsRun == 3 and len(result.skipped) == 1, result


@autotest(n=1)
def differ(change: Any) -> Any:
    x = random_tensor(ndim=2, dim1=3)
    change(x)
    return x * 2


def test_differences_are_told() -> None:
    with pytest.raises(AssertionError, match="tensor"):
        differ(lambda x: x.oneflow.detach().add_(1))
    with pytest.raises(AssertionError, match="gradient"):
        differ(lambda x: x.oneflow.register_hook(lambda g: g * 2))
    with pytest.raises(AssertionError, match="PyTorch refuses whatever is drawn"):
        differ(lambda x: x.view(5, 5, 5))


@pytest.mark.parametrize(
    "make", [lambda: torch.Tensor(2, 3), lambda: torch.ones(2, 3).new_empty(4), lambda: torch.empty(3)]
)
def test_what_nobody_wrote_yet_is_the_same_on_both(make: Any) -> None:
    """Two libraries' fresh memory differs by chance, and is no difference between them."""
    for _ in range(3):
        dirt = [flow.full((3 + i,), 7.0) for i in range(4)]
        del dirt
        autotest(n=1)(lambda: make().requires_grad_() * 2)()


def test_a_graph_that_differs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "tanh", lambda x: x.tanh() + float(lazy_mode.is_enabled()))
    with pytest.raises(AssertionError, match="tanh in a graph"):
        autotest(n=1)(lambda: torch.tanh(random_tensor(ndim=1)))()


def test_random_arguments() -> None:
    util.run.rng = np.random.default_rng(0)
    x = random(3, 5)
    assert x.value() == x.value() and (x + 1).value() == x.value() + 1 and (2 * x - 1).value() == 2 * x.value() - 1
    y = random(0, 9).to(int)
    assert len({y.eval() for _ in range(30)}) > 1
    assert all(0 <= random(0, 2).to(float).value() < 2 for _ in range(9))
    assert {oneof(1, 2).value() for _ in range(30)} == {1, 2}
    arguments = {"device": ["cpu", "cuda"], "n": [1, 2]}
    if not flow.cuda.is_available():
        assert list(GenArgList(arguments)) == [("cpu", 1), ("cpu", 2)]
        assert GenArgDict(arguments) == [{"device": "cpu", "n": 1}, {"device": "cpu", "n": 2}]


def test_global_tests_on_ranks() -> None:
    def program() -> None:
        @globaltest
        @autotest(n=1)
        def product(placement: Any, sbp: Any) -> Any:
            x = random_tensor(2, 4, random(2, 3) * 2).to_global(placement=placement, sbp=sbp)
            assert x.oneflow.is_global and x.oneflow.sbp == tuple(sbp)
            return torch.nn.functional.softmax(x, dim=1) @ x.t()

        for placement in util.all_placement():
            for sbp in util.all_sbp(placement, max_dim=2):
                product(placement, sbp)
        assert theirs.env.world_size() == 2
        assert len(util.all_sbp(dim=2, max_dim=1, valid_split_axis=0)) == 9
        assert isinstance(torch.pytorch.ones(1), pytorch.Tensor)

    on(2)(program)()


def test_a_random_argument_counts_by_its_value() -> None:
    assert constant(3) and constant(True) and constant([0]) and random(1, 5).to(int)
    assert not constant(0) and not constant(False) and not constant([]) and not random(0, 1).to(int)
    drawn = random_bool()
    assert bool(drawn) is drawn.value()


def test_places_in_arrays() -> None:
    array = np.arange(24).reshape(2, 3, 4).swapaxes(0, 1)
    flat = FlattenArray(array)
    assert flat == [int(i) for i in array.reshape(-1)] and np.array_equal(Array2Numpy(flat, array.shape), array)
    for i, value in enumerate(flat):
        place = Index2Coordinate(i, array.shape)
        assert array[tuple(place)] == value and Coordinate2Index(place, array.shape) == i
