"""How a lower layer reaches an upper one: the modes of the running thread, and the hooks that upper layers fill.

An op, wherever it is called, asks `hooks.road(op)` for its entry: a function made for that op. The entry takes the
short way (eager, local, data at hand) itself when the thread is `plain`; everything else goes through
`hooks.call(op, args)`: the interpreter stack, wrapped by autograd.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from weft.core.tracer import Trace


class Here(threading.local):
    """The running thread's modes.

    plain      no interceptor is active: an op may take the short way
    grad       gradients are recorded
    trace      the graph that is being traced, or None
    place      where new tensors go, and in which layout, if nobody says so: global mode
    """

    plain: bool = True
    grad: bool = True
    trace: Trace | None = None
    place: Any = None
    stack: tuple[Any, ...] = ()  # interceptors, innermost last: autocast, anomaly mode, instruction traces


here = Here()


def traced() -> Trace:
    """The graph that is being traced, where it is known that there is one: a symbol is at hand."""
    trace = here.trace
    assert trace is not None, "a graph's tensor outside of its build()"
    return trace


class Hooks:
    """What upper layers provide to lower ones. Filled once, when the package is imported."""

    road: Callable[[Any], Callable[..., Any]]  # autograd: the entry of an op
    call: Callable[[Any, tuple[Any, ...]], Any]  # autograd: the general way, with complete arguments
    wait_read: Callable[[Any], None]  # vm: until nothing pending writes the blob
    wait_write: Callable[[Any], None]  # vm: until nothing pending reads or writes the blob
    wait_over: Callable[[Any], None]  # vm: likewise, whether what was pending ends well or not
    whole: Callable[[Any, str], Any]  # autograd: a global tensor's logical value on every rank, as a local tensor
    fresh: Callable[[Any], Any]  # autograd: a view as it is by now
    detached: Callable[[Any], Any]  # autograd: `detach()` of a view, or while a graph is traced
    exchange: Callable[[Any, Any], None]  # autograd: `x.data = y` while a graph is traced
    backward: Callable[..., None]  # autograd: Tensor.backward
    placed: Callable[[Any, Any, Any, Any], Any]  # functional: a tensor over data that every rank has, where it is told


hooks = Hooks()


@contextlib.contextmanager
def intercept(interceptor: Any) -> Iterator[Any]:
    """Put an interceptor on this thread's stack: ops leave the short way and ask it."""
    before = here.stack, here.plain
    here.stack, here.plain = (*here.stack, interceptor), False
    try:
        yield interceptor
    finally:
        here.stack, here.plain = before


@contextlib.contextmanager
def tracing(builder: Trace | None) -> Iterator[None]:
    """Ops of this thread become nodes of `builder`'s job."""
    before = here.trace, here.plain
    here.trace, here.plain = builder, False
    try:
        yield
    finally:
        here.trace, here.plain = before


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """No mode of this thread holds: what runs here is no part of the program around it, such as a loader's reading."""
    before = dict(here.__dict__)
    here.__dict__.clear()
    try:
        yield
    finally:
        here.__dict__.clear()
        here.__dict__.update(before)


class set_grad:
    """Whether gradients are recorded in this thread: a context manager, a decorator, or just a call."""

    def __init__(self, mode: bool) -> None:
        self.before, here.grad = here.grad, mode
        self.mode = mode

    def __enter__(self) -> None:
        here.grad = self.mode

    def __exit__(self, *_: object) -> None:
        here.grad = self.before
