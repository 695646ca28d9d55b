"""`python -m bench [--only NAME ...] [--quick]`: measure, print, write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from bench import costs, derived, gpu, memory, one_rank, pipelines, slow_link, two_ranks, zero
from bench.gpu import GPU
from bench.measure import Row, marked_down

GROUPS: dict[str, Callable[[bool], list[Row]]] = {
    "ops": one_rank.ops,
    "eager": one_rank.eager,
    "gradients": one_rank.gradients,
    "layers": one_rank.layers,
    "derived": derived.rows,
    "graphs": one_rank.graphs,
    "threads": one_rank.threads,
    "memory": memory.memory,
    "zero": zero.zero,
    "global": two_ranks.ops,
    "all_reduce": two_ranks.all_reduce,
    "data_parallel": two_ranks.data_parallel,
    "pipelines": pipelines.rows,
    "slow_link": slow_link.rows,
    "actors": costs.actors,
    "worlds": costs.worlds,
    "imports": costs.imports,
    "gpu": gpu.rows,
}
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
ON_GPU = "## On a GPU"
HEADLINE = """# Benchmarks

Written by `make bench` (`python -m bench`). Each pair was measured in turn, in one run; every figure is the
least of its repeats. Ratios tell more than microseconds: the machine is small and others use it too.
"""
NOTES = """Where a bound is written `>=`, the ratio is the reference's time over Weft's; else Weft's over the other's.
torch.compile has torch's fused optimizers; torch's eager steps, DDP's too, have the optimizers as they come."""
HEAD = ("case", "reference", "Weft", "ratio", "must be", "holds")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", choices=tuple(GROUPS), default=tuple(GROUPS))
    options.add_argument("--quick", action="store_true", help="fewer repeats, and docs/benchmarks.md stays as it is")
    options.add_argument(
        "--threads",
        type=int,
        default=1,
        help="torch's threads in one process, for both sides, but in the group of that name",
    )
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    console = Console(width=150)
    rows: list[Row] = []
    for name in given.only:
        with console.status(name):
            found = GROUPS[name](given.quick)
        rows += found
        console.print(f"{name}: {f'done, the last is {found[-1].case}' if found else 'nothing here'}", style="dim")
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*row.texts())
    console.print(table)
    if not given.quick and rows and set(given.only) in ({*GROUPS}, {"gpu"}):
        PAGE.write_text(page(rows, given.threads, PAGE.read_text()))
        console.print(f"written to {PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}")


def page(rows: list[Row], threads: int, before: str) -> str:
    """The page with these rows. Those of a GPU have a section, which stays as it is where there is none."""
    here, _, there = before.partition(f"\n{ON_GPU}\n")
    gpu = [row for row in rows if row.case.startswith(GPU)]
    if len(gpu) < len(rows):
        cpu = f"{platform.system()} {platform.machine()} with {torch.backends.cpu.get_cpu_capability()}"
        lines = [HEADLINE, machine(threads, cpu), "", NOTES, ""]
        here = "\n".join(lines + marked_down(HEAD, [row.texts() for row in rows if row not in gpu])) + "\n"
    if gpu:
        named = [row._replace(case=row.case.removeprefix(GPU)).texts() for row in gpu]
        head = f"Written by `python -m bench --only gpu`.\n{machine(threads, torch.cuda.get_device_name())}\n"
        there = "\n".join(["", head, *marked_down(HEAD, named)]) + "\n"
    return f"{here}\n{ON_GPU}\n{there}" if there else here


def machine(threads: int, where: str) -> str:
    now, s = datetime.date.today().isoformat(), "s" * (threads != 1)
    return (
        f"{now}, {os.cpu_count()} cores, {threads} torch thread{s} per process, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {where}."
    )


if __name__ == "__main__":
    main()
