"""Tests that run on several ranks, which are threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.launch import spawn_threads


def on(n: int) -> Callable[[Callable[[], Any]], Callable[[], None]]:
    """Run a test on n ranks."""

    def wrap(each: Callable[[], Any]) -> Callable[[], None]:
        def test() -> None:
            spawn_threads(n, each, deadline=60)

        test.__name__ = each.__name__
        return test

    return wrap
