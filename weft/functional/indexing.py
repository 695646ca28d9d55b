"""`x[...]` and `x[...] = value`: ints, slices, None and Ellipsis are views; tensors, lists and masks gather."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from weft.autograd.inplace import assign, check_writable, in_place
from weft.core.dispatch import here
from weft.core.dtype import bool_
from weft.core.errors import DtypeError, IndexingError, ShapeError
from weft.core.sbp import broadcast
from weft.functional import creation
from weft.functional.conversion import cast
from weft.functional.overwrite import number_like
from weft.functional.shaping import broadcast_shapes, unbind
from weft.functional.table import calling, overwriting, public
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.ops.shape import dim_of
from weft.tensor.tensor import Tensor

Step = tuple[Op, tuple[Any, ...]]
_select, _narrow, _unsqueeze, _fill = (OPS[n] for n in ("select", "narrow", "unsqueeze", "fill"))
_select_now, _narrow_now, _expand, _where = map(calling, ("select", "narrow", "expand", "where"))
_masked_fill, _mask_over = calling("masked_fill"), overwriting(OPS["masked_fill"])


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    kind = type(key)
    if kind is int:
        if not x.ndim:
            raise IndexingError(f"x[{key}]: a tensor of no dimension can't be indexed; read it with x.item()")
        _check_index(key, 0, x.shape)
        return _select_now(x, 0, key)
    if kind is slice:
        if not x.ndim:
            raise IndexingError("x[:]: a tensor of no dimension can't be sliced; write x[...]")
        return _narrow_now(x, 0, *_span(key, x.shape[0]))
    steps, gathered = parse(x, key)
    for op, attributes in steps:
        x = op(x, *attributes)
    if any(g is not None for g in gathered):
        return OPS["index"](x, _as_positions(x, gathered))
    return x if steps else OPS["view"](x, tuple(x.shape))


def iterate(x: Tensor) -> Iterator[Tensor]:
    """The slices along the first dimension."""
    if not x.ndim:
        raise IndexingError("a tensor of no dimension can't be iterated over; read it with x.item()")
    return iter(unbind(x))


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """x[key] = value."""
    steps, gathered = parse(x, key)
    if x.spec is not None or here.trace is not None:
        _replace(x, steps, gathered, value)
        return
    part = x
    for op, attributes in steps:
        part = op(part, *attributes)
    if any(g is not None for g in gathered):
        _put(part, gathered, value)
    elif type(value) in (int, float, bool):
        in_place(_fill, (part, value))
    elif not _itself(part, value):
        assign(part, _fitting(part, value))


def _itself(part: Tensor, value: Any) -> bool:
    """Whether the value is the part already: the end of `x[0] += 1`."""
    if not isinstance(value, Tensor) or value.spec is not None or value._view_of is None:
        return False
    a, b = part._meta, value._meta
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype


def parse(x: Tensor, key: Any) -> tuple[list[Step], list[Tensor | None]]:
    """The views that a key asks for, in order, and per dimension of the last one the tensor to gather by."""
    keys = list(key) if isinstance(key, tuple) else [key]
    keys = [_normal(k) for k in keys]
    used = sum(_dims(k) for k in keys)
    if used > x.ndim:
        raise IndexingError(f"too many indices: {used} for a tensor of {x.ndim} dimensions, of shape {list(x.shape)}")
    ellipses = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(ellipses) > 1:
        raise IndexingError("an index can only have a single ellipsis ('...')")
    at = ellipses[0] if ellipses else len(keys)
    keys[at : at + len(ellipses)] = [slice(None)] * (x.ndim - used)
    steps: list[Step] = []
    gathered: list[Tensor | None] = []
    shape, dim, source = list(x.shape), 0, 0
    for k in keys:
        if k is None:
            steps.append((_unsqueeze, (dim,)))
            shape.insert(dim, 1)
        elif isinstance(k, bool):
            steps.append((_unsqueeze, (dim,)))
            shape.insert(dim, 1)
            gathered.append(_like(x, creation.tensor([k])))
            dim += 1
            continue
        elif isinstance(k, int):
            _check_index(k, source, x.shape)
            steps.append((_select, (dim, k)))
            del shape[dim]
            source += 1
            continue
        elif isinstance(k, slice):
            span = _span(k, shape[dim])
            if span != (0, shape[dim], 1):
                steps.append((_narrow, (dim, *span)))
                shape[dim] = span[1]
            source += 1
        elif not _dims(k):  # one bool for all of it
            steps.append((_unsqueeze, (dim,)))
            shape.insert(dim, 1)
            gathered.append(OPS["reshape"](_like(x, k), (1,)))
            dim += 1
            continue
        else:
            k = _like(x, k)
            gathered.append(k)
            gathered.extend([None] * (_dims(k) - 1))  # a mask covers several
            source, dim = source + _dims(k), dim + _dims(k)
            continue
        gathered.append(None)
        dim += 1
    return steps, gathered


def _normal(k: Any) -> Any:
    if k is None or k is Ellipsis or isinstance(k, (slice, bool)):
        return k
    if isinstance(k, Tensor):
        if k.dtype.is_floating_point or k.dtype.is_complex:
            raise IndexingError(f"tensors used as indices must be integers or masks; got {k.dtype}: cast it, i.long()")
        return k
    if isinstance(k, np.bool_):
        return bool(k)
    if isinstance(k, (list, tuple, range, np.ndarray)):
        made = creation.tensor(list(k) if isinstance(k, range) else k)
        return (
            creation.tensor(k, dtype="int64") if not isinstance(k, np.ndarray) and not made.numel() else _normal(made)
        )
    try:
        return k.__index__()
    except (AttributeError, TypeError):
        raise IndexingError(
            f"an index is an int, a slice, None, ..., a tensor or a list; got {type(k).__name__} ({k!r})"
        ) from None


def _dims(k: Any) -> int:
    """How many dimensions a key consumes."""
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    return k.ndim if isinstance(k, Tensor) and _is_mask(k) else 1


def _is_mask(t: Tensor) -> bool:
    return t.dtype.name in ("bool", "uint8")


def _check_index(k: int, dim: int, shape: Any) -> None:
    n = shape[dim]
    if not -n <= k < n:
        raise IndexingError(f"index {k} is out of bounds for dimension {dim} with size {n}, in shape {list(shape)}")


def _span(s: slice, n: int) -> tuple[int, int, int]:
    """start, length, step."""
    if s.step is not None and s.step <= 0:
        raise IndexingError(f"a slice's step must be greater than zero; got {s.step}: write x.flip(dim)")
    start, stop, step = s.indices(n)
    return start, max(0, -(-(stop - start) // step)), step


def _like(x: Tensor, k: Tensor) -> Tensor:
    """An index where x lies: a local one beside a global tensor is the same on every rank."""
    if x.spec is not None and k.spec is None:
        return creation.placed("index", k._local("index"), None, x.placement, (broadcast,) * x.placement.ndim, False)
    if x.spec is None and x.value is None and k.spec is None and k.value is None and k.device is not x.device:
        return k.to(x.device)  # type: ignore[attr-defined]
    return k


def _as_positions(x: Tensor, gathered: list[Tensor | None]) -> list[Tensor | None]:
    """Masks as the positions of their true elements."""
    found: list[Tensor | None] = []
    for dim, g in enumerate(gathered):
        if g is None:
            if len(found) <= dim:
                found.append(None)
        elif not _is_mask(g):
            found.append(g)
        else:
            covered = tuple(x.shape)[dim : dim + g.ndim]
            if tuple(g.shape) != covered:
                raise IndexingError(
                    f"a mask of shape {list(g.shape)} over dimensions of shape {list(covered)}: they must agree"
                )
            positions = OPS["nonzero"](g)
            found.extend(_select_now(positions, 1, i) for i in range(g.ndim))
    return found


def _put(part: Tensor, gathered: list[Tensor | None], value: Any) -> None:
    """Write into gathered places."""
    mask = _only_mask(part, gathered, value)
    if mask is not None:
        part.masked_fill_(mask, value)  # type: ignore[attr-defined]
        return
    value = _value(part, value)
    part.index_put_(_as_positions(part, gathered), value)  # type: ignore[attr-defined]


def _only_mask(part: Tensor, gathered: list[Tensor | None], value: Any) -> Tensor | None:
    """The mask where there is but one, and a number to write: that needs no positions, whose count depends on data."""
    masks = [g for g in gathered if g is not None]
    whole = len(masks) == 1 and _is_mask(masks[0]) and gathered[0] is masks[0]
    number = not isinstance(value, Tensor) and isinstance(value, (int, float))
    if not (whole and number and tuple(masks[0].shape) == tuple(part.shape)[: masks[0].ndim]):
        return None
    mask = OPS["reshape"](masks[0], (*masks[0].shape, *(1,) * (part.ndim - masks[0].ndim)))
    return mask if mask.dtype.name == "bool" else mask.bool()  # type: ignore[attr-defined]


def _value(part: Tensor, value: Any) -> Tensor:
    """What is written, as a tensor where the part lies, of its dtype."""
    if not isinstance(value, Tensor):
        if isinstance(value, (int, float, complex)):
            return number_like(part, value)
        value = creation.as_tensor(value)
    value = _like(part, value)
    return value if value.dtype is part.dtype else OPS["cast"](value, part.dtype)


def _fitting(part: Tensor, value: Any) -> Tensor:
    """The value without leading ones that the part doesn't have."""
    value = _value(part, value)
    shape, extra = tuple(value.shape), value.ndim - part.ndim
    if extra > 0 and all(n == 1 for n in shape[:extra]):
        value = OPS["reshape"](value, shape[extra:])
    elif extra > 0:
        raise ShapeError(f"a value of shape {list(shape)} doesn't fit into a part of shape {list(part.shape)}")
    return value


def _replace(x: Tensor, steps: list[Step], gathered: list[Tensor | None], value: Any) -> None:
    """Without shared memory: scatter the value through the views back into the whole, and let x be that."""
    check_writable(x, "x[...] = value")
    stages = [x]
    for op, attributes in steps:
        stages.append(op(stages[-1], *attributes))
    part = stages.pop()
    mask = _only_mask(part, gathered, value)
    if mask is not None:
        whole = OPS["masked_fill"](part, mask, value)
    elif any(g is not None for g in gathered):
        whole = OPS["index_put"](part, _as_positions(part, gathered), _value(part, value))
    else:
        whole = OPS["copy"](part, _fitting(part, value))
    for (op, attributes), before in zip(reversed(steps), reversed(stages), strict=True):
        scatter: Callable[..., Any] | None = op.scatter
        assert scatter is not None
        whole = scatter(before, whole, *attributes)
    assign(x, whole)


# ---- as functions ------------------------------------------------------------------------------------


def _mask(x: Any) -> Any:
    """A mask of bools; integers hold where they aren't zero, as in OneFlow."""
    if not isinstance(x, Tensor) or x.dtype is bool_ or x.dtype.differentiable:
        return x  # of what is neither, the op says what is wrong
    return cast(x, bool_)


@public("flow tensor")
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of x where the mask holds, in a row.

    >>> flow.masked_select(flow.tensor([1, 2, 3]), flow.tensor([True, False, True])).tolist()
    [1, 3]
    """
    shape = tuple(broadcast_shapes(tuple(x.shape), tuple(mask.shape)))
    if mask.dtype.differentiable:
        raise DtypeError(f"masked_select(): a mask is of bools or integers, not of {mask.dtype}; compare: mask > 0")
    return getitem(_expand(x, shape), _expand(_mask(mask), shape))


@public("flow tensor", straight=True)
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """x with `value` where the mask holds.

    >>> flow.masked_fill(flow.ones(2), flow.tensor([True, False]), 0.).tolist()
    [0.0, 1.0]
    """
    if isinstance(value, Tensor):
        return _filled(x, mask, value)
    return _masked_fill(x, _mask(mask), value)


@public("flow tensor", straight=True)
def masked_fill_(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`masked_fill`, into x's memory."""
    if isinstance(value, Tensor):
        return assign(x, _filled(x, mask, value))
    return _mask_over(x, _mask(mask), value)


def _filled(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """x with what a tensor of one element holds where the mask holds."""
    if value.ndim:
        raise ShapeError(
            f"masked_fill(): the value is a number or a tensor of no dimension; got shape {list(value.shape)}. "
            "flow.where(mask, value, x) takes any"
        )
    return _where(_mask(mask), _value(x, value), x)


@public("flow tensor")
def nonzero(x: Tensor, as_tuple: bool = False) -> Any:
    """The positions of the elements that aren't zero, one per row; `as_tuple`: one tensor per dimension.

    >>> flow.nonzero(flow.tensor([[0, 3], [1, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    if not as_tuple:
        return OPS["nonzero"](x)
    positions = OPS["nonzero"](_unsqueeze(x, 0) if isinstance(x, Tensor) and not x.ndim else x)
    return tuple(_select_now(positions, 1, i) for i in range(positions.shape[1]))


@public("flow tensor")
def argwhere(x: Tensor) -> Tensor:
    """The positions of the elements that aren't zero, one per row."""
    return OPS["nonzero"](x)


@public("flow tensor")
def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements of x at these positions along a dimension, the others broadcast; without one, of x in a row."""
    if dim is None:
        return OPS["gather"](OPS["reshape"](x, (-1,)), 0, OPS["reshape"](indices, (-1,)))
    d = dim_of(dim, x.ndim)
    form, places = list(x.shape), list(indices.shape)
    form[d] = places[d] = 1
    shape = tuple(broadcast_shapes(form, places))
    left, right = ((*shape[:d], t.shape[d], *shape[d + 1 :]) for t in (x, indices))
    return OPS["gather"](_expand(x, left), d, _expand(indices, right))


@public("flow", straight=True)
def where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    """x where the condition holds, y elsewhere; of the condition alone, where it holds.

    >>> flow.where(flow.tensor([True, False]), flow.ones(2), 0.).tolist()
    [1.0, 0.0]
    """
    return nonzero(condition, True) if x is None and y is None else _where(_mask(condition), x, y)


@public("tensor", "where", straight=True)
def _first_where(x: Tensor, condition: Any, other: Any) -> Tensor:
    """x where the condition holds, the other elsewhere. OneFlow's order is another, and known by the mask's place:
    `condition.where(x, other)`.

    >>> flow.ones(2).where(flow.tensor([True, False]), 0.).tolist()
    [1.0, 0.0]
    """
    if isinstance(condition, Tensor) and condition.dtype is bool_:
        return _where(condition, x, other)
    return _where(_mask(x), condition, other)
