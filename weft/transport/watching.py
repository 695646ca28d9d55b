"""Observe a rank's collectives and messages, at no cost while nobody does."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, NamedTuple, cast

from torch import Tensor

from weft.transport.base import Group, Transport
from weft.transport.whole import flat


class Sent(NamedTuple):
    """A collective or a message that has ended: the bytes that this rank gave (of messages, and took); the ranks;
    when it began; what the rank was doing, as it noted last; and on which line."""

    name: str
    size: int
    ranks: tuple[int, ...]
    start: int
    failed: bool
    why: str
    line: str


Heard = Callable[[Sent], None]

GIVEN = {"all_reduce": 0, "begin_all_reduce": 0, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1, "broadcast": 0}


@contextlib.contextmanager
def watched(transport: Transport, heard: Heard) -> Iterator[None]:
    """Inside, `heard` is called after every collective and message of this rank; outer observers are called, too. A
    message that a collective sends is part of it."""
    followed: list[Group] = []
    state = threading.local()
    note, doing = transport.note, [""]
    before: list[tuple[dict[str, Any], str, Any]] = []  # the replaced methods, to restore

    def wrap(owner: Any, name: str, about: Callable[[tuple[Any, ...]], Any]) -> None:
        before.append((owner.__dict__, name, owner.__dict__.get(name)))
        owner.__dict__[name] = _telling(getattr(owner, name), about, heard, state, doing)

    def follow(group: Group) -> Group:
        if group not in followed:
            followed.append(group)
            for name, at in GIVEN.items():
                if getattr(type(group), name) is Group.begin_all_reduce:
                    continue  # it is the other, which is heard of
                wrap(group, name, lambda given, at=at: (given[at : at + 1], group.ranks, group._line))
            wrap(group, "barrier", lambda given: ((), group.ranks, group._line))
        return group

    def found(*args: Any, **options: Any) -> Group:
        return follow(group(*args, **options))

    for each in list(transport._groups.values()):
        follow(each)
    wrap(transport, "exchange", partial(_exchanged, transport.rank))
    group, own = transport.group, cast(dict[str, Any], vars(transport))
    before.append((own, "group", own.get("group")))
    before.append((own, "note", own.get("note")))
    own.update(group=found, note=lambda what: (doing.__setitem__(0, what), note(what)))
    try:
        yield
    finally:
        for owner, name, was in reversed(before):
            if was is None:
                owner.pop(name, None)
            else:
                owner[name] = was


def _exchanged(me: int, given: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...], str]:
    pairs = [pair for way in given[:2] for pair in way]
    return [t for _, t in pairs], tuple(sorted({me, *(rank for rank, _ in pairs)})), "".join(given[2:])


def _telling(
    method: Callable[..., Any], about: Callable[[tuple[Any, ...]], Any], heard: Heard, state: Any, doing: list[str]
) -> Callable[..., Any]:
    name = method.__name__

    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        if getattr(state, "inside", False):
            return method(*given, **named)
        start, failed, state.inside = time.perf_counter_ns(), True, True
        try:
            made = method(*given, **named)
            failed = False
            return made
        finally:
            state.inside = False
            tensors, ranks, line = about((*given, *named.values()))
            size = sum(t.numel() * t.element_size() for t in flat(tensors) if isinstance(t, Tensor))
            heard(Sent(name, size, ranks, start, failed, doing[0], line))

    return call
