"""`flow.hub`, from this machine: models of a folder with a hubconf.py, and states by their addresses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import weft as flow
from tests.checkpoint.test_foreign import oneflows

HUBCONF = """
dependencies = ["numpy"]

def tiny(width, bias=True):
    "A tiny model."
    import weft as flow
    return flow.nn.Linear(width, 1, bias)
"""


def test_models_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    here: Any = {"source": "local"}
    made = flow.hub.load(str(tmp_path), "tiny", 3, bias=False, **here)
    assert isinstance(made, flow.nn.Linear) and made.bias is None and made.in_features == 3
    with pytest.raises(RuntimeError, match="Cannot find callable huge"):
        flow.hub.load(str(tmp_path), "huge", **here)


@pytest.mark.parametrize("kind", ["weft", "torch", "oneflow"])
def test_states_by_their_addresses(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "state.pt"
    if kind == "oneflow":  # whose states are folders, in archives
        inner = tmp_path / "packed" / "tiny"
        inner.mkdir(parents=True)
        oneflows(inner)
        shutil.make_archive(str(tmp_path / "state"), "zip", tmp_path / "packed")
        file = tmp_path / "state.zip"
    else:
        library: Any = flow if kind == "weft" else torch
        library.save({"w": library.arange(4.0).reshape(2, 2)}, file)
    for _ in range(2):  # the second time it is there
        state = flow.hub.load_state_dict_from_url(file.as_uri(), str(tmp_path / "kept"), "cpu", progress=False)
        assert isinstance(state["w"], flow.Tensor) and state["w"].tolist() == [[0.0, 1.0], [2.0, 3.0]]
