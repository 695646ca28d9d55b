"""Convert torch's modules to Weft's tensors, and back.

`from_torch` copies the tree of modules, not the memory: each module's class gets a derived class that is also a
`nn.Module` of Weft's. The class's own methods come first, so `forward` is the code as it was written; Weft's `Module`
replaces torch's as the base, so parameters, states, layouts and graphs are Weft's.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Iterator
from types import FunctionType, GeneratorType
from typing import Any

import torch
from torch.utils._pytree import tree_map_with_path

from weft.autograd.plain import refuse_trained
from weft.autograd.trees import leaves, mapped
from weft.core.dispatch import here
from weft.core.errors import ArgumentError
from weft.core.stored import stored
from weft.interop import bypasses
from weft.interop.closures import follow_copies
from weft.interop.entering import WEFTS, Callback, contains, entered, items_outside, outside_of_modules, seeing_tensors
from weft.interop.facade import (
    COPIED,
    Facade,
    cached_facade,
    call_outside,
    facade,
    inward,
    outward,
    records_inward,
    without_torch_function,
)
from weft.interop.inside import inside
from weft.nn.module.hooks import Hooks, Watch
from weft.nn.module.members import BUFFER, MODULE, PARAMETER, TABLES, Members, Owner, exchange
from weft.nn.module.module import Module
from weft.tensor.data import whole_data
from weft.tensor.parameter import Buffer, Parameter
from weft.tensor.tensor import Tensor, of_torch


class Member:
    """A descriptor of an attribute with a tensor: inside torch's code it gives a facade."""

    def __init__(self, name: str, inner: Any) -> None:
        self.name, self.inner = name, inner

    def __get__(self, module: Any, kind: type | None = None) -> Any:
        if module is None or self.name not in stored(module):
            if self.inner is not None:
                return self.inner.__get__(module, kind) if hasattr(self.inner, "__get__") else self.inner
            raise AttributeError(f"{kind.__name__ if module is None else module._get_name()} has no {self.name!r}")  # type: ignore[union-attr]
        value = stored(module)[self.name]
        return cached_facade(value) if inside.depth and isinstance(value, Tensor) else value

    def __set__(self, module: Any, value: Any) -> None:
        stored(module)[self.name] = value

    def __delete__(self, module: Any) -> None:
        del stored(module)[self.name]


class Table(Members):
    """A module's members of one role, `module._buffers`: inside torch's code facades."""

    def __getitem__(self, name: str) -> Any:
        return _as_seen(super().__getitem__(name))

    def __setitem__(self, name: str, value: Any) -> None:
        if bypasses.in_torch_code():
            value = adopted(value)
            value = value.of if type(value) is Facade else value
            _add_member(type(self.module), name)
        super().__setitem__(name, value)

    def _dict(self) -> dict[str, Any]:
        return {name: _as_seen(value) for name, value in super()._dict().items()}


def _as_seen(value: Any) -> Any:
    return cached_facade(value) if isinstance(value, Tensor) and bypasses.in_torch_code() else value


def _table(role: str) -> Any:
    return property(lambda module: Table(module, role), lambda module, values: exchange(Table(module, role), values))


class Watched:
    """Adapts a module's backward hooks to facades, which its `forward` sees."""

    def __init__(self, module: Any, hooks: Any) -> None:
        self.watch = Watch(module, hooks, Callback)

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        with without_torch_function():
            return outward(self.watch.inputs(inward(args)))

    def outputs(self, result: Any) -> Any:
        with without_torch_function():
            return outward(self.watch.outputs(inward(result)))


def _taken(v: Any) -> Any:
    return inward(v) if isinstance(v, torch.Tensor) else v


class Absent:
    """Hides a class attribute of torch's base class that only declares a missing one."""

    def __get__(self, module: Any, kind: type) -> Any:
        raise AttributeError(f"{kind.__name__} keeps nothing beside its tensors")


TORCHS: Any = torch.nn.Module  # any, as its methods say torch's tensors where Weft's say Weft's


class TorchModule(Module, TORCHS):
    """The base class that replaces torch's own `Module` in converted classes."""

    torch_class: type
    _parameters, _buffers = _table(PARAMETER), _table(BUFFER)
    get_extra_state: Any = Absent()
    set_extra_state: Any = Absent()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not inside.depth:
            refuse_trained((*args, *kwargs.values()), True)
            with entered((*args, *kwargs.values(), *_tensors(self))):
                return call_outside(self, args, kwargs)
        if here.trace is None:
            return self.forward(*args, **kwargs) if self._hooks is None else self._call(*args, **kwargs)

        made: Any = None
        given = {id(v.of): v for v in (*args, *kwargs.values()) if type(v) is Facade}  # with what its code set on them

        def lent(v: Any) -> Any:
            return given[id(v)] if id(v) in given else outward(v) if isinstance(v, Tensor) else v

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal made
            made = self._call(*map(lent, args), **{k: lent(v) for k, v in kwargs.items()})
            return records_inward(made)

        # its own lists and dicts are passed on as they are, as it may change them
        here.trace.call_module(self, call, tuple(map(_taken, args)), {k: _taken(v) for k, v in kwargs.items()})
        return made

    def _watch(self, hooks: Any) -> Any:
        return Watched(self, hooks)

    def _hook(self, kind: str, hook: Any, *more: Any, **options: Any) -> Any:
        """Add a hook. Those of Weft's own around `forward` see its tensors, others see facades, as `forward` does."""
        own = kind in ("forward_pre", "forward") and getattr(hook, "__module__", "").startswith("weft.")
        return super()._hook(kind, seeing_tensors(hook) if own else hook, *more, **options)

    def __setattr__(self, name: str, value: Any) -> None:
        value = adopted(value)
        known = stored(self).get("_roles", {}).get(name)
        if type(value) is Facade and (known is not None or type(value.of) is not Buffer):
            value = value.of
            if known is None:
                _add_member(type(self), name)
        super().__setattr__(name, value)

    def _take(self, name: str, role: str, value: Any) -> None:
        super()._take(name, role, value)
        if role != MODULE:
            _add_member(type(self), name)

    def _register(self, role: str, name: str, value: Any, kind: type) -> None:
        value = adopted(value)
        super()._register(role, name, value.of if type(value) is Facade else value, kind)

    def _named_members(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        found = super()._named_members(*args, **kwargs)
        return ((name, cached_facade(t)) for name, t in found) if inside.depth else found

    def _get(self, target: str, role: str) -> Any:
        return _as_seen(super()._get(target, role))

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        found = super().state_dict(*args, **kwargs)
        if bypasses.in_torch_code():
            found.update({name: facade(t) for name, t in found.items() if isinstance(t, Tensor)})
        return found

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        with without_torch_function():  # as torch's recurrent layers call it from their own
            return super()._apply(fn, recurse)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        with without_torch_function():
            return super().to(*inward(args), **inward(kwargs))

    def load_state_dict(self, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        return super().load_state_dict(inward(dict(state_dict)), *args, **kwargs)

    @property
    def _load_state_dict_post_hooks(self) -> dict[int, Any]:
        """As a module of torch's reads them that holds this one, an adapter's, when it loads its state."""
        return {i: hook for i, (hook, _) in enumerate(self._hooks_of("load_post"))}

    def extra_repr(self) -> str:
        return self.torch_class.extra_repr(self)


def _tensors(module: Module) -> Iterator[Any]:
    """The parameters and buffers in a tree of modules, some perhaps twice: in less time than `parameters()` takes."""
    todo, seen = [module], {id(module)}
    for m in todo:
        held = stored(m)
        for name, role in m._roles.items():
            value = held[name]
            if role != MODULE:
                yield value
            elif value is not None and id(value) not in seen:
                seen.add(id(value))
                todo.append(value)


def _add_member(kind: type, name: str) -> None:
    known = getattr(kind, name, None)
    if type(known) is not Member:
        setattr(kind, name, Member(name, known))


# ---- from torch --------------------------------------------------------------------------------------


def from_module(module: torch.nn.Module | Module) -> Any:
    """The same module on Weft's tensors, over the same memory."""
    if isinstance(module, Module):
        return module
    with _lock:
        bypasses.install()
    memo: dict[int, Any] = {}
    for m in torch.nn.Module.modules(module):
        if isinstance(m, Module):
            memo[id(m)] = m
            continue
        if isinstance(m, torch.jit.ScriptModule):
            raise ArgumentError(
                f"from_torch({type(module).__name__}): {m.original_name} is compiled by TorchScript, whose code is not "
                "Python's. Give the module that torch.jit.script was given, or a new one of its class that loads the "
                "state_dict()"
            )
        for t in (*m._parameters.values(), *m._buffers.values()):
            if t is not None and id(t) not in memo:
                memo[id(t)] = facade_over(t)
        for g in leaves([*vars(m).values()]):
            if isinstance(g, torch.Generator):  # whose state is a tensor of torch's
                memo[id(g)] = g.clone_state()
            elif isinstance(g, staticmethod):  # which Python can't copy
                memo[id(g)] = g
    with _Copying():
        made = copy.deepcopy(module, memo)
    follow_copies(made, memo)
    return adopted(made)  # a copy may hold tensors that were made for it, from a module's pickle, say


def _convert_tree(module: torch.nn.Module) -> None:
    with _lock:  # ranks that are threads share the derived classes
        for m in list(torch.nn.Module.modules(module)):
            if not isinstance(m, Module):
                _convert(m)


def adopted(value: Any) -> Any:
    """What a converted module is given: a module of torch's becomes Weft's itself, as others may refer to it, and so do
    the parameters that it holds; a parameter becomes Weft's over the same memory. Others stay as they are."""
    if type(value) is torch.nn.Parameter:
        return facade_over(value).of
    if not isinstance(value, torch.nn.Module) or isinstance(value, Module):
        return value
    known: dict[int, Any] = {}

    def turned(v: Any) -> Any:
        return known.setdefault(id(v), facade_over(v)) if isinstance(v, torch.Tensor) and type(v) is not Facade else v

    for m in torch.nn.Module.modules(value):
        for name, held in [] if isinstance(m, Module) else [*m.__dict__.items()]:
            if any(turned(v) is not v for v in leaves(held)):
                m.__dict__[name] = mapped(held, turned)
        if here.trace is not None and not isinstance(m, Module):
            here.trace.attributes.make(m)
    _convert_tree(value)
    return value


_lock = threading.RLock()


def facade_over(t: torch.Tensor) -> Facade:
    with without_torch_function():
        data = of_torch(t.detach())
        if not isinstance(t, torch.nn.Parameter):
            return facade(data)
        p = Parameter(data, t.requires_grad)
        if t.grad is not None:
            p.grad = of_torch(t.grad.detach())
        vars(p).update(vars(t))  # what a library has set on it, and asks for
        return cached_facade(p)


class _Copying(torch.overrides.TorchFunctionMode):
    """A mode in which copied tensors become Weft's."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__deepcopy__:
            x, memo = args
            return memo.setdefault(id(x), facade_over(x))
        return func(*args, **(kwargs or {}))


HOOK_TABLES = {
    "_forward_pre_hooks": "forward_pre", "_forward_hooks": "forward",
    "_backward_pre_hooks": "backward_pre", "_backward_hooks": "backward",
    "_load_state_dict_post_hooks": "load_post", "_state_dict_pre_hooks": "state_dict_pre",
    "_state_dict_hooks": "state_dict",
}  # fmt: skip
FLAGS = ("_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")


def _convert(m: Any) -> None:
    """Turn a copied torch module into one of Weft's: its tables of members, and its class."""
    held = m.__dict__
    roles: dict[str, str] = {}
    members: dict[str, Any] = {}
    for role, table in TABLES.items():
        for name, value in held.pop(table).items():
            roles[name], members[name] = role, value.of if type(value) is Facade else value
    held["_non_persistent"] = frozenset(held.pop("_non_persistent_buffers_set"))
    hooks = {kind: held[table] for table, kind in HOOK_TABLES.items() if held.get(table)}
    with_kwargs = {**held.get("_forward_pre_hooks_with_kwargs", {}), **held.get("_forward_hooks_with_kwargs", {})}
    for name in torch.nn.Module().__dict__.keys() - {"training", *(FLAGS if hooks else ())}:  # which handles refer to
        held.pop(name, None)
    plain = {name: value.of for name, value in held.items() if type(value) is Facade}
    own = [n for n, value in held.items() if isinstance(value, Module) and not isinstance(value, TorchModule)]
    roles.update(dict.fromkeys(own, MODULE))  # layers of Weft's, which torch doesn't count as members
    held["_roles"] = roles
    held.update(members, **plain)
    object.__setattr__(m, "__class__", _derived_class(type(m)))
    for name in (*(n for n, role in roles.items() if role != MODULE), *plain):
        _add_member(type(m), name)
    for kind, table in hooks.items():
        table.update({key: (hook, key in with_kwargs) for key, hook in table.items()})
        held.setdefault("_hooks", Hooks()).tables[kind] = table  # the same one, by which handles remove hooks


@functools.cache
def _derived_class(kind: type) -> type:
    """The derived class of a converted module, cached."""
    space: dict[str, Any] = {
        "torch_class": kind, "__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__,
        "__dict__": Owner.__dict__["__dict__"],  # a class without it that comes before would show what is stored
    }  # fmt: skip
    for c in reversed(kind.__mro__):  # also what stands behind torch's Module, such as the `generate` of transformers
        for name, value in vars(c).items() if c is not torch.nn.Module else ():
            own = isinstance(value, FunctionType) and value is getattr(kind, name)
            if own and name in WRITING:
                space[name] = on_torchs_tensors(value)
            elif own and (name == "__call__" or not name.startswith("__")) and name != "extra_repr":
                space[name] = _wrap_method(_applying(value) if name == "_apply" else value)
            elif isinstance(value, property) and value.fget is not None and value is getattr(kind, name):
                space[name] = value.getter(_wrap_method(value.fget))
    registered = hasattr(kind.__init_subclass__, "__func__")  # by a library's base class, which isn't to know this one
    alone = registered or TORCHS is kind  # a plain one, which holds the parts of another
    made = type(kind)(kind.__name__, (TorchModule,) if alone else (kind, TorchModule), space)
    if registered:
        made.__bases__ = kind, TorchModule
    return made


def _applying(f: Callable[..., Any]) -> Callable[..., Any]:
    """A class's own `_apply`, as metrics have: what it finds in its attributes is torch's, but `fn` is Weft's."""

    @functools.wraps(f)
    def apply(self: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return f(self, lambda t: fn(t) if isinstance(t, Tensor) else outward(fn(inward(t))), *args, **kwargs)

    return apply


def _wrap_method(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method so that it can also be called from outside of torch's code."""

    @functools.wraps(f)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if inside.depth:
            return f(self, *args, **kwargs)
        refuse_trained((*args, *kwargs.values()), False)  # parameters may become the module's own
        given = (*args, *kwargs.values(), *_tensors(self))
        with entered(given):
            result = call_outside(functools.partial(f, self), args, kwargs)
        return items_outside(result, given) if isinstance(result, GeneratorType) else result

    return call


# ---- and back ----------------------------------------------------------------------------------------


def to_module(module: Any) -> torch.nn.Module:
    """Convert back to a torch module, over the same memory; global tensors are gathered."""
    if not isinstance(module, TorchModule):
        raise ArgumentError(
            f"to_torch gives a module of torch's back that from_torch took; {type(module).__name__} was written for "
            "Weft. Its state goes over by names: torch_module.load_state_dict({k: flow.to_torch(v) for k, v in "
            "module.state_dict().items()})"
        )
    memo: dict[Any, Any] = {COPIED: True}
    plain = (t for m in Module.modules(module) for t in stored(m).values() if isinstance(t, Tensor))
    for t in (*module.parameters(), *module.buffers(), *plain):
        if id(t) not in memo:
            memo[id(t)] = memo[id(cached_facade(t))] = as_torchs(t)
    made = copy.deepcopy(module, memo)
    for m in list(Module.modules(made)):
        _convert_back(m)
    follow_copies(made, memo)
    return made


def as_torchs(t: Tensor) -> torch.Tensor:
    data = whole_data(t.detach(), "to_torch()")
    if type(t) is not Parameter:
        return data.detach().requires_grad_(t.requires_grad)
    p = torch.nn.Parameter(data, t.requires_grad)
    if t.grad is not None:
        p.grad = whole_data(t.grad.detach(), "to_torch()")
    return p


def _convert_back(m: Any) -> None:
    held = stored(m)
    hooks: Any = held.pop("_hooks", None)
    roles, kept_out = held.pop("_roles"), held.pop("_non_persistent", frozenset())
    object.__setattr__(m, "__class__", m.torch_class)
    held.update({k: v for k, v in torch.nn.Module().__dict__.items() if k not in held})
    for name, role in roles.items():
        held[TABLES[role]][name] = held.pop(name)
    held["_non_persistent_buffers_set"] = set(kept_out)
    for table, kind in HOOK_TABLES.items() if hooks else ():
        held[table] = known = hooks.tables[kind]
        for key, (hook, flag) in known.items():
            known[key] = hook
            held.get(f"{table}_with_kwargs", {}).update({key: True} if flag else {})
    held["_is_full_backward_hook"] = True if held["_backward_hooks"] else None


# ---- torch's own functions on what is Weft's ----


def data_of(t: Any, name: str = "") -> Any:
    """A local tensor as torch's, over the same memory; other values unchanged."""
    if not isinstance(t, Tensor):
        return t
    if t.is_global:
        raise ArgumentError(
            f"this takes what one rank has, and {name or 'the tensor'} is global: "
            "flow.save(state, 'model.safetensors') writes the same format, and flow.save(state, folder, "
            "max_shard_size='5GB') a model's folder, each rank its own slices"
        )
    return t.detach().to_torch()


def _torchs(path: Any, v: Any) -> Any:
    """One of Weft's tensors or modules as torch's, over the same memory; other values unchanged."""
    if isinstance(v, Module):
        return to_module(v)
    return data_of(v.of if type(v) is Facade else v, str(getattr(path[-1], "key", "")))


@functools.cache
def on_torchs_tensors(theirs: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Run what writes, reads or sends tensors on torch's own, and as if it weren't called by a module."""

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not inside.depth and not contains((*args, *kwargs.values()), WEFTS):
            return theirs(*args, **kwargs)
        with outside_of_modules():
            args, kwargs = tree_map_with_path(_torchs, (args, kwargs))
            return theirs(*args, **kwargs)

    return call


WRITING = ("save_pretrained",)  # methods that write a model's files
