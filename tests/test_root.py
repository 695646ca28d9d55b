"""What `import weft as flow` gives: names, public module paths, and that it doesn't take long."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from typing import Any, cast

import pytest
import torch

import weft as flow


@pytest.mark.parametrize(
    "path", ["nn", "nn.functional", "nn.graph", "optim", "comm", "env", "sbp", "linalg", "utils.data"]
)
def test_public_modules_are_imported_by_their_path(path: str) -> None:
    module = importlib.import_module(f"weft.{path}")
    reached = flow
    for name in path.split("."):
        reached = getattr(reached, name)
    assert module is reached


@pytest.mark.parametrize("module", ["weft", "torch"])
def test_a_star_gives_functions_too(module: str) -> None:
    space: dict[str, Any] = {"__name__": "program"}
    with flow.mock_torch.enable():
        exec(f"from {module} import *", space)
    assert space["ones"] is flow.ones and space["nn"].Linear is flow.nn.Linear and space["Tensor"] is flow.Tensor
    assert len({*flow.__all__}) == len(flow.__all__)


def test_names_that_python_has_too_are_dtypes() -> None:
    for name in ("bool", "float", "double", "half", "int", "long", "short", "char", "byte"):
        ours = getattr(flow, name)
        assert ours.torch is getattr(torch, {"char": "int8", "byte": "uint8"}.get(name, name))


def test_functions_that_share_a_name_with_a_folder_win() -> None:
    assert flow.tensor([1]).tolist() == [1] and callable(flow.save) and flow.nn.Graph is flow.graph.Graph


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="weft has no 'tensr'"):
        flow.tensr  # noqa: B018
    with pytest.raises(AttributeError) as caught:
        flow.reluu  # noqa: B018
    assert "relu" in dir(caught.value.obj)  # where Python looks for what was meant
    with pytest.raises(AttributeError, match=r"weft has no .sparse_csr_tensor., and torch has.*flow\.from_torch"):
        flow.sparse_csr_tensor  # noqa: B018


def test_importing_is_quick_and_leaves_the_collector_as_it_was() -> None:
    program = (
        "import torch, time, gc; t = time.process_time(); import weft; t = time.process_time() - t; "
        "assert gc.isenabled(); print(t)"
    )
    command = [sys.executable, "-c", program]
    taken = (float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(2))
    assert any(each < 1.5 for each in taken), "an import that takes a second or more is felt"  # the first was disturbed


def test_the_doctor_says_what_is_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["weft", "--doctor"])
    runpy.run_module("weft", run_name="__main__")
    facts = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert facts["version"] == flow.__version__ and facts["torch"] == torch.__version__
    assert facts["rank"] == "0 of 1" and facts["path"].endswith("weft") and "local" in facts["transports"]


def test_torchs_private_functions_that_programs_call_are_found() -> None:
    for library in (torch, flow):
        library.manual_seed(0)
    share, theirs = (m._sample_dirichlet(m.tensor([0.5, 2.0])) for m in (cast("Any", flow), torch))
    assert share.tolist() == pytest.approx(theirs.tolist())  # mixes images in torchvision's references
    assert hasattr(flow, "_weight_norm") and not hasattr(flow, "_softmax")
