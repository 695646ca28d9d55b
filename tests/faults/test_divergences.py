"""Ranks that diverge say so, all of them, within moments, and name both sides: over every transport."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.faults.divergences import CALLS, PROGRAMS, WORLD, fault, try_calls, try_program
from weft.launch import spawn_threads

TABLE = {d.name: d for d in (*CALLS, *PROGRAMS)}


def judge(rows: Iterable[dict[str, Any]], check: str, waits: bool) -> None:
    found = list(rows)
    assert len(found) == WORLD * sum(d.check == check for d in CALLS)
    faults = [fault(TABLE[row["name"]], row["rank"], row, waits) for row in found]
    assert not any(faults), "\n".join(filter(None, faults))


def test_threads() -> None:
    judge(itertools.chain(*spawn_threads(WORLD, try_calls, deadline=60)), "", False)


@pytest.mark.parametrize("check", ["", "1"])
@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_processes(world: Any, transport: str, check: str) -> None:
    env = {"WEFT_DEADLINE": "60", "WEFT_CHECK": check}
    done = world("tests/faults/divergences.py:try_calls", WORLD, transport, check, env=env)
    judge((json.loads(row) for said in done.well() for row in said.splitlines()), check, transport == "c10d")


@pytest.mark.parametrize("name", [d.name for d in PROGRAMS])
def test_programs_on_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CHECK", TABLE[name].check)
    monkeypatch.setenv("WEFT_CHECK_EVERY", "2")
    found = [row for rows in spawn_threads(2, try_program, name, deadline=60) for row in rows]
    faults = [fault(TABLE[name], row["rank"], row, False) for row in found]
    assert len(found) == 2 and not any(faults), "\n".join(faults)


@pytest.mark.parametrize(
    ("transport", "name"), [("shm", "sbp after a sum"), ("c10d", "learning rates"), ("c10d", "a backward less")]
)
def test_programs_on_processes(world: Any, transport: str, name: str) -> None:
    done = world("tests/faults/divergences.py:try_program", 2, transport, name, env={"WEFT_DEADLINE": "60"})
    faults = [fault(TABLE[name], rank, json.loads(said), True) for rank, said in enumerate(done.well())]
    assert not any(faults), "\n".join(faults)
