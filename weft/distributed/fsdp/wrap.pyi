# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.fsdp.wrap."""

from abc import ABC
from collections.abc import Callable, Generator, Iterable
from typing import Any
from weft.nn.module.module import Module

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap"
]


class _Policy(ABC): ...

class CustomPolicy(_Policy):
    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None: ...

class ModuleWrapPolicy(_Policy):
    def __init__(self, module_classes: Iterable[type[Module]]) -> None: ...
    def __call__(self, module: Any, recurse: Any, *args: Any, **kwargs: Any) -> Any: ...

class _ConfigAutoWrap:
    in_autowrap_context: bool
    wrapper_cls: Any
    kwargs: Any
    def __init__(self, **kwargs: dict[str, Any]) -> None: ...
    @staticmethod
    def enable_autowrap_context(kwargs: Any) -> None: ...
    @staticmethod
    def disable_autowrap_context() -> None: ...

def always_wrap_policy(*args: Any, **kwargs: Any) -> bool: ...
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Generator[None, None, None]: ...
def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable) -> bool: ...
def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = 100000000,
    force_leaf_modules: set[type[Module]] | None = None, exclude_wrap_modules: set[type[Module]] | None = None
) -> bool: ...
def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool: ...
def wrap(module: Module, **wrap_overrides: Any) -> Module: ...
