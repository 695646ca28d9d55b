"""`python -m bench [--only NAME ...] [--quick]`: measure, print the table, write docs/benchmarks.md."""

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

from bench import costs, one_rank, two_ranks
from bench.measure import Row

GROUPS: dict[str, Callable[[bool], list[Row]]] = {
    "ops": one_rank.ops,
    "eager": one_rank.eager,
    "graphs": one_rank.graphs,
    "global": two_ranks.ops,
    "all_reduce": two_ranks.all_reduce,
    "data_parallel": two_ranks.data_parallel,
    "actors": costs.actors,
    "worlds": costs.worlds,
    "imports": costs.imports,
}
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = ("case", "reference", "Weft", "ratio", "must be", "holds")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", choices=tuple(GROUPS), default=tuple(GROUPS))
    options.add_argument("--quick", action="store_true", help="fewer repeats, and docs/benchmarks.md stays as it is")
    options.add_argument("--threads", type=int, default=1, help="torch's threads in one process, for both sides")
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    console = Console(width=150)
    rows: list[Row] = []
    for name in given.only:
        with console.status(name):
            rows += GROUPS[name](given.quick)
        for row in rows[-1:]:
            console.print(f"{name}: done, the last is {row.case}", style="dim")
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*row.texts(), "yes" if row.holds else "[red]no[/red]")
    console.print(table)
    if not given.quick and set(given.only) == set(GROUPS):
        PAGE.write_text(page(rows, given.threads))
        console.print(f"written to {PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}")


def page(rows: list[Row], threads: int) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`python -m bench`). Each pair was measured in turn, in one run; every figure is the",
    ]
    lines += [
        "least of its repeats. Ratios tell more than microseconds: the machine is small and others use it too.",
        "",
    ]
    now = datetime.date.today().isoformat()
    lines.append(
        f"{now}, {os.cpu_count()} cores, {threads} torch thread{'s' * (threads != 1)} per process, torch "
        f"{torch.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}."
    )
    lines += ["", "| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join((*row.texts(), "yes" if row.holds else "**no**")) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
