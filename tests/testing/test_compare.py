"""Comparing tensors: torch's judgement of the logical values."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from weft.launch import spawn_threads

SAME: list[tuple[Any, Any]] = [
    (flow.ones(2), flow.ones(2) + 1e-9),
    ([flow.ones(2), flow.zeros(1)], [flow.ones(2), flow.zeros(1)]),
    ({"a": flow.ones(2, requires_grad=True)}, {"a": flow.ones(2)}),
    (flow.ones(2), flow.ones(2).to_torch()),
]
OTHER: list[tuple[Any, Any, dict[str, Any], str]] = [
    (flow.ones(2), flow.tensor([1.0, 2.0]), {}, "Mismatched elements: 1 / 2"),
    (flow.ones(2), flow.ones(3), {}, "shape"),
    (flow.ones(2), flow.ones(2).double(), {}, "dtype"),
    (flow.ones(2), flow.tensor([float("nan"), 1.0]), {"equal_nan": True}, "Mismatched"),
    ({"a": flow.ones(1)}, {"b": flow.ones(1)}, {}, "keys"),
    (flow.ones(2), flow.zeros(2), {"msg": "not so"}, "not so"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_what_is_close(a: Any, b: Any) -> None:
    flow.testing.assert_close(a, b)


@pytest.mark.parametrize(("a", "b", "options", "words"), OTHER)
def test_what_is_not(a: Any, b: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        flow.testing.assert_close(a, b, **options)


def test_how_near() -> None:
    flow.testing.assert_close(flow.ones(2), flow.ones(2) * 1.1, rtol=0.2, atol=0.0)
    flow.testing.assert_close(flow.ones(2), flow.ones(2).double(), check_dtype=False)


def test_global_tensors_stand_for_their_whole() -> None:
    def on_two_ranks() -> None:
        x = flow.arange(4.0, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))
        flow.testing.assert_close(x, flow.arange(4.0))
        with pytest.raises(AssertionError):
            flow.testing.assert_close(x, flow.zeros(4))

    spawn_threads(2, on_two_ranks)
