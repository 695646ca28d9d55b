"""Sampled classes against the whole layer: the same logits for them, gradients in their rows, in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.ranks import on
from weft.core.errors import ArgumentError, IndexingError

LABELS = [7, 2, 7, 0]


def checked(weight: Any, label: Any, x: Any) -> None:
    sample = flow.nn.DistributedPariticalFCSample(6)
    place, classes, rows = sample(weight, label)
    kept = classes.numpy()
    assert kept[place.numpy()].tolist() == LABELS and len({*kept.tolist()}) == 6 and place.dtype is label.dtype
    assert np.array_equal(rows.numpy(), weight.numpy()[kept])
    flow.nn.functional.cross_entropy(flow.matmul(x, rows, transpose_b=True), place).backward()
    part = flow.tensor(weight.numpy()[kept], requires_grad=True)
    flow.nn.functional.cross_entropy(flow.tensor(x.numpy()) @ part.t(), flow.tensor(place.numpy())).backward()
    grad = weight.grad.numpy()
    assert np.allclose(grad[kept], part.grad.numpy(), atol=1e-6) and not np.delete(grad, kept, 0).any()


@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_on_one_device(kind: str) -> None:
    label = flow.tensor(LABELS, dtype=getattr(flow, kind))
    checked(flow.randn(9, 3, requires_grad=True), label, flow.randn(4, 3))


@on(2)
def test_split_by_rows() -> None:
    P, S, B = flow.placement("cpu", [0, 1]), flow.sbp.split, flow.sbp.broadcast
    for classes, sbp in ((8, S(0)), (9, S(0)), (8, B)):
        weight = flow.randn(classes, 3, placement=P, sbp=sbp, requires_grad=True)
        label = flow.tensor(LABELS, placement=P, sbp=B if classes == 8 else S(0))
        checked(weight, label, flow.randn(4, 3, placement=P, sbp=S(0)))
        _, drawn, _ = flow.distributed_partial_fc_sample(weight, label, 6)
        assert classes == 9 or sbp is B or sum(c < 4 for c in drawn.tolist()) == 3


def test_in_a_graph_each_launch_draws() -> None:
    weight = flow.nn.Parameter(flow.randn(400, 3))

    class Drawn(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = flow.nn.ParameterList([weight])

        def build(self, label: Any) -> Any:
            return flow.distributed_partial_fc_sample(self.layer[0], label, 20)[:2]

    graph = Drawn()
    (first, kept), (_, others) = graph(flow.tensor(LABELS)), graph(flow.tensor(LABELS))
    assert kept[first].tolist() == LABELS and kept.tolist() != others.tolist()


def test_a_class_that_did_not_fit_has_no_place() -> None:
    place, _, rows = flow.distributed_partial_fc_sample(flow.randn(9, 3), flow.tensor([1, 2, 3]), 2)
    assert sorted(place.tolist())[-1] == 2
    with pytest.raises(IndexingError, match="out of bounds"):
        flow.nn.functional.cross_entropy(flow.randn(3, 3) @ rows.t(), place)
    with pytest.raises(ArgumentError, match="10 of 9"):
        flow.distributed_partial_fc_sample(flow.randn(9, 3), flow.tensor([1]), 10)
