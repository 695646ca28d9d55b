"""Updates of tables by sparse gradients: of the rows that were looked up, as if they were the whole parameter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch

from weft.autograd import no_grad
from weft.optim.bucket import Bucket
from weft.tensor.data import local_data
from weft.tensor.sparse import coalesced, is_dense
from weft.tensor.tensor import Tensor, of_torch


@contextlib.contextmanager
def looked_up(
    bucket: Bucket, grads: list[Tensor], by_rows: bool, directly: Callable[..., None] | None
) -> Iterator[tuple[Bucket, list[Tensor]]]:
    """What is left to update of a bucket in which some gradients are sparse, and by which gradients: the parameters
    whose rows aren't updated `directly`; else copies of rows, which are put back; unless `by_rows`, all, by gradients
    that are made dense."""
    if not by_rows:
        yield bucket, [g if is_dense(g) else of_torch(local_data(g, "step()").to_dense()) for g in grads]
        return
    if directly is not None:
        for p, g in zip(bucket.params, grads, strict=True):
            if not is_dense(g):
                data = local_data(g, "step()")
                directly(p, of_torch(data._indices()[0]), of_torch(data._values()), None)
        dense = [i for i, g in enumerate(grads) if is_dense(g)]
        yield Bucket([bucket.params[i] for i in dense], {}, None), [grads[i] for i in dense]
        return
    which = [None if is_dense(g) else coalesced(g) for g in grads]
    lists = [bucket.params, *bucket.states.values()]
    params, *states = [[_picked(t, g) for t, g in zip(whole, which, strict=True)] for whole in lists]
    rows = Bucket(params, dict(zip(bucket.states, states, strict=True)), bucket.step)
    yield rows, [g if sparse is None else of_torch(sparse._values()) for g, sparse in zip(grads, which, strict=True)]
    with no_grad():
        for whole, part in zip(lists, (params, *states), strict=True):
            for t, new, g in zip(whole, part, which, strict=True):
                if g is not None:
                    t.index_copy_(0, of_torch(g._indices()[0]), new)


def _picked(t: Tensor, sparse: torch.Tensor | None) -> Tensor:
    return t if sparse is None else of_torch(local_data(t, "step()").index_select(0, sparse._indices()[0]))
