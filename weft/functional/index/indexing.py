"""`x[...]` and `x[...] = value`: ints, slices, None and Ellipsis are views; tensors, lists and masks gather."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.api.fast_path import Short, shortened
from weft.api.table import ADAPTERS, overwriting, public
from weft.autograd.inplace import check_writable
from weft.autograd.overwrite import assign, guarded
from weft.core import dtype as dtypes
from weft.core.dispatch import here
from weft.core.dtype import bool_
from weft.core.errors import ArgumentError, IndexingError, ShapeError
from weft.functional.create import creation
from weft.functional.index.subscripts import (
    Step,
    is_mask,
    leading_mask,
    mask_alone,
    meant,
    on_device_of,
    parse,
    positions_alone,
    positions_by_dim,
    positions_listed,
)
from weft.functional.pointwise.complex_numbers import imag, real
from weft.functional.shape.broadcasting import broadcast_shapes
from weft.functional.shape.splitting import unbind
from weft.functional.tensor.conversion import cast
from weft.functional.tensor.in_place import number_like
from weft.ops import OPS, ops
from weft.ops.index.indexing import check_places
from weft.tensor.tensor import Tensor
from weft.vm.dependency import writable

_fill_over, _copy_over = overwriting(OPS["fill"]), overwriting(OPS["copy"])
_mask_over, _put_over = overwriting(OPS["masked_fill"]), overwriting(OPS["index_put"])
_part_over, _part_filled = overwriting(OPS["basic_index_scatter"]), overwriting(OPS["basic_index_fill"])
_unbind = ADAPTERS["flow"][unbind.__name__]
KEYS = (int, slice, tuple, Tensor)  # unambiguous keys

_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})  # the classes of basic indices, which give views


def _is_basic(key: Any) -> bool:
    """Whether the index gives a view."""
    kind = key.__class__
    return kind in _BASIC or (kind is tuple and _BASIC.issuperset(map(type, key)) and key.count(...) < 2)


_PART = Short("basic_index", "d0[key] if is_basic(key) else None", names={"is_basic": _is_basic})


def _getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    kind = type(key)
    places = _places(x, key)
    if places is not None:
        return ops.index(x, places)
    if kind is int and not x.ndim:
        raise IndexingError(f"x[{key}]: invalid index of a 0-dim tensor; read it with x.item()")
    elif kind is slice and not x.ndim:
        raise IndexingError("x[:]: slice() cannot be applied to a 0-dim tensor; write x[...]")
    elif kind not in KEYS and (read := meant(key)) is not key:
        return getitem(x, read)
    steps, gathered = parse(x, key)
    for op, attributes in steps:
        x = op(x, *attributes)
    if any(g is not None for g in gathered):
        return ops.index(x, _as_positions(x, gathered))
    return x if steps else ops.view(x, tuple(x.shape))


def _places(x: Tensor, key: Any) -> list[Tensor | None] | None:
    """The index tensors of a key that has only such, and `:`, for which it has None; None for any other key."""
    kind = type(key)
    if kind is Tensor:
        return [key] if positions_alone(x, key) or leading_mask(x, key) else None
    if kind is list:
        places = positions_listed(x, key)
        return None if places is None else [places]
    return positions_by_dim(x, key) if kind is tuple else None


def _no_part(x: Tensor, key: Any) -> None:
    return None


getitem = shortened(_getitem, _getitem, _PART)
_part: Any = shortened(_no_part, _no_part, _PART)


def iterate(x: Tensor) -> Iterator[Tensor]:
    """The slices along the first dimension."""
    if not x.ndim:
        raise ArgumentError("iteration over a 0-d tensor: it has no first dimension; read it with x.item()")
    return iter(_unbind(x))


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """x[key] = value."""
    if type(key) not in KEYS:
        key = meant(key)
    if isinstance(key, Tensor):
        if type(value) in (int, float, bool) and mask_alone(x, key):
            _mask_over(x, key, value)
            return
        places = _places(x, key)
        if places is not None:
            if not _put_at_once(x, places, value):
                _put(x, places, value)
            return
    elif x.spec is None and here.trace is None:
        tensor = value.__class__ is Tensor
        taped = here.grad and (x.node is not None or (tensor and value._requires_grad)) and x._view_of is None
        if taped and (_fits(x, key, value) if tensor else value.__class__ in (int, float) and _is_basic(key)):
            (_part_over if tensor else _part_filled)(x, value, key)
            return
        part = _part(x, key)
        if part is not None:
            _write(part, value)
            return
        places = _places(x, key)
        if places is not None:
            if not _put_at_once(x, places, value):
                _put(x, places, value)
            return
    steps, gathered = parse(x, key)
    if x.spec is not None or here.trace is not None:
        _replace(x, steps, gathered, value)
        return
    part = x
    for op, attributes in steps:
        part = op(part, *attributes)
    if any(g is not None for g in gathered):
        _put(part, gathered, value)
    else:
        _write(part, value)


def _fits(x: Tensor, key: Any, value: Tensor) -> bool:
    """Whether the value is like the part that the index gives, and isn't the part itself, as after `x[0] += 1`."""
    memory, given = x.blob.now, value.blob.now
    if memory is None or given is None or given.dtype is not memory.dtype or not _is_basic(key):
        return False
    try:
        part = memory[key]
    except IndexError:
        return False
    return part.shape == given.shape and part.data_ptr() != given.data_ptr() and part.device == given.device


def _write(part: Tensor, value: Any) -> None:
    if type(value) in (int, float, bool):
        _fill_over(part, value)
    elif not _itself(part, value):
        _copy_over(part, _fitting(part, value))


def _itself(part: Tensor, value: Any) -> bool:
    """Whether the value is the part already, as at the end of `x[0] += 1`."""
    if not isinstance(value, Tensor) or value.spec is not None or value._view_of is None:
        return False
    a, b = part._meta, value._meta
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype


def _as_positions(x: Tensor, gathered: list[Tensor | None]) -> list[Tensor | None]:
    """Masks as the indices of their true elements; unchanged where the kernel checks itself."""
    kernels_do = here.plain and x.spec is None and all(g is None or g.spec is None for g in gathered)
    found: list[Tensor | None] = []
    covers = 0
    for dim, g in enumerate(gathered):
        if g is None:
            if covers <= dim:
                found.append(None)
                covers += 1
        elif not is_mask(g):
            found.append(g)
            covers += 1
        else:
            covers += g.ndim
            covered = tuple(x.shape)[dim : dim + g.ndim]
            if tuple(g.shape) != covered:
                raise IndexingError(
                    f"The shape of the mask {list(g.shape)} at index 0 does not match the shape of the indexed tensor "
                    f"{list(x.shape)} at index {dim}: it covers dimensions of shape {list(covered)}"
                )
            if kernels_do:
                found.append(cast(g, bool_))
                continue
            positions = ops.nonzero(g)
            found.extend(ops.select(positions, 1, i) for i in range(g.ndim))
    return found


def _put_at_once(x: Tensor, places: list[Tensor | None], value: Any) -> bool:
    """Write to gathered elements by torch's own assignment, unless memory has to be waited for, or a gradient cares."""
    memory, given = x.blob.now, value
    if not here.plain or memory is None or not writable(x.blob):
        return False
    if type(value) is Tensor:
        given = value.blob.now
        if value.spec is not None or given is None or given.dtype is not memory.dtype:
            return False
    elif type(value) not in (int, float, bool):
        return False
    if here.grad and (x._requires_grad or (given is not value and value._requires_grad) or guarded(x._view_of)):
        return False
    keys: list[Any] = [slice(None) if p is None else p.blob.now for p in places]
    if any(k is None for k in keys):  # it is being computed
        return False
    try:
        for dim, k in enumerate(keys):
            if type(k) is not slice and k.dtype is torch.int64:
                check_places(k, dim, memory, negative=True)
        memory[tuple(keys)] = given
    except (RuntimeError, IndexError):  # the general path's errors say more
        return False
    return True


def _put(part: Tensor, gathered: list[Tensor | None], value: Any) -> None:
    """Write to gathered elements."""
    alone = _mask_alone(part, gathered, value) if isinstance(value, (int, float)) else None
    if alone is not None:
        part.masked_fill_(*alone)
    else:
        _put_over(part, _as_positions(part, gathered), _spread(part, gathered, value))


def _mask_alone(part: Tensor, gathered: list[Tensor | None], value: Any) -> tuple[Tensor, Any] | None:
    """The mask and the value, both to be spread over the part, if the mask is the only index and the value is the same
    for all of its true elements: that needs no indices, whose count depends on data."""
    (dim, mask), *others = [(i, g) for i, g in enumerate(gathered) if g is not None] or [(0, None)]
    if mask is None or others or not is_mask(mask):
        return None
    shape, after = tuple(part.shape), part.ndim - dim - mask.ndim
    if tuple(mask.shape) != shape[dim : dim + mask.ndim]:
        return None
    if not isinstance(value, (int, float)):
        value = _value(part, value)
        sizes = (*(1,) * (dim + 1 + after - value.ndim), *value.shape)
        sizes = (*sizes[:dim], *sizes[dim : dim + 1] * mask.ndim, *sizes[dim + 1 :])
        if (
            len(sizes) != len(shape)
            or sizes[dim] != 1
            or any(a not in (1, b) for a, b in zip(sizes, shape, strict=True))
        ):
            return None
        value = ops.reshape(value, sizes)
    mask = ops.reshape(mask, (*(1,) * dim, *mask.shape, *(1,) * after))
    return _mask(mask), value


def _value(part: Tensor, value: Any) -> Tensor:
    """The value as a tensor with the part's device and dtype."""
    if not isinstance(value, Tensor):
        if isinstance(value, (int, float, complex)):
            return number_like(part, value)
        value = creation.as_tensor(value)
    value = on_device_of(part, value)
    return value if value.dtype is part.dtype else ops.cast(value, part.dtype)


def _fitting(part: Tensor, value: Any) -> Tensor:
    """The value for a part that the keys of a view give."""
    value = _without_ones(_value(part, value), part.ndim)
    if value.ndim > part.ndim:
        raise ShapeError(f"a value of shape {list(value.shape)} doesn't fit into a part of shape {list(part.shape)}")
    return value


def _spread(part: Tensor, gathered: list[Tensor | None], value: Any) -> Tensor:
    """The value for the elements that are gathered from a part."""
    value = _value(part, value)
    if not value.ndim or value.shape[0] != 1:
        return value
    named = [(g.ndim, 1) if is_mask(g) else (1, g.ndim) for g in gathered if g is not None]
    return _without_ones(value, part.ndim - sum(covered for covered, _ in named) + max(n for _, n in named))


def _without_ones(value: Tensor, ndim: int) -> Tensor:
    """The value without leading dimensions of size one beyond so many dimensions."""
    shape, extra = tuple(value.shape), value.ndim - ndim
    if extra > 0 and all(n == 1 for n in shape[:extra]):
        return ops.reshape(value, shape[extra:])
    return value


def _replace(x: Tensor, steps: list[Step], gathered: list[Tensor | None], value: Any) -> None:
    """Assignment without shared memory: scatter the value through the views into the base, and let x be that."""
    check_writable(x, "x[...] = value")
    stages = [x]
    for op, attributes in steps:
        stages.append(op(stages[-1], *attributes))
    part = stages.pop()
    alone = _mask_alone(part, gathered, value)
    if alone is not None:
        mask, value = alone
        whole = ops.where(mask, value, part) if isinstance(value, Tensor) else ops.masked_fill(part, mask, value)
    elif any(g is not None for g in gathered):
        whole = ops.index_put(part, _as_positions(part, gathered), _spread(part, gathered, value))
    else:
        whole = ops.copy(part, _fitting(part, value))
    for (op, attributes), before in zip(reversed(steps), reversed(stages), strict=True):
        scatter: Callable[..., Any] | None = op.scatter
        assert scatter is not None
        whole = scatter(before, whole, *attributes)
    assign(x, whole)


# ---- as functions ------------------------------------------------------------------------------------


def _mask(x: Any) -> Any:
    """A boolean mask; integers are true where nonzero, as in OneFlow."""
    if not isinstance(x, Tensor) or x.dtype is bool_ or x.dtype.differentiable:
        return x  # for anything else, the op raises
    return cast(x, bool_)


@public("flow tensor")
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of x where the mask is true, as a vector; a mask of numbers is true where nonzero.

    >>> flow.masked_select(flow.tensor([1, 2, 3]), flow.tensor([True, False, True])).tolist()
    [1, 3]
    """
    mask = cast(mask, bool_)
    if x.ndim and x.shape == mask.shape:
        return getitem(x, mask)
    shape = tuple(broadcast_shapes(tuple(x.shape), tuple(mask.shape)))
    return getitem(ops.expand(x, shape), ops.expand(mask, shape))


@public("flow tensor")
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return _filled(x, mask, value)
    return ops.masked_fill(x, _mask(mask), value)


@public("flow tensor")
def masked_fill_(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """In-place `masked_fill`."""
    if isinstance(value, Tensor):
        return assign(x, _filled(x, mask, value))
    return _mask_over(x, _mask(mask), value)


def _filled(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """x with a one-element tensor's value where the mask is true."""
    if value.ndim:
        raise ShapeError(
            f"masked_fill(): the value must be a number or a 0-d tensor; got shape {list(value.shape)}. "
            "flow.where(mask, value, x) takes any"
        )
    said = f"masked_fill(): value cannot be converted to type {x.dtype.name} without overflow"
    if value.dtype.is_complex and not x.dtype.is_complex:
        value = ops.add(real(value), ops.require(imag(value), ops.eq(imag(value), 0), f"{said}: an imaginary part"))
    if value.dtype is not x.dtype and bool_ not in (x.dtype, value.dtype) and not value.dtype.is_complex:
        of_x, of_value = ((torch.finfo if t.dtype.differentiable else torch.iinfo)(t.dtype.torch) for t in (x, value))
        wide = cast(value, dtypes.float64) if value.dtype.differentiable else value  # limits aren't rounded to it
        held = ops.logical_and(ops.ge(wide, of_x.min or -of_x.max), ops.le(wide, of_x.max))
        if x.dtype.differentiable:  # it holds infinity and nan as well
            held = ops.logical_or(held, ops.logical_not(ops.isfinite(value)))
        if not x.dtype.differentiable or of_x.max < of_value.max:
            value = ops.require(value, held, said)
    return ops.where(_mask(mask), _value(x, value), x)


@public("flow tensor")
def nonzero(x: Tensor, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements, one per row; `as_tuple`: one tensor per dimension.

    >>> flow.nonzero(flow.tensor([[0, 3], [1, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    if not as_tuple:
        return ops.nonzero(x)
    positions = ops.nonzero(ops.unsqueeze(x, 0) if isinstance(x, Tensor) and not x.ndim else x)
    return tuple(ops.select(positions, 1, i) for i in range(positions.shape[1]))


@public("flow tensor")
def argwhere(x: Tensor, *, dtype: Any = None) -> Tensor:
    """The indices of the nonzero elements, one per row."""
    return ops.nonzero(x) if dtype is None else ops.cast(ops.nonzero(x), dtypes.of(dtype))


@public("flow")
def where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    """x where the condition is true, y elsewhere; of the condition alone, the indices where it is true.

    >>> flow.where(flow.tensor([True, False]), flow.ones(2), 0.).tolist()
    [1.0, 0.0]
    """
    return nonzero(condition, True) if x is None and y is None else ops.where(_mask(condition), x, y)


@public("tensor", "where")
def _first_where(x: Tensor, condition: Any, other: Any) -> Tensor:
    """x where the condition is true, the other elsewhere. In OneFlow's order, `condition.where(x, other)`, the mask
    is first.

    >>> flow.ones(2).where(flow.tensor([True, False]), 0.).tolist()
    [1.0, 0.0]
    """
    if isinstance(condition, Tensor) and condition.dtype is bool_:
        return ops.where(condition, x, other)
    return ops.where(_mask(x), condition, other)
