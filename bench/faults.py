"""`python -m bench.faults [--only NAME ...] [--quick] [--most N]`: count what faults do, write it to docs/faults.md."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import importlib.util
import io
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.kills import EARLY, FORKED, HANG, REAL, THREADS, TRANSPORTS, Figures, Outcome, counted, kills
from bench.measure import VERDICTS, marked_down
from bench.victims import PHASES
from weft.launch import spawn, spawn_threads

PAGE = Path(__file__).parent.parent / "docs" / "faults.md"
TITLE = "## Figures"
SOON = 2.0  # seconds until the slowest survivor must have ended
BY_HAND = 5.0  # the same where ranks started by hand never met
QUICK = 50  # divides the counts of --quick
REAL_SHARE = 20  # one of so many kills is of a run in new processes


@dataclass(frozen=True)
class Part:
    """Figures of one kind: tables, and verdicts of (what, found, must be, whether it is)."""

    tables: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]
    verdicts: Sequence[tuple[str, str, str, bool | None]]


# ---- kills -------------------------------------------------------------------------------------------------------

KILL_HEAD = ("", "kills", "hangs", "median", "slowest", "name the rank", "name the op", "left behind")


def killed(most: int, console: Console) -> Part:
    """Make `most` kills, over all phases, starts and transports."""
    real = most // REAL_SHARE
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("kills", total=most)
        seen = kills(most - real, real, on_seen=lambda one: progress.advance(task))
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


def kill_verdicts(seen: Sequence[Outcome], most: int) -> list[tuple[str, str, str, bool | None]]:
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
        ("ended by torchrun, which names the rank, before they could speak", str(every.silenced), "", None),
        ("processes, ports, files, memory left behind", str(every.left), "0", every.left == 0),
    ]


# ---- what other modules count ------------------------------------------------------------------------------------

Verdict = tuple[str, str, str, bool | None]
BATCH, BATCH_TIME = 2000, 600.0  # calls of a fuzz per process, and seconds that it may take
DIVERGENCES = "tests.faults.divergences"
DIVERGENCES_FILE = str(Path(__file__).parent.parent / "tests" / "faults" / "divergences.py")


def saved(most: int, console: Console) -> Part:
    saves = importlib.import_module("bench.saves")
    torn, flipped = saves.torn_saves(most), saves.flipped_saves(most)
    return Part((), [
        ("saves killed", ", ".join(f"{name} {n}" for name, n in torn.items()), "", None),
        ("checkpoints lost", str(torn["lost"]), "0", torn["lost"] == 0),
        ("files left after the next save", str(torn["leftovers"]), "0", torn["leftovers"] == 0),
        ("bits flipped", str(flipped["flipped"]), f">= {most}", flipped["flipped"] >= most),
        ("noticed", str(flipped["noticed"]), "all", flipped["noticed"] == flipped["flipped"]),
    ])  # fmt: skip


def diverged(most: int, console: Console) -> Part:
    """Try each kind of divergence over each transport; `most` limits the kinds."""
    divergences = importlib.import_module(DIVERGENCES)
    kinds = [*divergences.CALLS, *divergences.PROGRAMS][:most]
    rows, faults = [], []
    for transport in ("threads", *TRANSPORTS):
        found = [row for check in ("", "1") for row in _calls(divergences, transport, check)]
        found += [row for d in divergences.PROGRAMS if d in kinds for row in _program(divergences, transport, d)]
        tried, wrong = 0, 0
        for d in kinds:
            own = [row for row in found if row["name"] == d.name]
            said = [divergences.fault(d, row["rank"], row, transport == "c10d") for row in own]
            bad = [words for words in said if words] if own else [f"{d.name}: no rank reached it"]
            faults += [f"{transport}: {words}" for words in bad]
            tried, wrong = tried + 1, wrong + bool(bad)
        rows.append([transport, str(tried), str(tried - wrong)])
    for words in faults:
        console.print(words, style="red")
    count, named = (sum(int(row[i]) for row in rows) for i in (1, 2))
    return Part(
        [(("transport", "kinds of divergence", "named by every rank"), rows)],
        [("divergences named", f"{named} of {count}", "all", named == count)],
    )


def _calls(divergences: Any, transport: str, check: str) -> list[dict[str, Any]]:
    if transport == "threads":
        with contextlib.redirect_stdout(io.StringIO()):
            return [
                row
                for rows in spawn_threads(divergences.WORLD, divergences.try_calls, check, deadline=30.0)
                for row in rows
            ]
    return _lines(divergences.WORLD, "try_calls", transport, check, check)


def _program(divergences: Any, transport: str, d: Any) -> list[dict[str, Any]]:
    env = {"WEFT_CHECK": d.check, "WEFT_CHECK_EVERY": "2"}
    if transport != "threads":
        return _lines(2, "try_program", transport, d.check, d.name)
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return [row for rows in spawn_threads(2, divergences.try_program, d.name, deadline=30.0) for row in rows]
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _lines(n: int, name: str, transport: str, check: str, *args: str) -> list[dict[str, Any]]:
    env = {"WEFT_DEADLINE": "30", "WEFT_CHECK": check, "WEFT_CHECK_EVERY": "2"}
    ended = spawn(n, f"{DIVERGENCES_FILE}:{name}", *args, transport=transport, env=env, check=False)
    return [json.loads(line) for one in ended for line in one.out.splitlines() if line.startswith("{")]


def soaked(most: int, console: Console) -> Part:
    """`most` graphs compiled and dropped, and a hundred times as many launches."""
    soak = importlib.import_module("bench.soak")
    rows = []
    for transport in soak.TRANSPORTS:  # this takes hours: print rows as they are known
        rows += soak.rows(most, 100 * most, (transport,))
        for row in rows[-len(soak.parts(1, 1)) :]:
            console.print(str(row))
    names = rows[0].began._fields
    table = [
        [row.transport, row.part, f"{row.times:,}", *(f"{n:+,}" for n in row.grown()), f"{row.seconds:.0f} s"]
        for row in rows
    ]
    flat = sum(row.flat() for row in rows)
    return Part(
        [(("transport", "what", "times", *names, "in"), table)],
        [
            ("graphs compiled and dropped, launches a hundred times as many", f"{most:,}", ">= 10,000", most >= 10_000),
            ("parts that stay flat", f"{flat} of {len(rows)}", "all", flat == len(rows)),
        ],
    )


def fuzzed(most: int, console: Console) -> Part:
    """Fuzz in batches, each in a new process: a crash or a hang loses one batch."""
    ends: Counter[str] = Counter()
    for seed, begin in enumerate(range(0, most, BATCH)):
        command = [sys.executable, "-m", "bench.fuzz", str(min(BATCH, most - begin)), str(seed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BATCH_TIME, cwd=PAGE.parent.parent)
            *shown, last = done.stdout.splitlines() or [""]
            ends += Counter(json.loads(last) if done.returncode == 0 else {"crashes": 1})
            for line in shown:
                console.print(line, style="red")
            if done.returncode:
                console.print(f"fuzz with seed {seed}: {done.returncode}\n{done.stderr[-2000:]}", style="red")
        except subprocess.TimeoutExpired:
            ends["hangs"] += 1
    calls = sum(n for name, n in ends.items() if name not in ("unexplained", "crashes", "hangs"))
    verdicts: list[Verdict] = [("calls", f"{calls:,}", f">= {most:,}", calls >= most)]
    verdicts += [(name, f"{n:,}", "", None) for name, n in sorted(ends.items()) if name not in WRONG]
    return Part((), verdicts + [(WRONG[name], str(ends[name]), "0", ends[name] == 0) for name in WRONG])


WRONG = {
    "raw": "errors that no page describes", "unexplained": "ends without a reason", "crashes": "batches that crashed",
    "hangs": "batches that hung",
}  # fmt: skip


# Parts by name: the default count, the function, and the module that it needs.
PARTS: dict[str, tuple[int, Callable[[int, Console], Part], str]] = {
    "kills": (1000, killed, "bench.kills"),
    "saves": (1000, saved, "bench.saves"),
    "divergences": (1000, diverged, DIVERGENCES),
    "soak": (10_000, soaked, "bench.soak"),
    "fuzz": (100_000, fuzzed, "bench.fuzz"),
}


def main(words: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    options.add_argument(
        "--quick", action="store_true", help=f"1/{QUICK} of the counts, and docs/faults.md stays as it is"
    )
    options.add_argument("--most", type=int, metavar="N", help="the count of each part")
    given = options.parse_args(words)
    console = Console(width=150)
    for name in given.only:
        count, part, needed = PARTS[name]
        if importlib.util.find_spec(needed) is None:
            console.print(f"{name}: skipped, as {needed} is missing", style="red")
            continue
        most = given.most or (count // QUICK if given.quick else count)
        start = time.monotonic()
        found, seconds = part(max(1, most), console), time.monotonic() - start
        show(name, found, seconds, console)
        if not given.quick:
            write(PAGE, name, found, seconds)


def show(name: str, part: Part, seconds: float, console: Console) -> None:
    for head, rows in (*part.tables, verdict_table(part)):
        table = Table(*head, title=f"{name}, {seconds:.0f} s")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def verdict_table(part: Part) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    return ("", "counted", "must be", "is"), [(*line[:3], VERDICTS[line[3]]) for line in part.verdicts]


def section(name: str, part: Part, seconds: float) -> str:
    machine = f"{os.cpu_count()} cores, torch {torch.__version__}, Python {platform.python_version()}"
    lines = [
        f"### {name.capitalize()}",
        "",
        f"{datetime.date.today().isoformat()}, {machine}: {seconds / 60:.1f} minutes.",
    ]
    for head, rows in (verdict_table(part), *part.tables):
        lines += ["", *marked_down(head, rows)]
    return "\n".join(lines) + "\n"


def write(page: Path, name: str, part: Part, seconds: float) -> None:
    """Replace a part's figures at the end of the page."""
    before, _, after = page.read_text().partition(f"\n{TITLE}\n")
    known = {text.partition("\n")[0].lower(): "### " + text for text in after.split("### ")[1:]}
    known[name] = section(name, part, seconds)
    figures = "\n".join(known[n].rstrip("\n") + "\n" for n in PARTS if n in known)
    page.write_text(f"{before.rstrip()}\n\n{TITLE}\n\nCounted by `python -m bench.faults`.\n\n{figures}")


if __name__ == "__main__":
    main()
