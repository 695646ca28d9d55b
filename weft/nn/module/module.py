"""`nn.Module`: the base class of models, with parameters, buffers and modules as attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from weft.autograd import no_grad
from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, OptionError
from weft.core.placement import Placement
from weft.core.stored import stored
from weft.nn.module import hooks, moving, refusals
from weft.nn.module import state_dict as states
from weft.nn.module.hooks import Hooks, Watch
from weft.nn.module.members import BUFFER, MODULE, PARAMETER, Members, Owner, of_role, printed, show_members
from weft.nn.module.refusals import TORCHS
from weft.ops import ops
from weft.tensor.counters import counters
from weft.tensor.parameter import Buffer, Parameter, is_lazy
from weft.tensor.tensor import RemovableHook, Tensor


class Module(Owner):
    """The base class of models. Assign parameters and modules as attributes, and define `forward`.

    >>> class Net(flow.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = flow.nn.Linear(2, 3)
    ...     def forward(self, x):
    ...         return self.inner(x).relu()
    >>> Net()
    Net(
      (inner): Linear(in_features=2, out_features=3, bias=True)
    )
    """

    training: bool = True
    _roles: dict[str, str]
    _version: int = 1  # of the class' state, by which `_load_from_state_dict` recognizes older ones
    _since: Mapping[str, int] = {}  # per member, the first `_version` with it: older states lack it
    _non_persistent: frozenset[str] = frozenset()
    _hooks: Hooks | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        show_members(cls)
        refusals.guard(cls)

    @refusals.constructing
    def __init__(self) -> None:
        if here.trace is not None:
            here.trace.attributes.make(self)
        stored(self)["_roles"] = {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{self._get_name()}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if here.trace is not None:
            return here.trace.call_module(self, self._call, args, kwargs)
        if self._hooks is not None:
            return hooks.call(self, args, kwargs)
        try:  # as refusals.forward does, without its call
            return self.forward(*args, **kwargs)
        except Exception as cause:
            if (own := refusals.explain(self, cause, args, kwargs)) is None:
                raise
        return refusals.forward(self, *own)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        return refusals.forward(self, args, kwargs) if self._hooks is None else hooks.call(self, args, kwargs)

    # ---- attributes ----------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """An attribute, for programs that call this by its name; or Python's own error."""
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if here.trace is not None:
            here.trace.attributes.see(self, name)
        role = PARAMETER if isinstance(value, Parameter) else MODULE if isinstance(value, Module) else None
        if role is None and isinstance(value, TORCHS):
            value = refusals.of_torch(self, name, value, stored(self).get("_roles", {}).get(name))
        roles = stored(self).get("_roles")
        if roles is None:
            if role is not None or isinstance(value, Buffer):
                raise AttributeError(f"cannot assign {role or BUFFER} before Module.__init__() call")
            return object.__setattr__(self, name, value)
        known = roles.get(name)
        if role is None and known in (None, BUFFER) and isinstance(value, Buffer):
            role = BUFFER
            self._persist(name, value.persistent)
        if known is not None and (role is None or (role, known) == (MODULE, PARAMETER)):
            if value is not None and not (known == BUFFER and isinstance(value, Tensor)):
                wanted = {PARAMETER: "nn.Parameter", BUFFER: "Tensor", MODULE: "nn.Module"}[known]
                raise ArgumentError(
                    f"cannot assign '{type(value).__name__}' as {known} '{name}' ({wanted} or None expected)"
                    + (f"; delete it first: del module.{name}" if known != PARAMETER else "; wrap it: nn.Parameter(x)")
                )
            role = known
        if role is None:
            return object.__setattr__(self, name, value)
        if known is not None and known != role:
            del roles[name]  # it moves to the end of its new role
        by = f"register_{role}"
        if role != MODULE and getattr(type(self), by) is not getattr(Module, by):  # subclasses may override
            if known != role:
                stored(self).pop(name, None)
            return getattr(self, by)(name, value, *([False] if name in self._non_persistent else []))
        return self._take(name, role, value)

    def _take(self, name: str, role: str, value: Any) -> None:
        if name in self._roles and stored(self)[name] is not value and BUFFER not in (role, self._roles[name]):
            counters.exchanged += 1
        for hook, _ in hooks.EVERYWHERE.tables[role].values() if value is not None or role != PARAMETER else ():
            changed = hook(self, name, value)
            value = value if changed is None else changed
        Members(self, role)[name] = value

    def __delattr__(self, name: str) -> None:
        if self._roles.pop(name, BUFFER) != BUFFER:
            counters.exchanged += 1
        if name in self._non_persistent:
            stored(self)["_non_persistent"] = self._non_persistent - {name}
        object.__delattr__(self, name)

    _forward_pre_hooks, _forward_hooks = hooks.table("forward_pre"), hooks.table("forward")
    _backward_pre_hooks, _backward_hooks = hooks.table("backward_pre"), hooks.table("backward")
    _state_dict_hooks, _load_state_dict_pre_hooks = hooks.table("state_dict"), hooks.table("load_pre")

    def _register(self, role: str, name: str, value: Any, kind: Any) -> None:
        if "_roles" not in stored(self):
            raise AttributeError(f"cannot assign {role} before Module.__init__() call")
        if not isinstance(name, str) or not name or "." in name:
            error = KeyError if isinstance(name, str) else ArgumentError
            raise error(f'a {role}\'s name is a non-empty string without "."; got {name!r}')
        if hasattr(self, name) and self._roles.get(name) != role:
            raise KeyError(f"attribute '{name}' already exists")
        if value is not None and not isinstance(value, kind):
            value = refusals.of_torch(self, name, value, role)
            if not isinstance(value, kind):
                raise refusals.unfit(name, value, role, kind)
        self._take(name, role, value)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        if isinstance(param, Parameter) and param.grad_fn is not None:
            raise ArgumentError(f"cannot assign non-leaf Tensor to parameter '{name}': a parameter must be a leaf")
        self._register(PARAMETER, name, param, Parameter)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """A tensor of the module's state that isn't trained; saved unless `persistent=False`."""
        self._register(BUFFER, name, tensor, Tensor)
        self._persist(name, persistent)

    def _persist(self, name: str, persistent: bool) -> None:
        """Set whether a buffer is saved."""
        names = self._non_persistent - {name} if persistent else self._non_persistent | {name}
        stored(self)["_non_persistent"] = names

    def register_module(self, name: str, module: Module | None) -> None:
        self._register(MODULE, name, module, Module)

    add_module = register_module

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; "" is this one."""
        found: Any = self
        for part in target.split(".") if target else ():
            if part not in found._modules:
                raise AttributeError(f"{found._get_name()} has no module `{part}`, on the path {target!r}")
            found = found._modules[part]
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module at a dotted path."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if strict and name not in owner._modules:
            raise AttributeError(f"{owner._get_name()} has no module `{name}` that could be replaced")
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        return self._get(target, PARAMETER)

    def get_buffer(self, target: str) -> Tensor:
        return self._get(target, BUFFER)

    def _get(self, target: str, role: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if owner._roles.get(name) != role:
            raise AttributeError(f"{owner._get_name()} has no {role} `{name}`")
        return stored(owner)[name]

    # ---- iteration -----------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all submodules with their paths, parents first."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, child in of_role(self, MODULE):
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        seen: set[int] = set()
        for name, child in of_role(self, MODULE):
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> Iterator[Module]:
        return (child for _, child in self.named_children())

    def _named_members(
        self, get: Callable[[Module], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        walk = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, m in walk:
            for name, value in get(m):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        return self._named_members(lambda m: of_role(m, PARAMETER), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        return self._named_members(lambda m: of_role(m, BUFFER), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (b for _, b in self.named_buffers(recurse=recurse))

    # ---- conversion ----------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every submodule, then on this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of each parameter and buffer (and gradient) by the result of `fn`.

        The objects are kept, for optimizers and tied weights. Submodules' own methods are called.
        """
        for child in self.children() if recurse else ():
            child._apply(fn)
        with no_grad():
            own = [t for t in (*self._parameters.values(), *self._buffers.values()) if t is not None]
            made = [(t, fn(t.data if is_lazy(t) else t), None if t._grad is None else fn(t._grad)) for t in own]
        for t, new, grad in made:
            if new is not t:
                t._hold(new)
            t._grad = grad  # its dtype may differ, if a program replaced only `.data`
        self._buffers.compare()
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """`to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`. Only floating point members take a dtype."""
        if args and (found := moving.of_kind(self, args[0])) is not None:
            return found
        return moving.sent(self, *args, **kwargs)

    def cpu(self) -> Self:
        return moving.sent(self, "cpu")

    def cuda(self, device: Any = None) -> Self:
        return moving.sent(self, Device("cuda", device) if isinstance(device, int) else device or "cuda")

    def float(self) -> Self:
        return moving.sent(self, dtypes.float32)

    def double(self) -> Self:
        return moving.sent(self, dtypes.float64)

    def half(self) -> Self:
        return moving.sent(self, dtypes.float16)

    def bfloat16(self) -> Self:
        return moving.sent(self, dtypes.bfloat16)

    def type(self, dst_type: Any) -> Self:
        """Cast every floating parameter and buffer."""
        return moving.sent(self, dst_type)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without values: parameters are uninitialized. Without `recurse`, the module's own only.
        Global tensors keep their layout, in new memory."""
        where = Device(device).check()

        def fresh(t: Tensor) -> Tensor:
            return ops.clone(t) if t.is_global else ops.empty(tuple(t.shape), t.dtype, where)

        return self._apply(fresh, recurse)

    def share_memory(self) -> Self:
        """Move parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())

    def to_global(self, placement: Placement | None = None, sbp: Any = None) -> Self:
        """Convert the model to global tensors over a placement; logical shapes and values don't change.

        A local parameter is taken as the whole (the first rank's, if they differ). `sbp`: one, one per pattern of
        names, or a function of (path, parameter). Gradients and optimizers keep their parameters.
        """
        return self._apply(moving.spreading(self, placement, sbp))

    def to_consistent(self, placement: Any = None, sbp: Any = None) -> Self:
        """`to_global`, under its deprecated name."""
        return self.to_global(placement, sbp)

    def to_local(self) -> Self:
        """Keep only this rank's shard of every parameter and buffer."""
        return self._apply(lambda t: ops.to_local(t) if t.is_global else t)

    def train(self, mode: bool = True) -> Self:
        if not isinstance(mode, bool):
            raise OptionError(f"train(mode) takes a bool; got {mode!r}")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.parameters():
            if p._grad is not None:
                p.grad = None if set_to_none else ops.zeros_like(p._grad, None)

    # ---- state ---------------------------------------------------------------------------------------

    def state_dict(self, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Every parameter and persistent buffer by path; the tensors share the module's memory."""
        return states.state_dict(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> states.IncompatibleKeys:
        """Copy a state into this module. Everything that doesn't fit is reported at once, and nothing is changed
        then."""
        return states.load(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        states.save(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Check this module's own entries, and note the writes; override to rename or convert entries of older
        versions."""
        at_once = type(self)._load_from_state_dict is not Module._load_from_state_dict  # it may read the values
        found = missing_keys, unexpected_keys, error_msgs
        states.check(self, state_dict, prefix, local_metadata, strict, *found, at_once)

    # ---- hooks ---------------------------------------------------------------------------------------

    def _hook(self, kind: str, hook: Any, flag: bool = False, first: bool = False) -> RemovableHook:
        own = stored(self).setdefault("_hooks", None) or Hooks()
        stored(self)["_hooks"] = own
        return own.add(kind, hook, flag, first)

    def _watch(self, hooks: Hooks) -> Any:  # observes the gradients of one call
        return Watch(self, hooks)

    def _hooks_of(self, kind: str) -> tuple[tuple[Callable[..., Any], bool], ...]:
        return self._hooks.of(kind) if self._hooks is not None else ()

    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHook:
        """Call `hook(module, args)` before forward; its result, if any, replaces the arguments."""
        return self._hook("forward_pre", hook, with_kwargs, prepend)

    def register_forward_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHook:
        """Call `hook(module, args, output)` after forward; its result, if any, replaces the output."""
        return self._hook("forward", hook, with_kwargs, prepend)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> RemovableHook:
        """Call `hook(module, grad_input, grad_output)` after the module's backward; its result, if any, replaces
        grad_input."""
        return self._hook("backward", hook, first=prepend)

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHook:
        """Call `hook(module, grad_output)` before the module's backward; its result, if any, replaces the gradients."""
        return self._hook("backward_pre", hook, first=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHook:
        """`register_full_backward_hook`, under its deprecated name."""
        return self.register_full_backward_hook(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHook:
        """Call `hook(module, prefix, keep_vars)` before the module's entries are added."""
        return self._hook("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHook:
        """Call `hook(module, state_dict, prefix, metadata)` after the module's entries were added."""
        return self._hook("state_dict", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Any) -> RemovableHook:
        """Call `hook(module, state, prefix, metadata, strict, missing, unexpected, errors)` before the module is
        checked."""
        return self._hook("load_pre", hook, True)

    def _register_load_state_dict_pre_hook(self, hook: Any, with_module: bool = False) -> RemovableHook:
        """`register_load_state_dict_pre_hook`, with the module as the first argument or without."""
        return self._hook("load_pre", hook, with_module)

    def register_load_state_dict_post_hook(self, hook: Any) -> RemovableHook:
        """Call `hook(module, incompatible_keys)` after loading."""
        return self._hook("load_post", hook)

    def compile(self, *args: Any, **options: Any) -> None:
        """Does nothing: `nn.Graph` compiles here."""

    # ---- printing ------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        return ""  # the text in parentheses; layers override it

    def __repr__(self) -> str:
        return printed(self._get_name(), self.extra_repr(), self._modules)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *stored(self)})
