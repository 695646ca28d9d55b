"""A program that imports torch gets Weft while the mock is enabled; everyone else goes on getting torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.worlds import Start

PROGRAM = """
import torch                                   # imported before
import torch.nn.functional as F
import weft as flow
import helper                                  # a module of the program's own, which torch reaches in the usual way

real = {"torch": torch}                       # modules under names of the program's own are exchanged, values not
with flow.mock_torch.enable():
    assert torch is not real["torch"] and torch.ones is flow.ones and F.relu is flow.nn.functional.relu
    import torch
    import torch.nn as nn
    from torch.utils.data import DataLoader, TensorDataset
    from torch.optim.lr_scheduler import StepLR
    from torch import Tensor, float32
    from torch.distributions.normal import Normal          # a file of torch's, of which Weft has something
    from torch.nn.modules.batchnorm import BatchNorm1d, _BatchNorm
    from torch.nn.modules.utils import _pair
    from torch.optim.optimizer import Optimizer
    import mocked                              # first imported here

    assert Normal is flow.distributions.Normal and BatchNorm1d is nn.BatchNorm1d and Optimizer is flow.optim.Optimizer
    assert isinstance(nn.BatchNorm2d(2), _BatchNorm) and _pair(2) == (2, 2) and _pair([1, 2]) == (1, 2)
    assert Tensor is flow.Tensor and float32 is flow.float32 and mocked.torch.ones is flow.ones
    model = nn.Linear(3, 2)
    loader = DataLoader(TensorDataset(torch.randn(8, 3)), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    StepLR(optimizer, 1).step()
    import pickle
    assert pickle.loads(pickle.dumps(model)).weight.tolist() == model.weight.tolist()
    assert isinstance(model.weight, flow.Tensor) and torch.__version__ == real["torch"].__version__
    try:
        torch.no_such_name
    except AttributeError as error:
        assert "Weft has no torch.no_such_name" in str(error) and "mock_torch.disable()" in str(error)
    try:
        import torch.no_such_module
    except ModuleNotFoundError as error:
        assert "torch.no_such_module" in str(error)
    try:
        import torch.utils.tensorboard
    except ModuleNotFoundError as error:
        assert "torch.utils.tensorboard" in str(error)
    with flow.mock_torch.disable():
        import torch
        assert torch is real["torch"]
    assert torch is not real["torch"]
    import sklearn.utils                       # what is installed sees torch itself
    assert sys.modules["torch"] is real["torch"]
assert torch is real["torch"] and not flow.mock_torch.is_enabled() and helper.torch is real["torch"]
flow.mock_torch.enable()
assert torch is not real["torch"]
flow.mock_torch.disable()
assert torch is real["torch"]
import torch.fft
assert torch.fft.fft(torch.ones(2)).tolist() == [2, 0]
print("done")
"""


def test_a_program_sees_weft_in_torchs_place(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("import torch\n")
    (tmp_path / "mocked.py").write_text("import torch\n")
    (tmp_path / "main.py").write_text("import sys\n" + PROGRAM)
    done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


PASSED = """
import importlib
import sys

import helper
import weft as flow

with flow.mock_torch.enable(extra_dict={"torch.special.zeta": "math.hypot"}):
    import torch
    for name in ("fx", "library", "overrides", "utils.hooks", "utils._pytree", "nn.attention.flex_attention",
                 "distributed.tensor", "distributed.algorithms", "distributed.nn", "fx.node"):
        exec(f"import torch.{name}")
    importlib.import_module("torch.distributed.nn")         # torch's own writes modules, and imports them
    from torch.distributed.tensor import DTensor
    from torch.functional import einsum
    assert torch.functional.einsum is einsum is flow.einsum
    assert torch.special.zeta(3, 4) == 5 and torch.uint16.itemsize == 2 and torch.Stream and torch.cuda.CUDAGraph
    assert torch._C.DispatchKey and torch.jit._overload_method and torch.ops.aten.relu is helper.torch.ops.aten.relu
    assert not isinstance(torch.nn.Linear(1, 1), torch.jit.ScriptModule) and torch.jit.ScriptModule().training
    assert torch.__config__.show and torch.cuda._initialized is helper.torch.cuda._initialized
    assert all(hasattr(torch.distributions, name) for name in dir(torch.distributions))
    assert torch._dynamo.mark_static_address(torch.ones(1)) is None
    ends = torch.tensor([1, 3], dtype=torch.int32)
    assert torch._grouped_mm(torch.ones(3, 2), torch.ones(2, 2, 1), ends).tolist() == [[2.0]] * 3
    assert torch.nn.functional.grouped_mm(torch.ones(3, 2), torch.ones(2, 2, 1), offs=ends).tolist() == [[2.0]] * 3
    try:
        exec("from torch.nn import no_such_layer")
        raise AssertionError("it has such a layer")
    except ImportError as error:
        assert "Weft has no torch.nn.no_such_layer. Under" in str(error), error
    exec("from torch.nn.functional import *")
    for name in ("_fused_rms_norm", "nn.functional.no_such"):    # about tensors: torch's would not take Weft's
        try:
            exec(f"torch.{name}")
            raise AssertionError(name)
        except AttributeError as error:
            assert f"Weft has no torch.{name}" in str(error)
with flow.mock_torch.enable(lazy=True):
    import torch
    unknown = torch.nn.functional.no_such.thing
    try:
        unknown()
    except NotImplementedError as error:
        assert "torch.nn.functional.no_such.thing" in str(error)
sys.path.insert(0, sys.argv[1] + "/vendored")                   # which isn't among installed packages
with flow.mock_torch.enable():
    from einops.packing import pack
assert pack(flow.ones(1)) is flow.Tensor
del sys.modules["einops"], sys.path[0]
sys.path.insert(0, sys.argv[1])
import package
with flow.mock_torch.enable(packages=["package", "torchmetrics", "einops"]):
    import package as mocked
    from torchmetrics.metric import Metric as OnOurTensors
    from einops.einops import reduce as of_our_tensors
from torchmetrics.metric import Metric                          # whose methods get torch's tensors for Weft's
from einops.einops import reduce                                # and so do functions
assert OnOurTensors().kind(flow.ones(1)) is flow.Tensor is not Metric().kind(flow.ones(1))
assert of_our_tensors(flow.ones(1)) is flow.Tensor is not reduce(flow.ones(1))
assert mocked.torch.ones is flow.ones and package.torch.ones is not flow.ones and sys.modules["package"] is package
print("done")
"""


def test_what_is_not_about_tensors_is_torchs(alone: Start, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("import torch\n")
    (tmp_path / "site" / "package").mkdir(parents=True)
    (tmp_path / "site" / "package" / "__init__.py").write_text("import torch\n")
    (tmp_path / "site" / "torchmetrics").mkdir()
    metric = "import torch\n\nclass Metric:\n    def kind(self, x):\n        return type(x)\n"
    (tmp_path / "site" / "torchmetrics" / "metric.py").write_text(metric)
    (tmp_path / "site" / "einops").mkdir()
    (tmp_path / "site" / "einops" / "einops.py").write_text("def reduce(x):\n    return type(x)\n")
    (tmp_path / "site" / "vendored" / "einops").mkdir(parents=True)
    (tmp_path / "site" / "vendored" / "einops" / "packing.py").write_text("def pack(x):\n    return type(x)\n")
    assert alone(PASSED, str(tmp_path / "site")).well() == ["done\n"]


OWN = """
import weft as flow

with flow.mock_torch.enable():
    import torch
    from torch.jit.annotations import List                  # a file of torch's; Weft's has a feature of this name
    from torch.onnx import symbolic_opset11                 # a module in a folder of torch's that nobody imported yet
    import torch.nn.utils.prune as prune                    # and files of torch's that Weft derives, the first time
    from torch.nn.utils.spectral_norm import SpectralNorm   # a file that is called as a function in it
    from torch.nn.utils import spectral_norm
    from torch.distributed._composable.fsdp.fully_shard import FSDPModule, fully_shard   # and of Weft's own names
    from torch.distributed._composable.replicate import replicate
    import torch.distributed._composable as composable
    assert composable.replicate is replicate and FSDPModule is flow.distributed.fsdp.FSDPModule
    assert composable.fsdp.fully_shard is fully_shard is flow.distributed.fsdp.fully_shard
    from torch.autograd.functional import hessian

    @torch.library.custom_op("weft_tests::twice", mutates_args=(), device_types="cpu")
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @torch.library.register_fake("weft_tests::twice")
    def _(x):
        return x

    @torch.library.custom_op("weft_tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: float = 3.0) -> torch.Tensor:
        return x * factor

    def keep(ctx, inputs, output):
        ctx.factor = inputs[1]

    scaled.register_autograd(lambda ctx, dy: (dy * ctx.factor * 10, None), setup_context=keep)  # so one sees it
    y = torch.ones(2, requires_grad=True)
    z = scaled(y) + scaled(x=y, factor=1.0)
    z.sum().backward()
    assert z.tolist() == [4.0, 4.0] and y.grad.tolist() == [40.0, 40.0]

    torch.library.custom_op("weft_tests::thrice", lambda x: x * 3, mutates_args=(), schema="(Tensor x) -> Tensor")
    torch.library.register_autograd("weft_tests::thrice", lambda ctx, dy: torch.ops.weft_tests.twice(dy) * 10)
    x = torch.ones(2, requires_grad=True)
    torch.ops.weft_tests.thrice(x).sum().backward()
    assert x.grad.tolist() == [20.0, 20.0] and torch.ops.aten.relu.default.name() == "aten::relu"

    x = torch.ones(2, requires_grad=True)
    twice(x).sum().backward()
    assert prune.is_pruned is flow.nn.utils.prune.is_pruned and spectral_norm is flow.nn.utils.spectral_norm
    assert SpectralNorm.__module__ == "weft.nn.utils.spectral_norm" and hessian is flow.autograd.functional.hessian
    assert x.grad.tolist() == [2.0, 2.0] and List[int] and symbolic_opset11.__name__.startswith("torch.onnx")

    class Kept(torch.Tensor, metaclass=torch._C._TensorMeta):
        pass

    assert str(torch.float32) == repr(torch.ones(1).dtype) == "torch.float32"   # which programs take apart
    assert torch.ones(1).type() == "torch.FloatTensor"
    with flow.mock_torch.disable():
        assert str(flow.float32) == "weft.float32"
    torch._assert_async(torch.ones(1), "all is well")       # what Weft gives torch's modules alone
    try:
        torch._assert_async(torch.zeros(1), "nothing")
    except RuntimeError as error:
        assert "nothing" in str(error)
    else:
        raise AssertionError
    from torch.distributed import ReduceOp
    assert isinstance(torch.Tensor, torch._C._TensorMeta) and isinstance(ReduceOp.SUM, ReduceOp.RedOpType)
print("done")
"""


def test_a_programs_own_ops_are_its_functions(alone: Start) -> None:
    assert alone(OWN).well() == ["done\n"]
