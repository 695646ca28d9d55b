"""What the count of faults believes, and that figures replace those before."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.faults import TITLE, Part, write
from bench.kills import HANG, Kill, Outcome, chosen, counted


def seen(said: str, seconds: float | None = 0.5, launcher: str = "", phase: str = "collectives") -> Outcome:
    return Outcome(Kill(phase, "torchrun", "shm", 1, 0.0), {0: seconds}, {0: said}, launcher)


NAMED = "Traceback ...\nPeerFailed: rank 1 (process 7) died without a word, at comm.all_reduce; rank 0 was waiting"


@pytest.mark.parametrize(
    ("one", "named", "noted", "notable"),
    [
        (seen(NAMED), 1, 1, 1),
        (seen("PeerFailed: rank 1 died without a word; rank 0 was in all_reduce"), 1, 0, 1),
        (seen("PeerFailed: rank 12 died without a word, at x"), 0, 0, 1),
        (seen("DeadlineError: rank 0 waited 15 s for somebody"), 0, 0, 1),
        (seen("waits", launcher="SIGTERM to rank : 0; exitcode: -9, rank : 1"), 1, 0, 0),  # ended before it could speak
        (seen("waits", launcher="rank : 1"), 0, 0, 1),
        (seen(""), 0, 0, 1),
    ],
)
def test_only_errors_name(one: Outcome, named: int, noted: int, notable: int) -> None:
    figures = counted([one])
    assert (figures.named, figures.noted, figures.survivors, figures.notable) == (named, noted, 1, notable)


def test_a_hang_is_counted_and_slowest() -> None:
    figures = counted([seen(NAMED), seen("", None)])
    assert (figures.hangs, figures.slowest, figures.median) == (1, HANG, (HANG + 0.5) / 2)


def test_who_has_nothing_to_tell_may_end_well() -> None:
    assert counted([seen("", phase="at exit")]).named == 1
    assert counted([seen("RankError: something else", phase="at exit")]).named == 0


def test_every_kind_of_kill_comes_up_as_often() -> None:
    kinds = [(k.phase, k.start, k.transport, k.victim) for k in chosen(260, 208)]
    assert {kinds.count(kind) for kind in kinds} <= {1, 2}


def test_a_parts_figures_replace_those_before_and_leave_the_others(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nText.\n")
    for name, number in (("saves", "7"), ("kills", "7"), ("saves", "8")):
        part = Part([(("a", "b"), [(f"{name} x", number)])], [(f"all {name}", number, "8", number == "8")])
        write(page, name, part, 60.0)
    text = page.read_text()
    assert text.startswith(f"# Page\n\nText.\n\n{TITLE}\n") and text.count(TITLE) == 1
    assert "| saves x | 8 |" in text and "| all saves | 8 | 8 | yes |" in text and "| saves x | 7 |" not in text
    assert text.index("| all kills | 7 | 8 | **no** |") < text.index("### Saves") and text.count("### Saves") == 1
