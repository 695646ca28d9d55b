"""Every op and module keeps to the device of its operands: no tensor of the CPU slips in."""

from __future__ import annotations

from pathlib import Path

from tests.worlds import PROGRAM, Start


def test_nothing_leaves_the_device(world: Start) -> None:
    (said,) = world(PROGRAM, 1, "local", str(Path(__file__).with_name("devices.py"))).well()
    assert int(said.split()[-1]) > 550
