"""The digits example, shortened: it learns, and draws what it learned."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.py"


def test_it_learns_to_read_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("digits_example", EXAMPLE)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    right = example.main(["--epochs", "1", "--out", str(tmp_path / "picture.png")])
    assert right > 0.8
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "unseen digits right after 1 epochs" in capsys.readouterr().out
