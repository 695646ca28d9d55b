"""`flow.utils.global_view`: programs that create tensors, run with global ones; conversion of nested tensors.

A model that creates masks or positions in `forward` would mix local tensors with its global ones. Under
`global_mode` it creates global ones.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from weft.autograd.trees import leaves, mapped
from weft.core import sbp as sbps
from weft.core.dispatch import here, set_modes
from weft.core.errors import ArgumentError
from weft.core.placement import Placement
from weft.core.program_line import warn
from weft.core.rank import current
from weft.functional.create import creation
from weft.functional.tensor import conversion
from weft.tensor.tensor import Tensor
from weft.transport import transport_of

__all__ = ["current_global_mode", "global_mode", "to_global", "to_local"]


class global_mode:
    """A context manager: new tensors without a placement are global: `ones`, `arange`, `randn`, `tensor`, ...

    A device given to them is ignored; a global tensor's device is its placement's type.
    """

    def __init__(self, enabled: bool, placement: Placement | None = None, sbp: Any = None) -> None:
        if not enabled:
            if placement is not None or sbp is not None:
                raise ArgumentError("global_mode(False) takes neither placement nor sbp")
            self.place = None
            return
        if not isinstance(placement, Placement) or sbp is None:
            raise ArgumentError("global_mode(True, placement=..., sbp=...) takes both, where new tensors lie and how")
        placement.check(current().world_size)
        self.place = placement, sbps.nd(sbp, placement.ndim, None)

    def __enter__(self) -> global_mode:
        self.before = here.place
        set_modes(place=self.place)
        return self

    def __exit__(self, *error: Any) -> None:
        set_modes(place=self.before)

    @property
    def is_enabled(self) -> bool:
        return self.place is not None

    @property
    def placement(self) -> Placement:
        return self._place()[0]

    @property
    def sbp(self) -> sbps.NdSbp:
        return self._place()[1]

    def _place(self) -> tuple[Placement, sbps.NdSbp]:
        if self.place is None:
            raise ArgumentError("the global mode is off: it has no placement and no sbp")
        return self.place


def current_global_mode() -> global_mode:
    """The active mode of this thread."""
    mode = global_mode(False)
    mode.place = here.place
    return mode


def to_global(
    input: Any, placement: Placement | None = None, sbp: Any = None, warn_on_non_tensor_leaf: bool = True,
    **options: Any,
) -> Any:  # fmt: skip
    """Make every tensor in nested lists, tuples and dicts global; `sbp` may be a function of the tensor, or of the
    whole input and the tensor. What ranks outside of the placement give, such as None, doesn't count."""
    first = next((v for v in leaves(input) if isinstance(v, Tensor)), None)
    outside = placement is not None and len(placement.members) < current().world_size
    if placement is not None and outside and (first is None or first.is_local):
        input = _as_on_first(input, placement)
    chosen = sbp if callable(sbp) and not isinstance(sbp, sbps.Sbp) else None
    of_all = chosen is not None and len(inspect.signature(chosen).parameters) > 1

    def convert(t: Tensor) -> Tensor:
        how = sbp if chosen is None else chosen(input, t) if of_all else chosen(t)
        return conversion.to_global(t, placement, how, **options)

    return _converted(input, convert, warn_on_non_tensor_leaf, "global_view.to_global")


def _as_on_first(tree: Any, placement: Placement) -> Any:
    """The tree; on ranks outside of the placement one like its first rank's, with empty tensors."""
    rank, source = current().index, placement.members[0]
    told = json.dumps(_form(tree)).encode() if rank == source else b""
    told = transport_of().everyone().broadcast_bytes(told, source)
    return tree if rank in placement else _formed(json.loads(told))


def _form(tree: Any) -> Any:
    """A tree as JSON, without the tensors' values."""
    if isinstance(tree, Tensor):
        return "tensor"
    if isinstance(tree, Mapping):
        return {"dict": [(k, _form(v)) for k, v in tree.items()]}
    if isinstance(tree, (tuple, list)):
        return {"tuple" if isinstance(tree, tuple) else "list": [_form(v) for v in tree]}
    return [tree if isinstance(tree, (bool, int, float, str)) else None]


def _formed(form: Any) -> Any:
    match form:
        case {"dict": items}:
            return {k: _formed(v) for k, v in items}
        case {"tuple": items}:
            return tuple(map(_formed, items))
        case {"list": items}:
            return [_formed(v) for v in items]
        case [value]:
            return value
    return creation.empty(0)


def to_local(input: Any, *, copy: bool = False) -> Any:
    """This rank's shard of every global tensor in nested lists, tuples and dicts."""
    return _converted(
        input, lambda t: conversion.to_local(t, copy=copy) if t.is_global else t, True, "global_view.to_local"
    )


def _converted(tree: Any, convert: Callable[[Tensor], Tensor], telling: bool, name: str) -> Any:
    def leaf(value: Any) -> Any:
        if isinstance(value, Tensor):
            return convert(value)
        if telling and value is not None:
            warn(f"{name}(): a value of type {type(value).__name__} is not a tensor, and is kept as it is")
        return value

    return mapped(tree, leaf)
