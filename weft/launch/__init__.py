"""Start the ranks of a program: as threads of this process, or as processes of this host."""

from __future__ import annotations

from weft.launch.processes import Ended, spawn
from weft.launch.threads import spawn_threads

__all__ = ["Ended", "spawn", "spawn_threads"]
