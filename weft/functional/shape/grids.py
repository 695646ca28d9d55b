"""meshgrid, index grids, and combinations of elements."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.dtype import bool_, int64
from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.ops.explain import describe
from weft.tensor.tensor import Tensor


@public("flow")
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The indices of a lower triangle: rows, then columns.

    >>> flow.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return _indices("tril_indices", torch.tril_indices, row, col, offset, dtype, device)


@public("flow")
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The indices of an upper triangle: rows, then columns."""
    return _indices("triu_indices", torch.triu_indices, row, col, offset, dtype, device)


def _indices(name: str, make: Any, row: int, col: int, offset: int, dtype: Any, device: Any) -> Tensor:
    kind = dtypes.int64 if dtype is None else dtypes.of(dtype)
    return creation.placed(name, make(row, col, offset, dtype=kind.torch), device, None, None, False)


@public("flow")
def unravel_index(indices: Any, shape: Sequence[int] | int) -> tuple[Tensor, ...]:
    """Coordinates in a shape, from flat indices.

    >>> [i.tolist() for i in flow.unravel_index(flow.tensor([5, 7]), (3, 4))]
    [[1, 1], [1, 3]]
    """
    if indices.dtype.differentiable or indices.dtype is bool_:
        raise ArgumentError(
            f"unravel_index(): expected 'indices' to be integer dtype, but got {indices.dtype}: x.long()"
        )
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise OptionError(f"unravel_index(): 'shape' cannot have negative values, but got {sizes}")
    indices = cast(indices, int64)
    found: list[Tensor] = []
    for n in reversed(sizes):
        found.append(ops.remainder(indices, n))
        indices = ops.floor_divide(indices, n)
    return tuple(reversed(found))


MOST_CHOSEN = 1 << 24  # elements of the result of `combinations`, which is made in Python


@public("flow")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """The Cartesian product of vectors, one combination per row.

    >>> flow.cartesian_prod(flow.tensor([1, 2]), flow.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    if any(not isinstance(x, Tensor) or x.ndim != 1 for x in tensors):
        raise ShapeError(f"cartesian_prod(): Expect a 1D vector each, but got {', '.join(map(describe, tensors))}")
    if len(tensors) == 1:
        return tensors[0]
    flat = [ops.reshape(g, (-1, 1)) for g in meshgrid(*tensors)]
    return ops.cat(flat, 1)


@public("flow")
@in_one(torch.combinations, derived=True)
def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """The combinations of r elements of a vector, one per row."""
    if x.ndim != 1 or r < 0:
        raise ShapeError(f"combinations(): Expect a 1D vector, but got shape {list(x.shape)}, and r >= 0; r is {r}")
    if not r:
        return ops.clone(ops.narrow(x, 0, 0, 0))
    rows = math.comb(x.shape[0] + (r - 1 if with_replacement and x.shape[0] else 0), r)
    if rows * r > MOST_CHOSEN:
        raise ShapeError(f"combinations(): {rows} rows of {r}; the result has at most {MOST_CHOSEN} elements")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = [i for row in choose(builtins.range(x.shape[0]), r) for i in row]
    at = creation.tensor(chosen, dtype=dtypes.int64, **device_of(x))
    return ops.reshape(ops.index_select(x, 0, at), (-1, r))


@public("flow")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids: each vector, repeated along the others' dimensions.

    >>> flow.meshgrid(flow.arange(2), flow.arange(3))[0].tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f'meshgrid(): indexing is "ij" or "xy"; got {indexing!r}')
    if not given or any(x.dtype is not given[0].dtype or x.ndim > 1 for x in given):
        given_shapes = ", ".join(f"{x.dtype} {list(x.shape)}" for x in given) or "nothing"
        raise ShapeError(
            f"meshgrid expects a non-empty TensorList, and all tensors to have the same dtype and at most one "
            f"dimension; got {given_shapes}"
        )
    exchanged = indexing == "xy" and len(given) > 1
    if exchanged:
        given[:2] = given[1::-1]
    shape = tuple(x.numel() for x in given)
    made = [
        ops.expand(ops.reshape(x, (1,) * i + (-1,) + (1,) * (len(given) - 1 - i)), shape) for i, x in enumerate(given)
    ]
    if exchanged:
        made[:2] = made[1::-1]
    return tuple(made)
