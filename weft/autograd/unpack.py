"""A node's saved values as arguments of its gradient: a function generated for each op, at its first backward.

The fast path is for local operands that weren't overwritten; `node` handles the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core import dtype as dtypes
from weft.core.dispatch import here
from weft.ops.declaration import Op
from weft.tensor.tensor import Tensor


def unpacking(op: Op) -> Callable[..., Any]:
    """`unpack(node, gradients, saved)`: calls the op's gradient."""
    space: dict[str, Any] = {
        "vjp": op.vjp, "dtype_of": dtypes.of, "here": here, "new": object.__new__, "Tensor": Tensor
    }  # fmt: skip
    exec(compile(source_of(op), f"<weft gradient of {op.name}>", "exec"), space)
    return space["unpack"]


def source_of(op: Op) -> str:
    """The function as Python text."""
    lines, at, attribute = ["def unpack(node, gradients, saved):"], 0, 0
    for i, (kind, place) in enumerate(op.saves):
        a, take = f"a{i}", f"saved[{at}]"
        if kind.startswith("gradient"):
            lines.append(f"    {a} = gradients[{place}]")
            if kind == "gradient":
                lines += [f"    if {a} is None:", f"        {a} = node._zeros({place})"]
            continue
        if kind == "attribute":
            lines.append(f"    {a} = node.attributes[{attribute}]")
            attribute += 1
            continue
        if kind == "needs":
            if op.lists:
                lines.append(f"    {a} = tuple([e is not None for e in node.edges])")
            else:
                each = "".join(f"e[{j}] is not None, " for j in range(len(op.operands)))
                lines += ["    e = node.edges", f"    {a} = ({each})"]
            continue
        if kind == "operand":
            lines += [
                f"    {a} = {take}",
                "    try:",
                f"        if {a}.blob.data._version != node.versions[{at}]:",
                f"            {a} = node._operand({a}, {at})",
                "    except AttributeError:",  # a number, a global tensor, a symbol, or packed by saved_tensors_hooks
                f"        {a} = node._operand({a}, {at})",
            ]
        elif kind == "output":
            lines += [
                f"    s = {take}",  # a local output needs its blob only, unless backward is recorded
                "    b = s[0] if type(s) is tuple and s[1] is None and s[2] is None and not here.grad else None",
                "    if b is not None and b.data is not None:",
                f"        if b.data._version != node.versions[{at}]:",
                f"            node._check(b.data, {at})",
                f"        {a} = new(Tensor)",
                f"        {a}.blob = b",
                "    else:",
                f"        {a} = node._output(s, {place}, {at})",
            ]
        else:
            lines.append(f"    {a} = dtype_of({take})" if kind == "dtype" else f"    {a} = {take}")
        at += 1
    return "\n".join([*lines, f"    return vjp({', '.join(f'a{i}' for i in range(len(op.saves)))})"]) + "\n"
