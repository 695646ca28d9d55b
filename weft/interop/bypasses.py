"""Replace what bypasses `__torch_function__`: state in torch's C++, and functions that take functions.

After the first `from_torch(module)`, each of these checks whether its thread runs such a module's code: if so it is
Weft's, else torch's own. They are replaced where torch's own Python looks them up, so that names that a program
imported before (`from torch.utils.checkpoint import checkpoint`) are covered, too.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from typing import Any, Final

import torch
import torch.utils.checkpoint
from torch._functorch import apis, eager_transforms
from torch.autograd.function import FunctionCtx, _is_setup_context_defined, _SingleLevelFunction
from torch.overrides import _pop_mode_temporarily

from weft.amp.autocast import DEFAULTS, autocast
from weft.autograd import recompute, vmap
from weft.autograd.function import Context, Function, once_differentiable
from weft.autograd.graph import saved_tensors_hooks
from weft.autograd.modes import inference_mode
from weft.autograd.variable import Variable
from weft.core import random
from weft.core.dispatch import here, set_modes
from weft.core.errors import ArgumentError
from weft.interop.entering import WEFTS, Callback, contains, entered
from weft.interop.facade import Facade, inward, outward, without_torch_function
from weft.interop.inside import inside
from weft.tensor.tensor import Tensor

WEFT: Final = __name__.partition(".")[0]


def in_torch_code() -> bool:
    """Whether the caller is a torch module's own code, and not Weft's work for it, which runs on torch's kernels."""
    return inside.depth > 0 and torch._C._is_torch_function_mode_enabled()


def with_facades(ours: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of Weft's to take and return facades; its first argument and result, if functions, too."""

    @functools.wraps(ours)
    def call(*args: Any, **kwargs: Any) -> Any:
        with without_torch_function():
            given = [Callback(a) if callable(a) and not i and type(a) is not Facade else inward(a)
                     for i, a in enumerate(args)]  # fmt: skip
            y = ours(*given, **{k: inward(v) for k, v in kwargs.items()})
            return with_facades(y) if inspect.isfunction(y) else outward(y)

    return call


def inside_or_not(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is `ours` inside torch modules on Weft's tensors, and torch's elsewhere."""

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (ours if in_torch_code() else theirs)(*args, **kwargs)

    return call


def replace(home: Any, name: str, ours: Callable[..., Any]) -> None:
    setattr(home, name, inside_or_not(ours, getattr(home, name)))


# ---- custom autograd functions -----------------------------------------------------------------------


class TorchContext(FunctionCtx):
    """The `ctx` of a torch.autograd.Function."""

    to_save: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    materialize_grads = True

    def __init__(self, kind: Any, args: tuple[Any, ...]) -> None:
        self.kind, self.args = kind, args
        self.saved_tensors: tuple[Any, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()

    def keep(self, ctx: Context) -> None:
        """Copy what was set on this ctx to Weft's."""
        ctx.save_for_backward(*inward(self.to_save))
        ctx.mark_non_differentiable(*inward(self.non_differentiable))
        ctx.mark_dirty(*inward(self.dirty_tensors))
        ctx.set_materialize_grads(self.materialize_grads)


class TorchFunction(Function):
    """A torch.autograd.Function as one of Weft's."""

    @staticmethod
    def forward(ctx: Any, held: TorchContext, *args: Any) -> Any:
        ctx.held, given, held.args = held, held.args, ()
        held.needs_input_grad = ctx.needs_input_grad[1:]
        with entered(args):
            if _is_setup_context_defined(held.kind.setup_context):
                y = held.kind.forward(*given)
                held.kind.setup_context(held, given, y)
            else:
                y = held.kind.forward(held, *given)
            held.keep(ctx)
        return inward(tuple(y) if isinstance(y, list) else y)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        held, kind = ctx.held, ctx.held.kind
        with entered((*gradients, *(saved := ctx.saved_tensors))):
            held.saved_tensors = outward(saved)
            found = (kind.backward if kind.vjp is torch.autograd.Function.vjp else kind.vjp)(held, *outward(gradients))
            held.saved_tensors = ()
        return (None, *inward(found if isinstance(found, tuple) else (found,)))


@functools.cache
def _named(kind: type) -> type[Function]:
    return type(kind.__name__, (TorchFunction,), {"__module__": kind.__module__})


def _apply(kind: Any, *args: Any, **kwargs: Any) -> Any:
    if kind is torch.utils.checkpoint.CheckpointFunction:
        function, rng, *given = args
        return CHECKPOINT(function, *given, preserve_rng_state=rng, use_reentrant=True)
    if _is_setup_context_defined(kind.setup_context):
        bound = inspect.signature(kind.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        args, kwargs = bound.args, bound.kwargs
    if kwargs:
        raise ArgumentError(f"{kind.__name__}.apply takes no keywords; got {', '.join(kwargs)}: give them by place")
    given = tuple(outward(a) if isinstance(a, torch.Tensor) else a for a in args)
    held = TorchContext(kind, given)
    with without_torch_function():
        return outward(_named(kind).apply(held, *(a.of if type(a) is Facade else a for a in given)))


def _delayed(message: bytes, count: int) -> Callable[..., Any]:
    """The result of @once_differentiable: gradients that can't be differentiated."""

    def call(*gradients: Any) -> Any:
        ours = inward(gradients)
        return outward(once_differentiable(lambda ctx, *g: g)(None, *ours))

    return call


# ---- contexts ----------------------------------------------------------------------------------------


def _autocast_everywhere(kind: Any) -> None:
    """Let torch's autocast hold for Weft's tensors, too, wherever it is entered."""
    enter, leave = kind.__enter__, kind.__exit__

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        contexts, known = ExitStack(), self.device in DEFAULTS
        ours = autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled) if known else nullcontext()
        if not in_torch_code():
            enter(self)
            contexts.push(functools.partial(leave, self))
            contexts.callback(set_modes, torchs=here.torchs)
            set_modes(torchs=True)
        contexts.enter_context(ours)
        self.__dict__.setdefault("_wefts", []).append(contexts)
        return self

    @functools.wraps(leave)
    def __exit__(self: Any, *error: Any) -> Any:
        return self._wefts.pop().__exit__(*error)

    kind.__enter__, kind.__exit__ = __enter__, __exit__


CONTEXTS: Final[dict[Any, Callable[[Any], Any]]] = {
    torch.inference_mode: lambda self: inference_mode(self.mode),
    torch.autograd.graph.saved_tensors_hooks: lambda self: saved_tensors_hooks(
        lambda t: _call_in_torch_code(self.pack_hook, outward(t)),
        lambda kept: inward(_call_in_torch_code(self.unpack_hook, kept)),
    ),
}


def _call_in_torch_code(function: Callable[..., Any], value: Any) -> Any:
    with entered((value.of if type(value) is Facade else value,)):
        return function(value)


def _replace_context(kind: Any, ours: Callable[[Any], Any]) -> None:
    enter, leave = kind.__enter__, kind.__exit__

    def __enter__(self: Any) -> Any:
        if not in_torch_code():
            return enter(self)
        found = ours(self)
        self.__dict__.setdefault("_wefts", []).append(found)
        found.__enter__()
        torch._C._set_grad_enabled(here.grad)
        return self

    def __exit__(self: Any, *error: Any) -> Any:
        if not self.__dict__.get("_wefts"):
            return leave(self, *error)
        self._wefts.pop().__exit__(*error)
        torch._C._set_grad_enabled(here.grad)
        return None

    kind.__enter__, kind.__exit__ = functools.wraps(enter)(__enter__), functools.wraps(leave)(__exit__)


def _follow_grad_mode(kind: Any) -> None:
    """Let a mode of torch's that turns gradients on or off do so for Weft's tensors, wherever it is entered."""
    enter, leave = kind.__enter__, kind.__exit__

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        before, found = here.grad, enter(self)
        if not in_torch_code():  # there, torch's functions are Weft's
            here.grad = torch.is_grad_enabled()
            self.__dict__.setdefault("_grads", []).append(before is not here.grad)
        return found

    @functools.wraps(leave)
    def __exit__(self: Any, *error: Any) -> Any:
        leave(self, *error)
        if self.__dict__.get("_grads") and self._grads.pop():  # as it may be entered, and left, out of step with Weft's
            here.grad = not here.grad

    kind.__enter__, kind.__exit__ = __enter__, __exit__


# ---- the table ---------------------------------------------------------------------------------------

CHECKPOINT: Final = with_facades(recompute.checkpoint)
BLOCK: Any = torch.utils.checkpoint.checkpoint.__wrapped__  # type: ignore[attr-defined]


def _checkpoint(*args: Any, **kwargs: Any) -> Any:
    return (CHECKPOINT if in_torch_code() else _undecorated())(*args, **kwargs)


def _undecorated() -> Any:
    """Torch's own function behind its decorator, which hides it from torch.compile once that is imported."""
    dynamo = sys.modules.get("torch._dynamo")
    return BLOCK if dynamo is None else dynamo.disable(BLOCK, wrapping=False)


def _vmap(func: Any, in_dims: Any, out_dims: Any, random: str, chunk: Any, *args: Any, **kwargs: Any) -> Any:
    return vmap.vmap(func, in_dims, out_dims, random, chunk_size=chunk)(*args, **kwargs)


def _functionalize(*_: Any, **__: Any) -> Any:
    raise ArgumentError(
        "torch.func.functionalize: a module of torch's calls it on Weft's tensors, and Weft has no function of this "
        "name. Let the module do without"
    )


def _constructed(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.Tensor(x)`, which would be of the stand-in itself, without asking it."""
    make = with_facades(sys.modules[WEFT].Tensor)

    @functools.wraps(theirs)
    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return make(*args) if cls is torch.Tensor and contains(args, (Facade,)) else theirs(cls, *args, **kwargs)

    return new


def _of_sizes(theirs: Callable[..., Any], of_number: Callable[[float], int]) -> Callable[..., Any]:
    """A function that models call on sizes while `is_tracing()`: for torch's trace these are tensors, here numbers."""

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is float and here.trace is not None and in_torch_code():
            return float(of_number(args[0]))
        return theirs(*args, **kwargs)

    return call


STATES: Final = frozenset({"get_rng_state", "set_rng_state", "manual_seed", "seed", "initial_seed", "is_tracing"})


def _run_script(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that torch.jit.script compiled: the Python that it was given, as its C++ computes on any tensor."""
    with _pop_mode_temporarily():
        return inside.answers[function](args, kwargs)


def _scripts_everywhere(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        if in_torch_code():
            return _run_script(function, *args, **kwargs)
        ours = not inside.depth and contains((*args, *kwargs.values()), WEFTS)
        return Callback(function)(*args, **kwargs) if ours else theirs(function, *args, **kwargs)

    return call


def _variables_everywhere(kind: Any) -> None:
    """Let torch's old name for a tensor take Weft's."""
    base = kind.__new__

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if contains((*args, *kwargs.values()), (Tensor, Facade)):
            return (with_facades(Variable) if in_torch_code() else Variable)(*args, **kwargs)
        return base(cls, *args, **kwargs)

    kind.__new__ = __new__


PROCESS: Final = os.getpid()


def _seeds_ours(theirs: Callable[[int], None]) -> Callable[[int], None]:
    """What torch.manual_seed and torch.seed call for devices of other libraries: it seeds Weft's draws, too."""

    @functools.wraps(theirs)
    def call(seed: int) -> None:
        theirs(seed)
        if in_torch_code():  # where draws are Weft's already
            return
        if os.getpid() == PROCESS:
            sys.modules[WEFT].manual_seed(seed)
        else:  # one of torch's workers
            random.begin_anew(seed)

    return call


def _with_ours(get: Callable[[], torch.Tensor], put: Callable[[torch.Tensor], None]) -> tuple[Any, Any]:
    """Torch's functions of the state of its draws, which keep and restore Weft's beside it."""

    @functools.wraps(get)
    def get_rng_state() -> torch.Tensor:
        state = get()
        vars(state)["wefts"] = random.of().state()
        return state

    @functools.wraps(put)
    def set_rng_state(new_state: torch.Tensor) -> None:
        put(new_state)
        if (ours := getattr(new_state, "wefts", None)) is not None:
            random.of().go_back(ours)

    return get_rng_state, set_rng_state


def install_everywhere() -> None:
    """Install what holds outside of torch's modules, too: its modes of gradients, compiled functions, and its custom
    functions, which would leave the gradient to what `forward` calls."""

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if in_torch_code():
            return _apply(cls, *args, **kwargs)
        if not inside.depth and contains(args, WEFTS):
            install()
            return Callback(functools.partial(_apply, cls))(*args, **kwargs)
        base: Any = super(_SingleLevelFunction, cls)
        return base.apply(*args, **kwargs)

    own = isinstance(vars(torch.autograd.Function)["apply"], classmethod)  # it calls its base class's; not in 2.14
    (_SingleLevelFunction if own else torch.autograd.Function).apply = classmethod(apply)  # type: ignore[assignment]
    for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode, torch.set_grad_enabled):
        _follow_grad_mode(mode)
    torch.random._seed_custom_device = _seeds_ours(torch.random._seed_custom_device)
    get_state, set_state = _with_ours(torch.get_rng_state, torch.set_rng_state)
    torch.get_rng_state = torch.random.get_rng_state = get_state
    torch.set_rng_state = torch.random.set_rng_state = set_state
    _autocast_everywhere(torch.amp.autocast_mode.autocast)
    _variables_everywhere(torch.autograd.Variable)
    torch.jit.ScriptFunction.__call__ = _scripts_everywhere(torch.jit.ScriptFunction.__call__)


@functools.cache
def install() -> None:
    """Install the replacements, once for the process, at the first module."""
    root = sys.modules[WEFT]

    BLOCK.__dynamo_disable = _checkpoint  # what its decorator calls, once it has looked that up
    for kind, ours in CONTEXTS.items():
        _replace_context(kind, ours)
    replace(torch._C._functions, "DelayedError", _delayed)  # type: ignore[attr-defined]
    torch.Tensor.__new__ = staticmethod(_constructed(torch.Tensor.__new__))  # type: ignore[method-assign]
    replace(torch.autograd, "backward", with_facades(root.autograd.backward))
    for home, ours in ((torch, root), (torch.random, root.random), (torch.jit, root.jit)):
        for name, theirs in list(vars(home).items()):  # what is drawn, and which casts are at work
            if (name in STATES or ("autocast" in name and not isinstance(theirs, type))) and hasattr(ours, name):
                replace(home, name, with_facades(getattr(ours, name)))
    torch.ceil, torch.floor = _of_sizes(torch.ceil, math.ceil), _of_sizes(torch.floor, math.floor)
    replace(torch, "is_autocast_cpu_enabled", lambda: root.is_autocast_enabled("cpu"))
    replace(torch, "set_autocast_cpu_enabled", lambda enabled: root.set_autocast_enabled("cpu", enabled))
    replace(apis, "vmap_impl", with_facades(_vmap))
    replace(
        eager_transforms,
        "grad_impl",
        with_facades(lambda f, n, aux, args, kwargs: root.func.grad(f, n, aux)(*args, **kwargs)),
    )
    replace(
        eager_transforms,
        "grad_and_value_impl",
        with_facades(lambda f, n, aux, args, kwargs: root.func.grad_and_value(f, n, aux)(*args, **kwargs)),
    )
    for name in ("vjp", "jvp", "jacrev", "jacfwd", "hessian", "linearize"):
        replace(torch.func, name, with_facades(getattr(root.func, name)))
    replace(torch.func, "functionalize", _functionalize)
