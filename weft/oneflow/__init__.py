"""Makes `import oneflow` give Weft: `python -m weft.oneflow train.py` runs a program so.

OneFlow's modules that Weft has are Weft's own modules under those names, not copies.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import numpy as np
import torch

from weft import optim
from weft.checkpoint import place
from weft.core.derived import names_of
from weft.core.errors import ArgumentError
from weft.graph.hints import setters

WEFT: Final = __name__.partition(".")[0]
THEIRS: Final = "oneflow"
FOLDER: Final = Path(__file__).parent / "path"  # on PYTHONPATH, it lets every Python find an `oneflow`, which is Weft

FOR_TESTS: Final = ".test_utils"  # modules that Weft has for OneFlow's programs alone
OPTIMIZERS: Final = ".nn.optimizer"  # a folder of OneFlow's, with a file for each optimizer and schedule
# files of OneFlow's, by the module that has their names here
FILES: Final = {
    ".autograd": ".autograd.autograd .autograd.autograd_function .autograd.autograd_mode",
    ".comm": ".comm.comm_ops", ".cuda.amp": ".cuda.amp.autocast_mode", ".profiler": ".profiler.events .profiler.util",
    ".nn": """.nn.modules.all_reduce .nn.modules.batchnorm_fused .nn.modules.fake_quantization .nn.modules.fused_mlp
        .nn.modules.min_max_observer .nn.modules.moving_average_min_max_observer .nn.modules.quantization
        .nn.qat.conv""",
    ".nn.functional": """.nn.functional.functional_batch_norm .nn.functional.functional_deform_conv
        .nn.functional.functional_maxpool .nn.functional.functional_pad .nn.modules.affine_grid
        .nn.modules.grid_sample .nn.modules.interpolate""",
    ".utils.tensor": ".utils.tensor.from_or_to_torch_tensor",
    ".asyncs": ".asyncs.thread", ".cuda": ".cuda.type_tensor", ".graph.config": ".nn.graph.graph_config",
    ".utils.global_view": """.utils.global_view.global_mode .utils.global_view.global_utils .utils.global_view.to_global
        .utils.global_view.to_local""",
    ".oneflow.op_files": """.framework.distribute .framework.generator .framework.tensor_str .framework.type_tensor
        .nn.modules.arange .nn.modules.argsort .nn.modules.argwhere .nn.modules.as_tensor .nn.modules.broadcast_ops
        .nn.modules.constant .nn.modules.distributed_partial_fc_sample .nn.modules.einsum .nn.modules.empty
        .nn.modules.expand .nn.modules.global_cast .nn.modules.is_tensor .nn.modules.linspace .nn.modules.logspace
        .nn.modules.masked_select .nn.modules.math_ops .nn.modules.meshgrid .nn.modules.nms .nn.modules.nonzero
        .nn.modules.norm .nn.modules.numel .nn.modules.reshape .nn.modules.roll .nn.modules.scatter .nn.modules.slice
        .nn.modules.sparse_softmax_cross_entropy .nn.modules.tensordot .nn.modules.trigonometric_ops .nn.modules.unique
        .nn.modules.where""",
}  # fmt: skip
HOMES: Final = {file: home for home, files in FILES.items() for file in files.split()}

# NumPy's names that OneFlow's programs use and NumPy has removed
NUMPYS: Final = {"float": float, "int": int, "bool": bool, "object": object, "str": str, "complex": complex,
                 "product": np.prod, "cumproduct": np.cumprod, "sometrue": np.any, "alltrue": np.all,
                 "float_": np.float64, "complex_": np.complex128, "Inf": np.inf, "NaN": np.nan}  # fmt: skip


class Names(MetaPathFinder, InspectLoader):
    """An import finder for OneFlow's modules that Weft has under the same path."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        top, _, file = name.partition(".")
        if not (top == THEIRS or (top == WEFT and f".{file}" in HOMES)) or (own := _own(name)) is None:
            return None
        return ModuleSpec(name, self, origin=own.origin, is_package=own.submodule_search_locations is not None)

    def exec_module(self, module: ModuleType) -> None:
        own: Any = importlib.import_module(_ours(module.__name__))
        sys.modules[module.__name__] = own
        names = names_of(own) if isinstance(own, ModuleType) else vars(own)  # flow._C is no module
        names.setdefault("__path__", [])  # it may have files there

    def get_code(self, fullname: str) -> CodeType | None:
        """The code that `python -m oneflow.distributed.launch` runs."""
        own = _own(fullname)
        return own.loader.get_code(own.name) if own and isinstance(own.loader, InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:
        own = _own(fullname)
        return own.loader.get_source(own.name) if own and isinstance(own.loader, InspectLoader) else None


def _ours(name: str) -> str:
    own, found, _ = name[len(name.partition(".")[0]) :].partition(".automated_test_util")
    own += found  # which is one file here
    own = HOMES.get(own, own)
    if own.startswith(OPTIMIZERS):
        return _optimizer(own.removeprefix(OPTIMIZERS).removeprefix("."))
    return (__name__ if own.startswith(FOR_TESTS) else WEFT) + own


def _optimizer(file: str) -> str:
    """The module with the optimizer or schedule after which a file of OneFlow's is called: `sgd`, `step_lr`."""
    wanted = file.replace("_", "")
    kind = next((getattr(optim, n) for n in optim.__all__ if n.lower() == wanted), None)
    if kind is not None:
        return kind.__module__
    schedules = {n.lower() for n in optim.lr_scheduler.__all__}
    return optim.lr_scheduler.__name__ if wanted in schedules else f"{optim.__name__}.{file}".rstrip(".")


def _own(name: str) -> ModuleSpec | None:
    """The spec of the Weft module under this name; some modules are made by hand."""
    own = _ours(name)
    made = sys.modules.get(own)
    if made is None:
        return importlib.util.find_spec(own)
    spec = getattr(made, "__spec__", None)  # flow._C is no module
    return spec or importlib.util.spec_from_loader(own, None, is_package=hasattr(made, "__path__"))


def _enable() -> None:
    there = sys.modules.get(THEIRS)
    if there is not None and there is not sys.modules[WEFT] and Path(there.__file__ or "").parent.parent != FOLDER:
        raise ArgumentError(
            f"oneflow was imported before weft.oneflow, from {there.__file__}; write `import weft.oneflow` above it, "
            "or run the program with `python -m weft.oneflow program.py`"
        )
    if not any(isinstance(finder, Names) for finder in sys.meta_path):
        sys.meta_path.insert(0, Names())
    sys.modules[THEIRS] = sys.modules[WEFT]
    place.HABIT.folders = True  # programs list them as folders, and write beside them
    for file, home in HOMES.items():
        folder, _, name = file.rpartition(".")
        above = sys.modules.get(WEFT + folder)
        if above is not None and name in names_of(above):  # as in OneFlow, the name stays the function's
            sys.modules[THEIRS + file] = sys.modules[WEFT + home]
    for library, names in ((np, NUMPYS), (torch.backends.cudnn, setters("backends.cudnn."))):
        for name, value in names.items():
            if name not in vars(library):
                setattr(library, name, value)


def for_children() -> None:
    """Let every Python that this process starts, such as a launcher's ranks, import oneflow: new programs look on
    PYTHONPATH, multiprocessing's on this one's path."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    others = os.environ.get("PYTHONPATH", "")
    if str(FOLDER) not in others.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(FOLDER), others)))


_enable()
