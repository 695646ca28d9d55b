"""Trees of arguments (pytrees): nested tuples, lists, dicts and dataclasses with tensors at the leaves."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft.autograd.plain import taken
from weft.autograd.trees import fields, mapped
from weft.core.errors import GraphError
from weft.tensor.tensor import Tensor


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path: "0.1", "0.mask"."""
    tree = tree if isinstance(tree, dict) else fields(tree) or tree
    if isinstance(tree, (tuple, list)):
        for i, t in enumerate(tree):
            yield from leaves(t, f"{path}.{i}" if path else str(i))
    elif isinstance(tree, dict):
        for k, t in tree.items():
            yield from leaves(t, f"{path}.{k}" if path else str(k))
    else:
        yield path, tree


def ours(tree: Any) -> Any:
    """The same tree, with torch's tensors converted to Weft's."""
    if not any(isinstance(leaf, torch.Tensor) for _, leaf in leaves(tree)):
        return tree
    return mapped(tree, lambda leaf: taken(leaf) if isinstance(leaf, torch.Tensor) else leaf)


def form(tree: Any) -> Any:
    """The cache key of arguments: structure, forms of tensors, values of other leaves."""
    if isinstance(tree, (tuple, list)):
        return (type(tree).__name__, *map(form, tree))
    if isinstance(tree, dict):
        return ("dict", *((k, form(t)) for k, t in tree.items()))
    if named := fields(tree):
        return (type(tree).__name__, *((k, form(t)) for k, t in named.items()))
    if isinstance(tree, Tensor):
        return tree.spec if tree.spec is not None else (tuple(tree.shape), tree.dtype, tree.device)
    check(tree, "an argument")
    if isinstance(tree, np.ndarray):
        raise GraphError(
            f"an argument of a graph is a {type(tree).__name__} of {type(tree).__module__}, whose values would "
            "be frozen into the graph when it is traced; make it a tensor: flow.tensor(array)"
        )
    if isinstance(tree, (int, float)):
        return type(tree).__name__, repr(tree)  # 2 is no 2.0, though they are equal; and nan is nan
    return tree


def check(leaf: Any, what: str) -> None:
    """Refuse a leaf in which tensors might be hidden."""
    if isinstance(leaf, (set, frozenset)):
        raise GraphError(
            f"{what} of a graph is a {type(leaf).__name__}: tensors are found in tuples, lists, dicts and dataclasses "
            "only, nested as one likes"
        )
    if isinstance(leaf, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
        raise GraphError(
            f"{what} of a graph is a {type(leaf).__name__}, which hasn't run: build() is called once, while it is "
            "traced. Write it without yield, async and await, and return tensors"
        )


def check_result(leaf: Any) -> None:
    """Refuse a result in which symbols are hidden, too."""
    check(leaf, "a result")
    hidden = [k for k, v in getattr(leaf, "__dict__", {}).items() if _has_symbol(v)]
    if hidden and not isinstance(leaf, type):
        kind, name = type(leaf).__name__, hidden[0]
        raise GraphError(
            f"a result of a graph is an object, {kind}, whose {name!r} is a tensor of the graph, which has no value "
            f"outside of it: return the tensors, y.{name}, or make {kind} a dataclass, whose tensors are found"
        )


def _has_symbol(value: Any) -> bool:
    found = (getattr(v, "of", v) for _, v in leaves(value))  # of a stand-in in torch's modules
    return any(isinstance(t, Tensor) and t.value is not None for t in found)


def describe(f: Any) -> str:
    if isinstance(f, tuple) and len(f) == 3 and isinstance(f[0], tuple):
        return f"shape={tuple(f[0])}, dtype={f[1]}, device={f[2]}"
    if isinstance(f, tuple) and len(f) == 2 and f[0] in ("int", "float", "bool"):
        return f"{f[1]} ({f[0]})"
    return f"{f[0]}={describe(f[1])}" if isinstance(f, tuple) and len(f) == 2 else str(f)
