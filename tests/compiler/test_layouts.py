"""The layouts of all nodes at once: as good as the best of all combinations, and the same values."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as flow
from weft import nn
from weft.compiler.options import Options
from weft.compiler.passes import apply, layouts, memory_budget
from weft.compiler.passes.layouts import Problem, _Program
from weft.job.movements import movements
from weft.job.text import parse
from weft.launch import spawn_threads
from weft.ops import OPS

S, B, partial = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
AUTO = Options(auto_parallel=True)

WIDE = """job wide
%h = input() : float32[4096,64] cpu:[0,1] (S(1))
%w = input() : float32[64,4096] cpu:[0,1] (S(0))
%m = matmul(%h, %w) : float32[4096,4096] cpu:[0,1] (P)
%y = relu(%m) : float32[4096,4096] cpu:[0,1] (S(0))
out: output(%y)
"""


def test_a_wide_product_is_split_rather_than_summed() -> None:
    job = parse(WIDE)
    layouts.run(job, AUTO)
    (product,) = [n for n in job.nodes if n.op == "matmul"]
    assert product.outputs[0].spec is not None and product.outputs[0].spec.nd_sbp == (S(0),)
    assert any("%m" in line and "traced as (S(1)), (S(0)) -> (P)" in line for line in job.reasons)
    apply(job, AUTO)
    steps = [n.args[1] for n in job.nodes if n.op == "boxing"]
    assert steps == ["all_to_all(axis=0, from_dim=1, to_dim=0)", "all_gather(axis=0, dim=0)"]  # 0.8 MB instead of 33.6


def test_nothing_is_chosen_unless_asked_for() -> None:
    job = parse(WIDE)
    layouts.run(job, Options())
    assert [n.op for n in job.nodes] == [n.op for n in parse(WIDE).nodes] and not job.reasons


def test_ranks_that_add_in_another_order_find_the_same_cost() -> None:
    rows = [
        f"%x{n} = input() : float32[{n},64] cpu:[0,1] (S(1))\n"
        f"%sum{n} = sum(%x{n}, (1,), True) : float32[{n},1] cpu:[0,1] (P)\n"
        f"%y{n} = relu(%sum{n}) : float32[{n},1] cpu:[0,1] (S(0))\n"
        f"out{n}: output(%y{n})\n"
        for n in range(64, 224, 32)
    ]
    jobs = [parse("job many\n" + "".join(rows)) for _ in range(30)]  # values are kept by their addresses
    problems = list(map(Problem.of, jobs))
    assert len({p.seconds(p.traced()) for p in problems}) == 1
    reads = [[n for n in job.nodes if n.op in OPS] for job in jobs]
    assert len({memory_budget.total(set(nodes)) for nodes in reads}) == 1


def brute(problem: Problem) -> tuple[float, float]:
    """The least time, and the least memory of what takes about as long."""
    every = [*map(list, itertools.product(*(range(len(f.candidates)) for f in problem.free)))]
    seconds = [*map(problem.seconds, every)]
    least = min(seconds)
    return least, min(problem.held(c) for c, s in zip(every, seconds, strict=True) if s <= least * 1.001 + 1e-12)


LAYOUTS = st.sampled_from(["S(0)", "S(1)", "B"])


@st.composite
def programs(draw: Any) -> str:
    """A few ops over matrices of several sizes, each reading what stands before it."""
    sizes = draw(st.lists(st.sampled_from([4, 64, 2048]), min_size=2, max_size=3))
    lines, shapes = [], {}
    for i in range(draw(st.integers(1, 2))):
        shape = (draw(st.sampled_from(sizes)), draw(st.sampled_from(sizes)))
        shapes[f"x{i}"] = shape
        lines.append(f"%x{i} = input() : float32[{shape[0]},{shape[1]}] cpu:[0,1] ({draw(LAYOUTS)})")
    for i in range(draw(st.integers(1, 4))):
        name, (m, n) = draw(st.sampled_from(sorted(shapes.items())))
        kind = draw(st.sampled_from(["relu", "transpose", "matmul", "add", "sum"]))
        if kind == "matmul":
            fits = [k for k, s in sorted(shapes.items()) if s[0] == n]
            other = draw(st.sampled_from(fits)) if fits else None
            shape, text = ((m, shapes[other][1]), f"matmul(%{name}, %{other})") if other else ((m, n), f"relu(%{name})")
        elif kind == "add":
            other = draw(st.sampled_from([k for k, s in sorted(shapes.items()) if s == (m, n)]))
            shape, text = (m, n), f"add(%{name}, %{other})"
        elif kind == "sum":
            shape, text = (m, 1), f"sum(%{name}, (1,), True)"
        elif kind == "transpose":
            shape, text = (n, m), f"transpose(%{name}, 0, 1)"
        else:
            shape, text = (m, n), f"relu(%{name})"
        shapes[f"y{i}"] = shape
        lines.append(f"%y{i} = {text} : float32[{shape[0]},{shape[1]}] cpu:[0,1] (B)")
    return "\n".join(["job drawn", *lines, f"out: output(%{max(shapes)})", ""])


@given(programs())
def test_it_is_the_best_of_all_combinations(text: str) -> None:
    problem = Problem.of(parse(text))
    if math.prod(len(f.candidates) for f in problem.free) > 3000:
        return
    best, held = brute(problem)
    chosen = problem.solve()
    assert problem.seconds(chosen) <= best * 1.04 + 1e-12
    assert problem.held(chosen) <= held * 1.02
    assert problem.seconds(problem.improved(problem.traced())) <= problem.seconds(problem.traced())


def test_a_small_job_on_a_grid_gets_the_best_of_all_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one axis after the other would take nearly twice as long."""
    problem = Problem.of(
        parse("""job crossed
%x0 = input() : float32[4,2048] cpu:[[0,1],[2,3]] (B, S(1))
%x1 = input() : float32[4,4] cpu:[[0,1],[2,3]] (B, S(1))
%y0 = matmul(%x1, %x0) : float32[4,2048] cpu:[[0,1],[2,3]] (S(1), S(0))
%y1 = relu(%x1) : float32[4,4] cpu:[[0,1],[2,3]] (B, B)
%y2 = relu(%y1) : float32[4,4] cpu:[[0,1],[2,3]] (B, B)
out: output(%y2)
""")
    )
    least = min(map(problem.seconds, map(list, itertools.product(*(range(len(f.candidates)) for f in problem.free)))))
    assert problem.seconds(problem.solve()) <= least * 1.04
    monkeypatch.setattr(layouts, "TOGETHER", 0)
    assert problem.seconds(problem.solve()) > least * 1.3


@pytest.mark.parametrize(("grid", "axes"), [("[[0,1],[2,3]]", 2), ("[[0,1]]", 1), ("[[[0],[1]]]", 1)])
def test_axes_of_a_grid_are_chosen_one_after_the_other(grid: str, axes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together their layouts are so many that a small model took minutes."""
    monkeypatch.setattr(layouts, "TOGETHER", 0)
    whole, sizes = "B, " * (grid.count("[[[") + 1), list[int]()
    least = _Program.least
    monkeypatch.setattr(_Program, "least", lambda self, costs: (sizes.append(len(costs)), least(self, costs))[1])
    rows = f"""job grid
%x = input() : float32[2048,64] cpu:{grid} ({whole}S(1))
%w = input() : float32[64,2048] cpu:{grid} ({whole}B)
%m = matmul(%x, %w) : float32[2048,2048] cpu:{grid} ({whole}B)
%r = relu(%m) : float32[2048,2048] cpu:{grid} ({whole}B)
%s = sum(%r, (1,), True) : float32[2048,1] cpu:{grid} ({whole}B)
out: output(%s)
"""
    problem = Problem.of(parse(rows))
    chosen = problem.solve()
    assert len(sizes) == 2 * axes  # for time, then for memory
    together = _Program(problem)
    assert max(sizes) * 5 < len(together.costs)
    assert problem.seconds(chosen) <= problem.seconds(together.solved(problem.traced())) * 1.04


def test_what_moves_is_told() -> None:
    job = parse(WIDE)
    apply(job, Options())
    total, *lines = movements(job).splitlines()
    chosen = parse(WIDE)
    apply(chosen, AUTO)
    assert movements(chosen).split()[:2] == ["786.4", "KB"]
    assert total.split()[:2] == ["33.6", "MB"] and any("%m cpu:[0,1] (P) -> cpu:[0,1] (S(0))" in line for line in lines)
    (relu,) = [line for line in lines if line.startswith("  33.6 MB")]
    assert "for %y: relu, which runs as (S(0)) -> (S(0)) (" in relu and "the next best, (S(1)) -> (S(1)), takes" in relu
    matmul, _ = [line for line in movements(chosen).splitlines() if ": matmul, which runs as" in line]
    ran, instead = r"as \(S\(0\)\), \(B\) -> \(S\(0\)\) ", r"; by itself \(S\(1\)\), \(S\(0\)\) -> \(P\) would take"
    assert re.search(f"{ran}.*{instead}", matmul)


class Block(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Train(nn.Graph):
    def __init__(self, model: nn.Module, auto: bool) -> None:
        super().__init__()
        self.model = model
        self.config.enable_auto_parallel(auto)
        self.config.set_gradient_accumulation_steps(2)
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


@pytest.mark.parametrize("grid", [[0, 1], [[0, 1], [2, 3]]], ids=["two", "grid"])
def test_it_trains_as_it_would_have(grid: list[Any]) -> None:
    def main() -> None:
        P = flow.placement("cpu", grid)
        flat = (B,) * P.ranks.ndim
        losses = []
        for auto in (False, True):
            flow.manual_seed(0)
            model = nn.Sequential(Block(8), Block(8)).to_global(placement=P, sbp=flat)
            x = flow.randn(16, 8, placement=P, sbp=(S(0), *flat[1:]))
            graph = Train(model, auto)
            losses.append([graph(x).numpy() for _ in range(3)])
            graph.job.verify()
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)

    spawn_threads(np.array(grid).size, main, deadline=60)
