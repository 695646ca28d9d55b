"""A convolutional network that learns handwritten digits: the 1797 images that come with scikit-learn.

    python examples/digits.py                    # under a minute on two cores; test accuracy above 97 %
    python examples/digits.py --epochs 2

Needs scikit-learn and matplotlib (`pip install -e '.[dev]'`). The loss curve and the confusion matrix go to
examples/out/digits.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits

import weft as flow
from weft import nn
from weft.utils.data import DataLoader, TensorDataset

matplotlib.use("Agg")  # draws to files, without a screen
from matplotlib import pyplot as plt

OUT = Path(__file__).parent / "out"
INK, ACCENT, QUIET = "#22303c", "#c8553d", "#9aa5ae"


class Reader(nn.Module):
    """Convolutions at two scales, then a linear classifier of ten digits."""

    def __init__(self) -> None:
        super().__init__()
        self.strokes = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.shapes = nn.Sequential(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2))
        self.vote = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 4 * 4, 10))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.vote(self.shapes(self.strokes(x)))


def digits(test_share: float = 0.25, seed: int = 0) -> tuple[TensorDataset, flow.Tensor, np.ndarray]:
    """The training set, and the test images with their labels; 8x8 pixels, scaled to [0, 1]."""
    data = load_digits()
    images = (data.images[:, None] / 16).astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(images))
    test, train = np.split(order, [int(len(order) * test_share)])
    training = TensorDataset(flow.tensor(images[train]), flow.tensor(data.target[train]))
    return training, flow.tensor(images[test]), data.target[test]


def confusion(model: nn.Module, images: flow.Tensor, labels: np.ndarray) -> np.ndarray:
    """The confusion matrix: how often each digit (row) is classified as each digit (column)."""
    model.eval()
    with flow.no_grad():
        read = model(images).argmax(dim=1).numpy()
    model.train()
    counts = np.zeros((10, 10), dtype=int)
    np.add.at(counts, (labels, read), 1)
    return counts


def train(epochs: int, batch: int = 64, lr: float = 3e-3) -> tuple[list[float], list[float], np.ndarray]:
    """The loss of every step, the test accuracy after every epoch, and the last confusion matrix."""
    flow.manual_seed(0)
    training, images, labels = digits()
    loader = DataLoader(training, batch_size=batch, shuffle=True)
    model = Reader()
    optimizer = flow.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-2)
    schedule = flow.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=epochs * len(loader))
    wrong = nn.CrossEntropyLoss()
    losses: list[float] = []
    right: list[float] = []
    counts = np.zeros((10, 10), dtype=int)
    columns = (
        TextColumn("[bold]reading digits"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("loss {task.fields[loss]:.3f}   unseen digits right {task.fields[right]:.1%}"),
    )  # fmt: skip
    with Progress(*columns) as progress:
        bar = progress.add_task("", total=epochs * len(loader), loss=float("nan"), right=0.0)
        for _ in range(epochs):
            for x, y in loader:
                loss = wrong(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                progress.update(bar, advance=1, loss=losses[-1])
            counts = confusion(model, images, labels)
            right.append(float(np.trace(counts) / counts.sum()))
            progress.update(bar, right=right[-1])
    return losses, right, counts


def draw(losses: list[float], right: list[float], counts: np.ndarray, to: Path) -> None:
    """The loss curve beside the confusion matrix."""
    plt.rcParams.update({"text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK})
    figure, (left, matrix) = plt.subplots(1, 2, figsize=(11.5, 5), width_ratios=(1.15, 1), layout="constrained")
    epochs = np.arange(1, len(losses) + 1) * len(right) / len(losses)
    nearby = [np.mean(losses[max(0, i - 6) : i + 7]) for i in range(len(losses))]
    left.plot(epochs, losses, color=QUIET, linewidth=0.7, alpha=0.7, label="each step")
    left.plot(epochs, nearby, color=ACCENT, linewidth=2, label="mean of 13 steps")
    left.set(yscale="log", xlabel="epoch", ylabel="cross entropy", title="Training loss", xlim=(0, len(right)))
    left.legend(frameon=False, loc="lower left")
    left.spines[["top", "right"]].set_visible(False)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    matrix.imshow(np.where(np.eye(10, dtype=bool), shares * 0.55, shares * 4), cmap="Blues", vmin=0, vmax=1)
    for i, j in np.argwhere(counts):
        mistake = i != j
        matrix.text(
            j, i, counts[i, j], ha="center", va="center", fontsize=9, color=ACCENT if mistake else INK,
            weight="bold" if mistake else "normal",
        )  # fmt: skip
    matrix.set(xticks=range(10), yticks=range(10), xlabel="read as", ylabel="digit", title="Digits never seen before")
    matrix.spines[:].set_visible(False)
    matrix.tick_params(length=0)
    figure.suptitle(f"{right[-1]:.1%} of {counts.sum()} unseen digits read rightly", fontsize=14, weight="bold")
    to.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(to, dpi=120)
    plt.close(figure)


def main(argv: list[str] | None = None) -> float:
    """Train, draw, and print the accuracy on the test set."""
    arguments = argparse.ArgumentParser(description="Learn to read handwritten digits.")
    arguments.add_argument("--epochs", type=int, default=6)
    arguments.add_argument("--out", type=Path, default=OUT / "digits.png")
    given = arguments.parse_args(argv)
    losses, right, counts = train(given.epochs)
    draw(losses, right, counts, given.out)
    print(f"{right[-1]:.2%} of {counts.sum()} unseen digits right after {given.epochs} epochs; drawn in {given.out}")
    return right[-1]


if __name__ == "__main__":
    main()
