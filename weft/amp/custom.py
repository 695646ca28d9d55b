"""Autocast in a custom `Function`: the dtype of its forward, and the same in its backward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from weft.amp.autocast import autocast, innermost
from weft.core import dtype as dtypes
from weft.ops import ops
from weft.tensor.tensor import Tensor


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str | None = None, cast_inputs: Any = None
) -> Callable[..., Any]:
    """A decorator of `forward`, which keeps the autocast of a device type, by default the one that is active; with
    `cast_inputs`, floating inputs are cast to that dtype, and autocast is off inside and in `backward`."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def run(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        found = innermost(device_type)
        on = found is not None and found.enabled
        kept = on and cast_inputs is None
        ctx._autocast = found and (found.device_type, found.dtype, kept)
        if found is None or kept or not on:
            return forward(ctx, *args, **kwargs)
        kind = dtypes.of(cast_inputs)
        with autocast(found.device_type, enabled=False):
            return forward(ctx, *(_in(kind, a) for a in args), **{k: _in(kind, a) for k, a in kwargs.items()})

    return run


def _in(kind: Any, value: Any) -> Any:
    return ops.cast(value, kind) if isinstance(value, Tensor) and value.is_floating_point() else value


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str | None = None) -> Callable[..., Any]:
    """A decorator of `backward`: it runs under the autocast of `forward`, or under none."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def run(ctx: Any, *gradients: Any) -> Any:
        active = innermost(device_type)
        kind, dtype, kept = getattr(ctx, "_autocast", None) or (active and active.device_type, None, False)
        with autocast(kind, dtype, kept) if kind else nullcontext():
            return backward(ctx, *gradients)

    return run
