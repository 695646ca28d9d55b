"""Sparse tensors, and what they hold: their parts, under torch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from weft.api.table import named, public
from weft.core.dispatch import here
from weft.core.dtype import int64
from weft.core.errors import ArgumentError
from weft.functional.create.creation import as_tensor
from weft.ops import ops
from weft.tensor.data import local_data
from weft.tensor.sparse import layout_of
from weft.tensor.tensor import Tensor, of_torch

PARTS: Final = {
    "is_coalesced": "Whether each index is there once, in order.",
    "indices": "The indices of a coalesced sparse tensor, a row for each of its sparse dimensions.",
    "values": "The numbers of a coalesced sparse tensor.",
    "_indices": "The indices as they are.",
    "_values": "The numbers as they are.",
    "_nnz": "How many indices there are.",
    "sparse_dim": "The number of dimensions that have indices.",
    "dense_dim": "The number of dimensions of what each index has.",
}


@public("flow")
def sparse_coo_tensor(
    indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of zeros and, at these indices (a column for each), the values. A global one, and one in a graph, is
    dense.

    >>> flow.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)).to_dense().tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    values, indices = as_tensor(values, dtype=dtype, device=device), as_tensor(indices, dtype=int64, device=device)
    places = [ops.select(indices, 0, i) for i in range(indices.shape[0])]
    if size is None:
        size = (*(int(p.max().item()) + 1 for p in places), *values.shape[1:])
    y = ops.index_put_zeros(values, places, tuple(size), here.trace is None and values.is_local)
    y = coalesce(y) if is_coalesced else y
    return y.requires_grad_() if requires_grad else y


@public("tensor")
def to_dense(x: Tensor) -> Tensor:
    """x itself, unless it is sparse."""
    return x if layout_of(x) is torch.strided else ops.to_dense(x)


@public("tensor")
def coalesce(x: Tensor) -> Tensor:
    """A sparse tensor, each index once and in order; a dense one itself."""
    return x if layout_of(x) is torch.strided else ops.coalesce(x)


def _part(name: str) -> Callable[[Tensor], Any]:
    @public("tensor", name)
    @named(name, PARTS[name])
    def part(x: Tensor) -> Any:
        try:
            found = getattr(local_data(x, f"{name}()"), name)()
        except RuntimeError:
            raise ArgumentError(f"{name}() expected a sparse tensor, and this one is dense") from None
        return of_torch(found) if isinstance(found, torch.Tensor) else found

    return part


for _name in PARTS:
    _part(_name)
