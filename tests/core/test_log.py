"""What is said beside errors and warnings: by `logging`, from a level on, with the rank."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft as flow
from tests.worlds import Start
from weft.core import log
from weft.core.errors import ArgumentError
from weft.core.rank import Rank, enter
from weft.launch import spawn_threads


@contextlib.contextmanager
def unset(level: str | None) -> Iterator[None]:
    """As in a program that set up no logging, and was started with this level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.root, "handlers", [])
        patch.setattr(log.ROOT, "handlers", [])
        patch.setattr(log.ROOT, "level", logging.NOTSET)
        patch.delenv("WEFT_LOG", raising=False)
        if level is not None:
            patch.setenv("WEFT_LOG", level)
        log.ROOT.setLevel(logging.NOTSET)
        log.begin()
        yield
    log.ROOT.setLevel(log.ROOT.level)  # forgets which levels it had found to be on


@pytest.mark.parametrize(("level", "shown"), [("", "we"), ("info", "iwe"), ("ERROR", "e"), ("debug", "diwe")])
def test_lines_from_a_level_on(level: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    part = log.logger("part")
    with unset(level):
        for say, word in ((part.debug, "d"), (part.info, "i"), (part.warning, "w"), (part.error, "e")):
            say(word)
    assert capsys.readouterr().err == "".join(f"weft.part: {word}\n" for word in shown)


def test_a_level_that_is_none() -> None:
    with pytest.raises(ArgumentError, match="WEFT_LOG takes debug, info, warning, error; got 'loud'"), unset("loud"):
        pass


def test_ranks_are_told_apart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with unset(None):
        with enter(Rank(1, 2)):
            log.logger("part").warning("of a thread")
        monkeypatch.setenv("RANK", "3")
        monkeypatch.setenv("WORLD_SIZE", "4")
        log.logger("part").warning("of a process")
        logging.getLogger("weft").warning("the program's own")
        monkeypatch.setenv(log.LABELLED, "1")  # the launcher does it
        log.logger("part").warning("labelled")
    said = capsys.readouterr().err.splitlines()
    assert said == ["[rank 1] weft.part: of a thread", "[rank 3] weft.part: of a process",
                    "[rank 3] weft: the program's own", "weft.part: labelled"]  # fmt: skip


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def test_what_happens_once_is_said(tmp_path: Path) -> None:
    class Doubles(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            return x * 2

    def run() -> None:
        P = flow.placement("cpu", ranks=[0, 1])
        x = flow.ones(2, placement=P, sbp=flow.sbp.broadcast)
        Doubles()(x)
        flow.save({"x": x}, tmp_path / "file")
        flow.save({"x": x}, tmp_path / "folder", max_shard_size=9)

    with unset("info"):
        logging.root.addHandler(kept := Kept())
        spawn_threads(2, run)
    said = sorted((r.name, r.rank, r.getMessage()) for r in kept.records)  # type: ignore[attr-defined]
    assert [(name, rank) for name, rank, _ in said] == [
        ("weft.checkpoint", 0), ("weft.checkpoint", 0), ("weft.graph", 0), ("weft.graph", 1)
    ]  # fmt: skip
    assert f"file written, {(tmp_path / 'file').stat().st_size} bytes" in "".join(text for *_, text in said)
    assert "Doubles_0: compiled in" in said[2][2] and "3 ops" in said[2][2]


def test_a_program_has_the_last_word(alone: Start) -> None:
    program = (
        "import logging, weft; from weft.core.log import logger; logger('a').info('x'); "
        "logging.basicConfig(level='INFO', format='%(rank)s %(name)s %(message)s'); logger('a').info('y')"
    )
    assert alone(program).said(0) == "0 weft.a y\n"
