# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.tensor.experimental._func_map."""

from collections.abc import Callable, Sequence
from typing import Any
from weft.distributed.mesh import DeviceMesh
from weft.distributed.tensor.placement_types import Placement

def local_map(
    func: Callable | None = None,
    out_placements: Sequence[Placement] | None | tuple[Sequence[Placement] | None, ...] = None,
    in_placements: tuple[Sequence[Placement] | None, ...] | None = None,
    in_grad_placements: tuple[Sequence[Placement] | None, ...] | None = None, device_mesh: DeviceMesh | None = None, *,
    redistribute_inputs: bool = False
) -> Any: ...
