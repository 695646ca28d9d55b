"""What a global call decides it decides once, from specs alone, and before anything moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import weft as flow
from weft.boxing import signature
from weft.core.errors import ShapeError
from weft.interpreter import eager_global
from weft.launch import spawn_threads
from weft.ops import OPS
from weft.ops.declaration import Op

S, B = flow.sbp.split, flow.sbp.broadcast


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The ops for which a layout was looked for."""
    eager_global._prepare.cache_clear()
    seen: list[str] = []
    plain = signature.choose

    def choose(op: Op, *given: Any, **named: Any) -> Any:
        seen.append(op.name)
        return plain(op, *given, **named)

    monkeypatch.setattr(signature, "choose", choose)
    yield seen
    eager_global._prepare.cache_clear()


def test_a_call_of_the_same_specs_and_attributes_is_decided_once(chosen: list[str]) -> None:
    place = flow.placement("cpu", ranks=[0])
    x, w = (flow.ones(4, 4, placement=place, sbp=s) for s in (S(0), B))
    del chosen[:]
    for _ in range(3):
        flow.matmul(x, w)
    assert chosen == ["matmul"]
    flow.matmul(x.to_global(sbp=B), w)  # another layout
    flow.softmax(x, 0)
    flow.softmax(x, 1)  # another attribute
    flow.matmul(flow.ones(2, 4, placement=place, sbp=S(0)), w)  # another shape
    assert [n for n in chosen if n in ("matmul", "softmax")] == ["matmul", "matmul", "softmax", "softmax", "matmul"]


def test_numbers_that_python_calls_equal_are_told_apart(chosen: list[str]) -> None:
    x = flow.ones(3, dtype=flow.int64, placement=flow.placement("cpu", ranks=[0]), sbp=B)
    assert [(x * factor).dtype for factor in (1, 1.0, True, 1)] == [flow.int64, flow.float32, flow.int64, flow.int64]
    assert chosen.count("mul") == 3


def test_what_can_not_be_is_refused_before_anything_moves_or_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    matmul = OPS["matmul"]
    kernel = matmul.kernel

    def watched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.device.type != "meta":
            ran.append("kernel")
        return kernel(a, b)

    def run() -> None:
        place = flow.placement("cpu", ranks=[0, 1])
        x, y = (flow.ones(4, 5, placement=place, sbp=s) for s in (S(0), S(1)))
        with pytest.raises(ShapeError, match="inner dimensions must agree"):
            flow.matmul(x, y)

    monkeypatch.setitem(vars(matmul), "kernel", watched)
    monkeypatch.setattr(eager_global, "along", lambda *a: ran.append("boxing"))
    spawn_threads(2, run)
    assert not ran
