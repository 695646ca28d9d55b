"""An actor with its act and its mailbox."""

from __future__ import annotations

from collections.abc import Callable

from weft.runtime.actor import Actor, Turn
from weft.runtime.bus import Mailbox


class Station:
    """An actor, its act, its mailbox, and whether a launch ends with it."""

    __slots__ = ("actor", "act", "box", "local", "last", "launches", "seen", "since")

    def __init__(self, actor: Actor, act: Callable[[Turn], None], box: Mailbox) -> None:
        self.actor, self.act, self.box = actor, act, box
        self.local = False  # whether all its messages are within its thread
        self.last = False  # whether no task of this rank follows it in a launch
        self.launches = 0
        self.seen, self.since = -1, 0.0
