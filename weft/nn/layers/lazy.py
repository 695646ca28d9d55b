"""Lazy layers, which infer their input size from their first input."""

from __future__ import annotations

import inspect
from typing import Any

from weft.core.errors import ShapeError
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

# ---- the classes -----------------------------------------------------------------------------------------


def _lazy(kind: type[Module], at: int, **usual: Any) -> type[Module]:
    """A layer without its first size, which dimension `at` of the first input tells; `usual` are its own defaults."""
    this, _, *others = inspect.signature(kind.__init__).parameters.values()

    class Lazy(Module):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__()
            placed = [p.name for p in others[: len(args)]]
            own = {name: value for name, value in usual.items() if name not in placed}
            self.__dict__["_later"] = (args, {**own, **options})

        def forward(self, x: Tensor) -> Tensor:
            args, options = self.__dict__["_later"]
            if x.ndim < 2:
                raise ShapeError(f"{type(self).__name__} infers its size from a batch; got shape {list(x.shape)}")
            layer = kind(x.shape[at], *args, **options).train(self.training)
            del self.__dict__["_later"]
            self.__class__ = kind  # type: ignore[assignment]  # from now on it is such a layer
            self.__dict__.update(layer.__dict__)
            return self(x)

        def extra_repr(self) -> str:
            args, options = self.__dict__["_later"]
            return ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in options.items())])

    takes = [this, *(p.replace(default=usual.get(p.name, p.default)) for p in others)]
    Lazy.__init__.__signature__ = inspect.Signature(takes)  # type: ignore[attr-defined]
    Lazy.__name__ = Lazy.__qualname__ = f"Lazy{kind.__name__}"
    Lazy.__doc__ = f"{kind.__name__} that infers its first size from its first input. Make the optimizer after that."
    Lazy.__module__ = kind.__module__
    return Lazy
