"""Hooks of a module: callbacks around `forward`, backward and state dicts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from weft.api.table import named
from weft.autograd.function import Function
from weft.core.errors import ArgumentError, AutogradError
from weft.core.stored import stored
from weft.nn.module import refusals
from weft.nn.module.members import BUFFER, MODULE, PARAMETER
from weft.tensor.tensor import RemovableHook, Tensor

KINDS = (
    "forward_pre", "forward", "backward_pre", "backward", "state_dict_pre", "state_dict", "load_pre", "load_post",
    "module", "parameter", "buffer",
)  # fmt: skip


class Hooks:
    """A module's hooks by kind, each kind in order of registration. A module without any has none of these."""

    def __init__(self) -> None:
        self.tables: dict[str, OrderedDict[int, tuple[Callable[..., Any], bool]]] = {k: OrderedDict() for k in KINDS}

    def add(self, kind: str, hook: Callable[..., Any], flag: bool = False, first: bool = False) -> RemovableHook:
        """Add a hook; the meaning of `flag` depends on the kind: with_kwargs for forward hooks."""
        if not callable(hook):
            raise ArgumentError(f"a hook is a function; got {type(hook).__name__}")
        return RemovableHook(self.tables[kind], (hook, flag), first)

    def of(self, kind: str) -> tuple[tuple[Callable[..., Any], bool], ...]:
        """The hooks of one kind, those of every module first."""
        everywhere = EVERYWHERE.tables[kind].values() if self is not EVERYWHERE else ()
        return (*everywhere, *self.tables[kind].values())


EVERYWHERE = Hooks()  # of every module; classes share it once there is one, so that modules needn't ask


class Table(MutableMapping[int, Any]):
    """A live view of a module's hooks of one kind: `module._forward_pre_hooks`."""

    def __init__(self, hooks: Hooks | None, kind: str) -> None:
        self.inner = {} if hooks is None else hooks.tables[kind]

    def __getitem__(self, key: int) -> Any:
        return self.inner[key][0]

    def __setitem__(self, key: int, hook: Any) -> None:
        self.inner[key] = hook, False

    def __delitem__(self, key: int) -> None:
        del self.inner[key]

    def __iter__(self) -> Iterator[int]:
        return iter(list(self.inner))

    def __len__(self) -> int:
        return len(self.inner)


def table(kind: str) -> Any:
    """A property for a module's hooks of one kind."""
    return property(lambda module: Table(stored(module).get("_hooks"), kind))


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module.forward` with its hooks."""
    hooks: Hooks = module._hooks
    for hook, with_kwargs in hooks.of("forward_pre"):
        if with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise ArgumentError(
                        f"a forward pre-hook with kwargs returns None or (args, kwargs); got {changed!r}"
                    )
                args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    watched = module._watch(hooks) if hooks.of("backward") or hooks.of("backward_pre") else None
    if watched is not None:
        args = watched.inputs(args)
    result = refusals.forward(module, args, kwargs)
    for hook, with_kwargs in hooks.of("forward"):
        changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if changed is not None:
            result = changed
    return result if watched is None else watched.outputs(result)


class Watch:
    """Observes the gradients of one call's outputs and inputs, which hooks may replace.

    The inputs' gradients are known last, and a `backward` hook runs then; without a differentiable input, it runs when
    the outputs' gradients are known. `around` wraps a hook.
    """

    def __init__(self, module: Any, hooks: Hooks, around: Callable[..., Any] = lambda hook: hook) -> None:
        self.module, self.hooks, self.around = module, hooks, around
        self.grad_output: tuple[Tensor | None, ...] = ()
        self.has_inputs = False
        self.count = 0

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self.count = len(args)
        self.has_inputs = any(args[i].requires_grad for i in places)
        if not self.has_inputs:
            return args
        through = _Pass.apply(lambda g: self._inputs_known(g, places), *(args[i] for i in places))
        passed = dict(zip(places, through, strict=True))
        return tuple(passed.get(i, a) for i, a in enumerate(args))

    def outputs(self, result: Any) -> Any:
        several = isinstance(result, (tuple, list))
        values = list(result) if several else [result]
        places = [i for i, y in enumerate(values) if isinstance(y, Tensor)]
        if any(values[i].requires_grad for i in places):
            for i, y in zip(places, _Pass.apply(self._outputs_known, *(values[i] for i in places)), strict=True):
                values[i] = y
        return type(result)(values) if several else values[0]

    def _outputs_known(self, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        for hook, _ in self.hooks.of("backward_pre"):
            changed = self.around(hook)(self.module, gradients)
            if changed is not None:
                gradients = _same_count(changed, gradients, "backward pre-hook")
        self.grad_output = gradients
        if not self.has_inputs:
            for hook, _ in self.hooks.of("backward"):
                self.around(hook)(self.module, (None,) * self.count, gradients)
        return gradients

    def _inputs_known(self, gradients: tuple[Tensor | None, ...], places: list[int]) -> tuple[Tensor | None, ...]:
        full: list[Tensor | None] = [None] * self.count
        for i, g in zip(places, gradients, strict=True):
            full[i] = g
        seen = tuple(full)
        for hook, _ in self.hooks.of("backward"):
            changed = self.around(hook)(self.module, seen, self.grad_output)
            if changed is not None:
                seen = _same_count(changed, seen, "backward hook")
        return tuple(seen[i] for i in places)


def _same_count(changed: Any, before: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != len(before):
        raise AutogradError(
            f"a {what} got {len(before)} gradients and returned {len(changed)}; return as many, or None"
        )
    return changed


class _Pass(Function):
    """The identity on several tensors, with a function applied to their gradients."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.function = args[0]
        return tuple(x.detach() for x in args[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.function(gradients))


def of_every_module(module: type) -> list[Callable[..., RemovableHook]]:
    """The functions `register_module_{name}_hook`, whose hooks are of every module."""
    return [_everywhere(module, *row) for row in (
        ("forward_pre", "forward_pre", "`hook(module, args)` before forward: it may return others"),
        ("forward", "forward", "`hook(module, args, output)` after forward: it may return another output"),
        ("full_backward_pre", "backward_pre", "`hook(module, grad_output)` before backward"),
        ("full_backward", "backward", "`hook(module, grad_input, grad_output)` after backward"),
        *((f"{role}_registration", role, f"`hook(module, name, {role})` at registration: it may return another")
          for role in (MODULE, PARAMETER, BUFFER)),
    )]  # fmt: skip


def _everywhere(module: type, name: str, kind: str, doc: str) -> Callable[..., RemovableHook]:
    @named(f"register_module_{name}_hook", f"For every module of the program, call {doc}.")
    def register(hook: Callable[..., Any], *, with_kwargs: bool = False) -> RemovableHook:
        module._hooks = EVERYWHERE
        return EVERYWHERE.add(kind, hook, with_kwargs)

    return register
