"""What a rank's process runs: the GPT in several ways, one after the other; it writes a line of losses for each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import gpt


def run(*ways: str) -> None:
    for way in ways:
        losses = gpt.train(gpt.parser().parse_args(way.split()))
        print(json.dumps(losses))
