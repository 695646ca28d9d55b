"""Forked children of a rank can't use its transport.

A child that used the shared memory, connections and store would act as a second copy of the rank. So they are replaced
in the child, also in groups whose methods others hold; calls in the parent cost nothing more. Children that load data
need none of it.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NoReturn, Protocol

import torch

from weft.core.errors import RankError

PLAIN = (int, float, str, bytes, tuple, type(None), torch.dtype)  # bool and Size among them


class Owner(Protocol):
    rank: int
    world_size: int

    def held(self) -> Iterable[object]: ...


class Forked:
    """Replaces the rank's connections in a child; its calls raise."""

    def __init__(self, rank: int, parent: int) -> None:
        self._rank, self._parent = rank, parent

    def _refuse(self, *_: object) -> NoReturn:
        raise RankError(
            f"process {os.getpid()} was forked from rank {self._rank} (process {self._parent}), and only the rank "
            "itself takes part in collectives, messages and graphs of several ranks. Let the child return data, by a "
            "queue or a pipe, and let the rank move it"
        )

    __getattr__ = __getitem__ = __setitem__ = __call__ = __iter__ = __len__ = __contains__ = _refuse

    def note(self, what: str) -> None:
        """No effect: a child may call it at exit."""

    def fail(self, why: str, followed: bool = False) -> None: ...

    def close(self) -> None: ...


def refuse_in_children(owner: Owner) -> None:
    os.register_at_fork(after_in_child=partial(_cut, weakref.ref(owner)))


def _cut(reference: weakref.ref[Any]) -> None:
    owner = reference()
    if owner is None or owner.world_size == 1:
        return
    forked = Forked(owner.rank, os.getppid())
    for one in (owner, *owner.held()):
        had = dict(one.__dict__)
        one.__dict__.update({name: forked for name, value in had.items() if not isinstance(value, PLAIN)})
        # Kept for ever: c10d's destructors would wait for threads that the child doesn't have, and remove the parent's
        # connections from the epoll set that parent and child share.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(had))
    owner.__dict__.update(note=forked.note, fail=forked.fail, close=forked.close)


def refuse_as_children(rank: Callable[[], Any]) -> None:
    """The same for the process's rank before it has a transport, if the world has several ranks."""
    os.register_at_fork(after_in_child=partial(_never, rank))


def _never(rank: Callable[[], Any]) -> None:
    found = rank()
    if found is not None:
        found.resources.setdefault("transport", Forked(found.index, os.getppid()))
