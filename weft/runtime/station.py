"""An actor in its place."""

from __future__ import annotations

from collections.abc import Callable

from weft.runtime.actor import Actor, Turn
from weft.runtime.bus import Mailbox


class Station:
    """What an actor does, where its messages go, and whether a launch is over when it is."""

    __slots__ = ("actor", "act", "box", "local", "last", "launches", "seen", "since")

    def __init__(self, actor: Actor, act: Callable[[Turn], None], box: Mailbox) -> None:
        self.actor, self.act, self.box = actor, act, box
        self.local = False  # all it talks to is on its own thread
        self.last = False  # nothing of this rank comes after it in a launch
        self.launches = 0
        self.seen, self.since = -1, 0.0
