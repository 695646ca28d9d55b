"""The wheel: built as an installer builds it, and tried in an environment with nothing but what it says it needs."""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
import safetensors
import torch

import weft as flow

HOME = Path(flow.__file__).parent.parent
OURS = ("weft", "pyproject.toml", "README.md", "LICENSE", "setup.py")  # what a wheel is made of

PROGRAM = """
import sys, weft as flow
from pathlib import Path
home = Path(flow.__file__).parent
assert home.parent == Path({place!r}), home
assert (home / "py.typed").exists() and (home / "__init__.pyi").exists()
x, model = flow.randn(64, 8), flow.nn.Linear(8, 1)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(20):
    loss = flow.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step(); optimizer.zero_grad()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 2, losses
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built of a copy, without an index: nothing is left beside the sources."""
    place = tmp_path_factory.mktemp("package")
    for name in OURS:
        source = HOME / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place)
    build = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(place)], cwd=place, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return place / done.stdout.splitlines()[-1]


def test_every_file_is_in_it(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    ours = {str(p.relative_to(HOME)) for p in (HOME / "weft").rglob("*") if p.suffix in (".py", ".pyi", ".typed")}
    assert ours <= inside and not [n for n in inside if not n.startswith(("weft/", "weft-"))]


def test_it_runs_where_only_its_needs_are(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare" / "bin" / "python"
    place = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "bare")}))
    zipfile.ZipFile(wheel).extractall(place)
    needed = {str(Path(module.__file__).parent.parent) for module in (torch, safetensors)}  # type: ignore[arg-type]
    (place / "needs.pth").write_text("\n".join(needed))
    done = subprocess.run(
        [python, "-c", PROGRAM.format(place=str(place))],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr


def test_what_an_index_shows(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    metadata = email.message_from_string(archive.read(name).decode())
    assert metadata["Version"] == flow.__version__ and metadata["Requires-Python"] == ">=3.11"
    assert all(">=" in need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need)
    kinds = {c.partition(" :: ")[0] for c in metadata.get_all("Classifier", [])}
    assert kinds >= {"Development Status", "Intended Audience", "Programming Language", "Topic"}
    assert any(n.endswith(".dist-info/licenses/LICENSE") for n in archive.namelist())
    text = metadata.get_payload()
    assert text.lstrip().startswith("# Weft") and "docs/journey.md" in text
    assert "download.pytorch.org/whl/cpu" in text  # how to install with a torch for CPUs
    broken = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith(("https://", "#"))]
    assert broken == [], "a page of an index has no folders beside it"
