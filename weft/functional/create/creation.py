"""Creation of tensors from sizes and values: local, on a device; or global, with a placement and an sbp."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from weft.api.fast_path import Making
from weft.api.table import named, public
from weft.autograd.plain import behind, dense
from weft.core import dtype as dtypes
from weft.core import random
from weft.core import sbp as sbps
from weft.core.device import Device, choose_usual
from weft.core.dispatch import here, hooks, tracing
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, NoDtypeError, SbpError, ShapeError, ours
from weft.core.placement import Placement, placed_at
from weft.core.sbp import NdSbp, broadcast
from weft.functional.tensor.memory_format import formatted
from weft.ops.create import constructors
from weft.ops.create.convert import from_local, to_global
from weft.ops.declaration import Op
from weft.tensor.array import numbers
from weft.tensor.data import whole_data
from weft.tensor.tensor import Tensor, of_torch

Sizes = int | Sequence[int]  # f(2, 3) or f((2, 3))
Where = tuple[Device | None, Placement | None, NdSbp | None]


def get_default_dtype() -> DType:
    """The default dtype of floating-point tensors: torch's, which kernels follow too."""
    return dtypes.of_torch(torch.get_default_dtype())


def set_default_dtype(dtype: Any) -> None:
    """Set the default dtype of floating-point tensors, Weft's and torch's."""
    torch.set_default_dtype(dtypes.of(dtype).torch)


@public("flow")
def set_default_device(device: Any) -> None:
    """Set the default device of this thread's new tensors and layers.

    >>> flow.set_default_device("meta"); flow.zeros(2).device.type
    'meta'
    >>> flow.set_default_device(None)
    """
    choose_usual(None if device is None else Device(device))


@public("flow")
def get_default_device() -> Device:
    """The default device of this thread's new tensors."""
    return here.device or Device("cpu")


def place(name: str, device: Any, placement: Any, sbp: Any, ndim: int | None) -> Where:
    """The target of a new tensor: a device, or a placement and an sbp."""
    if placement is None:
        if sbp is not None:
            raise ArgumentError(f"{name}(): sbp says how a tensor lies on a placement; give placement=... too")
        if here.place is not None:
            placement, sbp = here.place  # of all tensors that global_mode makes, also of those with fewer dimensions
            given = sbps.nd(sbp, placement.ndim)
            return None, placement, tuple(s if ndim is None or s.dim < ndim else sbps.broadcast for s in given)
        return (here.device if device is None else Device(device).check()), None, None
    if device is not None:
        raise ArgumentError(f"{name}(): device makes a local tensor, placement a global one; give one of them")
    placement = placed_at(name, placement)
    if sbp is None:
        raise SbpError(f"{name}(): placement={placement!r} needs an sbp, such as sbp=flow.sbp.broadcast")
    return None, placement, sbps.nd(sbp, placement.ndim, ndim)


def size_of(name: str, size: tuple[Any, ...]) -> tuple[int, ...]:
    """The size from f(2, 3), f((2, 3)) or f(())."""
    given = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    for n in given:
        if type(n) is not int:
            break
    else:
        return tuple(given)
    try:
        return tuple(n if type(n) is int else n.__index__() for n in given)
    except (AttributeError, TypeError):
        if len(size) == 1 and isinstance(size[0], Sequence) and not isinstance(size[0], (tuple, list, str)):
            return size_of(name, (tuple(size[0]),))  # a custom sequence, such as a configuration's
        raise ArgumentError(f"{name}(): a size is ints, f(2, 3) or f((2, 3)); got {given!r}") from None


def made(op: Op, args: tuple[Any, ...], where: Where, splits: bool = True) -> Tensor:
    """The result of a creation op; made whole and then moved, if the op can't make the layout."""
    device, placement, wanted = where
    if placement is None or wanted is None:
        if here.plain:  # nothing to trace or record
            try:
                return of_torch(op.kernel(*args, device))
            except Exception as cause:
                if not ours(cause):
                    raise
        return op(*args, *where)
    able = tuple(s if s is broadcast or (splits and s.dim >= 0) else broadcast for s in wanted)
    y = op(*args, device, placement, able)
    return y if able == wanted else to_global(y, placement, wanted)


def finished(x: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        x.requires_grad = True
    return x


def _filled(name: str, value: float) -> Callable[..., Tensor]:
    @named(name, f"A tensor of {name}.\n\n>>> flow.{name}(2, 2).tolist()\n{[[value] * 2] * 2}")
    def make(
        *size: Sizes, dtype: Any = None, device: Any = None, placement: Placement | None = None, sbp: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:  # fmt: skip
        shape = size_of(name, size)
        kind = get_default_dtype() if dtype is None else dtypes.of(dtype)
        y = made(constructors.full, (shape, value, kind), place(name, device, placement, sbp, len(shape)))
        return finished(y, requires_grad)

    return public("flow", short=Making(getattr(torch, name), "*size", "size"))(make)


ones = _filled("ones", 1.0)
zeros = _filled("zeros", 0.0)


@public("flow", short=Making(torch.full, "size, fill_value", "size"))
def full(
    size: Any, fill_value: Any, dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of one value.

    >>> flow.full((2,), 7).tolist()
    [7, 7]
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    shape = size_of("full", (size,))
    where = place("full", device, placement, sbp, len(shape))
    return finished(made(constructors.full, (shape, value, _kind(value, dtype)), where), requires_grad)


def _kind(value: Any, dtype: Any) -> DType:
    if dtype is not None:
        return dtypes.of(dtype)
    if isinstance(value, complex):
        return get_default_dtype().to_complex()
    return get_default_dtype() if isinstance(value, float) else dtypes.of(type(value))


@public("flow", short=Making(torch.empty, "*size", "size"))
def empty(
    *size: Sizes, dtype: Any = None, device: Any = None, placement: Placement | None = None, sbp: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """An uninitialized tensor."""
    shape = size_of("empty", size)
    kind = get_default_dtype() if dtype is None else dtypes.of(dtype)
    y = made(constructors.empty, (shape, kind), place("empty", device, placement, sbp, len(shape)))
    y = formatted(y, memory_format)
    return finished(y.pin_memory() if pin_memory else y, requires_grad)


BETWEEN = "*((start,) if end is None else (start, end, step))"
COUNT = "(abs((start if end is None else end - start) / step),)"


@public("flow", short=Making(torch.arange, BETWEEN, COUNT))
def arange(
    start: Any = None, end: Any = None, step: Any = 1, dtype: Any = None, device: Any = None,
    placement: Placement | None = None, sbp: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ... below end.

    >>> flow.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """
    if start is None and end is None:
        raise ArgumentError("arange(): missing required argument 'end'; write arange(end) or arange(start, end)")
    ends = (0, start) if end is None else (start or 0, end)
    numbers = [n.item() if isinstance(n, (Tensor, np.generic)) else n for n in (*ends, step)]
    usual = dtypes.int64 if all(isinstance(n, int) for n in numbers) else get_default_dtype()
    kind = dtypes.of(dtype) if dtype is not None else usual
    y = made(constructors.arange, (*numbers, kind), place("arange", device, placement, sbp, 1), splits=False)
    return finished(y, requires_grad)


@public("flow")
def linspace(
    start: float | Tensor, end: float | Tensor, steps: int, dtype: Any = None, device: Any = None,
    placement: Placement | None = None, sbp: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` evenly spaced numbers from start to end, inclusive.

    >>> flow.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    first, last = _number(start), _number(end)
    data = torch.linspace(first, last, steps, dtype=None if dtype is None else dtypes.of(dtype).torch)
    return placed("linspace", data, device, placement, sbp, requires_grad)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


@public("flow")
def logspace(
    start: float | Tensor, end: float | Tensor, steps: int, base: float = 10.0, dtype: Any = None, device: Any = None,
    placement: Placement | None = None, sbp: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` numbers from base ** start to base ** end, evenly spaced on a logarithmic scale."""
    first, last = _number(start), _number(end)
    data = torch.logspace(first, last, steps, base, dtype=None if dtype is None else dtypes.of(dtype).torch)
    return placed("logspace", data, device, placement, sbp, requires_grad)


@public("flow")
def eye(
    n: int, m: int | None = None, dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Ones on the diagonal, zeros elsewhere.

    >>> flow.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    data = torch.eye(n, n if m is None else m, dtype=None if dtype is None else dtypes.of(dtype).torch)
    return placed("eye", data, device, placement, sbp, requires_grad)


# ---- from data ---------------------------------------------------------------------------------------


def placed(name: str, data: torch.Tensor, device: Any, placement: Any, sbp: Any, requires_grad: bool) -> Tensor:
    """A tensor from new data that is equal on every rank; a global one takes its shard."""
    y = _placed(name, data, device, placement, sbp, requires_grad)
    if here.trace is not None:
        here.trace.memories.made(y)
    return y


def _placed(name: str, data: torch.Tensor, device: Any, placement: Any, sbp: Any, requires_grad: bool) -> Tensor:
    on, where, how = place(name, device, placement, sbp, data.dim())
    if where is None or how is None:
        return finished(of_torch(data if on is None else data.to(on.torch)), requires_grad)
    flat = (broadcast,) * where.ndim
    with tracing(None) if here.trace is not None else contextlib.nullcontext():  # data is known: nothing to trace
        x = from_local(of_torch(data), where, flat, tuple(data.shape), False)
        return finished(x if how == flat else to_global(x, where, how).detach(), requires_grad)


hooks.placed = lambda data, device, placement, sbp: placed("Tensor", data, device, placement, sbp, False)


@public("flow")
def tensor(
    data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    placement: Placement | None = None, sbp: Any = None,
) -> Tensor:  # fmt: skip
    """A new tensor with a copy of the data: numbers, nested lists, numpy arrays, tensors.

    >>> flow.tensor([[1, 2], [3, 4]]).shape
    torch.Size([2, 2])
    """
    kind, data = None if dtype is None else dtypes.of(dtype).torch, behind(data)
    if isinstance(data, Tensor):
        data = whole_data(data, "flow.tensor(tensor)")
    if isinstance(data, torch.Tensor):
        copied = dense(data).detach().clone() if kind is None else data.detach().to(kind, copy=True)
    else:
        try:
            copied = torch.tensor(numbers(data), dtype=kind)
        except (TypeError, ValueError, RuntimeError) as cause:
            error = ShapeError if "sequence of length" in str(cause) else NoDtypeError
            raise error(
                f"tensor(): {data!r:.60} can't be converted to a tensor ({cause}); it takes numbers, arrays, or lists "
                "in which every row is as long as the next"
            ) from None
    y = placed("tensor", copied, device, placement, sbp, requires_grad)
    return y.pin_memory().requires_grad_(requires_grad) if pin_memory else y


@public("flow")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor, without a copy if possible."""
    data = behind(data)
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    if hasattr(data, "__array_interface__") or isinstance(data, torch.Tensor):
        kind = None if dtype is None else dtypes.of(dtype).torch
        shared = torch.as_tensor(dense(data) if isinstance(data, torch.Tensor) else data, dtype=kind)
        return _placed("as_tensor", shared.detach(), device, None, None, False)
    return tensor(data, dtype, device)


@public("flow")
def from_numpy(array: Any) -> Tensor:
    """A tensor that shares memory with a numpy array."""
    return of_torch(torch.from_numpy(array))


def from_torch(torch_tensor: torch.Tensor) -> Tensor:
    """A tensor that shares memory with a torch tensor."""
    return of_torch(dense(torch_tensor.detach()))


@public("flow")
def from_dlpack(exporter: Any) -> Tensor:
    """A tensor that shares memory with any DLPack exporter: NumPy, torch, jax, cupy."""
    return of_torch(torch.from_dlpack(exporter))


@public("flow")
def to_dlpack(x: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory."""
    return x.__dlpack__()


# ---- random ------------------------------------------------------------------------------------------


def drawing(generator: Any) -> Any:
    """A context manager: draws inside come from the generator, by default the rank's own."""
    if generator is None:
        return contextlib.nullcontext()
    source = getattr(generator, "source", None)
    if not isinstance(source, random.Source):
        raise ArgumentError(f"a generator is a flow.Generator or None; got {type(generator).__name__}")
    return contextlib.nullcontext() if source is random.of() else random.drawing_from(source)


@public("flow")
def range(
    start: float = 0, end: float | None = None, step: float = 1, dtype: Any = None, device: Any = None,
    placement: Placement | None = None, sbp: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ... up to and including end."""
    if end is None:
        start, end = 0, start
    kind = dtypes.of(dtype or get_default_dtype())
    steps = (end - start) / step if step else math.inf
    if not kind.differentiable:
        end += math.copysign(1, step)
    elif math.isfinite(steps):
        end = start + (math.floor(steps) + 0.5) * step  # whatever the rounding, the last one is before this
    return arange(start, end, step, kind, device, placement, sbp, requires_grad)


@public("flow")
def scalar_tensor(
    value: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    placement: Placement | None = None, sbp: Any = None,
) -> Tensor:  # fmt: skip
    """A 0-d tensor."""
    kind = dtype or get_default_dtype()
    return tensor(value, kind, device, requires_grad, placement=placement, sbp=sbp)


@public("flow")
def asarray(
    data: Any, dtype: Any = None, device: Any = None, requires_grad: bool | None = None, copy: Any = None
) -> Tensor:
    """Data as a tensor, sharing memory if possible; of a tensor, part of its computation unless `requires_grad` says
    otherwise."""
    y = as_tensor(data, dtype, device)
    if copy and (y is data or not isinstance(data, Tensor)):
        y = y.clone()
    if requires_grad in (None, y.requires_grad):
        return y
    return finished(y.detach() if y is data or y.requires_grad else y, bool(requires_grad))


@public("flow")
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector that shares memory with a buffer.

    >>> flow.frombuffer(bytearray([1, 0, 2, 0]), dtype=flow.int16).tolist()
    [1, 2]
    """
    made = of_torch(torch.frombuffer(buffer, dtype=dtypes.of(dtype).torch, count=count, offset=offset))
    return finished(made, requires_grad)
