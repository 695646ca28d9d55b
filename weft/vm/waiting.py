"""Wait for an instruction, until it has ended or the deadline, driving pending work meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import NoReturn

from weft.core.errors import DeadlineError
from weft.transport.stuck import waits_of
from weft.vm.instruction import Instruction, Machine

LOOK = 0.2  # seconds at most between looks for Ctrl-C: a signal that another thread took doesn't end a wait


def wait_each(machine: Machine, instructions: Iterable[Instruction], limit: float) -> None:
    for instruction in sorted(instructions, key=_serial):
        wait_for(machine, instruction, limit)


def wait_for(machine: Machine, target: Instruction, limit: float) -> None:
    """Wait until `target` has ended, well or not; `limit` is on the monotonic clock."""
    left_to_others: set[Instruction] = set()
    here = threading.get_ident()
    while True:
        event, drive, driven = None, None, None
        try:
            with machine.lock:
                if target.finished:
                    return
                first = _holds_up(target)
                if first.thread == here:
                    raise DeadlineError(
                        f"{target.story()} would wait for ever: {first.story()} must end first, and it is what this "
                        "thread is doing. An action uses blob.data of its own operands and waits for no other"
                    )
                if first.state == "started" and not first.driving and first not in left_to_others:
                    drive = first.drive
                if drive is not None:
                    driven, first.driving = first, True
                else:
                    # Without anything to drive, one wait for the target itself is enough.
                    awaited = first if machine.driven else target
                    event = awaited.event
                    if event is None:
                        event = awaited.event = threading.Event()
            left = limit - time.monotonic()
            if event is not None:
                if left <= 0:
                    _too_late(machine, target, first)
                if first.state == "queued" and first.stream is not None:
                    first.stream.pump()  # who submitted it may have been interrupted before
                event.wait(min(left, LOOK))
            elif drive is not None:
                left_to_others.add(first)
                try:
                    drive(max(left, 0.0))
                except Exception as error:
                    if first.finished:
                        raise
                    first.finish(error)
        finally:
            if driven is not None:
                with machine.lock:
                    driven.driving = False
                    pulse(driven)  # another waiting thread may go on


def hold_back(machine: Machine, pending: Mapping[Instruction, None]) -> None:
    """Flow control: a program that is too far ahead waits for its oldest instruction."""
    if len(pending) < machine.max_pending:
        return
    here, limit = threading.get_ident(), time.monotonic() + machine.deadline
    while True:
        with machine.lock:
            # An instruction that submits others must not wait for itself.
            if len(pending) < machine.max_pending or any(i.thread == here for i in pending):
                return
            machine.waits += 1
            oldest = next(iter(pending))
        wait_for(machine, oldest, limit)


def pulse(instruction: Instruction) -> None:
    """Wake the threads that wait for it, to check again. The caller holds the lock."""
    event, instruction.event = instruction.event, None
    if event is not None:
        event.set()


def _holds_up(target: Instruction) -> Instruction:
    """The first instruction that must end before `target` can; `target` itself if nothing does."""
    while target.state == "queued":
        if target.unmet:
            target = min(target.unmet, key=_serial)
        elif target.stream is not None and target.stream.queue and target.stream.queue[0] is not target:
            target = target.stream.queue[0]
        else:
            break
    return target


def _too_late(machine: Machine, target: Instruction, first: Instruction) -> NoReturn:
    behind = "" if first is target else f"\nIt is held up by {first.story()}"
    transport = machine.rank.resources.get("transport")
    others = waits_of(transport, range(transport.world_size)) if transport and first.kind == "collective" else ""
    raise DeadlineError(
        f"rank {machine.rank.index} waited until the deadline for {target.story()}{others}.{behind}\n"
        "If it is only slow, set WEFT_DEADLINE to more seconds"
    )


def _serial(instruction: Instruction) -> int:
    return instruction.serial
