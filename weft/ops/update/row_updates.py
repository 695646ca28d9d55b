"""Updates of some rows of a table, such as those of an embedding that were looked up."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.sbp import broadcast, split
from weft.ops.declaration import Scalar, op
from weft.ops.notation import Rule


@op(returns="", writes="weight")
def sgd_rows_update(
    weight: Tensor, ids: Tensor, rows: Tensor, lr: Tensor | Scalar, padding_idx: int | None = None,
    maximize: bool = False,
) -> tuple[()]:  # fmt: skip
    """weight[id] -= lr * row, for each id but padding_idx: the step of `sgd_update` by an embedding's gradient, which
    isn't made."""
    if weight.device.type != "meta":
        _descend(weight, ids, rows, lr, None if padding_idx is None else ids != padding_idx, maximize)
    return ()


def _descend(weight: Tensor, ids: Tensor, rows: Tensor, lr: Any, kept: Tensor | None, maximize: bool) -> None:
    flat, places = rows.reshape(ids.numel(), weight.shape[1]), ids.reshape(-1).long()
    if kept is not None:
        kept = kept.reshape(-1)
        flat, places = flat.masked_fill(~kept.unsqueeze(1), 0), places * kept
    step = flat * (lr if maximize else -lr)
    if weight.device.type == "cpu":
        weight.index_add_(0, places, step.to(weight.dtype))
    else:  # in one order, on all ranks that hold the table
        weight.index_put_((places,), step.to(weight.dtype), accumulate=True)


@sgd_rows_update.layout
def _(weight, ids, rows, lr, padding_idx, maximize):
    rest = (broadcast,) * isinstance(lr, tuple)
    yield Rule((split(1), broadcast, split(len(rows) - 1), *rest), ())
    yield Rule((split(0), broadcast, broadcast, *rest), (), ranked=True)


@sgd_rows_update.ranked
def _(where, weight, ids, rows, lr, padding_idx, maximize):
    start, stop = where.inputs[0][0]
    kept = (ids >= start) & (ids < stop)
    if padding_idx is not None:
        kept &= ids != padding_idx
    if start < stop:
        _descend(weight, ids - start, rows, lr, kept, maximize)
    return ()


@sgd_rows_update.samples
def _(rand):
    ids = torch.tensor([[0, 4, 4], [2, 1, 3]])
    yield rand(5, 6), ids, rand(2, 3, 6), 0.1
    yield rand(5, 6), ids, rand(2, 3, 6), rand(), 4, True
