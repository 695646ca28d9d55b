"""What a node saved, as the arguments of its gradient: a function written for each op, when one first goes back.

The short way is for local operands that nobody has overwritten; `node` knows about all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core import dtype as dtypes
from weft.ops.declaration import Op


def unpacking(op: Op) -> Callable[..., Any]:
    """`unpack(node, gradients, saved)`: calls the op's gradient."""
    space: dict[str, Any] = {"vjp": op.vjp, "dtype_of": dtypes.of}
    exec(compile(source_of(op), f"<weft gradient of {op.name}>", "exec"), space)
    return space["unpack"]


def source_of(op: Op) -> str:
    """The function as Python text."""
    lines, at, attribute = ["def unpack(node, gradients, saved):"], 0, 0
    for i, (kind, place) in enumerate(op.saves):
        a, take = f"a{i}", f"saved[{at}]"
        if kind == "gradient":
            lines += [f"    {a} = gradients[{place}]", f"    if {a} is None:", f"        {a} = node._zeros({place})"]
            continue
        if kind == "attribute":
            lines.append(f"    {a} = node.attributes[{attribute}]")
            attribute += 1
            continue
        if kind == "needs":
            lines.append(f"    {a} = tuple([e is not None for e in node.edges])")
            continue
        if kind == "operand":
            lines += [
                f"    {a} = {take}",
                "    try:",
                f"        if {a}.blob.data._version != node.versions[{at}]:",
                f"            {a} = node._operand({a}, {at})",
                "    except AttributeError:",  # a number, a global tensor, a symbol, or packed by the user's hooks
                f"        {a} = node._operand({a}, {at})",
            ]
        elif kind == "output":
            lines.append(f"    {a} = node._output({take}, {place}, {at})")
        else:
            lines.append(f"    {a} = dtype_of({take})" if kind == "dtype" else f"    {a} = {take}")
        at += 1
    return "\n".join([*lines, f"    return vjp({', '.join(f'a{i}' for i in range(len(op.saves)))})"]) + "\n"
