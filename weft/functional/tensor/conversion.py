"""Conversion between dtypes, devices and layouts: `to`, `float`, `cuda`, `to_global`, `to_local`, ..."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import torch

from weft.api.signature import F
from weft.api.table import named, public
from weft.autograd import Function
from weft.core import dtype as dtypes
from weft.core import sbp as sbps
from weft.core.device import Device
from weft.core.dispatch import here
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, DtypeError, SbpError
from weft.core.placement import Placement, placed_at
from weft.core.sbp import NdSbp
from weft.functional.tensor.memory_format import asks_channels_last, formatted
from weft.ops import ops
from weft.ops.create import convert, move
from weft.tensor.blob import Blob
from weft.tensor.data import local_data
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor, still_part

SHORT: Final = {dtypes.float16, dtypes.bfloat16}


@public("tensor")
def to(
    x: Tensor, *targets: Any, dtype: Any = None, device: Any = None, other: Tensor | None = None, copy: bool = False,
    non_blocking: bool = False, placement: Placement | None = None, sbp: Any = None, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """x with another dtype, device, or both as of another tensor: `to(flow.half)`, `to("cuda", flow.half)`, `to(y)`"""
    if placement is not None or sbp is not None:
        return formatted(to_global(x, placement, sbp), memory_format)
    for at, target in enumerate(targets):
        if target is None:  # the same device
            continue
        if isinstance(target, Tensor):
            other = target
        elif isinstance(target, bool):
            copy = target if at == len(targets) - 1 and at > 1 else copy
        elif isinstance(target, (Device, torch.device) if at else (Device, torch.device, int)) or (
            isinstance(target, str) and target.partition(":")[0] in ("cpu", "cuda", "meta")
        ):
            device = Device("cuda", target) if isinstance(target, int) else target
        else:
            try:
                dtype = dtypes.of(target)
            except DtypeError as cause:
                return _as_kind(x, target, cause)
    if other is not None:
        dtype = other.dtype
        if other.is_local:
            device = other.device
        elif x.placement is not other.placement:  # else x itself, whose memory a program may write
            x = to_global(x, other.placement, other.sbp)
    y = x if device is None else _on(x, Device(device), non_blocking)
    if dtype is not None:
        y = cast(y, dtype)
    if memory_format is not None:
        y = formatted(y, memory_format, y is x and not copy)
    return ops.clone(y) if copy and y is x else y


def _as_kind(x: Tensor, kind: Any, cause: DtypeError) -> Any:
    """OneFlow's `weight.to(flow.Tensor)` of a graph's parameter: itself, or its block."""
    if isinstance(kind, type) and isinstance(x, kind):
        return x
    if isinstance(kind, type) and hasattr(kind, "of"):
        return kind.of(x)
    raise ArgumentError(f"to(): {kind!r} is not a device such as 'cpu', 'cuda' or 'cuda:1', and not a dtype: {cause}")


def _on(x: Tensor, device: Device, non_blocking: bool = False) -> Tensor:
    if x.is_global:
        if x.placement.type == device.type:
            return x
        device.check()
        return convert.to_global(x, Placement(device.type, x.placement.ranks.tolist()), x.sbp)
    return x if x.device is device else still_part(move.to_device(x, device.check(), x.device, not non_blocking), x)


@public("flow tensor")
def cast(x: Tensor, dtype: Any) -> Tensor:
    """x in another dtype; x itself if it has that dtype.

    >>> flow.cast(flow.tensor([1.7]), flow.int32).tolist()
    [1]
    """
    kind = dtype if type(dtype) is DType else dtypes.of(dtype)
    return x if isinstance(x, Tensor) and x.dtype is kind else still_part(ops.cast(x, kind), x)


def in_float32(f: F) -> F:
    """Compute with 16-bit numbers in float32 and round once, as torch's kernels do: float16's squares end at 255."""

    @functools.wraps(f)
    def wide(*args: Any, **options: Any) -> Any:
        given = [t.dtype for t in (*args, *options.values()) if isinstance(t, Tensor)]
        kinds = {kind for kind in given if kind.is_floating_point or kind.is_complex}
        if len(kinds) != 1 or not kinds <= SHORT:
            return f(*args, **options)

        def widened(t: Any) -> Any:
            return ops.cast(t, dtypes.float32) if isinstance(t, Tensor) and t.dtype in kinds else t

        made = f(*map(widened, args), **{k: widened(v) for k, v in options.items()})
        asked = options.get("dtype") is not None or made.dtype is not dtypes.float32
        return made if asked else ops.cast(made, *kinds)

    return wide  # type: ignore[return-value]


def _as(name: str, kind: DType) -> None:
    @public("tensor")
    @named(name, f"x as {kind.name}.")
    def converted(x: Tensor, *, memory_format: Any = None) -> Tensor:
        y = x if x.dtype is kind else still_part(ops.cast(x, kind), x)
        return y if memory_format is None else formatted(y, memory_format, y is x)


for _name, _kind in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}.items():  # fmt: skip
    _as(_name, _kind)


@public("tensor")
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """x in the other's dtype, on its device."""
    return to(x, other=other)


@public("tensor", "type")
def type_(x: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """x with another dtype, or as a type such as flow.FloatTensor, which also determines the device; without one, the
    name of x's type, such as weft.FloatTensor."""
    if dtype is not None:
        name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
        kind = TYPES.get(name.rpartition(".")[2])
        there = "cuda." in name or getattr(dtype, "is_cuda", False)
        moved = x if kind is None or x.is_cuda == there else (cuda if there else cpu)(x)
        return cast(moved, kind or dtype)
    names = {kind: name for name, kind in TYPES.items()}
    return f"{x.dtype.library}.{'cuda.' if x.is_cuda else ''}{names[x.dtype]}"


TYPES = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "CharTensor": dtypes.int8, "ShortTensor": dtypes.int16,
    "IntTensor": dtypes.int32, "LongTensor": dtypes.int64, "ByteTensor": dtypes.uint8, "BoolTensor": dtypes.bool_,
    "ComplexFloatTensor": dtypes.complex64, "ComplexDoubleTensor": dtypes.complex128,
}  # fmt: skip


@public("tensor")
def cpu(x: Tensor) -> Tensor:
    """x on the CPU."""
    return _on(x, Device("cpu"))


@public("tensor")
def cuda(x: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """x on a CUDA device, by default the current one."""
    return _on(x, Device("cuda", device) if isinstance(device, int) else Device(device or "cuda"), non_blocking)


@public("flow tensor")
def clone(x: Tensor, memory_format: Any = None) -> Tensor:
    """A copy of x, which lies as x does unless a memory format is given.

    >>> x = flow.ones(1); y = x.clone(); y.fill_(2); x.item()
    tensor([2.])
    1.0
    """
    if memory_format in (None, torch.preserve_format):
        return still_part(ops.clone(x), x)
    return still_part(move.contiguous(x, asks_channels_last(x, memory_format)), x)


@public("tensor")
def pin_memory(x: Tensor) -> Tensor:
    """x in pinned memory, from which copies to a CUDA device overlap with compute."""
    pinned = x.detach()
    pinned.blob, pinned._view_of = Blob(local_data(x, "pin_memory()").pin_memory()), None
    return pinned


@public("tensor")
def is_pinned(x: Tensor) -> bool:
    """Whether x is in page-locked memory."""
    return local_data(x, "is_pinned()").is_pinned()


# ---- global ------------------------------------------------------------------------------------------


def _layout(name: str, placement: Any, sbp: Any) -> tuple[Placement, NdSbp]:
    placement = placed_at(name, placement)
    return placement, sbps.nd(sbp, placement.ndim)


@public("tensor flow")
def local_to_global(
    x: Tensor, placement: Placement | None = None, sbp: Any = None, *, check_meta: bool = True, copy: bool = False
) -> Tensor:
    """The global tensor whose shards are the ranks' local tensors.

    `check_meta` compares the shards' shapes across ranks; without it they are trusted.
    """
    if placement is None or sbp is None:
        raise SbpError(
            "a local tensor becomes global with both a placement and an sbp: x.to_global(placement="
            f'flow.placement("cpu", ranks=[0, 1]), sbp=flow.sbp.broadcast); got placement={placement}, sbp={sbp}'
        )
    where, how = _layout("to_global", placement, sbp)
    if check_meta:
        return convert.from_local(x, where, how, None, copy)
    shape = list(x.shape)
    for n, s in zip(where.shape, sbps.nd(how, where.ndim, len(shape)), strict=True):
        if s.dim >= 0:
            shape[s.dim] *= n
    return convert.from_local(x, where, how, tuple(shape), copy)


@public("tensor flow")
def global_to_global(
    x: Tensor, placement: Placement | None = None, sbp: Any = None, *, grad_sbp: Any = None, check_meta: bool = False,
    copy: bool = False,
) -> Tensor:  # fmt: skip
    """The same logical tensor with another placement and sbp."""
    if x.is_local:
        raise SbpError("global_to_global takes a global tensor; a local one becomes global with x.to_global(...)")
    target = x.placement if placement is None else placement
    if sbp is None and isinstance(target, Placement) and target.ndim != x.placement.ndim:
        raise SbpError(f"to_global: {target!r} has {target.ndim} axes; give an sbp for each of them")
    where, how = _layout("to_global", target, x.sbp if sbp is None else sbp)
    sbps.nd(how, where.ndim, x.ndim)
    if where is x.placement and how == x.sbp and grad_sbp is None:
        return ops.clone(x) if copy else x
    y = convert.to_global(x, where, how)
    if grad_sbp is not None and y.requires_grad:
        wanted = sbps.nd(grad_sbp, where.ndim, x.ndim)
        y.register_hook(lambda g: convert.to_global(g, where, wanted))
    return y


@public("tensor flow")
def to_global(
    x: Any, placement: Placement | None = None, sbp: Any = None, *, grad_sbp: Any = None,
    check_meta: bool | None = None, copy: bool = False,
) -> Any:  # fmt: skip
    """A global tensor from local shards, or with another layout; nested tensors are converted one by one.

    >>> P = flow.placement("cpu", ranks=[0])
    >>> flow.ones(2).to_global(placement=P, sbp=flow.sbp.broadcast).is_global
    True
    """
    if isinstance(x, Tensor):
        if x.is_local and isinstance(x, Parameter) and placement is not None and here.trace is None:
            shape = None if check_meta is not False else x.shape if x.part_of is None else x.part_of.shape
            x = convert.from_local(x, *counted_as(x, placement), shape, False)  # others are this rank's shard
            return global_to_global(x, placement, sbp, grad_sbp=grad_sbp, copy=copy)
        if x.is_local:
            return local_to_global(x, placement, sbp, check_meta=check_meta is not False, copy=copy)
        return global_to_global(x, placement, sbp, grad_sbp=grad_sbp, copy=copy)
    options = {"grad_sbp": grad_sbp, "check_meta": check_meta, "copy": copy}
    return _each("to_global", x, lambda t: to_global(t, placement, sbp, **options))


def counted_as(x: Tensor, placement: Placement) -> tuple[Placement, NdSbp]:
    """The layout of a local parameter: that of the global tensor that it is a shard of, else broadcast."""
    if x.part_of is not None:
        return x.part_of.placement, x.part_of.nd_sbp
    return placement, (sbps.broadcast,) * placement.ndim


class _Part(Function):
    """`to_local` whose gradients, of all ranks, make up x's as given."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, how = args
        ctx.of = x.placement, how, tuple(x.shape)
        return convert.to_local(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        return convert.from_local(gradients[0], *ctx.of), None


class Whole(Function):
    """`from_local` whose parts get the whole's gradient in another layout."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, placement, how, shape, ctx.back = args
        return convert.from_local(x, placement, how, shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None, None, None]:
        dy = gradients[0]
        return convert.to_local(convert.to_global(dy, dy.placement, ctx.back)), None, None, None, None


@public("tensor flow")
def to_local(x: Any, *, copy: bool = False, grad_placements: Any = None) -> Any:
    """This rank's shard of a global tensor, sharing memory; nested tensors are converted one by one.

    `grad_placements`, as of PyTorch's DTensor, says how the ranks' gradients make up x's: by default as x's shards do.
    """
    if isinstance(x, Tensor):
        how = None if grad_placements is None else tuple(p.sbp(x.ndim) for p in grad_placements)
        local = convert.to_local(x) if how is None else _Part.apply(x, how)
        return ops.clone(local) if copy else local
    return _each("to_local", x, lambda t: to_local(t, copy=copy, grad_placements=grad_placements))


def _each(name: str, nested: Any, f: Callable[[Any], Any]) -> Any:
    if isinstance(nested, dict):
        return type(nested)((k, f(v)) for k, v in nested.items())
    if isinstance(nested, (list, tuple)):
        return type(nested)(*map(f, nested)) if hasattr(nested, "_fields") else type(nested)(map(f, nested))
    if nested is None or isinstance(nested, (int, float, str)):
        return nested
    raise ArgumentError(f"{name}(): takes a tensor, or nested lists, tuples and dicts of them; got {type(nested)}")
