"""The launcher without a process of its own: what only it does needs none that imports all of Weft anew."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from weft.launch import __main__ as launcher

Here = Callable[..., tuple[int, str, str]]


@pytest.fixture
def launch_here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Here]:
    """The launcher's code, output and errors."""
    for name in ("argv", "path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield lambda *words: (launcher.main(words), *capfd.readouterr())
    for number, handler in before.items():
        signal.signal(number, handler)
