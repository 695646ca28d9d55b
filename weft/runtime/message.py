"""Messages between actors. A message carries no data, only the register and the index of its copy."""

from __future__ import annotations

from typing import Final, NamedTuple

READABLE: Final = 0  # to a consumer: this copy is written, read it
FREE: Final = 1  # to the producer: one consumer no longer needs this copy
LAUNCH: Final = 2  # to a source: act this many times more
END: Final = 3  # to a consumer: no more will come in this register; to a source (register NONE): no more launches

KINDS: Final = ("readable", "free", "launch", "end")
NONE: Final = -1
FOREVER: Final = 1 << 60  # launches of a source that runs ahead


class Message(NamedTuple):
    """`to` is a task id. `slot` is the copy's index; in a launch, the number of acts."""

    kind: int
    to: int
    register: int
    slot: int
