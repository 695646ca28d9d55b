"""A program that imports oneflow finds Weft: by the command, by one line, and through a path, in what it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worlds import Start
from weft.oneflow import FOLDER
from weft.oneflow.__main__ import main

PROGRAM = """
import sys
import oneflow as flow
import oneflow.nn as nn, oneflow.nn.functional as F
import oneflow.nn.graph.util
from oneflow.utils.data import DataLoader
from oneflow.framework.tensor import Tensor
import weft

assert flow is weft and nn is weft.nn and DataLoader is weft.utils.data.DataLoader and Tensor is weft.Tensor
assert isinstance(F.relu(flow.ones(2)), Tensor)
import oneflow.nn.optimizer.adamw
from oneflow.nn.optimizer.lr_scheduler import LRScheduler
from oneflow.nn.optimizer.cosine_annealing_warm_restarts import CosineAnnealingWarmRestarts
from oneflow.nn.optimizer.sgd import SGD
assert SGD is flow.optim.SGD and oneflow.nn.optimizer.adamw.AdamW is oneflow.nn.optimizer.AdamW
assert issubclass(CosineAnnealingWarmRestarts, LRScheduler) and LRScheduler is flow.optim.lr_scheduler.LRScheduler
from oneflow.cuda.amp import autocast                    # a file of a module that is no folder here
from oneflow._C import relu
import oneflow.boxing.nccl, oneflow.version
from oneflow.autograd.autograd_function import Function  # OneFlow's own files
from oneflow.utils.data._utils.collate import default_collate
from oneflow.nn.functional.functional_pad import pad
from oneflow.nn.modules.interpolate import interpolate
from oneflow.nn.modules.utils import _reverse_repeat_tuple
from oneflow.nn.modules.module import _IncompatibleKeys
from oneflow.optim.optimizer import ParamGroup
from oneflow.nn.modules.nms import nms_op                # files of functions
from oneflow.nn.modules.trigonometric_ops import sinh_op
from oneflow.nn.modules import min_max_observer, where
from oneflow.framework.generator import create_generator
from oneflow.asyncs.thread import thread
from oneflow.utils.global_view.to_global import to_global
from oneflow.nn.modules.loss import CombinedMarginLoss   # torch's file of this name lacks it
from oneflow.nn.modules.linear import Linear, linear     # a file of layers with a function
from oneflow.nn.modules.pooling import adaptive_avg_pool2d
assert Linear is nn.Linear and linear is F.linear and adaptive_avg_pool2d is F.adaptive_avg_pool2d
assert nms_op is flow.nms and sinh_op is flow.sinh and where.where_op is flow.where
assert flow.nn.modules.scatter.scatter_nd is flow.scatter_nd and min_max_observer.MinMaxObserver is nn.MinMaxObserver
assert create_generator("cpu").device.type == "cpu" and flow.asyncs.thread is thread
assert flow.utils.global_view.to_global is to_global and CombinedMarginLoss is nn.CombinedMarginLoss
assert relu is flow._C.relu and Function is flow.autograd.Function and pad is F.pad
assert autocast is flow.cuda.amp.autocast
assert default_collate is flow.utils.data.default_collate and interpolate is F.interpolate
assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
assert isinstance(nn.Linear(1, 1).load_state_dict({}, strict=False), _IncompatibleKeys)
assert isinstance(SGD([nn.Parameter(flow.ones(1))], lr=0.1).param_groups[0], ParamGroup)
x = flow.ones(1) + 1
flow._oneflow_internal.eager.Sync()
import oneflow._oneflow_internal._C as _C
assert _C.relu is flow._C.relu is flow._oneflow_internal._C.relu
from oneflow.nn.modules.module import _addindent  # by which programs print modules in their own way
assert _addindent("a(\\n  b", 2) == "a(\\n    b"
assert x.numpy() == 2
try:
    import oneflow.nn.optimizer.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "oneflow.nn.optimizer.no_such_module"
try:
    from oneflow.nn.modules.nms import no_such_function
except ImportError as error:
    assert "no_such_function" in str(error)
try:
    import oneflow.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "oneflow.no_such_module"
import numpy as np
assert np.float is float
import os, shutil
if flow.env.get_rank() == 0:                              # checkpoints are folders, which programs list and remove
    flow.save({"x": x}, "epoch_0")
    assert [n for n in os.listdir() if os.path.isdir(n) and flow.load(n)["x"] == 2] == ["epoch_0"]
    shutil.rmtree("epoch_0")
assert isinstance(flow.__git_commit__, str)
flow.backends.cudnn.set_reserved_mem_mbytes(1000)
print(flow.env.get_rank(), flow.env.get_world_size(), sys.argv[1:], __name__)
"""


SPAWNS = """\
import oneflow as flow
import oneflow.multiprocessing as mp

def doubled(i, x):
    x[i] *= 2

if __name__ == "__main__":
    x = flow.ones(2)
    mp.spawn(doubled, (x,), nprocs=1)
    print(x.tolist())
"""


def run(folder: Path, *words: str, path: str | None = None, program: str = PROGRAM) -> list[str]:
    (folder / "program.py").write_text(program)
    variables = {**os.environ, **({} if path is None else {"PYTHONPATH": path})}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=variables, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def command(folder: str, *words: str) -> None:
    os.chdir(folder)
    main([*words])


def test_a_command_runs_it(world: Start, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    said = world("command", 1, "local", str(tmp_path), "program.py", "-m", "x").well()
    assert said == ["0 1 ['-m', 'x'] __main__\n"]


def test_processes_that_a_program_starts_find_oneflow(tmp_path: Path) -> None:
    assert run(tmp_path, "-m", "weft.oneflow", "program.py", program=SPAWNS) == ["[2.0, 1.0]"]


def test_a_command_without_a_program_tells_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert capsys.readouterr().out == f"{FOLDER}\n" and (FOLDER / "oneflow" / "__init__.py").exists()


def test_a_folder_on_the_path_runs_it_and_what_it_starts(tmp_path: Path) -> None:
    words = ["-m", "oneflow.distributed.launch", "--nproc_per_node", "2", "program.py", "--x"]
    assert run(tmp_path, *words, path=str(FOLDER)) == [f"[rank {i}] {i} 2 ['--x'] __main__" for i in range(2)]


def test_a_line_at_its_top_is_enough(alone: Start) -> None:
    assert alone(f"import weft.oneflow\n{PROGRAM}").well() == ["0 1 [] __main__\n"]


def test_mistakes() -> None:
    for words, says in (["nowhere.py"], r"no program 'nowhere\.py'"), (["-m", "nowhere"], "no module 'nowhere'"):
        with pytest.raises(SystemExit, match=says):
            main(words)
    with pytest.raises(SystemExit, match="usage"):
        main(["-m"])


def test_oneflow_itself_came_first(alone: Start, tmp_path: Path) -> None:
    (tmp_path / "oneflow").mkdir()
    (tmp_path / "oneflow" / "__init__.py").write_text("")
    assert "oneflow was imported before weft.oneflow" in alone("import oneflow, weft.oneflow").said(0)
