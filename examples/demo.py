"""`make demo`: the GPT of gpt.py learns to write like Python's own documentation, on two ranks, as a graph.

    python -m weft.launch --nproc_per_node 2 examples/demo.py

Each rank takes half of every batch. The training step is compiled; every so often the same parameters are evaluated
eagerly, on held-out text. At the end it draws the losses to examples/out/loss.png, and prints a sampled text.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import gpt
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import weft as flow

OUT = Path(__file__).resolve().parent / "out"
SIZE = "--graph --parallel data --layers 4 --width 128 --heads 4 --context 64 --batch 16 --steps 1500 --every 250"
PEAK, WARM_UP = 3e-3, 100  # the highest learning rate, and the steps until it is reached
PROMPT = "The "


def rate(step: int, steps: int) -> float:
    """The learning rate: linear warm-up, then cosine decay."""
    if step < WARM_UP:
        return PEAK * (step + 1) / WARM_UP
    return PEAK * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / max(1, steps - WARM_UP))))


class Curve:
    """Collects losses, and shows a progress bar on rank 0."""

    def __init__(self, steps: int, tokens: int, console: Console) -> None:
        self.tokens, self.console = tokens, console
        self.losses: list[float] = []
        self.held_out: list[tuple[int, float]] = []
        self.start = time.perf_counter()
        columns = (
            TextColumn("step {task.completed:>4}/{task.total}"), BarColumn(), TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[speed]} tokens/s"), TimeRemainingColumn(),
        )  # fmt: skip
        self.bar = Progress(*columns, console=console)
        self.task = self.bar.add_task("", total=steps, loss="-", speed="-")

    def add(self, loss: float) -> None:
        self.losses.append(loss)
        mean = np.mean(self.losses[-20:])
        speed = len(self.losses) * self.tokens / (time.perf_counter() - self.start)
        self.bar.update(self.task, completed=len(self.losses), loss=f"{mean:.3f}", speed=f"{speed:,.0f}")

    def check(self, loss: float) -> None:
        self.held_out.append((len(self.losses), loss))
        self.bar.print(f"after {len(self.losses):>4} steps: loss {loss:.3f} on text held back")

    def draw(self, path: Path, ids: np.ndarray) -> None:
        counts = np.bincount(ids)
        chances = counts[counts > 0] / counts.sum()
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        steps = np.arange(1, len(self.losses) + 1)
        window = min(25, len(steps))
        smooth = np.convolve(self.losses, np.ones(window) / window, "valid")
        axes.plot(steps, self.losses, color="#9ecae1", linewidth=0.6)
        axes.plot(
            steps[window - 1 :], smooth, color="#08519c", linewidth=1.6, label=f"training, mean of {window} steps"
        )
        if self.held_out:
            axes.plot(*zip(*self.held_out, strict=True), "o-", color="#d95f0e", markersize=4, label="text held back")
        for value, name in (
            (math.log(len(counts)), "guessing"),
            (-(chances * np.log(chances)).sum(), "knowing letters' frequencies"),
        ):
            axes.axhline(value, color="#999999", linewidth=0.8, linestyle="--")
            axes.annotate(
                name,
                (len(steps), value),
                xytext=(0, 3),
                textcoords="offset points",
                ha="right",
                color="#666666",
                fontsize=8,
            )
        axes.set(xlabel="step", ylabel="loss per character, nats", xlim=(0, len(steps)), ylim=(0, None))
        axes.set_title("A GPT learns to write like Python's documentation", loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)


def write(model: gpt.GPT, alphabet: str, context: int, length: int, seed: int) -> str:
    """Sample text from the model, character by character."""
    random = np.random.default_rng(seed)
    number = {c: i for i, c in enumerate(alphabet)}
    ids = [number[c] for c in PROMPT]
    with flow.no_grad():
        for _ in range(length):
            scores = model(flow.tensor([ids[-context:]]))[0, -1] / 0.7  # temperature 0.7
            chances = flow.softmax(scores, 0).numpy().astype(np.float64)
            ids.append(int(random.choice(len(alphabet), p=chances / chances.sum())))
    return "".join(alphabet[i] for i in ids)


def train(options: argparse.Namespace, console: Console) -> None:
    ids, alphabet = gpt.encode(gpt.text())
    held = len(ids) // 20
    training = gpt.Training(options, len(alphabet))
    layout = training.layout
    assert layout is not None
    model, group = training.model, training.optimizer.param_groups[0]
    count = sum(p.numel() for p in model.parameters())
    console.print(
        f"{len(ids):,} characters of text, {count:,} parameters, {flow.env.get_world_size()} ranks; each step takes "
        f"{options.batch} pieces of {options.context} characters"
    )
    batches = gpt.batches(ids[held:], options.batch, options.context, options.seed)
    check = [next(gpt.batches(ids[:held], 64, options.context, seed)) for seed in range(2)]

    def held_out() -> float:
        with flow.no_grad():
            losses = [gpt.loss_of(model(layout.feed(x, 0)), layout.feed(y, -1)) for x, y in check]
        return gpt.read(flow.stack(losses))

    curve = Curve(options.steps, options.batch * options.context, console)
    with curve.bar:
        before = None  # the loss of the previous step: it is read while the next step runs
        for step in range(options.steps):
            group["lr"] = rate(step, options.steps)
            loss = training(*next(batches))
            if before is not None:
                curve.add(gpt.read(before))
            before = loss
            if step and step % options.every == 0:
                curve.check(held_out())
        assert before is not None
        curve.add(gpt.read(before))
        curve.check(held_out())

    if flow.env.get_rank() == 0:
        alone = gpt.GPT(len(alphabet), options.context, options.width, options.heads, options.layers)
        alone.load_state_dict({name: p.to_local() for name, p in model.named_parameters()})
        console.print(Panel(write(alone, alphabet, options.context, 600, options.seed), title="what it writes now"))
        curve.draw(options.out / "loss.png", ids)
        console.print(
            f"the loss fell from {curve.losses[0]:.2f} to {curve.held_out[-1][1]:.2f}: {options.out / 'loss.png'}"
        )


def main() -> None:
    asked = gpt.parser()
    asked.description = "Train the GPT on Python's documentation, show how it learns, and let it write."
    asked.set_defaults(**vars(asked.parse_args(SIZE.split())))
    asked.add_argument("--out", type=Path, default=OUT, help="where the picture goes")
    options = asked.parse_args()
    try:
        train(options, Console(quiet=flow.env.get_rank() != 0, highlight=False))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
