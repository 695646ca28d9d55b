"""A rank is a value. `current()` is the one that the running thread belongs to.

Several ranks can live in one process, each in threads that `enter` it (tests, notebooks, debugging). A thread that
entered none belongs to the process' own rank, which is read from torchrun's variables on first use.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from typing import Any

from weft.core.errors import RankError

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


class Rank:
    """One participant of the world, and what it owns.

    `resources` holds what upper layers keep per rank, by name, in order of creation; `close` ends them in
    the reverse order.
    """

    def __init__(
        self, index: int = 0, world_size: int = 1, *, local_index: int = 0, local_size: int = 1, host: str = "localhost"
    ) -> None:
        self.become(index, world_size, local_index, local_size)
        self.host = host
        self.resources: dict[str, Any] = {}
        self._lock = threading.RLock()

    def become(self, index: int, world_size: int, local_index: int, local_size: int) -> None:
        """Set the rank's place in a world, before it has communicated."""
        if not 0 <= index < world_size:
            raise RankError(f"rank {index} is outside a world of {world_size}: ranks go from 0 to {world_size - 1}")
        self.index, self.world_size = index, world_size
        self.local_index, self.local_size = local_index, local_size

    def resource(self, name: str, make: Any) -> Any:
        """This rank's resource under `name`; `make(self)` makes it on first use."""
        found = self.resources.get(name)
        if found is None:
            with self._lock:
                found = self.resources.get(name)
                if found is None:
                    found = make(self)
                    self.resources[name] = found
        return found

    def close(self) -> None:
        with self._lock:
            failed: BaseException | None = None  # close the others nevertheless
            while self.resources:
                _, owned = self.resources.popitem()
                close = getattr(owned, "close", None)
                if close is not None:
                    try:
                        close()
                    except Exception as error:
                        failed = failed or error
            if failed is not None:
                raise failed

    def __repr__(self) -> str:
        return f"<rank {self.index} of {self.world_size}>"


class _Here(threading.local):
    rank: Rank | None = None


_here = _Here()


def current() -> Rank:
    """The rank of the running thread."""
    return _here.rank or of_process()


def entered() -> Rank | None:
    """The rank that the running thread entered; None if it entered none."""
    return _here.rank


@contextlib.contextmanager
def enter(rank: Rank) -> Iterator[Rank]:
    """Run as this rank in this thread (a context manager)."""
    before, _here.rank = _here.rank, rank
    try:
        yield rank
    finally:
        _here.rank = before


@functools.cache
def of_process() -> Rank:
    """The rank from torchrun's variables; without them, rank 0 of 1."""
    index, size = from_environment("RANK", 0), from_environment("WORLD_SIZE", 1)
    local_index, local_size = from_environment("LOCAL_RANK", index), from_environment("LOCAL_WORLD_SIZE", size)
    if not (0 <= index < size and 0 <= local_index < local_size <= size):
        raise RankError(
            "RANK counts from 0 to WORLD_SIZE - 1, and LOCAL_RANK on its host to LOCAL_WORLD_SIZE - 1; the launcher's "
            f"variables say {_variables() or 'nothing'}, that is rank {index} of {size}, and {local_index} of "
            f"{local_size} on its host"
        )
    return Rank(index, size, local_index=local_index, local_size=local_size)


def _variables() -> dict[str, str]:
    return {k: os.environ[k] for k in VARIABLES if k in os.environ}


def from_environment(variable: str, default: int) -> int:
    """An integer from the launcher's environment variable."""
    try:
        return int(os.environ.get(variable, default))
    except ValueError:
        raise RankError(
            f"the launcher's variables must be numbers, like RANK=0 WORLD_SIZE=2; got {_variables()}"
        ) from None
