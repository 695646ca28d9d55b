"""Forked children: they inherit locks that threads of the parent may hold."""

from __future__ import annotations

import os
import threading
import weakref
from functools import partial
from typing import Protocol


class Locked(Protocol):
    lock: threading.Lock


def new_lock_in_children(machine: Locked) -> None:
    """Replace the lock in children, as a thread of the parent may have held it."""
    os.register_at_fork(after_in_child=partial(_renew, weakref.ref(machine)))


def _renew(machine: weakref.ref[Locked]) -> None:
    found = machine()
    if found is not None:
        found.lock = threading.Lock()
