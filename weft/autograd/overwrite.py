"""The entry of `name_`: generated once per op, as in `entry.py`. The fast path needs a plain thread, local operands at
hand, memory without other pending access, and no gradient; `in_place` does the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.autograd.entry import PLAIN, any_wanting, at_hand, data_of, header_of, in_general, refits, wanting
from weft.autograd.inplace import in_place
from weft.autograd.plain import again
from weft.core.dispatch import changed, here, hooks
from weft.core.late import written_late
from weft.ops.declaration import OPS, Op
from weft.ops.explain import ABSENT, missing, refit
from weft.tensor.tensor import Tensor
from weft.vm.dependency import writable


def make_overwriting(op: Op) -> Callable[..., Any]:
    """`name_`: the op, writing to the memory of its first operand."""
    if op.inplace_kernel is None or op.params[0].kind not in ("tensor", "operand"):
        return _general(op)
    space: dict[str, Any] = {
        "here": here, "changed": changed, "op": op, "kernel": op.inplace_kernel, "again": again, "in_place": in_place,
        "absent": ABSENT, "refit": refit, "missing": missing, "writable": writable,
        "data_of": data_of, "any_wanting": any_wanting, "guarded": guarded,
        **{f"default_{i}": p.default for i, p in enumerate(op.params)},
    }  # fmt: skip
    name = f"{op.name}_"
    return _named(written_late(name, lambda: source_of(op), space, f"<weft entry of {name}>"), op)


@functools.cache
def overwriting(op: Op) -> Callable[..., Any]:
    """`name_`, made once."""
    return make_overwriting(op)


def assign(x: Tensor, value: Tensor) -> Tensor:
    """Overwrite a tensor with another of its shape: `copy_`."""
    return overwriting(OPS["copy"])(x, value)


def source_of(op: Op) -> str:
    """The entry as Python text."""
    x, everything = op.names[0], f"({', '.join(op.names)},)"
    reading, kernel_args = at_hand(op, unused(x))
    taped = " or ".join([*(wanting(op, i) for i in op.operands), taped_base(x)])
    lines = [
        f"def {op.name}_({', '.join(header_of(op))}):",
        *refits(op, "in_place"),
        f"    if {'not changed or (here.plain and not here.casting)' if op.name in hooks.ruled else PLAIN}:",
        *reading,
        f"        if ready and not (here.grad and ({taped})):",
        "            try:",
        f"                kernel({', '.join(kernel_args)})",
        "            except Exception as cause:",
        f"                return again(op, cause, {everything}, in_place)",
        f"            return {x}",
        *in_general(op, "in_place"),
    ]
    return "\n".join(lines) + "\n"


def unused(x: str) -> str:
    """Text of whether nothing pending uses a tensor's memory."""
    return f"({x}.blob.access is None or writable({x}.blob))"


def taped_base(x: str) -> str:
    """Text of whether a tensor is a view that gradients care about."""
    deeper = "of._view_of is not None and guarded(of._view_of)"
    return f"(of := {x}._view_of) is not None and (not of[-1] or (of := of[0])._requires_grad or {deeper})"


def guarded(view: Any) -> bool:
    """Whether gradients care that a view is overwritten, though it requires none: it is of a leaf, or not recorded."""
    while view is not None:
        base = view[0]
        if base._requires_grad or not view[-1]:
            return True
        view = base._view_of
    return False


def _general(op: Op) -> Callable[..., Any]:
    n = len(op.params)

    def overwrite(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != n:
            given = (*args[:n], *(ABSENT for _ in op.params[len(args) :]))
            return refit(op, given, args[n:], kwargs, in_place, in_place)
        return in_place(op, args)

    return _named(overwrite, op)


def _named(f: Callable[..., Any], op: Op) -> Callable[..., Any]:
    f.__name__ = f.__qualname__ = f"{op.name}_"
    f.__doc__ = f"`{op.name}`, in place."
    f.__module__, f.__wrapped__ = op.__module__, op.__wrapped__  # type: ignore[attr-defined]  # what it takes
    return f
