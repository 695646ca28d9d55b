"""Activation checkpointing: a function's activations are recomputed in backward instead of kept.

`flow.utils.checkpoint`. It costs a second forward, and saves the memory between the function's inputs and outputs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.autograd.call import check_unwritten, version
from weft.autograd.engine import backward
from weft.autograd.function import Function
from weft.autograd.graph import saved_tensors_hooks
from weft.autograd.trees import leaves, mapped
from weft.core import random
from weft.core.dispatch import here, set_modes
from weft.core.errors import ArgumentError, AutogradError
from weft.core.idle import idle
from weft.ops.explain import describe
from weft.tensor.tensor import Tensor, of_torch

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = True, preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] | None = None, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, recomputed in backward instead of kept.

    The recomputation sees the same random numbers and interceptors (such as autocast), and must do the same. With
    `use_reentrant=False` gradients also reach the function's closure, `autograd.grad` works, and `context_fn()` may
    return two contexts, for the first and the second call. `determinism_check`, `debug` and `early_stop` are torch's,
    and have no effect.

    >>> x = flow.ones(2, requires_grad=True)
    >>> flow.utils.checkpoint.checkpoint(lambda x: (x * x).exp(), x).sum().backward()
    >>> x.grad.tolist()
    [5.4..., 5.4...]
    """
    if context_fn is not None and use_reentrant is not False:
        raise ArgumentError("checkpoint(): context_fn goes with use_reentrant=False")
    idle("checkpoint(debug)", debug)
    idle("checkpoint(determinism_check)", determinism_check != "default")
    if not here.grad:
        return function(*args, **kwargs)
    if here.trace is not None:  # in a graph, the job records it: on the tape, two equal calls would be merged
        return here.trace.again(lambda: function(*args, **kwargs))
    call = _Call(function, args, kwargs, preserve_rng_state)
    if use_reentrant is False:
        first, second = (contextlib.nullcontext(), None) if context_fn is None else context_fn()
        forgotten = _Forgotten(call, second)
        with saved_tensors_hooks(forgotten.pack, forgotten.unpack), first:
            return call(call.tensors)
    # parameters in the function may need gradients where no argument does, so the tape gets an operand that does
    handle = of_torch(torch.empty(0)).requires_grad_()
    return _Recomputed.apply(handle, call, *call.tensors)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = True, **kwargs: Any):
    """Apply functions, or an `nn.Sequential`, to the input in a number of segments, of which all but the last are
    recomputed in backward.

    >>> model = flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.Tanh(), flow.nn.Linear(2, 2))
    >>> flow.utils.checkpoint.checkpoint_sequential(model, 2, flow.ones(1, 2)).shape
    torch.Size([1, 2])
    """
    chain = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(len(chain), 1):
        raise ArgumentError(
            f"checkpoint_sequential(): {len(chain)} functions make 1 to {len(chain)} segments, not {segments}"
        )
    size = max(len(chain) // segments, 1)
    for i in range(segments):
        part = chain[i * size : (i + 1) * size if i < segments - 1 else None]
        if i == segments - 1:
            return _after_another(part, input)
        input = checkpoint(_after_another, part, input, use_reentrant=use_reentrant, **kwargs)
    return input


def _after_another(functions: list[Callable[[Any], Any]], x: Any) -> Any:
    for f in functions:
        x = f(x)
    return x


class _Call:
    """A function with its arguments, to be called twice in the same way."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rng: bool) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.tensors = [t for t in leaves((args, kwargs)) if isinstance(t, Tensor)]
        self.versions = list(map(version, self.tensors))
        # Hooks for saved tensors don't apply to the recomputation, which backward needs at once.
        self.stack = tuple(i for i in here.stack if not isinstance(i, saved_tensors_hooks))
        self.place = here.place
        self.randomness = random.of().state() if rng else None

    def __call__(self, tensors: list[Tensor]) -> Any:
        given = iter(tensors)
        args, kwargs = mapped((self.args, self.kwargs), lambda a: next(given) if isinstance(a, Tensor) else a)
        return self.function(*args, **kwargs)

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Restore the modes and the random state of the first call."""
        before = {mode: getattr(here, mode) for mode in ("stack", "place", "grad", "backward")}
        now = random.of().state()
        set_modes(stack=self.stack, place=self.place, grad=True, backward=False)
        if self.randomness is not None:
            random.of().go_back(self.randomness)
        try:
            yield
        finally:
            set_modes(**before)
            if self.randomness is not None:
                random.of().go_back(now)


class _Forgotten:
    """Saved tensors by number, dropped; the first access recomputes the call."""

    def __init__(self, call: _Call, around: Any = None) -> None:
        self.call, self.count, self.around = call, 0, around or contextlib.nullcontext()
        self.values: dict[int, Tensor] = {}

    def pack(self, _: Tensor) -> int:
        self.count += 1
        return self.count - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.values:
            kept: list[Tensor] = []

            def keep(t: Tensor) -> Tensor:
                kept.append(t)
                return t

            for t, was in zip(self.call.tensors, self.call.versions, strict=True):
                check_unwritten(t, was, f"checkpoint's argument {describe(t)}", "Give a copy, t.clone()")
            with self.call.again(), saved_tensors_hooks(keep, lambda t: t), self.around:
                self.call([t.detach().requires_grad_(t.requires_grad) for t in self.call.tensors])
            if len(kept) != self.count:
                raise AutogradError(
                    f"checkpoint: the function kept {self.count} tensors for backward the first time, {len(kept)} the "
                    "second; it must do the same both times"
                )
            self.values = dict(enumerate(kept))
        return self.values.pop(number)


class _Recomputed(Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        _, call, *tensors = args
        ctx.call = call
        ctx.save_for_backward(*tensors)
        return call(tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        inputs = [t.detach().requires_grad_(t.requires_grad) for t in ctx.saved_tensors]
        with ctx.call.again():
            outputs = ctx.call(inputs)
        together = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(together) != len(gradients):
            raise AutogradError(
                f"checkpoint: the function gave {len(gradients)} outputs the first time, {len(together)} the second; "
                "it must do the same both times"
            )
        wanted = [
            (y, dy)
            for y, dy in zip(together, gradients, strict=True)
            if isinstance(y, Tensor) and y.requires_grad and dy is not None
        ]
        if wanted:
            backward([y for y, _ in wanted], [dy for _, dy in wanted])
        return None, None, *(t.grad for t in inputs)
