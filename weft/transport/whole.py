"""Calls and messages are atomic: after one that was interrupted, later ones are refused, as they would pair wrongly."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from weft.core.errors import RankError

G = TypeVar("G", bound=Any)
P = ParamSpec("P")


def collective(method: Callable[Concatenate[G, P], None]) -> Callable[Concatenate[G, P], None]:
    """Decorate a group's call: after an interrupted call this rank is at another call than the others, and calls of two
    threads have no common order. In both cases calls would pair wrongly, and are refused."""
    name = method.__name__.lstrip("_")

    @functools.wraps(method)
    def call(self: G, *given: P.args, **named: P.kwargs) -> None:
        if self._began >= 0:
            raise self._refused(name)
        self._began = self._turn
        try:
            method(self, *given, **named)
        except BaseException as error:
            self._broken_off(name, given, error)
            raise
        self._began = -1

    return call


class PeerFailed(RankError):
    """Another rank raised or died; this one only detected it."""


class PeerEnded(PeerFailed):
    """Another rank ended well, while this one waits for it. What it sent before may still be on its way."""


def raised(error: BaseException) -> str:
    """A short text for the others of an error that ends a rank: its first line, if it has one."""
    try:
        line = (str(error).splitlines() or [""])[0].encode(errors="replace").decode()
    except Exception:  # of its own __str__
        line = ""
    return f"raised {type(error).__name__}" + (f": {line}" if line else "")


def flat(given: Any) -> Iterator[Any]:
    for one in given:
        yield from flat(one) if isinstance(one, list | tuple) else (one,)


def form(t: Any) -> str:
    return f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"


def broken(what: str, error: BaseException, where: str) -> RankError:
    """The error of calls after an interrupted one: the failure of another rank, if that was the cause."""
    kind = PeerFailed if isinstance(error, PeerFailed) else RankError
    return kind(
        f"{what} was broken off, as it {raised(error)}. Others may have gone through it, so later calls would take "
        f"what belongs to it, and {where} makes none. End all ranks and begin anew, say from a checkpoint"
    )


def broken_message(src: int, dst: int, error: BaseException) -> RankError:
    return broken(f"a message from rank {src} to rank {dst}", error, "this way between them")


def at_once(src: int, dst: int) -> RankError:
    return RankError(
        f"another message from rank {src} to rank {dst} is under way, in another thread or below this call: which is "
        "which would be left to chance. Make the calls one after another"
    )
