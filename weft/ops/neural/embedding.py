"""Table lookup by index. A table split along its rows gives partial sums: each rank knows which rows it holds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.core.dtype import int64
from weft.core.errors import IndexingError
from weft.core.idle import idle
from weft.core.sbp import broadcast, partial_sum, split
from weft.ops import notation
from weft.ops.declaration import op
from weft.ops.form import Form, alike, counts
from weft.ops.index.indexing import gather, scatter_add_zeros
from weft.ops.index.pick import wrong_label
from weft.ops.kernels import aten
from weft.ops.notation import Rule
from weft.ops.pointwise.arithmetic import div
from weft.ops.pointwise.copies import cast, masked_fill
from weft.ops.pointwise.logic import eq
from weft.ops.shape.views import axes, reshape, unsqueeze
from weft.tensor.counters import counters


def out_of_range(what: str, ids: Tensor, rows: int) -> IndexingError | None:
    """The error for the first index outside of [0, rows), or None."""
    if ids.numel() == 0 or ids.device.type == "meta":
        return None
    low, high = (int(v) for v in torch.aminmax(ids))
    if low >= 0 and high < rows:
        return None
    worst = high if high >= rows else low
    place = (ids == worst).nonzero()[0].tolist()
    return IndexingError(
        f"index out of range in self: {what}: index {worst}, at position {place}, is out of range: there are "
        f"{rows} rows, 0 to {rows - 1}"
    )


@op(linear="weight")
def embedding(
    weight: Tensor, ids: Tensor, padding_idx: int | None = None, by_frequency: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of weight at the ids. The row padding_idx gets no gradient; `by_frequency` divides each row's gradient
    by the count of its id; a `sparse` gradient of an eager local call has the rows that were looked up, and no others.

    >>> flow._C.embedding(flow.tensor([[1., 2.], [3., 4.]]), flow.tensor([1, 0])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    try:
        return aten.embedding(weight, ids, -1 if padding_idx is None else padding_idx)
    except IndexError as error:
        raise out_of_range("embedding", ids, weight.shape[0]) or error from None


@embedding.layout
def _(weight, ids, padding_idx, by_frequency, sparse):
    at = " ".join(axes(len(ids)))
    return f"v@ d, {at} -> {at} d"


@embedding.form
def _(weight, ids, padding_idx, by_frequency, sparse):
    fits = len(weight.shape) == 2 and weight.shape[0] and alike(weight) and counts(ids)
    return Form((*ids.shape, weight.shape[1]), weight.dtype) if fits else None


@embedding.out
def _(y, weight, ids, padding_idx, by_frequency, sparse):
    try:
        torch.index_select(weight, 0, ids.reshape(-1), out=y.view(ids.numel(), weight.shape[1]))
    except IndexError as error:
        raise out_of_range("embedding", ids, weight.shape[0]) or error from None


@embedding.prepared
def _(y, weight, ids, padding_idx, by_frequency, sparse):
    if not ids.is_contiguous():
        return None
    return torch.index_select, (weight, 0, ids.view(-1)), {"out": y.view(ids.numel(), weight.shape[1])}


@embedding.ranked
def _(where, weight, ids, padding_idx, by_frequency, sparse):
    start, stop = where.inputs[0][0]
    wrong = out_of_range("embedding", ids, where.input_shapes[0][0])
    if wrong is not None:
        raise wrong
    if start == stop:
        return weight.new_zeros((*ids.shape, weight.shape[1]))
    elsewhere = (ids < start) | (ids >= stop)
    return aten.embedding(weight, (ids - start).masked_fill_(elsewhere, 0)).masked_fill_(elsewhere.unsqueeze(-1), 0)


@embedding.grad
def _(dy, weight_shape, ids, padding_idx, by_frequency, sparse):
    if by_frequency:
        dy = div(dy, unsqueeze(_frequencies(ids, weight_shape[0], dy.dtype), -1))
    return embedding_weight_grad(dy, ids, weight_shape[0], padding_idx, sparse and may_be_sparse(dy)), None


def may_be_sparse(dy: Any) -> bool:
    """Whether a gradient may be sparse. A graph's is dense, as its plan says where each element lies, unless rows are
    updated and it isn't made at all (`graph/update.py`)."""
    if here.trace is not None:
        return False
    idle("embedding(sparse)", dy.is_global)
    return dy.is_local


def _frequencies(ids: Any, rows: int, dtype: Any) -> Any:
    """How often each of the ids occurs."""
    flat = cast(reshape(ids, (-1,)), int64)
    counts = scatter_add_zeros(cast(eq(flat, flat), dtype), 0, flat, (rows,))
    return reshape(gather(counts, 0, flat), tuple(ids.shape))


@embedding.samples
def _(rand):
    ids = torch.tensor([[0, 4, 4], [2, 1, 3]])
    yield rand(5, 6), ids
    yield rand(5, 6), ids, 4
    yield rand(5, 6), ids[0]


@op(returns="dw")
def embedding_weight_grad(
    dy: Tensor, ids: Tensor, rows: int, padding_idx: int | None = None, sparse: bool = False
) -> Tensor:
    """The gradient of an embedding's table: rows of dy summed by index. A `sparse` one, which eager programs have of
    local tensors, holds them with their indices.

    >>> flow._C.embedding_weight_grad(flow.ones(2, 1), flow.tensor([1, 1]), 3).tolist()
    [[0.0], [2.0], [0.0]]
    """
    if sparse:
        return _sparse(dy, ids, rows, padding_idx)
    if dy.device.type != "cpu" or dy.shape[:-1] != ids.shape:
        return aten.embedding_dense_backward(dy, ids, rows, -1 if padding_idx is None else padding_idx, False)
    dw = dy.new_zeros((rows, dy.shape[-1]))
    _into_rows(dw, dy, ids, padding_idx)
    return dw


def _sparse(dy: Tensor, ids: Tensor, rows: int, padding_idx: int | None) -> Tensor:
    counters.sparse = True
    flat, places = dy.reshape(ids.numel(), dy.shape[-1]), ids.reshape(-1).long()
    if padding_idx is not None:
        kept = places != padding_idx
        flat, places = flat[kept], places[kept]
    flat = flat if len(places) > 1 else flat.clone()  # one row is coalesced as it is, and would be dy's memory
    return torch.sparse_coo_tensor(places.unsqueeze(0), flat, (rows, dy.shape[-1]), check_invariants=False)


def _into_rows(dw: Tensor, dy: Tensor, ids: Tensor, padding_idx: int | None) -> None:
    flat = dy.reshape(ids.numel(), dy.shape[-1])
    dw.scatter_add_(0, _wide(ids, flat), flat)  # less than half the time of embedding_dense_backward on a CPU
    if padding_idx is not None:
        dw[padding_idx].zero_()


def _wide(ids: Tensor, flat: Tensor) -> Tensor:
    """The index of each row, expanded to all of its elements."""
    return ids.reshape(-1, 1).long().expand_as(flat)


@embedding_weight_grad.layout
def _(dy, ids, rows, padding_idx, sparse):
    at = " ".join(axes(len(ids)))
    return (
        *notation.rules(f"{at} d, {at} -> v! d", (dy, ids), ((rows, dy[-1]),)),
        Rule((partial_sum, broadcast), (partial_sum,)),
        Rule((broadcast, broadcast), (split(0),), ranked=True),
    )


@embedding_weight_grad.form
def _(dy, ids, rows, padding_idx, sparse):
    fits = dy.shape[:-1] == ids.shape and dy.shape and alike(dy) and counts(ids)
    return Form((rows, dy.shape[-1]), dy.dtype) if fits else None


@embedding_weight_grad.out
def _(dw, dy, ids, rows, padding_idx, sparse):
    _into_rows(dw.zero_(), dy, ids, padding_idx)


@embedding_weight_grad.prepared
def _(dw, dy, ids, rows, padding_idx, sparse):
    if padding_idx is not None or not (dy.is_contiguous() and ids.is_contiguous()) or ids.dtype != torch.int64:
        return None
    flat = dy.view(ids.numel(), dy.shape[-1])
    return [(torch.Tensor.zero_, (dw,), {}), (torch.Tensor.scatter_add_, (dw, 0, _wide(ids, flat), flat), {})]


@embedding_weight_grad.ranked
def _(where, dy, ids, rows, padding_idx, sparse):
    start, stop = where.outputs[0][0]
    dw = dy.new_zeros((stop - start, dy.shape[-1]))
    mine = (ids >= start) & (ids < stop)
    if padding_idx is not None:
        mine &= ids != padding_idx
    return dw.index_add_(0, ids[mine] - start, dy[mine])


@embedding_weight_grad.grad
def _(ddw, ids, padding_idx):
    picked: Any = embedding(ddw, ids)
    return picked if padding_idx is None else masked_fill(picked, unsqueeze(eq(ids, padding_idx), -1), 0.0), None


@embedding_weight_grad.samples
def _(rand):
    ids = torch.tensor([[0, 4, 4], [2, 1, 3]])
    yield rand(2, 3, 6), ids, 5
    yield rand(2, 3, 6), ids, 5, 4


@op("... -> ... c!", returns="y*")
def one_hot(x: Tensor, num_classes: int) -> Tensor:
    """Ones at the labels, zeros elsewhere, along a new last dimension.

    >>> flow._C.one_hot(flow.tensor([2, 0]), 3).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    wrong = wrong_label(x, num_classes)
    if wrong is not None:
        raise wrong
    y = torch.zeros((*x.shape, num_classes), dtype=torch.int64, device=x.device)
    return y.scatter_(-1, x.unsqueeze(-1), 1)


one_hot.samples(lambda rand: [(torch.tensor([[0, 4, 2], [1, 1, 3]]), 5)])
