"""Autocast in a custom `Function`: the dtype of its forward, and the same in its backward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.amp.autocast import autocast, innermost
from weft.core import dtype as dtypes
from weft.ops import ops
from weft.tensor.tensor import Tensor


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str = "cpu", cast_inputs: Any = None
) -> Callable[..., Any]:
    """A decorator of `forward`, which keeps the active autocast; with `cast_inputs`, floating inputs are cast to that
    dtype and autocast is off inside."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def run(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._autocast = found = innermost()
        if cast_inputs is None or found is None or not found.enabled:
            return forward(ctx, *args, **kwargs)
        kind = dtypes.of(cast_inputs)
        with autocast(found.device_type, enabled=False):
            return forward(ctx, *(_in(kind, a) for a in args), **{k: _in(kind, a) for k, a in kwargs.items()})

    return run


def _in(kind: Any, value: Any) -> Any:
    return ops.cast(value, kind) if isinstance(value, Tensor) and value.is_floating_point() else value


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cpu") -> Callable[..., Any]:
    """A decorator of `backward`: it runs under the autocast of `forward`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def run(ctx: Any, *gradients: Any) -> Any:
        found = getattr(ctx, "_autocast", None)
        if found is None:
            return backward(ctx, *gradients)
        with autocast(found.device_type, found.dtype, found.enabled):
            return backward(ctx, *gradients)

    return run
