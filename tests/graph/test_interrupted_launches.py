"""Ctrl-C at any line that submits, drives or awaits a launch: nobody waits for ever, and nothing is wrong."""

from __future__ import annotations

import atexit
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

import weft as flow
import weft.graph.run
import weft.runtime
import weft.vm
from tests.vm.test_interrupted import Interrupt
from weft import nn
from weft.core.rank import Rank, enter
from weft.transport import LocalTransport, LocalWorld
from weft.vm import vm_of

FOLDERS = (str(Path(weft.vm.__file__).parent), str(Path(weft.runtime.__file__).parent), weft.graph.run.__file__)
SOON = 4.0  # seconds


class Counting(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.m = nn.Module()
        self.m.register_buffer("n", flow.zeros(1))

    def build(self, x: Any) -> Any:
        self.m.n.add_(1)
        return x + self.m.n


def read(value: Any) -> float | None:
    """None if a launch that was broken off was to make it."""
    try:
        return value().item()
    except (KeyboardInterrupt, flow.errors.GraphError):
        return None


def launched(interrupt: Interrupt) -> bool:
    """Launch twice, read, and launch again; whether it was interrupted."""
    graph, x, results, vm_of().deadline = Counting(), flow.ones(1), list[Any](), SOON
    assert graph(x).item() == 2.0
    broken = False
    sys.settrace(interrupt)
    try:
        for _ in range(2):
            results.append(graph(x))
        results[-1].item()
        sys.settrace(None)
        graph.close()
    except (KeyboardInterrupt, flow.errors.GraphError):
        broken = True
    finally:
        sys.settrace(None)
    try:
        vm_of().drain(SOON)
    except (KeyboardInterrupt, flow.errors.GraphError):
        pass
    found = [read(lambda y=y: y) for y in results]
    after = read(lambda: graph(x)) if broken else None
    assert all(y in (None, i + 3.0) for i, y in enumerate(found)), interrupt.at
    assert after in (None, 1.0 + (read(lambda: graph.m.n) or 0.0)), interrupt.at
    graph.close()
    return broken


@pytest.mark.parametrize("brief", [True, False])
def test_nothing_waits_for_ever(brief: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brief launches run at once in the caller, others as instructions of the virtual machine."""
    monkeypatch.setattr(weft.graph.run, "BRIEF", 10**12 if brief else 0)
    world = LocalWorld(1)
    for n in itertools.count(1):
        rank, interrupt = Rank(), Interrupt(n, *FOLDERS)
        rank.resource("transport", lambda _: LocalTransport(world, 0, SOON))
        with enter(rank):
            try:
                broken = launched(interrupt)
            except flow.errors.DeadlineError as late:
                raise AssertionError(f"interrupted in {interrupt.at}: {late}") from late
            finally:
                atexit.unregister(vm_of().at_exit)  # what was broken off is over
        if not broken:
            assert n > 300
            return
