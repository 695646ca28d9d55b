# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.algorithms._checkpoint.checkpoint_wrapper."""

from abc import ABC
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any
from weft.nn.module.module import Module
from weft.tensor.parameter import Parameter

class ActivationWrapper(Module, ABC):
    def __init__(self, mod: Any) -> None: ...
    def __getitem__(self, key: int) -> Any: ...
    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]: ...

class CheckpointImpl(Enum):
    REENTRANT: Any
    NO_REENTRANT: Any

class CheckpointWrapper(ActivationWrapper):
    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = ..., checkpoint_fn: Any = None, **checkpoint_fn_kwargs: Any
    ) -> None: ...

class OffloadWrapper(ActivationWrapper): ...

def apply_activation_checkpointing(
    model: Any, checkpoint_wrapper_fn: Any = ..., check_fn: Any = ...,
    auto_wrap_policy: Callable[[Module, bool, int], bool] | None = None
) -> Any: ...
def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = ..., checkpoint_fn: Any = None, **checkpoint_fn_kwargs: Any
) -> Module: ...
def offload_wrapper(module: Module) -> Module: ...
