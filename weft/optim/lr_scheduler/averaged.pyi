# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.optim.swa_utils."""

from typing import Any, Literal
from weft.core.device import Device
from weft.nn.module.module import Module
from weft.optim.lr_scheduler.scheduler import LRScheduler

class AveragedModel(Module):
    def __init__(
        self, model: Module, device: int | Device | None = None, avg_fn: Any = None, multi_avg_fn: Any = None,
        use_buffers: Any = False
    ) -> None: ...
    def update_parameters(self, model: Module) -> None: ...

class SWALR(LRScheduler):
    def __init__(
        self, optimizer: Any, swa_lr: float, anneal_epochs: Any = 10, anneal_strategy: Literal['cos', 'linear'] = 'cos',
        last_epoch: Any = -1
    ) -> None: ...
    def load_state_dict(self, state_dict: Any) -> None: ...

def get_ema_avg_fn(decay: Any = 0.999) -> Any: ...
def get_ema_multi_avg_fn(decay: Any = 0.999) -> Any: ...
def get_swa_avg_fn() -> Any: ...
def get_swa_multi_avg_fn() -> Any: ...
def update_bn(loader: Any, model: Module, device: int | Device | None = None) -> None: ...
