# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.tensor.parallel.style."""

from abc import ABC
from weft.distributed.tensor.placement_types import Placement

class ParallelStyle(ABC):
    src_data_rank: int

class ColwiseParallel(ParallelStyle):
    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True
    ) -> None: ...

class PrepareModuleInput(ParallelStyle):
    def __init__(
        self, *, input_layouts: Placement | tuple[Placement | None, ...] | None = None,
        desired_input_layouts: Placement | tuple[Placement | None, ...] | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False
    ) -> None: ...

class PrepareModuleInputOutput(ParallelStyle):
    def __init__(
        self, *, input_layouts: Placement | tuple[Placement | None, ...] | None = None,
        desired_input_layouts: Placement | tuple[Placement | None, ...] | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_input: bool = False,
        output_layouts: Placement | tuple[Placement | None, ...],
        desired_output_layouts: Placement | tuple[Placement, ...], use_local_output: bool = True
    ) -> None: ...

class PrepareModuleOutput(ParallelStyle):
    def __init__(
        self, *, output_layouts: Placement | tuple[Placement | None, ...],
        desired_output_layouts: Placement | tuple[Placement, ...], use_local_output: bool = True
    ) -> None: ...

class RowwiseParallel(ParallelStyle):
    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True
    ) -> None: ...

class SequenceParallel(ParallelStyle):
    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None: ...

