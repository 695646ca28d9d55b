"""Trees of tuples, lists and dicts with tensors: flattening, mapping, unflattening."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, in order."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def mapped(tree: Any, turn: Callable[[Any], Any]) -> Any:
    """The tree with `turn(leaf)` for each leaf, in order."""
    if isinstance(tree, dict):
        parts = {k: mapped(v, turn) for k, v in tree.items()}
        if type(tree) is dict:
            return parts
        made = copy.copy(tree)
        made.update(parts)
        return made
    if isinstance(tree, (tuple, list)):
        made = [mapped(v, turn) for v in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)
    return turn(tree)


def filled(tree: Any, values: Iterator[Any]) -> Any:
    """The tree with the next value for each leaf."""
    return mapped(tree, lambda _: next(values))
