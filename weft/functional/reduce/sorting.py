"""sort, topk, kthvalue, mode, searchsorted, bucketize."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.results import Ranked, returning
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.tensor.tensor import Tensor

public("flow tensor")(returning(Ranked, "sort"))
public("flow tensor")(returning(Ranked, "topk"))
public("flow tensor")(returning(Ranked, "kthvalue"))
public("flow tensor")(returning(Ranked, "mode"))


@public("flow")
def bucketize(x: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the bin of each element, for sorted boundaries.

    >>> flow.bucketize(flow.tensor([0.5, 2.0]), flow.tensor([0.0, 1.0])).tolist()
    [1, 2]
    """
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    values = x if isinstance(x, Tensor) else creation.tensor(x, **device_of(boundaries))
    found = ops.searchsorted(boundaries, values, right)
    return cast(found, dtypes.int32) if out_int32 else found


@public("flow")
def searchsorted(
    sorted_sequence: Tensor, values: Any, out_int32: bool = False, right: bool = False, *, side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The indices at which values would be inserted in a sorted sequence: before equal elements, or after with `right`.

    >>> flow.searchsorted(flow.tensor([1., 3., 5.]), flow.tensor([3., 4.]), side="right").tolist()
    [2, 2]
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError(f'searchsorted(): side is "left" or "right"; got {side!r} with right={right}')
    if sorter is not None:
        sorted_sequence = ops.gather(sorted_sequence, -1, sorter)
    given = values if isinstance(values, Tensor) else creation.tensor(values, **device_of(sorted_sequence))
    found = ops.searchsorted(sorted_sequence, given, right or side == "right")
    return cast(found, dtypes.int32) if out_int32 else found


@public("flow tensor")
def msort(x: Tensor) -> Tensor:
    """x sorted along its first dimension."""
    return ops.sort(x, 0)[0]
