"""grouped_mm: the products of groups of rows, columns or both, each with a matrix of its own."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any

from weft.api.table import public
from weft.core.errors import ArgumentError, ShapeError
from weft.ops import ops


@public("neural")
def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """The product of each group. Of two tensors with three dimensions these are the matrices; a matrix is cut into
    groups that end at `offs`: mat_a along its rows, mat_b along its columns, both along what is summed.

    >>> offs = flow.tensor([1, 3], dtype=flow.int32)
    >>> flow.nn.functional.grouped_mm(flow.ones(3, 2), flow.ones(2, 2, 1), offs=offs).tolist()
    [[2.0], [2.0], [2.0]]
    """
    if bias is not None:
        raise ArgumentError("grouped_mm(): bias isn't supported, as in torch")
    dims = mat_a.ndim, mat_b.ndim
    if not {*dims} <= {2, 3}:
        raise ShapeError(f"grouped_mm(): operands have 2 or 3 dimensions; got {list(mat_a.shape)}, {list(mat_b.shape)}")
    if (offs is None) != (dims == (3, 3)):
        raise ArgumentError("grouped_mm(): offs, the ends of the groups, are given if an operand is a matrix")
    if dims == (3, 3):
        y = ops.matmul(mat_a, mat_b)
    elif dims == (2, 3):
        y = _rows(mat_a, mat_b, offs)
    elif dims == (3, 2):
        y = _rows(mat_b.t(), mat_a.transpose(1, 2), offs).t()
    else:
        y = _sums(mat_a, mat_b, offs)
    return y if out_dtype is None else y.to(out_dtype)


def _known(offs: Any) -> bool:
    return offs.value is None and offs.is_local  # not while tracing


def _groups(offs: Any, length: Any, like: Any) -> list[Any]:
    """For each group, which of so many places are its own, as numbers."""
    place = ops.cumsum(ops.ones_like(length, None), 0) - 1
    group = (place.unsqueeze(1) >= offs.unsqueeze(0)).to(like.dtype).sum(1)
    return [(group == i).to(like.dtype).unsqueeze(1) for i in range(offs.shape[0])]


def _rows(a: Any, b: Any, offs: Any) -> Any:
    """Each group of a's rows by its matrix."""
    if _known(offs):
        ends = offs.tolist()
        parts = [a[start:end] @ b[i] for i, (start, end) in enumerate(itertools.pairwise([0, *ends]))]
        return ops.cat([*parts, a.new_zeros(a.shape[0] - ends[-1], b.shape[2])], 0)
    own = [mine * (a @ b[i]) for i, mine in enumerate(_groups(offs, a[:, 0], a))]  # all rows by each matrix
    return functools.reduce(operator.add, own)


def _sums(a: Any, b: Any, offs: Any) -> Any:
    """Each group of a's columns by as many rows of b."""
    if _known(offs):
        ends = itertools.pairwise([0, *offs.tolist()])
        return ops.stack([a[:, start:end] @ b[start:end] for start, end in ends], 0)
    return ops.stack([a @ (mine * b) for mine in _groups(offs, b[:, 0], b)], 0)
