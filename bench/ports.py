"""Ports for ranks to meet at."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator


def free_ports() -> Iterator[int]:
    """Free ports below the ephemeral range, of which the kernel might give one to a rank that connects. Whatever seed a
    program has set, the order is another one each time."""
    for port in random.SystemRandom().sample(range(20_000, 30_000), 1000):
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            yield port


def free_port() -> int:
    return next(free_ports())
