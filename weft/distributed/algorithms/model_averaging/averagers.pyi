# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.algorithms.model_averaging.averagers."""

from abc import ABC
from collections.abc import Iterable
from typing import Any
from weft.distributed.groups import ProcessGroup
from weft.tensor.parameter import Parameter

class ModelAverager(ABC):
    def __init__(self, process_group: ProcessGroup | None = None) -> None: ...
    def average_parameters(self, params: Any) -> Any: ...

class PeriodicModelAverager(ModelAverager):
    def __init__(self, period: Any, warmup_steps: Any = 0, process_group: ProcessGroup | None = None) -> None: ...
    def average_parameters(self, params: Iterable[Parameter] | Iterable[dict[str, Parameter]]) -> Any: ...

