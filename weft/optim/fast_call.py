"""The fast path of an op over lists of tensors: local data at hand, nothing pending, no interceptor, no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.dispatch import here, hooks
from weft.ops.declaration import Op
from weft.ops.explain import explain
from weft.tensor.tensor import Tensor
from weft.vm.dependency import writable


def fast_call(op: Op) -> Callable[..., None]:
    """The op, called with positional arguments; falls back to the general path."""
    lists = tuple(i for i in op.operands if op.params[i].kind == "tensors")
    singles = tuple(i for i in op.operands if op.params[i].kind != "tensors")
    kernel, defaults = op.trusted, tuple(p.default for p in op.params)
    assert not op.keywords and not op.returns and op.vjp is None

    def general(args: tuple[Any, ...]) -> None:
        hooks.call(op, (*args, *defaults[len(args) :]))

    def call(*args: Any) -> None:
        if not here.plain:
            return general(args)
        local = list(args)
        for i in lists:
            data = []
            for t in args[i]:
                blob = t.blob
                now = blob.now
                if now is None or not (blob.access is None or writable(blob)):
                    return general(args)
                data.append(now)
            local[i] = data
        for i in singles:
            t = args[i]
            if isinstance(t, Tensor):
                local[i] = t.blob.now
                if local[i] is None or not (t.blob.access is None or writable(t.blob)):
                    return general(args)
        try:
            kernel(*local)
        except Exception as cause:
            raise explain(op, cause, args) from cause

    call.__name__ = call.__qualname__ = op.name
    return call
