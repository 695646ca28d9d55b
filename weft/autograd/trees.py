"""Trees of tuples, lists, dicts and dataclasses with tensors: flattening, mapping, unflattening."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final


def fields(tree: Any) -> dict[str, Any] | None:
    """The parts of a dataclass's instance by name; None of anything else."""
    if not hasattr(type(tree), "__dataclass_fields__"):
        return None
    return {f.name: v for f in dataclasses.fields(tree) if (v := _held(tree, f.name)) is not _NOTHING}


def _held(record: Any, name: str) -> Any:
    """What a record holds, though its class may refuse to tell programs."""
    try:
        return object.__getattribute__(record, name)
    except AttributeError:
        return _NOTHING


_NOTHING: Final = object()


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, in order."""
    if not isinstance(tree, (tuple, list)):
        named = tree if isinstance(tree, dict) else fields(tree) or None
        if named is None:
            yield tree
            return
        tree = named.values()
    for part in tree:
        yield from leaves(part)


def mapped(tree: Any, turn: Callable[[Any], Any]) -> Any:
    """The tree with `turn(leaf)` for each leaf, in order."""
    if isinstance(tree, dict):
        parts = {k: mapped(v, turn) for k, v in tree.items()}
        if type(tree) is dict:
            return parts
        made = copy.copy(tree) if fields(tree) is None else _bare(tree)  # which may not be made without its parts
        for k, v in parts.items():  # as some have an `update` that adds or refuses
            made[k] = v
        return made
    if isinstance(tree, (tuple, list)):
        items = [mapped(v, turn) for v in tree]
        if isinstance(tree, tuple):
            return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
        if type(tree) is list:
            return items
        made = _bare(tree)
        made[:] = items
        return made
    named = fields(tree)
    return _changed(tree, {k: mapped(v, turn) for k, v in named.items()}) if named else turn(tree)


def _bare(tree: Any) -> Any:
    """One of the same class and attributes, empty: its constructor may take other things, or check them."""
    kind: Any = type(tree)
    made = kind.__new__(kind)
    vars(made).update(vars(tree))
    return made


def _changed(record: Any, parts: dict[str, Any]) -> Any:
    """A copy of a dataclass's instance with these parts; itself if it has them."""
    changed = {k: v for k, v in parts.items() if _held(record, k) is not v}
    record = copy.copy(record) if changed else record
    for k, v in changed.items():
        object.__setattr__(record, k, v)
    return record


def filled(tree: Any, values: Iterator[Any]) -> Any:
    """The tree with the next value for each leaf."""
    return mapped(tree, lambda _: next(values))
