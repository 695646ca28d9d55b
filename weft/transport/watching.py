"""Who hears of a rank's collectives and messages: while nobody does, they cost nothing more."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, cast

from torch import Tensor

from weft.transport.base import Group, Transport
from weft.transport.whole import flat

Heard = Callable[[str, int, tuple[int, ...], int, bool], None]  # name, bytes, ranks, when it began, whether it failed

GIVEN = {"all_reduce": 0, "begin_all_reduce": 0, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1, "broadcast": 0}


@contextlib.contextmanager
def watched(transport: Transport, heard: Heard) -> Iterator[None]:
    """Inside, `heard` is told of every collective and message of this rank when it has ended."""
    owners: list[Any] = []

    def follow(group: Group) -> Group:
        if group not in owners:
            owners.append(group)
            for name, at in GIVEN.items():
                if getattr(type(group), name) is Group.begin_all_reduce:
                    continue  # it is the other, which is heard of
                _wrap(group, name, lambda given, at=at: (given[at : at + 1], group.ranks), heard)
            _wrap(group, "barrier", lambda given: ((), group.ranks), heard)
        return group

    def found(*args: Any, **options: Any) -> Group:
        return follow(group(*args, **options))

    group, own = transport.group, cast(dict[str, Any], vars(transport))
    for each in list(transport._groups.values()):
        follow(each)
    _wrap(transport, "exchange", partial(_exchanged, transport.rank), heard)
    own["group"] = found
    try:
        yield
    finally:
        for name in ("group", "exchange"):
            own.pop(name, None)
        for owner in owners:
            for name in (*GIVEN, "barrier"):
                owner.__dict__.pop(name, None)


def _exchanged(me: int, given: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...]]:
    pairs = [pair for way in given[:2] for pair in way]
    return [t for _, t in pairs], tuple(sorted({me, *(rank for rank, _ in pairs)}))


def _wrap(owner: Any, name: str, about: Callable[[tuple[Any, ...]], Any], heard: Heard) -> None:
    method = getattr(owner, name)

    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        start, failed = time.perf_counter_ns(), True
        try:
            made = method(*given, **named)
            failed = False
            return made
        finally:
            tensors, ranks = about((*given, *named.values()))
            size = sum(t.numel() * t.element_size() for t in flat(tensors) if isinstance(t, Tensor))
            heard(name, size, ranks, start, failed)

    owner.__dict__[name] = call
