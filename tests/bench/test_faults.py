"""What the count of faults believes, and that its section replaces the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.faults import TITLE, Part, section, write
from bench.kills import HANG, Kill, Seen, chosen, counted


def seen(said: str, seconds: float | None = 0.5, launcher: str = "", phase: str = "collectives") -> Seen:
    return Seen(Kill(phase, "torchrun", "shm", 1, 0.0), {0: seconds}, {0: said}, launcher)


NAMED = "Traceback ...\nPeerFailed: rank 1 (process 7) died without a word, at comm.all_reduce; rank 0 was waiting"


@pytest.mark.parametrize(
    ("one", "named", "noted"),
    [
        (seen(NAMED), 1, 1),
        (seen("PeerFailed: rank 1 died without a word; rank 0 was in all_reduce"), 1, 0),
        (seen("PeerFailed: rank 12 died without a word, at x"), 0, 0),
        (seen("DeadlineError: rank 0 waited 15 s for somebody"), 0, 0),
        (seen("", launcher="exitcode: -9, rank : 1 (local_rank: 1)"), 1, 0),  # the launcher ended it before
        (seen(""), 0, 0),
    ],
)
def test_only_errors_name(one: Seen, named: int, noted: int) -> None:
    figures = counted([one])
    assert (figures.named, figures.noted, figures.survivors, figures.notable) == (named, noted, 1, 1)


def test_a_hang_is_counted_and_slowest() -> None:
    figures = counted([seen(NAMED), seen("", None)])
    assert (figures.hangs, figures.slowest, figures.median) == (1, HANG, (HANG + 0.5) / 2)


def test_who_has_nothing_to_tell_may_end_well() -> None:
    assert counted([seen("", phase="at exit")]).named == 1
    assert counted([seen("RankError: something else", phase="at exit")]).named == 0


def test_every_kind_of_kill_comes_up_as_often() -> None:
    kinds = [(k.phase, k.start, k.transport, k.bad) for k in chosen(260, 208)]
    assert {kinds.count(kind) for kind in kinds} <= {1, 2}


def test_the_section_replaces_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nText.\n")
    for number in ("7", "8"):
        part = Part([(("a", "b"), [("x", number)])], [("all", number, "8", number == "8")])
        write(page, section({"kills": (part, 60.0)}))
    text = page.read_text()
    assert text.startswith(f"# Page\n\nText.\n\n{TITLE}\n") and text.count(TITLE) == 1
    assert "| x | 8 |" in text and "| all | 8 | 8 | yes |" in text and "| 7 |" not in text
