"""Functions that a module holds, such as lambdas, refer to other modules by their closures. `copy.deepcopy` leaves
functions and weak references as they are: what a copied module holds is made to refer to the copies."""

from __future__ import annotations

import functools
import weakref
from types import CellType, FunctionType
from typing import Any

import torch

from weft.autograd.trees import leaves, mapped
from weft.nn.module.module import Module


def follow_copies(module: torch.nn.Module, memo: dict[Any, Any]) -> None:
    """Rebind the functions in a copied tree of modules; `memo` has the copies by the ids of their originals."""
    known: dict[int, Any] = {}
    for m in torch.nn.Module.modules(module):
        if isinstance(m, Module):  # Weft's, which was no part of what is copied
            continue
        for name, held in list(vars(m).items()):
            vars(m)[name] = _followed(held, memo, known)


def _followed(held: Any, memo: dict[Any, Any], known: dict[int, Any]) -> Any:
    """A value in which functions are rebound; itself, if none refers to what was copied."""

    def turned(v: Any) -> Any:
        if id(v) in memo:
            return memo[id(v)]
        if isinstance(v, FunctionType):
            return _rebound(v, memo, known)
        if isinstance(v, weakref.ref):
            referent = v()
            return v if referent is None or id(referent) not in memo else weakref.ref(memo[id(referent)])
        if type(v) is functools.partial:
            given = v.func, v.args, v.keywords
            f, args, keywords = found = _followed(given, memo, known)
            return v if found is given else functools.partial(f, *args, **keywords)
        return v

    if id(held) in memo:
        return memo[id(held)]
    return mapped(held, turned) if any(turned(v) is not v for v in leaves(held)) else held


def _rebound(f: FunctionType, memo: dict[Any, Any], known: dict[int, Any]) -> Any:
    if id(f) in known:
        return known[id(f)]
    cells = tuple(CellType() for _ in f.__closure__ or ())
    known[id(f)] = made = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, cells)
    vars(made).update(vars(f))
    made.__kwdefaults__, made.__qualname__, changed = f.__kwdefaults__, f.__qualname__, False
    for cell, before in zip(cells, f.__closure__ or (), strict=True):
        try:
            content = before.cell_contents
        except ValueError:  # not assigned yet
            continue
        cell.cell_contents = _followed(content, memo, known)
        changed = changed or cell.cell_contents is not content
    made.__defaults__ = _followed(f.__defaults__, memo, known)
    changed = changed or made.__defaults__ is not f.__defaults__
    if not changed:
        known[id(f)] = f
    return known[id(f)]
