"""Files of PyTorch's and OneFlow's are found under their paths, and no class of Weft's is there twice."""

import importlib
import sys

import pytest
import torch

import weft as flow

PATHS = (
    "nn.modules.conv Conv2d", "nn.modules.batchnorm BatchNorm2d", "nn.modules.module Module", "nn.modules.loss MSELoss",
    "nn.modules.linear Linear", "nn.modules.container ModuleList", "nn.parallel.distributed DistributedDataParallel",
    "nn.utils.clip_grad clip_grad_norm_", "optim.adamw AdamW", "utils.data.dataset TensorDataset",
    "utils.data.dataloader DataLoader", "utils.data.sampler RandomSampler", "autograd.grad_mode no_grad",
    "distributions.normal Normal", "distributions.kl kl_divergence", "distributions.transforms ExpTransform",
    "cuda.amp.grad_scaler GradScaler", "nn.graph.graph Graph",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_file_has_its_folders_own(path):
    file, name = path.split()
    module = importlib.import_module(f"weft.{file}")
    assert getattr(module, name) is getattr(sys.modules[f"weft.{file.rpartition('.')[0]}"], name)


def test_files_are_reached_without_being_imported():
    modules, dists = importlib.import_module("weft.nn.modules"), importlib.import_module("weft.distributions")
    assert isinstance(flow.nn.BatchNorm1d(2), modules.batchnorm._BatchNorm)
    assert modules.utils._pair(3) == (3, 3)
    assert dists.categorical.Categorical is flow.distributions.Categorical


@pytest.mark.parametrize(
    "path", ["nn.modules.convolutional", "distributions.odd", "linalg.more", "nn.modules.conv.more"]
)
def test_what_nobody_has_is_not_found(path):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"weft.{path}")
    folder, _, name = path.rpartition(".")
    with pytest.raises(AttributeError, match=name):
        getattr(importlib.import_module(f"weft.{folder}"), name)


def test_no_file_is_read_twice():
    for path in PATHS:
        importlib.import_module(f"weft.{path.split()[0]}")
    files = [
        (m.__file__, id(m)) for n, m in sys.modules.items() if n.startswith("weft.") and getattr(m, "__file__", None)
    ]
    assert len(set(files)) == len({file for file, _ in files})


@pytest.mark.parametrize("file", ["batchnorm", "conv", "dropout", "instancenorm", "padding", "pooling"])
def test_layers_inherit_from_the_bases_that_programs_ask_for(file: str) -> None:
    theirs, ours = (getattr(lib.nn.modules, file) for lib in (torch, flow))
    found = 0
    for name in (n for n in theirs.__all__ if not n.startswith("Lazy")):
        for base in getattr(theirs, name).__mro__[1:]:
            if base.__module__ == theirs.__name__ and base.__name__.endswith(("Nd", "Norm", "NormBase")):
                found += 1
                assert issubclass(getattr(flow.nn, name), getattr(ours, base.__name__)), (name, base)
    assert found > 2
