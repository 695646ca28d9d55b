"""Enter code that was written for torch: a module's `forward`, or a callback of it."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import nullcontext
from types import FunctionType, MethodType
from typing import Any, Final

import torch
from torch.overrides import _get_current_function_mode_stack as modes

from weft.core.dispatch import here, set_modes, without_torchs_casts
from weft.core.sbp import broadcast
from weft.functional.random.generators import Generator
from weft.interop.facade import (
    TO_TORCHS,
    TO_WEFTS,
    Facade,
    inward,
    outward,
    records_inward,
    records_outward,
    without_torch_function,
)
from weft.interop.functions import Mode
from weft.interop.inside import inside
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor


def compiling(more: int) -> None:
    """Make `torch.compiler.is_compiling()` true while graphs trace a module, so that it doesn't branch on values."""
    if more:
        with traces.lock:
            traces.now += more
            torch.compiler._is_compiling_flag = traces.now > 0


def _guard(more: int) -> None:
    """Let the code of torch's modules, which users don't write, read what follows from a graph's arguments."""
    if here.trace is not None:
        here.trace.guarded += more


class Traces:
    """How many threads trace a module of torch's now: its flag is one for all of them."""

    def __init__(self) -> None:
        self.now, self.lock = 0, threading.Lock()


traces = Traces()


class entered:
    """A context in which torch's code runs: torch's functions called there are Weft's."""

    def __init__(self, given: Iterable[Any]) -> None:
        self.given = given

    def __enter__(self) -> None:
        self.before = inside.everywhere, torch.is_grad_enabled(), here.place
        found = next((t.spec.placement for t in self.given if isinstance(t, Tensor) and t.spec is not None), None)
        inside.everywhere = inside.everywhere or found is not None
        if found is not None and here.place is None:
            set_modes(place=(found, (broadcast,) * found.ndim))  # tensors made in `forward` are the same on all ranks
        torch._C._set_grad_enabled(here.grad)
        self.uncast = without_torchs_casts() if here.torchs else nullcontext()  # whose functions aren't called here
        self.uncast.__enter__()
        self.open = torch._C._EnableTorchFunction()  # Weft's own work, inside which this may be called, disabled it
        self.open.__enter__()
        # one mode, never two: an outer one would see the torch functions that implement the inner one's results
        self.mode = None if any(type(m) is Mode for m in modes()) else Mode()
        inside.depth += 1
        self.traced = here.trace is not None
        compiling(self.traced)
        _guard(self.traced)
        if self.mode is not None:
            self.mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.mode is not None:
            self.mode.__exit__(*error)
        compiling(-self.traced)
        _guard(-self.traced)
        self.open.__exit__(*error)
        self.uncast.__exit__(*error)
        inside.depth -= 1
        inside.everywhere, grad, place = self.before
        set_modes(place=place)
        torch._C._set_grad_enabled(grad)


def items_outside(items: Iterator[Any], given: tuple[Any, ...]) -> Iterator[Any]:
    """What a method yields, a `parameters()` of its own, say: its code runs when the next is asked for."""
    while True:
        with entered(given):
            try:
                item = records_inward(next(items))
            except StopIteration:
                return
        yield item


def contains(values: Iterable[Any], kinds: tuple[type, ...] = (Tensor, Module)) -> bool:
    """Whether one of Weft's tensors or modules is among the values, or in tuples, lists and dicts of them."""
    for v in values:
        if isinstance(v, kinds):
            return True
        if isinstance(v, (list, tuple, dict)) and contains(v.values() if isinstance(v, dict) else v, kinds):
            return True
    return False


WEFTS: Final = (Tensor, Facade, Module)


@contextlib.contextmanager
def outside_of_modules() -> Iterator[None]:
    """A context in which torch's functions are its own, and modules and tensors as their callers outside see them."""
    with without_torch_function():
        depth, inside.depth = inside.depth, 0
        try:
            yield
        finally:
            inside.depth = depth


def seeing_tensors(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A hook of Weft's own around the `forward` of a module of torch's, which has facades."""

    def call(module: Any, *given: Any) -> Any:
        with outside_of_modules():
            return records_outward(hook(module, *records_inward(given)))

    return call


class Callback:
    """A callback of torch's code, as Weft calls it: a hook, say, or a checkpointed block."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with entered((*args, *kwargs.values())):
            return inward(self.function(*outward(args), **outward(kwargs)))


def _generator(theirs: torch.Generator) -> Generator:
    """Weft's generator over the same state."""
    ours = _generators.get(theirs)
    if ours is None:
        ours = _generators[theirs] = Generator(str(theirs.device))
        ours.source.generators[theirs.device] = ours.source.cpu = theirs
        ours.source.seed = theirs.initial_seed()
    return ours


def _by_generator() -> MutableMapping[torch.Generator, Generator]:
    """A cache by generator, with weak references where torch's generators support them."""
    try:
        weakref.ref(torch.Generator())
    except TypeError:
        return {}
    return weakref.WeakKeyDictionary()


_generators = _by_generator()
TO_WEFTS[torch.Generator] = _generator
TO_WEFTS.update(dict.fromkeys((FunctionType, MethodType, functools.partial), Callback))
TO_TORCHS[Callback] = lambda v: v.function
