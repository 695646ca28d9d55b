"""What has happened to tensors of this process so far: who keeps something of them sees by a number whether to look."""

from __future__ import annotations


class Counters:
    """One object for all ranks that are threads of this process: a number that grew for another rank's tensor only lets
    one look in vain.

    exchanged    how often a tensor was given other memory, left its module, or was frozen: graphs look whether it was
                 theirs
    accumulated  how many tensors ever got a hook after accumulation: without any, backward looks for none
    sparse       whether there was a sparse gradient: without any, optimizers look for none
    overwritten  when, in the sequence of calls, something was last overwritten that others may look at
    """

    __slots__ = ("accumulated", "exchanged", "overwritten", "sparse")

    def __init__(self) -> None:
        self.exchanged = self.accumulated = 0
        self.overwritten = -1
        self.sparse = False


counters = Counters()
