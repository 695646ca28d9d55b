"""Tensors within tuples, lists and dicts, nested as one likes: taken out in order, and put back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> Iterator[Any]:
    """What lies in a tree, in order."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def mapped(tree: Any, turn: Callable[[Any], Any]) -> Any:
    """The same tree with `turn(leaf)` at the leaves, in order."""
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
    """The same tree with the next value at each leaf."""
    return mapped(tree, lambda _: next(values))
