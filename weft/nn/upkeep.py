"""What can be done to modules beyond the daily, bound to `Module` as methods."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from weft.core.device import Device
from weft.nn.module import Module
from weft.ops import OPS
from weft.tensor.tensor import RemovableHook


def to_consistent(self: Module, placement: Any = None, sbp: Any = None) -> Module:
    """`to_global`, by its older name."""
    return self.to_global(placement, sbp)


def to_empty(self: Module, *, device: Any, recurse: bool = True) -> Module:
    """Move to a device without the values: whatever the memory held is there then. Without `recurse`, only its own."""
    where = Device(device).check()
    return self._convert(lambda _, t: OPS["empty"](tuple(t.shape), t.dtype, where), recurse)


def type(self: Module, dst_type: Any) -> Module:
    """Cast every floating parameter and buffer."""
    return self.to(dst_type)


def share_memory(self: Module) -> Module:
    """Move parameters and buffers to memory that other processes see."""
    for t in itertools.chain(self.parameters(), self.buffers()):
        t.share_memory_()  # type: ignore[attr-defined]  # bound from the registry
    return self


def set_submodule(self: Module, target: str, module: Module, strict: bool = False) -> None:
    """Put a module at a dotted path."""
    path, _, name = target.rpartition(".")
    owner = self.get_submodule(path)
    if strict and name not in owner._modules:
        raise AttributeError(f"{owner._get_name()} has no module `{name}` that could be replaced")
    setattr(owner, name, module)


def register_backward_hook(self: Module, hook: Callable[..., Any]) -> RemovableHook:
    """`register_full_backward_hook`, by its older name."""
    return self.register_full_backward_hook(hook)


def register_state_dict_pre_hook(self: Module, hook: Callable[..., Any]) -> RemovableHook:
    """`hook(module, prefix, keep_vars)` before the module's part is added."""
    return self._hook("state_dict_pre", hook)


def compile(self: Module, *args: Any, **options: Any) -> None:
    """Nothing: what compiles here is `nn.Graph`."""


for _f in (
    to_consistent, to_empty, type, share_memory, set_submodule, register_backward_hook, register_state_dict_pre_hook,
    compile,
):  # fmt: skip
    setattr(Module, _f.__name__, _f)
