"""What a sparse gradient holds: its parts, under torch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from weft.api.table import named, public
from weft.core.errors import ArgumentError
from weft.ops import ops
from weft.tensor.data import local_data
from weft.tensor.sparse import layout_of
from weft.tensor.tensor import Tensor, of_torch

PARTS: Final = {
    "coalesce": "The same, each index once and in order.",
    "is_coalesced": "Whether each index is there once, in order.",
    "indices": "The indices of a coalesced sparse tensor, a row for each of its sparse dimensions.",
    "values": "The numbers of a coalesced sparse tensor.",
    "_indices": "The indices as they are.",
    "_values": "The numbers as they are.",
    "_nnz": "How many indices there are.",
    "sparse_dim": "The number of dimensions that have indices.",
    "dense_dim": "The number of dimensions of what each index has.",
}


@public("tensor")
def to_dense(x: Tensor) -> Tensor:
    """x itself, unless it is sparse."""
    return x if layout_of(x) is torch.strided else ops.to_dense(x)


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
