"""Random tensors: `rand`, `randn`, `randint`, `randperm`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from weft.api.fast_path import Making
from weft.api.table import named, public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError
from weft.core.placement import Placement
from weft.functional.create.creation import Sizes, drawing, finished, get_default_dtype, made, place, size_of
from weft.ops.create import constructors
from weft.tensor.tensor import Tensor


def _random(name: str, op: Any, doc: str) -> Callable[..., Tensor]:
    @named(name, doc)
    def make(
        *size: Sizes, dtype: Any = None, device: Any = None, placement: Placement | None = None, sbp: Any = None,
        generator: Any = None, requires_grad: bool = False,
    ) -> Tensor:  # fmt: skip
        shape = size_of(name, size)
        kind = get_default_dtype() if dtype is None else dtypes.of(dtype)
        with drawing(generator):
            y = made(op, (shape, kind), place(name, device, placement, sbp, len(shape)))
        return finished(y, requires_grad)

    return public("flow", short=Making(getattr(torch, name), "*size, generator=drawn()", "size"))(make)


rand = _random("rand", constructors.rand, "Draws from the uniform distribution over [0, 1).")
randn = _random("randn", constructors.randn, "Draws from the normal distribution.")

BOUNDS = "*(_sizes if len(_sizes) == 3 else (0, *_sizes)), generator=drawn()"


@public("flow", short=Making(torch.randint, BOUNDS, "_sizes[-1]"))
def randint(
    *bounds: Any, low: int | None = None, high: int | None = None, size: Any = None, dtype: Any = None,
    device: Any = None, placement: Placement | None = None, sbp: Any = None, generator: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Draws integers from low (by default 0) to high - 1: randint(high, size), randint(low, high, size).

    >>> flow.randint(1, 2, (3,)).tolist()
    [1, 1, 1]
    """
    given = list(bounds)
    if size is None and given:
        size = given.pop()
    high = given.pop() if high is None and given else high
    least = low if low is not None else given.pop() if given else 0
    if given or high is None:
        raise ArgumentError(f"randint(): write randint(high, size) or randint(low, high, size); got {bounds}")
    if not isinstance(size, (tuple, list)):
        raise ArgumentError(f"randint(): write randint(high, size) or randint(low, high, size); the size is {size!r}")
    if least >= high:
        raise ArgumentError(f"randint(): draws are from low to high - 1; there is none from {least} to {high - 1}")
    kind = dtypes.int64 if dtype is None else dtypes.of(dtype)
    shape = size_of("randint", (size,))
    with drawing(generator):
        y = made(constructors.randint, (least, high, shape, kind), place("randint", device, placement, sbp, len(shape)))
    return finished(y, requires_grad)


@public("flow", short=Making(torch.randperm, "n, generator=drawn()", "(n,)"))
def randperm(
    n: int, dtype: Any = None, device: Any = None, placement: Placement | None = None, sbp: Any = None,
    generator: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The numbers below n in a random order."""
    kind = dtypes.int64 if dtype is None else dtypes.of(dtype)
    with drawing(generator):
        y = made(constructors.randperm, (n, kind), place("randperm", device, placement, sbp, 1), splits=False)
    return finished(y, requires_grad)
