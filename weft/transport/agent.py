"""A rank that torchrun started ends when torchrun has gone, even if that was killed.

Ranks of Weft's own launcher end with it by the kernel's doing. Ranks that were started by hand are watched by nobody:
the end of a shell is none of theirs.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time

from weft.transport.stuck import say

STARTED_BY_AGENT = "TORCHELASTIC_RUN_ID"
NAME = "weft-agent"
GRACE = 5.0  # seconds to obey SIGTERM


def end_with_agent(rank: int) -> None:
    """From now on, in a thread that only waits."""
    if STARTED_BY_AGENT not in os.environ or sys.platform != "linux":
        return
    if any(thread.name == NAME for thread in threading.enumerate()):
        return
    agent = os.getppid()
    try:
        descriptor = os.pidfd_open(agent)
    except ProcessLookupError:
        descriptor = None
    threading.Thread(target=_wait, args=(rank, agent, descriptor), name=NAME, daemon=True).start()


def _wait(rank: int, agent: int, descriptor: int | None) -> None:
    if descriptor is not None:
        ends = select.poll()
        ends.register(descriptor, select.POLLIN)
        ends.poll()
    say(f"rank {rank} ends, as process {agent}, which started it, has gone")
    for number in (signal.SIGTERM, signal.SIGKILL):
        if os.getpgid(0) == os.getpid():  # with whatever it started
            os.killpg(0, number)
        else:
            os.kill(os.getpid(), number)
        time.sleep(GRACE)
