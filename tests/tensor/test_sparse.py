"""Sparse tensors and gradients of their values are torch's; in graphs and on several ranks they are dense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft.core.errors import WeftError

PLACES, VALUES = [[0, 1, 1, 2, 1], [2, 0, 0, 1, 2]], [1.0, 2.0, 3.0, 4.0, 5.0]  # one place twice
USES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "added in place": lambda lib, s, w: w.clone().add_(s),
    "subtracted": lambda lib, s, w: w - s,
    "multiplied": lambda lib, s, w: lib.mm(s, w),
    "coalesced": lambda lib, s, w: s.coalesce() @ w,
    "dense": lambda lib, s, w: s.to_dense() * w,
}


class Used(flow.nn.Graph):
    def __init__(self, use: Any) -> None:
        super().__init__()
        self.use = use

    def build(self, i: Any, v: Any, w: Any) -> Any:
        return self.use(flow, flow.sparse_coo_tensor(i, v * 2, (3, 3)), w)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_sparse_tensor_and_its_gradients_are_torchs(use: Any) -> None:
    found = []
    for lib in (torch, flow):
        i = lib.tensor(PLACES, dtype=lib.int32)
        v, w = lib.tensor(VALUES, requires_grad=True), lib.arange(9.0).reshape(3, 3).requires_grad_()
        y = use(lib, lib.sparse_coo_tensor(i, v * 2, (3, 3), check_invariants=True), w)
        (y * lib.arange(9.0).reshape(3, 3)).sum().backward()
        found.append([y.tolist(), v.grad.tolist(), w.grad.tolist()])
    assert found[0] == found[1]
    i, v, w = flow.tensor(PLACES), flow.tensor(VALUES), flow.arange(9.0).reshape(3, 3)
    assert Used(use)(i, v, w).tolist() == found[0][0]

    @on(2)
    def run() -> None:
        p, b = flow.placement("cpu", [0, 1]), flow.sbp.broadcast
        y = use(flow, flow.sparse_coo_tensor(*(t.to_global(p, b) for t in (i, v * 2)), (3, 3)), w.to_global(p, b))
        assert y.numpy().tolist() == found[0][0]

    run()


def test_sizes_dtypes_and_places_of_sparse_tensors() -> None:
    s = flow.sparse_coo_tensor(PLACES, [1, 1, 1, 1, 1])
    assert s.is_sparse and s.shape == (3, 3) and s._nnz() == 5 and s.coalesce()._nnz() == 4
    assert s.to_dense().tolist() == torch.sparse_coo_tensor(PLACES, [1, 1, 1, 1, 1]).to_dense().tolist()
    first = flow.sparse_coo_tensor([[1, 0]], [2.0, 3.0], (2,), is_coalesced=True)
    assert first.is_coalesced() and first.indices().tolist() == [[0, 1]]
    rows = flow.sparse_coo_tensor([[1, 0]], [[1.0, 2.0], [3.0, 4.0]], (2, 2), dtype=flow.float64, requires_grad=True)
    assert rows.to_dense().tolist() == [[3, 4], [1, 2]] and rows.dtype is flow.float64 and rows.requires_grad
    with pytest.raises(WeftError, match="size is inconsistent with indices"):
        flow.sparse_coo_tensor(PLACES, VALUES, (2, 3))
