"""What ranks have in common goes into one word, which changes with any of it, and only for those who share it."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft as flow
from weft.core import fingerprints
from weft.core.errors import RankError
from weft.core.fingerprints import WORD, Fingerprints, Words
from weft.launch import spawn_threads
from weft.transport import Line, transport_of


def test_a_word_stands_for_all_numbers() -> None:
    kept = Fingerprints()
    words = Words((0, 1), kept)
    assert words.now() == 0
    seen = {words.now()}
    kept.put("draws", 1)
    seen.add(words.now())
    kept.put("draws", 2)
    seen.add(words.now())
    kept.put("drawn", 2)
    seen.add(words.now())
    kept.fold("calls", 7, "a call")
    seen.add(words.now())
    kept.fold("calls", 7, "a call")
    seen.add(words.now())
    assert len(seen) == 6 and max(seen) <= WORD
    version = kept.version
    kept.put("draws", 2)
    assert kept.version == version
    for name in ("draws", "drawn", "calls"):
        kept.drop(name)
    assert words.now() == 0


def test_a_function_is_asked_each_time() -> None:
    kept, now = Fingerprints(), [1]
    words = Words((0, 1), kept)
    kept.put("draws", lambda: now[0], lambda: f"{now[0]} draws")
    first = words.now()
    now[0] = 2
    assert words.now() != first
    assert [(name, str(entry), number) for name, entry, number in words.behind()] == [("draws", "2 draws", 2)]
    kept.put("draws", 2)
    assert not kept.asked


def test_only_those_who_share_an_entry_compare_it() -> None:
    kept = Fingerprints()
    kept.put("of two", 5, ranks=(0, 1))
    assert Words((0, 1), kept).now() and not Words((0, 2), kept).now() and not Words((0, 1, 2), kept).now()
    assert kept.among((1,)) == ["of two"]


def test_rows_are_told_by_their_latest() -> None:
    kept = Fingerprints()
    for i in range(9):
        kept.fold("calls", i, f"call {i}")
    assert str(kept.entries["calls"]) == "call 6, then call 7, then call 8"


@pytest.mark.parametrize("late", [False, True])
def test_the_next_collective_says_who_differs(late: bool) -> None:
    """An entry that one rank lacks is as much a difference."""

    def run() -> str:
        rank = flow.env.get_rank()
        flow.comm.barrier()
        if not late or rank:
            fingerprints.of().put("the seed", 100 + rank)
        with pytest.raises(RankError) as caught:
            flow.comm.all_reduce(flow.ones(2))
        return str(caught.value)

    for rank, said in enumerate(spawn_threads(2, run)):
        assert f"rank {rank} and rank {1 - rank} both call all_reduce" in said and "differ in the seed" in said
        assert f" at {Path(__file__).name}:" in said
        assert "101 on rank 1" in said and ("nothing of that kind on rank 0" if late else "100 on rank 0") in said


def test_none_goes_with_calls_in_another_order() -> None:
    """Those of a graph come when its threads come to them."""

    def run() -> None:
        fingerprints.of().put("the seed", flow.env.get_rank())
        Line(transport_of(), "a graph").group((0, 1)).barrier()

    spawn_threads(2, run)
