"""Less common methods of `Module`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.device import Device
from weft.nn.module.module import Module
from weft.nn.module.moving import sent
from weft.ops import ops
from weft.tensor.tensor import RemovableHook


def to_consistent(self: Module, placement: Any = None, sbp: Any = None) -> Module:
    """`to_global`, under its deprecated name."""
    return self.to_global(placement, sbp)


def to_empty(self: Module, *, device: Any, recurse: bool = True) -> Module:
    """Move to a device without values: parameters are uninitialized then. Without `recurse`, only the module's own."""
    where = Device(device).check()
    return self._apply(lambda t: ops.empty(tuple(t.shape), t.dtype, where), recurse)


def type(self: Module, dst_type: Any) -> Module:
    """Cast every floating parameter and buffer."""
    return sent(self, dst_type)


def share_memory(self: Module) -> Module:
    """Move parameters and buffers to shared memory."""
    return self._apply(lambda t: t.share_memory_())  # type: ignore[attr-defined]  # bound from the registry


def set_submodule(self: Module, target: str, module: Module, strict: bool = False) -> None:
    """Replace the module at a dotted path."""
    path, _, name = target.rpartition(".")
    owner = self.get_submodule(path)
    if strict and name not in owner._modules:
        raise AttributeError(f"{owner._get_name()} has no module `{name}` that could be replaced")
    setattr(owner, name, module)


def __setstate__(self: Module, state: dict[str, Any]) -> None:
    """Unpickling; for subclasses to extend."""
    self.__dict__.update(state)


def register_full_backward_pre_hook(self: Module, hook: Any, prepend: bool = False) -> RemovableHook:
    """Call `hook(module, grad_output)` before the module's backward; its result, if any, replaces the gradients."""
    return self._hook("backward_pre", hook, first=prepend)


def _register_load_state_dict_pre_hook(self: Module, hook: Any, with_module: bool = False) -> RemovableHook:
    """`register_load_state_dict_pre_hook`, with the module as the first argument or without."""
    return self._hook("load_pre", hook, with_module)


def register_load_state_dict_post_hook(self: Module, hook: Any) -> RemovableHook:
    """Call `hook(module, incompatible_keys)` after loading."""
    return self._hook("load_post", hook)


def register_backward_hook(self: Module, hook: Callable[..., Any]) -> RemovableHook:
    """`register_full_backward_hook`, under its deprecated name."""
    return self.register_full_backward_hook(hook)


def register_state_dict_pre_hook(self: Module, hook: Callable[..., Any]) -> RemovableHook:
    """Call `hook(module, prefix, keep_vars)` before the module's entries are added."""
    return self._hook("state_dict_pre", hook)


def compile(self: Module, *args: Any, **options: Any) -> None:
    """Does nothing: `nn.Graph` compiles here."""


for _f in (
    __setstate__, to_consistent, to_empty, type, share_memory, set_submodule, register_backward_hook,
    register_full_backward_pre_hook, register_state_dict_pre_hook, _register_load_state_dict_pre_hook,
    register_load_state_dict_post_hook, compile,
):  # fmt: skip
    setattr(Module, _f.__name__, _f)
