"""Collectives that return new tensors, along any dimension, with gradients."""

from __future__ import annotations

import weft as flow
import weft.distributed._functional_collectives as funcol
from tests.ranks import on
from weft.distributed import ReduceOp, init_device_mesh


@on(2)
def test_collectives_are_functions_with_gradients() -> None:
    mesh, rank = init_device_mesh("cpu", (2,), mesh_dim_names=("all",)), flow.env.get_rank()
    x = (flow.arange(4.0).reshape(2, 2) + 10 * rank).requires_grad_()
    whole = funcol.wait_tensor(funcol.all_gather_tensor(x, gather_dim=1, group=mesh))
    assert whole.tolist() == [[0, 1, 10, 11], [2, 3, 12, 13]]
    (whole * flow.arange(4.0)).sum().backward()
    assert x.grad.tolist() == [[[0, 2], [0, 2]], [[4, 6], [4, 6]]][rank]
    mine = funcol.reduce_scatter_tensor(x.detach(), "sum", 1, (mesh, 0))
    assert mine.tolist() == [[[10], [14]], [[12], [16]]][rank]
    assert funcol.all_reduce(x.detach(), "AVG", [0, 1]).tolist() == [[5, 6], [7, 8]]
    assert funcol.all_reduce(x.detach(), ReduceOp.PRODUCT.name, mesh).tolist() == [[0, 11], [24, 39]]
    assert funcol.broadcast(x.detach(), 1, mesh).tolist() == [[10, 11], [12, 13]]
    rows = [[2.0 * rank + i, 2.0 * rank + i + 1] for i in (0, 10)]
    assert funcol.all_to_all_single(x.detach(), None, None, None).tolist() == rows
    sent = [2, 0] if rank == 0 else [1, 1]  # rows for each rank
    got = [2, 1] if rank == 0 else [0, 1]
    assert funcol.all_to_all_single(x.detach(), got, sent, mesh).tolist() == (
        [[0, 1], [2, 3], [10, 11]] if rank == 0 else [[12, 13]]
    )
