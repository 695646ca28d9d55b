"""A launch's schedule as a table and as a picture: what each rank does when, and its bubbles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from weft.simulator.simulate import Timeline, chart

COLOURS: Final = {"F": "#7fb2e5", "B": "#8fcf9f", "W": "#f2c572"}
WORDS: Final = {"F": "forward", "B": "backward: gradients of inputs", "W": "backward: gradients of weights"}
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
HIGH, UNIT, LEFT = 22, 26, 64  # a row, a unit of time and the ranks' names in the picture, in pixels


class Part(NamedTuple):
    """A part of an act: forward (F), the gradients of inputs (B), or of weights (W), of a micro-batch. `stage` is a
    letter, if a rank has several stages."""

    start: float
    end: float
    kind: str
    micro_batch: int
    stage: str

    @property
    def label(self) -> str:
        return f"{self.kind}{self.micro_batch}{self.stage}"


class Schedule:
    """The schedule of a pipeline: `rows` by the ranks' names. Other tasks than its stages take no time, and aren't
    shown."""

    def __init__(self, rows: Mapping[str, list[Part]], title: str = "") -> None:
        self.rows, self.title = rows, title

    @property
    def span(self) -> float:
        return max((p.end for parts in self.rows.values() for p in parts), default=0.0)

    @property
    def unit(self) -> float:
        """The time of the shortest part."""
        return min((p.end - p.start for parts in self.rows.values() for p in parts), default=1.0)

    @property
    def pause(self) -> float:
        """The idle time of the busiest rank: the pipeline's bubble."""
        return self.span - max((sum(p.end - p.start for p in parts) for parts in self.rows.values()), default=0.0)

    @property
    def bubble(self) -> float:
        """The bubble as a fraction of the whole time."""
        return self.pause / self.span if self.span else 0.0

    def __str__(self) -> str:
        if not self.span:
            return "no task works on micro-batches: set_gradient_accumulation_steps() makes some"
        unit = self.unit
        columns = round(self.span / unit)
        rows = [(name, [(p.start, p.end, p.label) for p in parts]) for name, parts in self.rows.items()]
        whole = f"{columns} units, of which the busiest rank pauses {round(self.pause / unit)} ({self.bubble:.0%})"
        return f"{chart(rows, unit, columns)}\n{whole}"

    def svg(self) -> str:
        """The schedule as an SVG picture."""
        return pictures([self])


def of(timeline: Timeline, names: Mapping[int, str], roles: Mapping[str, str], title: str = "") -> Schedule:
    """The schedule of a simulated launch. `roles` maps tasks to the letters of their parts; `names` are those of the
    ranks."""
    stages: dict[tuple[int, str], str] = {}
    for rank in names:
        own = [t.name for t in timeline.tasks if t.rank == rank and t.name in roles]
        ahead = [n for n in own if "F" in roles[n]]
        back = [n for n in own if "B" in roles[n]][::-1]
        late = [n for n in own if "W" in roles[n]][::-1]
        for group in (ahead, back, late) if len(ahead) > 1 else ():
            stages |= {(rank, n): LETTERS[i % 26] for i, n in enumerate(group)}
    rows: dict[str, list[Part]] = {name: [] for name in names.values()}
    for act in timeline.acts:
        kinds = roles.get(act.task, "")
        step = (act.end - act.start) / max(len(kinds), 1)
        for i, kind in enumerate(kinds):  # none on a rank without work, which has no row
            stage = stages.get((act.rank, act.task), "")
            rows[names[act.rank]].append(Part(act.start + i * step, act.start + (i + 1) * step, kind, act.act, stage))
    return Schedule(rows, title)


def pictures(schedules: list[Schedule]) -> str:
    """Several schedules as one picture, one below the other, on one clock."""
    body: list[str] = []
    y = 4
    for s in schedules:
        unit = s.unit
        body.append(f'<text x="4" y="{y + 15}" class="t">{s.title}: {s.span / unit:.0f} units, '
                    f"the busiest rank pauses {s.pause / unit:.0f} ({s.bubble:.0%})</text>")  # fmt: skip
        y += HIGH
        for name, parts in s.rows.items():
            body.append(f'<text x="4" y="{y + 15}">{name}</text>')
            for p in parts:
                x, wide = LEFT + p.start / unit * UNIT, (p.end - p.start) / unit * UNIT
                shade = 1 - 0.45 * (LETTERS.find(p.stage) % 2 == 1)
                body.append(f'<rect x="{x:g}" y="{y}" width="{wide:g}" height="{HIGH - 2}" fill="{COLOURS[p.kind]}" '
                            f'fill-opacity="{shade:g}"/><text x="{x + wide / 2:g}" y="{y + 14}" class="c">'
                            f"{p.micro_batch}</text>")  # fmt: skip
            y += HIGH
        y += 10
    x = 4
    for kind, word in WORDS.items():
        body.append(f'<rect x="{x}" y="{y}" width="16" height="16" fill="{COLOURS[kind]}"/>'
                    f'<text x="{x + 22}" y="{y + 13}">{word}</text>')  # fmt: skip
        x += 240
    width = LEFT + max((s.span / s.unit for s in schedules), default=0) * UNIT + 4
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, x):g}" height="{y + 24}" font-family="sans-serif" '
        'font-size="12"><style>.c{text-anchor:middle;font-size:11px}.t{font-weight:bold}</style>'
        '<rect width="100%" height="100%" fill="white"/>'
    )
    return "\n".join([head, *body, "</svg>"]) + "\n"
