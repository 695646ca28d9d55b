"""Parametrizations: a parameter or buffer that modules compute from others whenever it is read.

Under `module.parametrizations.<name>` lie the modules, and as `original` (or `original0`, `original1`, ...) the tensors
that are trained instead; the module becomes one of a class of its own, on which the name is a property.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from weft.autograd import no_grad
from weft.core.errors import CheckpointError, OptionError
from weft.nn.containers import ModuleDict, ModuleList
from weft.nn.members import MODULE
from weft.nn.module import Module
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor


class _Cache(threading.local):
    """What was computed since the outermost `cached()` of this thread began; None outside of one."""

    values: dict[tuple[int, str], Tensor] | None = None


_cache: Final = _Cache()


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once: for weights that are used many times in a step."""
    before = _cache.values
    _cache.values = {} if before is None else before
    try:
        yield
    finally:
        _cache.values = before


class ParametrizationList(ModuleList):
    """The modules of one parametrized tensor, and what the first of them is given."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise OptionError("a parametrized tensor has at least one parametrization")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        value: Any = original
        with no_grad():
            for m in reversed(list(self)):
                if hasattr(m, "right_inverse"):
                    try:
                        value = m.right_inverse(value)
                    except NotImplementedError:  # it can't say; then what it is given is what it was to give
                        pass
        self.is_tensor = isinstance(value, Tensor)
        if isinstance(value, Tensor):
            if value.dtype is not dtype:
                raise OptionError(
                    f"right_inverse gave {value.dtype} for a tensor of {dtype}; the tensor that is trained instead "
                    "should have the same dtype"
                )
            if value is not original:
                original.data = value.detach()
            self._keep("original", original)
        elif isinstance(value, Sequence) and all(isinstance(t, Tensor) for t in value):
            self.ntensors = len(value)
            for i, t in enumerate(value):
                wanted = original.requires_grad
                self._keep(f"original{i}", Parameter(t.detach(), wanted) if isinstance(original, Parameter) else t)
        else:
            raise OptionError(f"right_inverse gives a tensor, or a sequence of them; it gave {type(value).__name__}")
        if not unsafe:
            _same_form("registering a parametrization", self(), shape, dtype)

    def _keep(self, name: str, value: Tensor) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Any:
        first, *others = self
        value = first(*self.originals())
        for m in others:
            value = m(value)
        return value

    def right_inverse(self, value: Any) -> None:
        """Set the tensors that are trained such that the parametrized one becomes this value."""
        with no_grad():
            for m in reversed(list(self)):
                if not hasattr(m, "right_inverse"):
                    raise OptionError(
                        f"the parametrization {type(m).__name__} has no right_inverse, so its tensor can't be "
                        "assigned; assign to what it is computed from: module.parametrizations.<name>.original"
                    )
                value = m.right_inverse(value)
            values = [value] if isinstance(value, Tensor) else list(value)
            own = self.originals()
            if len(values) != len(own) or any(v.dtype is not t.dtype for v, t in zip(values, own, strict=False)):
                raise OptionError(
                    f"right_inverse gave {[v.dtype for v in values]}; what is trained are {[t.dtype for t in own]}"
                )
            for t, v in zip(own, values, strict=True):
                if t is not v:
                    t.data = v.detach()


def _same_form(what: str, value: Any, shape: Any, dtype: Any) -> None:
    if not isinstance(value, Tensor) or value.shape != shape or value.dtype is not dtype:
        given = f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise OptionError(
            f"{what} gave {given} in the place of a tensor of {dtype}{list(shape)}; if that is meant, pass unsafe=True"
        )


# ---- the class of a parametrized module --------------------------------------------------------------


def _read(module: Any, name: str) -> Any:
    held = module.parametrizations[name]
    if _cache.values is None:
        return held()
    key = id(module), name
    if key not in _cache.values:
        _cache.values[key] = held()
    return _cache.values[key]


class _Parametrized:
    """What a parametrized module's class has beside the properties."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property) and is_parametrized(self, name):
            self.parametrizations[name].right_inverse(value)  # type: ignore[attr-defined]
        else:
            super().__setattr__(name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = type(self).__new__(_class_of(type(self).__bases__[1], self.parametrizations))  # type: ignore[attr-defined]
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise CheckpointError(
            "a parametrized module is of a class made at run time, which a file can't name; save its state_dict()"
        )


def _class_of(kind: type, names: Any) -> type:
    made = type(f"Parametrized{kind.__name__}", (_Parametrized, kind), {"__module__": kind.__module__})
    for name in names:
        _show(made, name)
    return made


def _show(kind: type, name: str) -> None:
    setattr(kind, name, property(lambda self: _read(self, name)))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """From now on `module.<tensor_name>` is what the parametrization makes of that tensor. Gives the module.

    Several are applied one after another. With a method `right_inverse`, the tensor keeps its value, and can be
    assigned. `unsafe` allows another shape or dtype.

    >>> class Symmetric(flow.nn.Module):
    ...     def forward(self, x): return x.triu() + x.triu(1).T
    >>> m = flow.nn.utils.parametrize.register_parametrization(flow.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((m.weight == m.weight.T).all()), [name for name, _ in m.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        held: Any = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _same_form("a further parametrization", after, before.shape, before.dtype)
            if hasattr(parametrization, "right_inverse"):
                back: Any = parametrization.right_inverse(after)
                _same_form("its right_inverse", back, before.shape, before.dtype)
        held.append(parametrization)
        held.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise OptionError(
            f"{type(module).__name__} has no parameter or buffer {tensor_name!r} of its own to parametrize; "
            f"it has {', '.join([*module._parameters, *module._buffers]) or 'none'}"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _class_of(type(module), ())
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = made
    _show(type(module), tensor_name)
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrized tensors, or this one."""
    held = module.__dict__.get("parametrizations")
    if module._roles.get("parametrizations") != MODULE or not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a tensor a plain one again: of the value that it has now, or of its original's. Gives the module."""
    if not is_parametrized(module, tensor_name):
        raise OptionError(f"{type(module).__name__} has no parametrization of {tensor_name!r}")
    held: Any = module.parametrizations[tensor_name]
    if not leave_parametrized and not held.is_tensor:
        raise OptionError(f"{tensor_name!r} is computed from several tensors: there is no single one to go back to")
    with no_grad():
        value = getattr(module, tensor_name).detach()
    original = held.originals()[0]
    if not held.is_tensor:
        wanted = any(t.requires_grad for t in held.originals())
        original = Parameter(value, wanted) if isinstance(original, Parameter) else value
    elif leave_parametrized:
        original.data = value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[1]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before something of it was parametrized."""
    return type(module).__bases__[1] if is_parametrized(module) else type(module)


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "type_before_parametrizations",
]  # fmt: skip
