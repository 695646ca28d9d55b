# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.optim.zero_redundancy_optimizer."""

from collections.abc import Callable
from typing import Any
from weft.core.device import Device
from weft.optim.optimizer import Optimizer
from weft.parallel.uneven import JoinHook, Joinable

class ZeroRedundancyOptimizer(Optimizer, Joinable):
    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any | None = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any
    ) -> None: ...
    def consolidate_state_dict(self, to: int = 0) -> None: ...
    def step(self, closure: Callable[[], float] | None = None, **kwargs: Any) -> float | None: ...
    def join_hook(self, **_kwargs: Any) -> JoinHook: ...
    @property
    def join_device(self) -> Device: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

