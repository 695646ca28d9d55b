"""Arguments as trees: nested tuples, lists and dicts with tensors at the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from weft.tensor.tensor import Tensor


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path: "0.1", "0.mask"."""
    if isinstance(tree, (tuple, list)):
        for i, t in enumerate(tree):
            yield from leaves(t, f"{path}.{i}" if path else str(i))
    elif isinstance(tree, dict):
        for k, t in tree.items():
            yield from leaves(t, f"{path}.{k}" if path else str(k))
    else:
        yield path, tree


def rebuild(tree: Any, make: Callable[[Any], Any]) -> Any:
    """The same tree with `make(leaf)` at the leaves, in the same order."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(rebuild(t, make) for t in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(rebuild(t, make) for t in tree)
    if isinstance(tree, dict):
        return {k: rebuild(t, make) for k, t in tree.items()}
    return make(tree)


def form(tree: Any) -> Any:
    """What of the arguments a compiled graph depends on: structure, tensors' forms, other values themselves."""
    if isinstance(tree, (tuple, list)):
        return (type(tree).__name__, *map(form, tree))
    if isinstance(tree, dict):
        return ("dict", *((k, form(t)) for k, t in tree.items()))
    if isinstance(tree, Tensor):
        return tree.spec if tree.spec is not None else (tuple(tree.shape), tree.dtype, tree.device)
    return tree


def describe(f: Any) -> str:
    if isinstance(f, tuple) and len(f) == 3 and isinstance(f[0], tuple):
        return f"shape={tuple(f[0])}, dtype={f[1]}, device={f[2]}"
    return f"{f[0]}={describe(f[1])}" if isinstance(f, tuple) and len(f) == 2 else str(f)
