"""How a lower layer calls an upper one: the running thread's modes, and the hooks that upper layers fill.

An op asks `hooks.road(op)` for its entry: a function generated for that op. The entry takes the fast path (eager,
local, data at hand) itself when the thread is `plain`; everything else goes through `hooks.call(op, args)`: the
interpreter stack, wrapped by autograd.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from torch._C import _DisableAutocast as DisableAutocast

from weft.core.tracer import Trace

F = TypeVar("F", bound=Callable[..., Any])


class Here(threading.local):
    """The modes of the running thread.

    grad       gradients are recorded
    backward   gradients are computed
    trace      the graph being traced, or None
    stack      interceptors, innermost last: autocast, anomaly mode, instruction traces
    place      the default placement and sbp of new tensors: global mode
    device     the default device of new tensors; None for the CPU
    moving     a global tensor is being moved, while `explain` listens
    torchs     torch's autocast is active, too: kernels run without it, as their operands are cast already

    castable   no interceptor but autocast is active
    plain      neither is torch's: an op may take the fast path
    casting    the autocasts in force, one for a type of device: ops with a rule cast their operands first
    local      it is castable, and new tensors are local and on the CPU unless asked otherwise

    The last four follow from those before, which `set_modes` sets.
    """

    grad: bool = True
    backward: bool = False
    trace: Trace | None = None
    stack: tuple[Any, ...] = ()
    place: Any = None
    device: Any = None
    moving: bool = False
    torchs: bool = False
    castable: bool = True
    plain: bool = True
    casting: tuple[Any, ...] = ()
    local: bool = True


here = Here()
changed: set[int] = set()  # threads with modes: while there are none, hot paths needn't ask `here`, which takes longer


def set_modes(**modes: Any) -> None:
    """Set modes of this thread."""
    here.__dict__.update(modes)
    casts = [i for i in here.stack if getattr(i, "casts", False)]
    here.castable = here.trace is None and len(casts) == len(here.stack)
    here.casting = tuple([i for i in {i.device_type: i for i in casts}.values() if i.enabled])
    here.plain = here.castable and not here.torchs
    here.local = here.castable and here.place is None and here.device is None
    (changed.discard if here.local and here.plain and not casts else changed.add)(threading.get_ident())


def traced() -> Trace:
    """The graph that is being traced, where it is known that there is one: a symbol is at hand."""
    trace = here.trace
    assert trace is not None, "a graph's tensor outside of its build()"
    return trace


class Hooks:
    """The functions that upper layers provide to lower ones. Filled once, at import."""

    road: Callable[[Any], Callable[..., Any]]  # autograd: the entry of an op
    overwriting: Callable[[Any], Callable[..., Any]]  # autograd: the entry of its `name_`
    call: Callable[[Any, tuple[Any, ...]], Any]  # autograd: the general way, with complete arguments
    wait_read: Callable[[Any], Any]  # vm: until nothing pending writes the blob
    wait_write: Callable[[Any], Any]  # vm: until nothing pending reads or writes the blob
    wait_over: Callable[[Any], Any]  # vm: likewise, whether the pending work succeeds or fails
    whole: Callable[[Any, str], Any]  # autograd: a global tensor's logical value on every rank, as a local tensor
    fresh: Callable[[Any], Any]  # autograd: a view brought up to date
    requires_grad_by_base: Callable[[Any], bool]  # autograd: of a view whose base was overwritten
    detached: Callable[[Any], Any]  # autograd: `detach()` of a view, or while a graph is traced
    uncounted: Callable[[Any], Any]  # autograd: `x.data`, whose overwriting isn't seen by gradients
    exchange: Callable[[Any, Any], None]  # autograd: `x.data = y` while a graph is traced
    backward: Callable[..., None]  # autograd: Tensor.backward
    taken: Callable[[Any], Any]  # autograd: a torch tensor as a Weft one
    cast: Callable[..., Any]  # amp: a call of a function that autocast casts as a whole
    cast_operands: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]  # amp: an op's operands, as autocast casts them
    ruled: frozenset[str]  # api: the ops whose operands autocast casts
    traced: Callable[..., Any]  # interpreter: the value of a symbol that follows from constants, or that error
    placed: Callable[[Any, Any, Any, Any], Any]  # functional: a global tensor from data that every rank has


hooks = Hooks()


@contextlib.contextmanager
def intercept(interceptor: Any) -> Iterator[Any]:
    """Put an interceptor on this thread's stack: ops leave the fast path and call it."""
    before = here.stack
    set_modes(stack=(*before, interceptor))
    try:
        yield interceptor
    finally:
        set_modes(stack=before)


def in_own_dtypes(f: F) -> F:
    """Decorate what needs all its digits, such as a solver: interceptors that cast operands (autocast) don't see it."""
    return functools.wraps(f)(lambda *args, **kwargs: without_casts(f, args, kwargs))  # type: ignore[return-value]


def without_casts(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call that autocast doesn't see."""
    before = here.stack
    set_modes(stack=tuple([i for i in before if not getattr(i, "casts", False)]))
    try:
        return f(*args, **kwargs)
    finally:
        set_modes(stack=before)


class without_torchs_casts:
    """A context in which torch's autocast is off, and ops may take the fast path."""

    __slots__ = ("off", "plain")

    def __enter__(self) -> None:
        self.off, self.plain = DisableAutocast(), here.plain
        self.off.__enter__()
        here.torchs, here.plain = False, here.castable

    def __exit__(self, *error: object) -> None:
        here.torchs, here.plain = True, self.plain
        self.off.__exit__(*error)


@contextlib.contextmanager
def tracing(builder: Trace | None) -> Iterator[None]:
    """Ops of this thread become nodes of `builder`'s job."""
    before = here.trace
    set_modes(trace=builder)
    try:
        yield
    finally:
        set_modes(trace=before)


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Suspend this thread's modes, for code that isn't part of the program around it, such as a data loader's."""
    before = dict(here.__dict__)
    here.__dict__.clear()
    set_modes()
    try:
        yield
    finally:
        here.__dict__.clear()
        set_modes(**before)


class set_grad:
    """Set whether gradients are recorded in this thread: a context manager, a decorator, or a plain call."""

    def __init__(self, mode: bool) -> None:
        self.before, here.grad = here.grad, mode
        self.mode = mode

    def __enter__(self) -> None:
        here.grad = self.mode

    def __exit__(self, *_: object) -> None:
        here.grad = self.before
