"""Lazy layers, which infer their input size from their first input."""

from __future__ import annotations

import inspect
from typing import Any

from weft.core.errors import ShapeError
from weft.core.stored import stored
from weft.nn.module.module import Module
from weft.nn.module.moving import laid_out
from weft.tensor.parameter import Parameter, UninitializedBuffer, UninitializedParameter, is_lazy
from weft.tensor.tensor import Tensor


def lazy(kind: Any, at: int, **usual: Any) -> type[Module]:
    """A layer whose first size is that of dimension `at` of its first input. `usual`: defaults unlike the layer's."""
    this, first, *others = inspect.signature(kind.__init__).parameters.values()
    takes = inspect.Signature([this, *(p.replace(default=usual.get(p.name, p.default)) for p in others)])

    def begin(self: Any, *args: Any, **options: Any) -> None:
        options |= {p.name: value for p, value in zip(others, args, strict=False)}
        stored(self)["_options"] = options
        kind.__init__(self, 0, **options)
        for name, t in self._members():
            if t.numel() == 0 or isinstance(t, Parameter):
                of = UninitializedParameter if isinstance(t, Parameter) else UninitializedBuffer
                setattr(self, name, of(t.requires_grad))
                getattr(self, name).data = t.data

    begin.__signature__ = takes

    class Lazy(kind):
        __init__ = begin

        def _members(self) -> list[tuple[str, Tensor]]:
            return [(n, t) for n, t in (*self._parameters.items(), *self._buffers.items()) if t is not None]

        def has_uninitialized_params(self) -> bool:
            return any(is_lazy(t) for _, t in self._members())

        def reset_parameters(self) -> None:
            pass  # there are none yet

        def forward(self, x: Tensor, *more: Any, **named: Any) -> Tensor:
            self.initialize_parameters(x)
            return self.forward(x, *more, **named)

        def initialize_parameters(self, x: Tensor) -> None:
            """Become the layer of this input's size; parameters that were loaded keep their values."""
            _become(self, kind, first.name, at, x)

    Lazy.__name__ = Lazy.__qualname__ = f"Lazy{kind.__name__}"
    Lazy.__doc__ = f"{kind.__name__} that infers its first size from its first input."
    Lazy.__module__ = kind.__module__
    return Lazy


def _become(unsized: Any, kind: Any, first: str, at: int, x: Tensor) -> None:
    """Turn a lazy layer into one of this kind, of the size of an input."""
    if not -x.ndim <= at < x.ndim:
        raise ShapeError(f"{type(unsized).__name__} infers its size from dimension {at}; got shape {list(x.shape)}")
    members, options = unsized._members(), stored(unsized)["_options"]
    if members:
        held = members[0][1].data
        options = {**options, "dtype": held.dtype, "device": held.device if held.is_local else None}
    if not unsized.has_uninitialized_params():
        options["device"] = "meta"  # draws nothing
    size = x.shape[at]
    layer = kind(size, **options)
    for name, t in members:
        new = getattr(layer, name).data
        if is_lazy(t):
            t.become(laid_out(new, t.data.placement, t.data.sbp) if t.data.is_global else new)
        elif t.shape != new.shape:
            raise ShapeError(
                f"{name} of shape {list(t.shape)} was loaded, and an input of shape {list(x.shape)} needs "
                f"{list(new.shape)}"
            )
    del stored(unsized)["_options"]
    setattr(unsized, first, size)
    unsized.__class__ = kind
