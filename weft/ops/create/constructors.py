"""Ops that create tensors from attributes alone; with a placement, global ones, of which each rank makes its shard."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft.core.device import Device
from weft.core.dtype import DType, float64, int64
from weft.core.errors import OutOfMemoryError
from weft.core.placement import Placement
from weft.core.random import generator
from weft.core.sbp import NdSbp, broadcast, partials
from weft.ops.declaration import Scalar, Size, op
from weft.ops.form import Form
from weft.ops.notation import Rule, rules
from weft.ops.shape.views import axes

CPU = torch.device("cpu")


def sized(size: int, dtype: int, *args: Any) -> Form | None:
    """The form of a new tensor, from its size and dtype at these positions of the arguments."""
    return Form(tuple(args[size]), args[dtype]) if min(args[size], default=0) >= 0 else None


LARGE = 1 << 28  # elements: larger tensors are checked against the available memory


def _on(device: Device | None, size: Size, dtype: DType) -> torch.device:
    """The device of a new tensor, if there is memory for it."""
    where = CPU if device is None else device.torch
    count = math.prod(size)
    if count > LARGE and where.type == "cpu" and count * dtype.itemsize > memory():
        raise OutOfMemoryError(
            f"{dtype.name}{list(size)} takes {count * dtype.itemsize / 2**30:.4g} GiB, and there are "
            f"{memory() / 2**30:.4g} here. Split it over ranks: placement=flow.placement(...), sbp=flow.sbp.split(0)"
        )
    return where


@functools.cache
def memory() -> int:
    """The memory limit of this process, in bytes: the machine's, or its control group's."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return machine
    return min(machine, int(limit)) if limit.isdigit() else machine


@op(shape_of="size")
def full(
    size: Size, value: Scalar, dtype: DType, device: Device | None = None,
    placement: Placement | None = None, sbp: NdSbp | None = None,
) -> Tensor:  # fmt: skip
    """A tensor filled with one value."""
    return torch.full(tuple(size), value, dtype=dtype.torch, device=_on(device, size, dtype))


@full.out
def _(y, size, value, dtype, device, placement, sbp):
    y.fill_(value)


@op(shape_of="size")
def empty(
    size: Size, dtype: DType, device: Device | None = None, placement: Placement | None = None, sbp: NdSbp | None = None
) -> Tensor:
    """An uninitialized tensor."""
    return torch.empty(tuple(size), dtype=dtype.torch, device=_on(device, size, dtype))


@op()
def arange(
    start: Scalar, end: Scalar, step: Scalar, dtype: DType, device: Device | None = None,
    placement: Placement | None = None, sbp: NdSbp | None = None,
) -> Tensor:  # fmt: skip
    """start, start + step, ... below end."""
    steps = (end - start) / step if step else 0
    return torch.arange(start, end, step, dtype=dtype.torch, device=_on(device, (steps,), dtype))  # type: ignore


@op(shape_of="size", random=True)
def randn(
    size: Size, dtype: DType, device: Device | None = None, placement: Placement | None = None, sbp: NdSbp | None = None
) -> Tensor:
    """Draws from the normal distribution."""
    where = _on(device, size, dtype)
    return torch.randn(tuple(size), dtype=dtype.torch, device=where, generator=generator(where))


@op(shape_of="size", random=True)
def rand(
    size: Size, dtype: DType, device: Device | None = None, placement: Placement | None = None, sbp: NdSbp | None = None
) -> Tensor:
    """Draws from the uniform distribution over [0, 1)."""
    where = _on(device, size, dtype)
    return torch.rand(tuple(size), dtype=dtype.torch, device=where, generator=generator(where))


@op(shape_of="size", random=True)
def randint(
    low: int, high: int, size: Size, dtype: DType, device: Device | None = None,
    placement: Placement | None = None, sbp: NdSbp | None = None,
) -> Tensor:  # fmt: skip
    """Draws integers from low to high - 1."""
    where = _on(device, size, dtype)
    return torch.randint(low, high, tuple(size), dtype=dtype.torch, device=where, generator=generator(where))


@op(random=True)
def randperm(
    n: int, dtype: DType, device: Device | None = None, placement: Placement | None = None, sbp: NdSbp | None = None
) -> Tensor:
    """The numbers below n in a random order."""
    where = _on(device, (n,), dtype)
    return torch.randperm(n, dtype=dtype.torch, device=where, generator=generator(where))


@op(shape_of="size", random=True)
def keep_mask(
    size: Size, p: float, dtype: DType, device: Device | None = None,
    placement: Placement | None = None, sbp: NdSbp | None = None,
) -> Tensor:  # fmt: skip
    """A dropout mask: 1 / (1 - p) with probability 1 - p, else 0."""
    return kept(torch.empty(tuple(size), dtype=dtype.torch, device=_on(device, size, dtype)), p)


def kept(mask: Tensor, p: float) -> Tensor:
    """Fill a mask that keeps with probability 1 - p. Nothing is drawn if p is 1."""
    if p == 1:
        return mask.zero_()
    return mask.bernoulli_(1.0 - p, generator=generator(mask.device)).div_(1.0 - p)


for _declared in (empty, full, randn, rand, randint, keep_mask):
    # any split is legal: every rank makes its own shard
    _declared.layout(lambda *args, _at=_declared.names.index("size"): f" -> {' '.join(axes(len(args[_at])))}")
    _declared.form(functools.partial(sized, *map(_declared.names.index, ("size", "dtype"))))
randperm.form(lambda n, dtype, *where: Form((n,), dtype) if n >= 0 else None)

full.samples(lambda r: [((4, 6), 2.5, float64)])
arange.samples(lambda r: [(0, 10, 3, int64)])
randn.samples(lambda r: [((4, 6), float64)])
rand.samples(lambda r: [((4, 6), float64)])
randint.samples(lambda r: [(0, 9, (4, 6), int64)])
randperm.samples(lambda r: [(9, int64)])
keep_mask.samples(lambda r: [((4, 6), 0.5, float64), ((4, 6), 1.0, float64)])


def _rules_of_like(x: tuple[int, ...]) -> tuple[Rule, ...]:
    """Only x's form is read, so any part of a partial sum will do."""
    partial = tuple(Rule((p,), (broadcast,)) for p in partials.values())
    return *rules("... -> ...", (x,), (x,)), *partial


def _like(name: str, kernel, doc: str):
    def body(x: Tensor, dtype: DType | None = None) -> Tensor:
        return kernel(x, dtype=None if dtype is None else dtype.torch)

    body.__name__, body.__doc__ = name, doc
    declared = op(memory_order="first")(body)
    declared.layout(lambda x, dtype: _rules_of_like(x))
    declared.form(lambda x, dtype: Form(x.shape, dtype or x.dtype))
    declared.samples(lambda r: [(r(4, 6),)] if name != "empty_like" else [])
    return declared


ones_like = _like(
    "ones_like",
    torch.ones_like,
    "Ones of x's shape and dtype.\n\n>>> flow.ones_like(flow.zeros(2)).tolist()\n[1.0, 1.0]",
)
zeros_like = _like(
    "zeros_like",
    torch.zeros_like,
    "Zeros of x's shape and dtype.\n\n>>> flow.zeros_like(flow.ones(2)).tolist()\n[0.0, 0.0]",
)
empty_like = _like("empty_like", torch.empty_like, "An uninitialized tensor of x's shape and dtype.")
ones_like.out(lambda y, x, dtype: y.fill_(1))
zeros_like.out(lambda y, x, dtype: y.zero_())


@op(memory_order="first")
def full_like(x: Tensor, value: Scalar, dtype: DType | None = None) -> Tensor:
    """A tensor of x's shape and dtype, filled with one value.

    >>> flow.full_like(flow.ones(2), 7.).tolist()
    [7.0, 7.0]
    """
    return torch.full_like(x, value, dtype=None if dtype is None else dtype.torch)


full_like.layout(lambda x, value, dtype: _rules_of_like(x))
full_like.form(lambda x, value, dtype: Form(x.shape, dtype or x.dtype))
full_like.out(lambda y, x, value, dtype: y.fill_(value))
full_like.samples(lambda rand: [(rand(4, 6), 2.5)])
