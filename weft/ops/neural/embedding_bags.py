"""Sums, means and maxima over bags of a table's rows, by one kernel that doesn't store the rows."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.core.dtype import int64
from weft.core.errors import DtypeError, IndexingError, ShapeError
from weft.ops.create.constructors import arange
from weft.ops.declaration import op
from weft.ops.form import WIDE, Form, alike, counts
from weft.ops.index.indexing import index_select, scatter_add_zeros
from weft.ops.kernels import aten
from weft.ops.neural.embedding import embedding, embedding_weight_grad, may_be_sparse, out_of_range
from weft.ops.pointwise.arithmetic import div, mul, sub
from weft.ops.pointwise.copies import cast, masked_fill
from weft.ops.pointwise.logic import eq
from weft.ops.reduce.ordering import searchsorted
from weft.ops.reduce.sums import sum
from weft.ops.shape.views import unsqueeze
from weft.tensor.counters import counters

MODES: Final = ("sum", "mean", "max")  # by torch's numbers


def _padding(row: int | None) -> int:
    return -1 if row is None else row


def _places(ids: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    return ids.contiguous(), starts.to(ids.dtype).contiguous()


@op(returns="y | sizes winners")
def embedding_bags(
    weight: Tensor, ids: Tensor, starts: Tensor, factors: Tensor | None = None, mode: str = "sum",
    padding_idx: int | None = None, sparse: bool = False,
) -> Any:  # fmt: skip
    """The sums, means or maxima of the weight's rows at the ids, over bags that start at these places, on a CPU. The
    rows of a sum may have factors. The row padding_idx is in no bag. Gradients of sums and means may be `sparse`.

    >>> rows, starts = flow.tensor([[1.0], [2.0], [4.0]]), flow.tensor([0, 2])
    >>> flow._C.embedding_bags(rows, flow.tensor([0, 1, 2]), starts).tolist()
    [[3.0], [4.0]]
    """
    _check_bags(weight, ids, starts, factors)
    given = weight.contiguous(), *_places(ids, starts)
    try:
        y, _, sizes, winners = aten._embedding_bag(
            *given, False, MODES.index(mode), False, factors, False, _padding(padding_idx)
        )
    except (IndexError, RuntimeError) as error:
        raise out_of_range("embedding_bag", ids, weight.shape[0]) or error from None
    # where nothing has won, CUDA's kernel keeps nothing
    return y, sizes, winners if mode == "max" or len(winners) else sizes.clone()


def _check_bags(rows: Tensor, ids: Tensor, starts: Tensor, factors: Tensor | None, each: bool = False) -> None:
    """Refuse what torch's kernels would take for addresses. `each`: there is a row for each bag."""
    dtypes = {ids.dtype, starts.dtype} <= {torch.int32, torch.int64}
    fits = rows.dim() == 2 and ids.dim() == starts.dim() == 1 and not (each and len(rows) != len(starts))
    if not (dtypes and fits) or (factors is not None and factors.shape != ids.shape):
        given = [f"{str(t.dtype)[6:]}{list(t.shape)}" for t in (rows, ids, starts, factors) if t is not None]
        raise (ShapeError if dtypes else DtypeError)(
            f"embedding_bag: takes {'a row for each bag' if each else 'a table of rows'}, ids and where bags start, "
            f"both int64 or int32, of one dimension, and perhaps a factor for each id; got {', '.join(given)}"
        )
    if starts.device.type == "meta":
        return
    n = ids.numel()
    if starts.numel() and (starts[0] != 0 or starts[-1] > n or bool((starts[1:] < starts[:-1]).any())):
        raise IndexingError(
            f"embedding_bag: offsets start at 0, ascend, and end at most at {n}; got {starts.tolist()!s:.80}"
        )


@embedding_bags.form
def _(weight, ids, starts, factors, mode, padding_idx, sparse):
    alone = len(ids.shape) == len(starts.shape) == len(weight.shape) - 1 == 1
    if not (alone and alike(weight, factors, among=WIDE) and counts(ids) and counts(starts) and mode in MODES):
        return None
    if (factors is not None and (mode != "sum" or factors.shape != ids.shape)) or 0 in (*weight.shape, *starts.shape):
        return None
    shape = (starts.shape[0], weight.shape[1])
    winners = Form(shape if mode == "max" else shape[:1], ids.dtype)
    return Form(shape, weight.dtype), Form(shape[:1], ids.dtype), winners


@embedding_bags.grad
def _(dy, weight, weight_shape, ids, starts, factors, sizes, winners, mode, padding_idx, sparse, needs):
    rows, dfactors, held = weight_shape[0], None, sparse and may_be_sparse(dy)
    if not here.grad and held == sparse:  # else in public ops, in a graph so that rows may be updated
        dw = embedding_bags_grad(dy, ids, starts, factors, sizes, winners, rows, mode, padding_idx, held)
        if needs[3]:
            dfactors = embedding_bags_factors_grad(dy, weight, ids, starts, padding_idx)
        return dw if needs[0] else None, None, None, dfactors
    if mode == "max":
        dy = masked_fill(dy, unsqueeze(eq(sizes, 0), 1), 0.0)
        return scatter_add_zeros(dy, 0, cast(winners, int64), weight_shape), None, None, None
    bags = sub(searchsorted(cast(starts, int64), arange(0, ids.shape[0], 1, int64), True), 1)
    of_rows = index_select(dy, 0, bags)
    if needs[3]:
        dfactors = sum(mul(of_rows, embedding(weight, ids)), 1)
        dfactors = dfactors if padding_idx is None else masked_fill(dfactors, eq(ids, padding_idx), 0.0)
    if mode == "mean":
        of_rows = div(of_rows, unsqueeze(cast(index_select(sizes, 0, bags), dy.dtype), 1))
    if factors is not None:
        of_rows = mul(of_rows, unsqueeze(factors, 1))
    return embedding_weight_grad(of_rows, ids, rows, padding_idx, held), None, None, dfactors


@op(linear="dy", returns="dw")
def embedding_bags_grad(
    dy: Tensor, ids: Tensor, starts: Tensor, factors: Tensor | None, sizes: Tensor, winners: Tensor, rows: int,
    mode: str, padding_idx: int | None, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The gradient of embedding_bags' weight."""
    counters.sparse |= bool(sparse)
    _check_bags(dy, ids, starts, factors, each=True)
    error = out_of_range("embedding_bag", ids, rows)
    if mode == "max":  # else winners hold nothing; those of empty bags are -1
        error = error or out_of_range("embedding_bag", winners + 1, rows + 1)
    if error:
        raise error
    each = dy.shape if mode == "max" else starts.shape
    same = ids.dtype == sizes.dtype == winners.dtype
    if sizes.shape != starts.shape or winners.shape != each or not same:
        raise (ShapeError if same else DtypeError)(
            f"embedding_bag: takes what the forward kept: sizes of shape {list(starts.shape)} and winners of shape "
            f"{list(each)}, both {ids.dtype}; got {list(sizes.shape)}, {sizes.dtype}, and {list(winners.shape)}, "
            f"{winners.dtype}"
        )
    none = ids.new_empty(0)  # which row is in which bag follows from where bags start
    dy, sizes, winners = (t.contiguous() for t in (dy, sizes, winners))
    factors = None if factors is None else factors.contiguous()
    return aten._embedding_bag_backward(
        dy, *_places(ids, starts), none, sizes, winners, rows, False, MODES.index(mode), sparse, factors,
        _padding(padding_idx),
    )  # fmt: skip


@op(linear="dy", returns="dfactors")
def embedding_bags_factors_grad(
    dy: Tensor, weight: Tensor, ids: Tensor, starts: Tensor, padding_idx: int | None
) -> Tensor:
    """The gradient of the factors of embedding_bags' rows."""
    _check_bags(weight, ids, starts, None)
    _check_bags(dy, ids, starts, None, each=True)
    if error := out_of_range("embedding_bag", ids, weight.shape[0]):
        raise error
    if weight.shape[1:] != dy.shape[1:]:
        raise ShapeError(f"embedding_bag: gradients have {dy.shape[1]} columns, and the weight {weight.shape[1]}")
    bags = ids.new_empty(0)  # which row is in which bag: the CPU's kernel finds it, CUDA's doesn't
    if ids.is_cuda:
        numbers = torch.arange(len(ids), dtype=starts.dtype, device=ids.device)
        bags = (torch.searchsorted(starts.contiguous(), numbers, right=True) - 1).to(ids.dtype)
    return aten._embedding_bag_per_sample_weights_backward(
        dy.contiguous(), weight.contiguous(), *_places(ids, starts), bags, MODES.index("sum"), _padding(padding_idx)
    )


def _bags(rand: Any) -> Any:
    ids, starts = torch.tensor([0, 4, 4, 2, 1, 3]), torch.tensor([0, 2, 2, 5])
    yield rand(5, 6), ids, starts
    yield rand(5, 6), ids, starts, rand(6), "sum", 4
    yield rand(5, 6), ids, starts, None, "mean", 2
    yield rand(5, 6), ids, starts, None, "max", 3


embedding_bags.samples(_bags)


@embedding_bags_grad.samples
def _(rand):
    for row in _bags(rand):
        weight, ids, starts, factors, mode, padding_idx, _ = embedding_bags.bind(row, {})
        y, *kept = embedding_bags.kernel(weight, ids, starts, factors, mode, padding_idx)
        yield rand(*y.shape), ids, starts, factors, *kept, weight.shape[0], mode, padding_idx


@embedding_bags_factors_grad.samples
def _(rand):
    weight, ids, starts, *_ = next(_bags(rand))
    yield rand(4, 6), weight, ids, starts, 4
