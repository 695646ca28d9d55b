"""From a job to plans: chains never wait in a circle, all ranks' plans fit together, and more ranks cost no more."""

from __future__ import annotations

from typing import Any

import pytest

from weft.compiler import chains, passes
from weft.compiler.lower import lower
from weft.compiler.options import Options
from weft.job.job import Job
from weft.job.text import parse
from weft.plan import parse as parse_plan
from weft.plan.verify import verify


def pipeline(stages: list[str], x_sbp: str = "B", micro: int = 4, zero_bubble: bool = False) -> Job:
    """Forward and backward through a row of placements, with updates at the end; as tracing would write it."""
    lines = [f"job pipe, {micro} micro-batches", f"%in = input() : float32[{8 * micro},4] {stages[0]} ({x_sbp})"]
    lines.append(f"%h = unpack(%in) : float32[8,4] {stages[0]} ({x_sbp}) @micro")
    h, axes = "h", x_sbp.count(",") + 1
    whole = f"({', '.join(['B'] * axes)})"
    as_sbp = "(" + "".join("sbp('B'), " for _ in range(axes)).rstrip(" ") + ")"
    for i, place in enumerate(stages):
        lines.append(f"%w{i} = variable() : float32[4,4] {place} {whole}")
        lines.append(
            f"%x{i} = to_global(%{h}, placement('{place}'), {as_sbp}) : float32[8,4] {place} {whole} @micro @stage({i})"
        )
        lines.append(f"%y{i} = matmul(%x{i}, %w{i}) : float32[8,4] {place} {whole} @micro @stage({i})")
        h = f"y{i}"
    g, forward = h, len(lines) - 1
    for i, place in reversed(list(enumerate(stages))):
        lines.append(
            f"%d{i} = to_global(%{g}, placement('{place}'), {as_sbp}) : float32[8,4] {place} {whole} @micro @stage({i})"
        )
        lines.append(f"%t{i} = transpose(%x{i}, 0, 1) : float32[4,8] {place} {whole} @micro @stage({i})")
        lines.append(f"%g{i} = matmul(%t{i}, %d{i}) : float32[4,4] {place} {whole} @micro @stage({i})")
        lines.append(f"%s{i} = accumulate(%g{i}) : float32[4,4] {place} {whole} @stage({i})")
        lines.append(f"%b{i} = matmul(%d{i}, %w{i}) : float32[8,4] {place} {whole} @micro @stage({i})")
        lines.append(f"u{i}: store(%w{i}, %s{i}) @stage({i})")
        g = f"b{i}"
    job = parse("\n".join(lines) + "\n")
    job.verify()
    for node in job.nodes[forward:]:
        node.extra["backward"] = True
    passes.apply(job, Options(micro_batches=micro, zero_bubble=zero_bubble))
    return job


SHAPES: dict[str, tuple[list[str], int]] = {
    "one stage": (["cpu:[0]"], 1),
    "two stages": (["cpu:[0]", "cpu:[1]"], 2),
    "2x2": (["cpu:[0,1]", "cpu:[2,3]"], 4),
    "four stages": ([f"cpu:[{i}]" for i in range(4)], 4),
    "back again": (["cpu:[0]", "cpu:[1]", "cpu:[0]", "cpu:[1]"], 2),
    "overlapping": (["cpu:[0,1]", "cpu:[1,2]"], 3),
}


@pytest.fixture(params=SHAPES)
def case(request: pytest.FixtureRequest) -> tuple[Job, int]:
    stages, world = SHAPES[request.param]
    return pipeline(stages), world


def test_plans_of_all_ranks_fit_together(case: tuple[Job, int]) -> None:
    job, world = case
    lowered = [lower(job, rank, world, Options(micro_batches=4)) for rank in range(world)]
    verify([each.plan for each in lowered])
    assert len({each.plan.hash for each in lowered}) == 1
    for each in lowered:
        assert parse_plan(str(each.plan)) == each.plan


def test_edges_between_chains_lead_deeper(case: tuple[Job, int]) -> None:
    job, _ = case
    chains_of = chains.assign(job)
    made = {v: keys[-1] for n, keys in chains_of.items() for v in n.outputs}
    for node, keys in chains_of.items():
        for v in node.operands():
            if v in made and made[v] != keys[0]:
                assert made[v].depth < keys[0].depth, f"{made[v]} -> {keys[0]} at {node.name}"


def work(world: int) -> tuple[int, ...]:
    """How much one rank's plan holds when the ranks are shared out into two stages."""
    half = world // 2
    places = ["cpu:[" + ",".join(map(str, range(a, a + half))) + "]" for a in (0, half)]
    low: Any = lower(pipeline(places), 0, world, Options(micro_batches=4))
    nodes = sum(len(t.step.calls) for t in low.plan.tasks)
    return len(low.plan.tasks), len(low.plan.registers), nodes


def test_more_ranks_make_no_larger_plan() -> None:
    assert work(4) == work(16) == work(256)


def test_quotas_grow_with_the_distance_to_the_last_stage() -> None:
    job = pipeline(SHAPES["four stages"][0])
    stash = []
    for rank in (1, 2):  # the first reads what it needs for backward from the inputs
        plan = lower(job, rank, 4, Options(micro_batches=4)).plan
        names = {t.id: t for t in plan.tasks}
        own = [
            r.copies for r in plan.registers
            if r.dtype and r.producer in names and all(c in names for c in r.consumers)
            and names[r.producer].acts == 4 and all(names[c].acts == 4 for c in r.consumers)
        ]  # fmt: skip
        stash.append(max(own))
    assert stash == [3, 2]
