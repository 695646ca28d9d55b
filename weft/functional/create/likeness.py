"""New tensors like another: `ones_like`, `rand_like`, `new_zeros`, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from weft.api.fast_path import Making
from weft.api.table import named, public
from weft.autograd.freshness import fresh
from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.sbp import broadcast
from weft.functional.create import creation
from weft.functional.create.creation import Sizes, finished, size_of
from weft.functional.random import random_tensors
from weft.functional.tensor.memory_format import asks_channels_last, formatted
from weft.job.memory_order import alike
from weft.ops import ops
from weft.ops.create import constructors
from weft.tensor.tensor import Tensor


def form(x: Tensor, dtype: Any, device: Any, placement: Any, sbp: Any) -> dict[str, Any]:
    """Options for a tensor like x: its dtype and device or layout, unless given."""
    options: dict[str, Any] = {"dtype": x.dtype if dtype is None else dtypes.of(dtype)}
    if placement is not None or (sbp is not None and x.is_global):
        options |= {"placement": placement or x.placement, "sbp": sbp}
    elif device is not None or x.is_local:
        options["device"] = x.device if device is None else device
    else:  # random and constant tensors can't be partial
        options |= {"placement": x.placement, "sbp": tuple(broadcast if s.kind == "P" else s for s in x.sbp)}
    return options


def _other(x: Tensor, device: Any) -> Any:
    """The given device, or None if x is there."""
    there = device is not None and x.is_local and isinstance(device, (str, Device, torch.device))
    return None if there and Device(device) == x.device else device


def strides_of(x: Tensor) -> tuple[int, ...] | None:
    """The strides of a local tensor that isn't contiguous, in eager mode; else None."""
    x = fresh(x)
    return None if x.is_global or x.is_contiguous() else x.stride()


def device_of(x: Tensor) -> dict[str, Any]:
    """Options for a tensor on x's device; for a global x, on every rank of its placement, broadcast."""
    if x.is_local:
        return {"device": x.device}
    return {"placement": x.placement, "sbp": (broadcast,) * x.placement.ndim}


def fitted(x: Tensor, shape: Any, dtype: Any, device: Any, placement: Any, sbp: Any) -> dict[str, Any]:
    """`form` for another shape: dimensions too short to be split as in x are broadcast."""
    options = form(x, dtype, device, placement, sbp)
    if placement is not None or sbp is not None or "sbp" not in options:
        return options
    left, found = list(shape), []
    for s, n in zip(options["sbp"], x.placement.shape, strict=True):
        fits = s.kind != "S" or (s.dim < len(left) and left[s.dim] >= n)
        if fits and s.kind == "S":
            left[s.dim] //= n
        found.append(s if fits else broadcast)
    return {**options, "sbp": tuple(found)}


def _like(name: str, op: Any) -> None:
    @public("flow", short=Making(getattr(torch, name), "x.blob.now"))
    @named(name, op.__doc__)
    def like(
        x: Tensor, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
        requires_grad: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        device = _other(x, device)
        if device is None and placement is None and sbp is None:
            made = op(x, None if dtype is None else dtypes.of(dtype))
        else:
            make = getattr(creation, name.removesuffix("_like"))
            made = make(tuple(x.shape), **form(x, dtype, device, placement, sbp))
        return finished(formatted(made, memory_format), requires_grad)


_like("ones_like", constructors.ones_like)
_like("zeros_like", constructors.zeros_like)
_like("empty_like", constructors.empty_like)


@public("flow", short=Making(torch.full_like, "x.blob.now, fill_value"))
def full_like(
    x: Tensor, fill_value: Any, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
    requires_grad: bool = False, *, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor like x, filled with one value."""
    device = _other(x, device)
    if device is None and placement is None and sbp is None:
        value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
        made = constructors.full_like(x, value, None if dtype is None else dtypes.of(dtype))
    else:
        made = creation.full(tuple(x.shape), fill_value, **form(x, dtype, device, placement, sbp))
    return finished(formatted(made, memory_format), requires_grad)


def _drawn_like(
    x: Tensor, distribution: str, parameters: tuple[float, ...], generator: Any, dtype: Any, memory_format: Any = None
) -> Tensor | None:
    """Draws like a local tensor that isn't contiguous, or in such a format, in memory order, as torch does."""
    shape, dense = tuple(x.shape), None
    if memory_format in (None, torch.preserve_format):
        strides = strides_of(x)
        dense = strides and alike(shape, [torch.empty_strided(shape, strides, device="meta")])
    elif asks_channels_last(x, memory_format) and x.is_local:
        dense = torch.empty(shape, memory_format=memory_format, device="meta").stride()
    if dense is None:
        return None
    with creation.drawing(generator):
        return ops.draw(shape, distribution, parameters, dtype, x.device, None, None, dense)


def _random_like(name: str, make: Callable[..., Tensor], distribution: str) -> None:
    @public("flow", short=Making(getattr(torch, name), "x.blob.now, generator=drawn()"))
    @named(name, f"{make.__doc__} The result is like x.")
    def like(
        x: Tensor, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
        generator: Any = None, requires_grad: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        device = _other(x, device)
        options = form(x, dtype, device, placement, sbp)
        if device is None and placement is None:
            y = _drawn_like(x, distribution, (0.0, 1.0), generator, options["dtype"], memory_format)
            if y is not None:
                return finished(y, requires_grad)
        return finished(formatted(make(tuple(x.shape), generator=generator, **options), memory_format), requires_grad)


_random_like("rand_like", random_tensors.rand, "uniform")
_random_like("randn_like", random_tensors.randn, "normal")


@public("flow")
def randint_like(x: Tensor, low: int = 0, high: int | None = None, *, generator: Any = None, **options: Any) -> Tensor:
    """Draws integers from low to high - 1, like x."""
    if high is None:
        low, high = 0, low
    wanted = options.pop("requires_grad", False)
    options["device"] = _other(x, options.get("device"))
    given = form(x, *(options.get(k) for k in ("dtype", "device", "placement", "sbp")))
    if low < high and options["device"] is None and "placement" not in options:
        y = _drawn_like(x, "random", (low, high), generator, given["dtype"])
        if y is not None:
            return finished(y, wanted)
    return random_tensors.randint(low, high, tuple(x.shape), generator=generator, requires_grad=wanted, **given)


def _new(name: str, make: Callable[..., Tensor]) -> None:
    @public("flow tensor", short=Making(getattr(torch.Tensor, name), "x.blob.now, *size", "size"))
    @named(name, f"A tensor of this size, otherwise like x: see `flow.{name.removeprefix('new_')}`.")
    def new(
        x: Tensor, *size: Sizes, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:  # fmt: skip
        shape = size_of(name, size)
        return make(shape, requires_grad=requires_grad, **fitted(x, shape, dtype, device, placement, sbp))


_new("new_ones", creation.ones)
_new("new_zeros", creation.zeros)
_new("new_empty", creation.empty)


@public("flow tensor")
def new_full(
    x: Tensor, size: Any, fill_value: Any, dtype: Any = None, device: Any = None, placement: Any = None,
    sbp: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of this size and value, otherwise like x."""
    shape = size_of("new_full", (size,))
    options = fitted(x, shape, dtype, device, placement, sbp)
    return creation.full(shape, fill_value, requires_grad=requires_grad, **options)


@public("tensor")
def new_tensor(
    x: Tensor, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, placement: Any = None,
    sbp: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of this data, otherwise like x."""
    options = fitted(x, np.shape(data), dtype, device, placement, sbp)
    return creation.tensor(data, requires_grad=requires_grad, **options)
