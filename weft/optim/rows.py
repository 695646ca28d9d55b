"""Updates of tables by sparse gradients: of the rows that were looked up, as if they were the whole parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from weft.autograd import no_grad
from weft.optim.bucket import Bucket
from weft.tensor.data import local_data
from weft.tensor.sparse import coalesced, is_dense
from weft.tensor.tensor import Tensor, of_torch

if TYPE_CHECKING:
    from weft.optim.optimizer import Optimizer


def update_by_rows(optimizer: Optimizer, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor]) -> None:
    """Update a bucket in which some gradients are sparse."""
    if not optimizer.is_by_rows(group):
        dense = [g if is_dense(g) else of_torch(local_data(g, "step()").to_dense()) for g in grads]
        return optimizer.update(group, bucket, dense, bucket.rate(group["lr"]))
    which = [None if is_dense(g) else coalesced(g) for g in grads]
    lists = [bucket.params, *bucket.states.values()]
    params, *states = [[_picked(t, g) for t, g in zip(whole, which, strict=True)] for whole in lists]
    rows = Bucket(params, dict(zip(bucket.states, states, strict=True)), bucket.step)
    given = [g if sparse is None else of_torch(sparse._values()) for g, sparse in zip(grads, which, strict=True)]
    optimizer.update(group, rows, given, bucket.rate(group["lr"]))
    with no_grad():
        for whole, part in zip(lists, (params, *states), strict=True):
            for t, new, g in zip(whole, part, which, strict=True):
                if g is not None:
                    t.index_copy_(0, of_torch(g._indices()[0]), new)


def _picked(t: Tensor, sparse: torch.Tensor | None) -> Tensor:
    return t if sparse is None else of_torch(local_data(t, "step()").index_select(0, sparse._indices()[0]))
