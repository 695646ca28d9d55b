"""Ctrl-C at any line of the virtual machine: what was submitted ends, and nobody waits for ever."""

from __future__ import annotations

import functools
import itertools
import linecache
import sys
from pathlib import Path
from typing import Any

import torch

import weft.vm
from weft.core.errors import DeadlineError
from weft.core.rank import Rank, enter
from weft.tensor.blob import Blob
from weft.vm.instruction import Instruction
from weft.vm.machine import VirtualMachine

FOLDER = str(Path(weft.vm.__file__).parent)
SOON = 5.0  # seconds; the deadline is 300
NONE = ("with ", "try:")  # lines that tracing tells of, too, where no lock is held any more or yet, and no signal comes


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line of the machine, or of other folders, that this thread runs."""

    def __init__(self, n: int, *folders: str) -> None:
        self.left, self.at, self.folders = n, "", folders or (FOLDER,)

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.folders):
            return None
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip().startswith(NONE):
            self.left -= 1
            if self.left == 0:
                self.at = f"{frame.f_code.co_name}, {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self


def launches(vm: VirtualMachine) -> None:
    """Each overwrites what the one before made; who waits for the last one ends all of them."""
    y, issued = Blob(torch.tensor(0.0)), []

    def drive(mine: Instruction, _: float) -> None:
        for each in issued[: issued.index(mine) + 1]:
            each.finish()

    for _ in range(2):
        launch = Instruction("launch", lambda: None, (), (y,), (), "launch")
        issued.append(launch)
        vm.issue(launch, "graph:a", functools.partial(drive, launch))
    vm.wait(issued[-1])
    vm.wait_read(y)


def test_nothing_waits_for_ever() -> None:
    for n in itertools.count(1):
        vm, interrupt = VirtualMachine(Rank()), Interrupt(n)
        with enter(Rank()):
            sys.settrace(interrupt)
            try:
                launches(vm)
                broken = False
            except KeyboardInterrupt:
                broken = True
            finally:
                sys.settrace(None)
        try:
            vm.drain(SOON)
        except DeadlineError as late:
            raise AssertionError(f"interrupted in {interrupt.at}: {vm.pending()}") from late
        if not broken:
            assert n > 50
            return
