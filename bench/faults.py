"""`python -m bench.faults [--only NAME ...] [--quick] [--most N]`: what faults do, counted, into docs/faults.md."""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.kills import EARLY, FORKED, HANG, REAL, THREADS, TRANSPORTS, Figures, Seen, counted, kills
from bench.victims import PHASES

PAGE = Path(__file__).parent.parent / "docs" / "faults.md"
TITLE = "## Figures"
SOON, BY_HAND = (
    2.0,
    5.0,
)  # seconds until the slowest survivor has ended; where ranks that are started by hand never meet
QUICK = 50  # times fewer
REAL_SHARE = 20  # of so many kills, one is of a run that starts from nothing
VERDICTS = {True: "yes", False: "**no**", None: ""}


@dataclass(frozen=True)
class Part:
    """Some figures: tables, and lines of (what, found, must be, whether it is)."""

    tables: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]
    verdicts: Sequence[tuple[str, str, str, bool | None]]


# ---- kills -------------------------------------------------------------------------------------------------------

KILL_HEAD = ("", "kills", "hangs", "median", "slowest", "name the rank", "name the op", "left behind")


def killed(most: int, console: Console) -> Part:
    """`most` kills: all phases, all starts, all transports."""
    real = most // REAL_SHARE
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("kills", total=most)
        seen = kills(most - real, real, told=lambda one: progress.advance(task))
    for one in seen:
        if one.failed:
            console.print(f"{one.kill}: {one.failed}", style="red")
    seen = [one for one in seen if not one.failed]
    starts = [(start, transport) for start in (*FORKED, *REAL) for transport in TRANSPORTS] + [(THREADS, "local")]
    by_start = [
        (f"{start}, {transport}", [s for s in seen if (s.kill.start, s.kill.transport) == (start, transport)])
        for start, transport in starts
    ]
    by_phase = [(phase, [s for s in seen if s.kill.phase == phase]) for phase in PHASES]
    tables = [
        ((name, *KILL_HEAD[1:]), [kill_row(label, counted(some)) for label, some in rows if some])
        for name, rows in (("start, transport", by_start), ("phase", by_phase))
    ]
    return Part(tables, kill_verdicts(seen, most))


def kill_row(label: str, f: Figures) -> list[str]:
    slowest = f"{f.slowest:.2f} s" if f.slowest < HANG else "**hangs**"
    noted = f"{f.noted} of {f.notable}" if f.notable else ""
    return [
        label, str(f.kills), str(f.hangs), f"{f.median:.2f} s", slowest, f"{f.named} of {f.survivors}", noted,
        str(f.left),
    ]  # fmt: skip


def kill_verdicts(seen: Sequence[Seen], most: int) -> list[tuple[str, str, str, bool | None]]:
    early = [s for s in seen if s.kill.phase in EARLY and s.kill.start in (*FORKED, "by hand")]
    other = [s for s in seen if s not in early]
    every, first, rest = counted(seen), counted(early), counted(other)
    return [
        ("kills", str(every.kills), f">= {most}", every.kills >= most),
        ("hangs", str(every.hangs), "0", every.hangs == 0),
        ("slowest survivor", f"{rest.slowest:.2f} s", f"<= {SOON:g} s", rest.slowest <= SOON),
        ("slowest at start-up by hand", f"{first.slowest:.2f} s", f"<= {BY_HAND:g} s", first.slowest <= BY_HAND),
        ("survivors that name the rank", f"{every.named} of {every.survivors}", "all", every.named == every.survivors),
        ("survivors that name its op", f"{every.noted} of {every.notable}", "all", every.noted == every.notable),
        ("processes, ports, files, memory left behind", str(every.left), "0", every.left == 0),
    ]


# ---- what other modules count ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Elsewhere:
    """A part that `module` counts: its functions, called with how many, give mappings of names to numbers.

    `bounds` says of a name what its number must be; every name is shown.
    """

    module: str
    functions: Sequence[str]
    bounds: dict[str, tuple[str, Callable[[Any], bool]]]

    def __call__(self, most: int, console: Console) -> Part:
        if importlib.util.find_spec(self.module) is None:
            console.print(f"there is no {self.module} to count with", style="red")
            return Part((), [(f"{name} ({self.module})", "not counted", "", None) for name in self.functions])
        module, lines = importlib.import_module(self.module), []
        for function in self.functions:
            for name, value in getattr(module, function)(most).items():
                bound, holds = self.bounds.get(name, ("", None))
                lines.append((name, str(value), bound, holds(value) if holds else None))
        return Part((), lines)


NONE = ("0", lambda value: value == 0)

# What is counted, how often, and how.
PARTS: dict[str, tuple[int, Callable[[int, Console], Part]]] = {
    "kills": (1000, killed),
    "saves": (1000, Elsewhere("bench.saves", ("torn_saves", "flipped_saves"), {"lost": NONE, "leftovers": NONE})),
    "divergences": (36, Elsewhere("bench.divergences", ("divergences",), {"unnamed": NONE})),
    "soak": (10_000, Elsewhere("bench.soak", ("soak",), {})),
    "fuzz": (100_000, Elsewhere("bench.fuzz", ("fuzz",), {"undocumented": NONE, "crashes": NONE, "hangs": NONE})),
}


def main(words: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    options.add_argument("--quick", action="store_true", help=f"{QUICK} times fewer, and docs/faults.md stays as it is")
    options.add_argument("--most", type=int, metavar="N", help="so many of each, and docs/faults.md stays as it is")
    given = options.parse_args(words)
    console = Console(width=150)
    found: dict[str, tuple[Part, float]] = {}
    for name in given.only:
        count, part = PARTS[name]
        most = given.most or (count // QUICK if given.quick else count)
        start = time.monotonic()
        found[name] = part(max(1, most), console), time.monotonic() - start
        show(name, *found[name], console)
    if not (given.quick or given.most) and set(given.only) == set(PARTS):
        write(PAGE, section(found))


def show(name: str, part: Part, seconds: float, console: Console) -> None:
    for head, rows in (*part.tables, verdict_table(part)):
        table = Table(*head, title=f"{name}, {seconds:.0f} s")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def verdict_table(part: Part) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    return ("", "counted", "must be", "is"), [(*line[:3], VERDICTS[line[3]]) for line in part.verdicts]


def section(found: dict[str, tuple[Part, float]]) -> list[str]:
    machine = f"{os.cpu_count()} cores, torch {torch.__version__}, Python {platform.python_version()}"
    lines = [
        TITLE, "", "Counted by `python -m bench.faults`.",
        f"{datetime.date.today().isoformat()}, {machine}, {platform.system()} {platform.machine()}.",
    ]  # fmt: skip
    for name, (part, seconds) in found.items():
        lines += ["", f"### {name.capitalize()}", "", f"In {seconds / 60:.1f} minutes."]
        for head, rows in (verdict_table(part), *part.tables):
            lines += ["", *marked_down(head, rows)]
    return lines


def marked_down(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def write(page: Path, lines: Sequence[str]) -> None:
    """The section, at the end of the page, in place of the one before."""
    before = page.read_text().partition(f"\n{TITLE}\n")[0]
    page.write_text(before.rstrip("\n") + "\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
