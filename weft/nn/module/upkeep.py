"""What can be done to modules beyond the daily, bound to `Module` as methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.device import Device
from weft.nn.module.module import Module
from weft.nn.module.moving import sent
from weft.ops import ops
from weft.tensor.tensor import RemovableHook


def to_consistent(self: Module, placement: Any = None, sbp: Any = None) -> Module:
    """`to_global`, by its older name."""
    return self.to_global(placement, sbp)


def to_empty(self: Module, *, device: Any, recurse: bool = True) -> Module:
    """Move to a device without the values: whatever the memory held is there then. Without `recurse`, only its own."""
    where = Device(device).check()
    return self._apply(lambda t: ops.empty(tuple(t.shape), t.dtype, where), recurse)


def type(self: Module, dst_type: Any) -> Module:
    """Cast every floating parameter and buffer."""
    return sent(self, dst_type)


def share_memory(self: Module) -> Module:
    """Move parameters and buffers to memory that other processes see."""
    return self._apply(lambda t: t.share_memory_())  # type: ignore[attr-defined]  # bound from the registry


def set_submodule(self: Module, target: str, module: Module, strict: bool = False) -> None:
    """Put a module at a dotted path."""
    path, _, name = target.rpartition(".")
    owner = self.get_submodule(path)
    if strict and name not in owner._modules:
        raise AttributeError(f"{owner._get_name()} has no module `{name}` that could be replaced")
    setattr(owner, name, module)


def __setstate__(self: Module, state: dict[str, Any]) -> None:
    """For subclasses that add to what a copy gets."""
    self.__dict__.update(state)


def register_full_backward_pre_hook(self: Module, hook: Any, prepend: bool = False) -> RemovableHook:
    """`hook(module, grad_output)` before the module's backward; what it returns replaces the gradients."""
    return self._hook("backward_pre", hook, first=prepend)


def _register_load_state_dict_pre_hook(self: Module, hook: Any, with_module: bool = False) -> RemovableHook:
    """`register_load_state_dict_pre_hook`, with the module as the first argument or without."""
    return self._hook("load_pre", hook, with_module)


def register_load_state_dict_post_hook(self: Module, hook: Any) -> RemovableHook:
    """`hook(module, incompatible_keys)` after everything was loaded."""
    return self._hook("load_post", hook)


def register_backward_hook(self: Module, hook: Callable[..., Any]) -> RemovableHook:
    """`register_full_backward_hook`, by its older name."""
    return self.register_full_backward_hook(hook)


def register_state_dict_pre_hook(self: Module, hook: Callable[..., Any]) -> RemovableHook:
    """`hook(module, prefix, keep_vars)` before the module's part is added."""
    return self._hook("state_dict_pre", hook)


def compile(self: Module, *args: Any, **options: Any) -> None:
    """Nothing: what compiles here is `nn.Graph`."""


for _f in (
    __setstate__, to_consistent, to_empty, type, share_memory, set_submodule, register_backward_hook,
    register_full_backward_pre_hook, register_state_dict_pre_hook, _register_load_state_dict_pre_hook,
    register_load_state_dict_post_hook, compile,
):  # fmt: skip
    setattr(Module, _f.__name__, _f)
