"""Tensor parallelism by a plan: `parallelize_module(model, mesh, {"up": ColwiseParallel()})`.

Styles and plans are torch's own code, on global tensors.
"""

from types import SimpleNamespace

import torch

from weft import nn
from weft.core.derived import GIVEN, Derived
from weft.core.errors import ArgumentError, AssertedError
from weft.distributed.mesh import DeviceMesh
from weft.distributed.tensor.experimental import implicit_replication as loss_parallel

GIVEN["torch.distributed.device_mesh.DeviceMesh"] = DeviceMesh
GIVEN["torch.distributed.device_mesh._mesh_resources"] = SimpleNamespace(get_current_mesh=DeviceMesh.current)
EITHER = SimpleNamespace(Parameter=nn.Parameter, Module=nn.Module,
                         **{n: (getattr(nn, n), getattr(torch.nn, n)) for n in ("Linear", "Embedding")})  # fmt: skip
Derived("weft.distributed.tensor.parallel.style", "torch.distributed.tensor.parallel.style",
        changes={"": {"nn": lambda theirs: EITHER}},
        errors={"AssertionError": AssertedError, "NotImplementedError": ArgumentError})  # fmt: skip
Derived("weft.distributed.tensor.parallel.api", "torch.distributed.tensor.parallel.api")

from weft.distributed.tensor.parallel.api import parallelize_module  # noqa: E402
from weft.distributed.tensor.parallel.style import (  # noqa: E402
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip
