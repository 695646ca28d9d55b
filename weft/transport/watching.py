"""Observe a rank's collectives and messages, at no cost while nobody does."""

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
    """Inside, `heard` is called after every collective and message of this rank; outer observers are called, too."""
    followed: list[Group] = []
    before: list[tuple[dict[str, Any], str, Any]] = []  # the replaced methods, to restore

    def wrap(owner: Any, name: str, about: Callable[[tuple[Any, ...]], Any]) -> None:
        before.append((owner.__dict__, name, owner.__dict__.get(name)))
        owner.__dict__[name] = _telling(getattr(owner, name), about, heard)

    def follow(group: Group) -> Group:
        if group not in followed:
            followed.append(group)
            for name, at in GIVEN.items():
                if getattr(type(group), name) is Group.begin_all_reduce:
                    continue  # it is the other, which is heard of
                wrap(group, name, lambda given, at=at: (given[at : at + 1], group.ranks))
            wrap(group, "barrier", lambda given: ((), group.ranks))
        return group

    def found(*args: Any, **options: Any) -> Group:
        return follow(group(*args, **options))

    for each in list(transport._groups.values()):
        follow(each)
    wrap(transport, "exchange", partial(_exchanged, transport.rank))
    group, own = transport.group, cast(dict[str, Any], vars(transport))
    before.append((own, "group", own.get("group")))
    own["group"] = found
    try:
        yield
    finally:
        for owner, name, was in reversed(before):
            if was is None:
                owner.pop(name, None)
            else:
                owner[name] = was


def _exchanged(me: int, given: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...]]:
    pairs = [pair for way in given[:2] for pair in way]
    return [t for _, t in pairs], tuple(sorted({me, *(rank for rank, _ in pairs)}))


def _telling(
    method: Callable[..., Any], about: Callable[[tuple[Any, ...]], Any], heard: Heard
) -> Callable[..., Any]:  # fmt: skip
    name = method.__name__

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

    return call
