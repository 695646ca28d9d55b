"""What a rank's process runs: the GPT in several ways, one after the other, each held against plain torch."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import gpt


def run(*ways: str) -> None:
    for way in ways:
        gpt.train(gpt.parser().parse_args([*way.split(), "--check"]), say=print)


if __name__ == "__main__":
    run(*sys.argv[1:])
