"""A node on this rank: its local arguments."""

from __future__ import annotations

from typing import Any, Final

from weft.boxing.links import ONE_HOST, Links
from weft.boxing.part import local_arguments, where_of
from weft.boxing.signature import Signature, declared
from weft.core.substitution import substituted
from weft.job.value import Node, Value, specs
from weft.ops import OPS
from weft.plan.calls import Ref

SMALL: Final = 1 << 16  # bytes of a result that is copied to its place if its kernel takes no `out`
PLACED: Final = 1 << 21  # the same if memory is tight: there it takes the place of others


def signature_of(n: Node, links: Links = ONE_HOST) -> Signature:
    """The layout that a node runs in; of one read from text, the cheapest that has its outputs'."""
    return n.signature or declared(OPS[n.op], specs(n.args), tuple(v.spec for v in n.outputs), links)


def local_call(n: Node, rank: int) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]:
    """A node's local arguments; for a ranked kernel its position, for a draw the slice of the whole that it keeps."""
    op = OPS[n.op]
    options: list[tuple[str, Any]] = []
    args = n.args
    if any(v.spec is not None for v in (*n.operands(), *n.outputs)):
        chosen = signature_of(n)
        args = local_arguments(op, n.args, chosen, rank)
        if (where := where_of(chosen, rank)) is not None:
            options.append(("where", where))
        box = chosen.outputs[0].box(rank) if op.random else None
        if box is not None and box != tuple((0, size) for size in n.outputs[0].shape):
            options.append(("part", tuple(slice(a, b) for a, b in box)))
    return args, tuple(options)


def refs(args: Any) -> Any:
    """Arguments with references in place of values."""
    return substituted(args, Value, lambda v: Ref(v.name))


def written(node: Node) -> set[Value]:
    """The variables a node overwrites."""
    if node.op not in OPS:
        return set()
    found: set[Value] = set()
    for i in OPS[node.op].writes:
        a = node.args[i]
        found.update(v for v in (a if isinstance(a, tuple) else (a,)) if isinstance(v, Value))
    return found
