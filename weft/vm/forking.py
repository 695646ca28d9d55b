"""What a forked process inherits: memory as it was, and none of the threads that it was shared with."""

from __future__ import annotations

import os
import threading
import weakref
from functools import partial
from typing import Protocol


class Locked(Protocol):
    lock: threading.Lock


def new_lock_in_children(machine: Locked) -> None:
    """A thread that isn't there in a child may have held the lock."""
    os.register_at_fork(after_in_child=partial(_renew, weakref.ref(machine)))


def _renew(machine: weakref.ref[Locked]) -> None:
    found = machine()
    if found is not None:
        found.lock = threading.Lock()
