"""The plans of all ranks, folded: they run as the plans do, cost no more with more ranks, and what doesn't go together
is named."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.compiler.test_lower import SHAPES, pipeline
from weft.compiler.fold import fold
from weft.compiler.lower import lower
from weft.compiler.options import Options
from weft.graph.agree import together
from weft.plan.plan import Plan, parse
from weft.plan.verify import verify
from weft.simulator import simulate

OPTIONS = Options(micro_batches=4)


def plans(name: str) -> list[Plan]:
    stages, world = SHAPES[name]
    job = pipeline(stages)
    return [lower(job, rank, world, OPTIONS).plan for rank in range(world)]


@pytest.mark.parametrize("name", SHAPES)
def test_folded_plans_run_as_long_as_the_plans(name: str) -> None:
    every = plans(name)
    folded = fold(every)
    verify(folded)
    assert [parse(str(p)) for p in folded] == list(folded)
    instant = {t.name: 0.0 for p in every for t in p.tasks if t.kind != "compute"}
    whole, small = simulate(every, instant), simulate(folded, instant)
    if len(folded) > 1 or len(every) == 1:
        assert whole.span == small.span
    else:
        assert whole.span <= small.span, "ranks that share chains count as one"


def halves(world: int) -> list[str]:
    half = world // 2
    return ["cpu:[" + ",".join(map(str, range(a, a + half))) + "]" for a in (0, half)]


def test_more_ranks_fold_to_the_same() -> None:
    def seen(world: int) -> set[str]:
        job = pipeline(halves(world))
        job.name = "pipe"
        whole = [lower(job, rank, world, OPTIONS).plan for rank in range(world)]
        kinds = {str(fold([p])[0]).partition("\n")[2] for p in whole}  # the first line has the job's hash
        assert len(fold(whole)) == 2
        return kinds

    assert seen(4) == seen(16)
    assert len(seen(4)) == 2


def edited(every: list[Plan], rank: int, *changes: tuple[str, str]) -> list[Plan]:
    text = str(every[rank])
    for before, after in changes:
        assert text.count(before) == 1, f"{before!r} in\n{text}"
        text = text.replace(before, after)
    return [*every[:rank], parse(text), *every[rank + 1 :]]


CHANGES: dict[str, tuple[int, tuple[tuple[str, str], ...], str]] = {
    "copies at one end": (
        1, (("chain0-chain1.0-1: uint8[128], 2 copies", "chain0-chain1.0-1: uint8[128], 3 copies"),),
        r"chain0-chain1 has 2 copies, 0 of them full, on rank 0, and 3, 0 of them full, on rank 1",
    ),
    "acts": (1, (("chain1@1.cpu.0.0.2, 4 acts", "chain1@1.cpu.0.0.2, 2 acts"),), "chain1 acts 2 times|acts must be"),
    "nobody reads": (1, (("    reads chain0-chain1.0-1%13, ", "    reads "),), r"names as consumers \[chain1\]"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_does_not_go_together_is_named(name: str) -> None:
    every = plans("two stages")
    assert together(every) == ""
    rank, changes, says = CHANGES[name]
    said = together(edited(every, rank, *changes))
    assert said.startswith("graph pipe: the plans of its ranks, here 0, 1, don't go together: ")
    assert re.search(says, said), said


def circle(every: list[Plan]) -> list[Plan]:
    """The second stage waits for the first, and the first is made to wait for the second: each plan alone could run."""
    found = []
    for plan in every:
        lines: list[Any] = str(plan).splitlines()
        lines.insert(3, "register 9999 knot.1-0: order, 1 copy, " + (
            "chain1@1.cpu.0.0.2 -> @0.cpu.0.0.1" if plan.rank else "@1.cpu.0.0.2 -> chain0@0.cpu.0.0.1"))  # fmt: skip
        at = next(i for i, line in enumerate(lines) if line.startswith(f"compute chain{plan.rank}@"))
        verb = "    reads " if plan.rank == 0 else "    writes "
        at = next(i for i in range(at, len(lines)) if lines[i].startswith(verb))
        lines[at] += ", knot.1-0%9999"
        found.append(parse("\n".join(lines) + "\n"))
    return found


def test_a_circle_through_two_ranks_is_found_from_all_plans_only() -> None:
    knotted = circle(plans("two stages"))
    for plan in knotted:
        verify(plan)
    said = together(knotted)
    assert "the plan would stand still: this cycle holds no token" in said
    assert re.search(r"chain0 \(act \d\) waits for knot from chain1", said)
    assert re.search(r"chain1 \(act \d\) waits for chain0-chain1 from chain0", said)
