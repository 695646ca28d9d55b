"""Torch's own code, loaded a second time: lazily, over Weft's names, changed where it is said; torch's stays."""

from __future__ import annotations

import importlib
import sys
import types

import pytest
import torch

import weft as flow
from tests.worlds import Start
from weft.core import derived
from weft.core.errors import OptionError
from weft.launch import spawn_threads

W = flow.distributions


def test_derived_code_is_torchs_over_wefts_names() -> None:
    assert W.Normal is not torch.distributions.Normal
    ours, theirs = (d.Normal.log_prob for d in (W, torch.distributions))
    assert isinstance(ours, types.FunctionType) and ours.__code__.co_code == theirs.__code__.co_code
    assert ours.__globals__["torch"] is derived.root()
    names = derived.root()
    assert names.Tensor is flow.Tensor and names.nn.functional.softplus is flow.nn.functional.softplus
    assert names.distributions is W and names.finfo is flow.finfo
    assert names.types is not torch.types and names.types.Number is torch.types.Number


def test_torchs_own_stays_as_it_was() -> None:
    assert W.Normal and torch.distributions.Normal.__init__.__globals__["torch"] is torch
    with pytest.raises(NotImplementedError) as refused:
        torch.distributions.Distribution(validate_args=False).entropy()
    assert not isinstance(refused.value, OptionError)


def test_what_torchs_code_refuses_is_an_error_of_wefts() -> None:
    with pytest.raises(OptionError, match="parameter scale"):
        W.Normal(0.0, -1.0)


def test_packages_are_read_when_their_names_are_first_used(alone: Start) -> None:
    program = """
import sys, weft as flow
modules = {"weft.distributions.normal", "weft.nn.layers.batchnorm", "weft.optim.lbfgs"}
assert {"Linear", "Conv2d", "QatConv1d"} <= set(dir(flow.nn)) & set(dir(flow.nn.modules)) and "LBFGS" in dir(flow.optim)
assert not modules & set(sys.modules)
flow.distributions.Normal
from weft.distributions.normal import Normal
assert Normal is flow.distributions.Normal
assert not modules & set(sys.modules) - {"weft.distributions.normal"}
print([k for k, v in flow.nn.__dict__.items() if k.startswith("BatchNorm")], "LBFGS" in vars(flow.optim))
with flow.mock_torch.enable():
    import torch.nn
    print(torch.nn.__dict__["Conv2d"] is flow.nn.Conv2d)
print([n for n, _ in flow.nn.Linear(1, 1).named_parameters()], modules <= set(sys.modules))
"""
    norms = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"]
    assert alone(program).well() == [f"{norms} True\nTrue\n['weight', 'bias'] True\n"]


def test_threads_that_ask_at_once_find_one_module() -> None:
    source = derived.Derived("weft.again", "torch.utils.hooks")
    try:
        first, second = spawn_threads(2, lambda: importlib.import_module("weft.again").RemovableHandle, deadline=20)
        assert first is second and first.__module__ == "weft.again"
    finally:
        sys.meta_path.remove(source)
        del sys.modules["weft.again"], derived.ROOTS["torch.utils.hooks"]


def test_what_there_is_not_is_no_module() -> None:
    with pytest.raises(ModuleNotFoundError):
        __import__("weft.distributions.odd")
    with pytest.raises(AttributeError):
        _ = W.Odd


def test_the_users_line_is_not_torchs() -> None:
    """An op in a derived layer is shown at the call of the model, not within torch's file."""
    model, x = flow.nn.Sequential(flow.nn.ReLU()), flow.ones(2)
    with flow.vm.trace() as recorded:
        model(x)
    assert {e.line.partition(":")[0] for e in recorded.events} == {"test_derived.py"}

    class Traced(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = flow.nn.Linear(2, 2)

        def build(self, x: flow.Tensor) -> flow.Tensor:
            return self.model(x)

    step = Traced()
    step(x)
    lines = {node.at.partition(":")[0] for node in step.job.nodes if node.op == "linear"}
    assert lines == {"test_derived.py"}


@pytest.mark.parametrize("root", list(derived.ROOTS.values()), ids=lambda root: root.ours)
def test_tables_name_what_torch_has(root: derived.Derived) -> None:
    """Changes are made when a module is read: a name that this torch lacks would be found by the first user."""
    for file in root.changes:
        importlib.import_module(f"{root.ours}.{file}".rstrip("."))
    assert derived.is_derived(importlib.import_module(root.ours).__name__)
