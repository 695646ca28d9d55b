"""A node on this rank: its local arguments, and its kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from weft.boxing import signature
from weft.boxing.part import local_arguments
from weft.core.spec import Spec
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.declaration import Op, Where
from weft.plan.calls import Ref

SMALL: Final = 1 << 16  # bytes of a result that is copied to its place if its kernel takes no `out`
PLACED: Final = 1 << 21  # the same if memory is tight: there it takes the place of others


def local_call(n: Node, rank: int) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]:
    """A node's local arguments; for a ranked kernel its position, for a draw the slice of the whole that it keeps."""
    op = OPS[n.op]
    options: list[tuple[str, Any]] = []
    args = n.args
    if any(v.spec is not None for v in (*n.operands(), *n.outputs)):
        chosen = n.signature or signature.choose(op, tuple(_spec(a) for a in n.args))
        args = local_arguments(op, n.args, chosen, rank)
        if chosen.ranked:
            options.append(("where", where_of(chosen, rank)))
        box = chosen.outputs[0].box(rank) if op.random else None
        if box is not None and box != tuple((0, size) for size in n.outputs[0].shape):
            options.append(("part", tuple(slice(a, b) for a, b in box)))
    return args, tuple(options)


def where_of(chosen: signature.Signature, rank: int) -> tuple[Any, ...]:
    """A ranked kernel's position, as plain tuples: see `ops.declaration.Where`."""
    inputs, outputs = (tuple(s.box(rank) or () for s in specs) for specs in (chosen.inputs, chosen.outputs))
    return inputs, tuple(s.shape for s in chosen.inputs), outputs, tuple(s.shape for s in chosen.outputs)


def kernel_of(op: Op, where: tuple[Any, ...] | None) -> Callable[..., Any]:
    """The plain kernel, or the ranked one bound to its position."""
    if where is None:
        return op.kernel
    assert op.ranked_kernel is not None, f"{op.name}: there is no ranked kernel"
    return functools.partial(op.ranked_kernel, Where(*where))


def _spec(a: Any) -> Any:
    if isinstance(a, Value):
        assert isinstance(a.spec, Spec), f"{a} is local among global operands"
        return a.spec
    return tuple(_spec(v) for v in a) if isinstance(a, tuple) else a


def refs(args: Any) -> Any:
    """Arguments with references in place of values."""
    if isinstance(args, Value):
        return Ref(args.name)
    return tuple(map(refs, args)) if isinstance(args, (tuple, list)) else args


def written(node: Node) -> set[Value]:
    """The variables a node overwrites."""
    if node.op not in OPS:
        return set()
    found: set[Value] = set()
    for i in OPS[node.op].writes:
        a = node.args[i]
        found.update(v for v in (a if isinstance(a, tuple) else (a,)) if isinstance(v, Value))
    return found
