"""The entry of `name_`: generated once per op, as in `entry.py`. The fast paths need a plain thread, local operands at
hand, memory without other pending access, and no gradient or a tensor that is no view of a view; `in_place` does
the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.autograd.call import edge, in_own_dtypes
from weft.autograd.entry import (
    PLAIN,
    any_other,
    any_wanting,
    at_hand,
    data_of,
    edges_of,
    edges_of_call,
    header_of,
    in_general,
    promoted,
    refits,
    saved_by,
    tuple_of,
    wanting,
    while_traced,
)
from weft.autograd.freshness import set_node
from weft.autograd.inplace import in_place, is_plain_part, put_back, stand_in
from weft.autograd.node import Node
from weft.autograd.plain import again
from weft.core.dispatch import changed, here, hooks
from weft.core.late import written_late
from weft.ops.declaration import OPS, Op
from weft.ops.explain import ABSENT, missing, refit
from weft.tensor.blob import Blob
from weft.tensor.counters import counters
from weft.tensor.tensor import Tensor
from weft.tensor.written import next_sequence
from weft.vm.dependency import writable


def make_overwriting(op: Op) -> Callable[..., Any]:
    """`name_`: the op, writing to the memory of its first operand."""
    if op.inplace_kernel is None or op.params[0].kind not in ("tensor", "operand"):
        return _general(op)
    space: dict[str, Any] = {
        "here": here, "changed": changed, "op": op, "kernel": op.inplace_kernel, "again": again, "in_place": in_place,
        "absent": ABSENT, "refit": refit, "missing": missing, "writable": writable, "data_of": data_of,
        "any_wanting": any_wanting, "guarded": guarded, "new": object.__new__, "Node": Node, "Blob": Blob,
        "edge": edge, "edges_of": edges_of, "in_own_dtypes": in_own_dtypes, "any_other": any_other,
        "stand_in": stand_in, "next_sequence": next_sequence, "counters": counters, "set_node": set_node,
        "is_plain_part": is_plain_part, "put_back": put_back,
        **{f"default_{i}": p.default for i, p in enumerate(op.params)},
    }  # fmt: skip
    name = f"{op.name}_"
    meanwhile = while_traced(op, in_place)
    return _named(written_late(name, lambda: source_of(op), space, f"<weft entry of {name}>", meanwhile), op)


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
        *_taped(op, kernel_args),
        *in_general(op, "in_place"),
    ]
    return "\n".join(lines) + "\n"


def _taped(op: Op, kernel_args: list[str]) -> list[str]:
    """Text that runs the kernel and records it, if the first operand is no view of a view."""
    if op.vjp is None or len(op.returns) > 1 or not op.differentiable[0] or op.writes:
        return []
    x, others = op.names[0], [wanting(op, i) for i in op.operands[1:]]
    checks = ["ready and here.grad and (d0.is_floating_point() or d0.is_complex())"]
    own = f"{x}.node is not None and ({x}._view_of is None or is_plain_part({x}))"
    if others:  # a leaf can't be overwritten, and views of what doesn't require a gradient yet must learn of it
        new = f"not {x}._requires_grad and {x}.blob.access is None and {x}._view_of is None and ({' or '.join(others)})"
        own = f"({own} or {new})"
    checks.append(own)
    saved, versions, attributes = saved_by(op)
    before: list[str] = []
    if x in saved:  # the old value: kept, where the gradient reads it
        before.append(f"old = stand_in({x})")
        linear = any(x in group for group in op.linear)
        if others or not linear:
            before += [f"if {' or '.join(others)}:"] if linear else []
            before.append(f"{'    ' * linear}old.blob = Blob(d0.clone())")
        at = saved.index(x)
        saved[at], versions[at] = "old", "old.blob.now._version"
    before += [f"v{j} = {v}" for j, v in enumerate(versions) if v != "r0._version"]
    after = [v if v == "r0._version" else f"v{j}" for j, v in enumerate(versions)]
    pad = " " * 12
    return [
        f"        if {' and '.join(checks)}:",
        *(f"{pad}{line}" for line in before),
        f"{pad}made = new(Node)",
        f"{pad}made.op = op",
        f"{pad}made.edges = {tuple_of(edges_of_call(op))}",
        *promoted(op, pad, x, "d0"),
        f"{pad}r0, b0 = d0, {x}.blob",
        f"{pad}made.saved = {tuple_of(saved)}",
        f"{pad}made.attributes = {tuple_of(attributes)}",
        f"{pad}made.outputs = made.hooks = made.retained = made.origin = None",
        f"{pad}try:",
        f"{pad}    kernel({', '.join(kernel_args)})",
        f"{pad}except Exception as cause:",
        f"{pad}    return again(op, cause, ({', '.join(op.names)},), in_place)",
        f"{pad}made.versions = {tuple_of(after)}",
        f"{pad}counters.overwritten = made.sequence = next_sequence()",
        f"{pad}set_node({x}, made)",
        f"{pad}{x}._requires_grad = True",
        f"{pad}if {x}._view_of is not None:",
        f"{pad}    put_back({x})",
        f"{pad}return {x}",
    ]


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
