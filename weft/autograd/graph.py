"""Hooks of the tape: `flow.autograd.graph.saved_tensors_hooks`, `register_multi_grad_hook`, ..."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.autograd.graph import _MultiHandle

from weft.core.device import Device
from weft.core.dispatch import here, set_grad, set_modes
from weft.core.errors import ArgumentError, AutogradError
from weft.ops.create.move import to_device
from weft.ops.declaration import Op
from weft.tensor.blob import blob_of
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_torch, rewrap


class _Passing(threading.local):
    """Callbacks for the end of this thread's backward; None outside of one."""

    ends: list[Callable[[], Any]] | None = None
    last: list[Callable[[], Any]] | None = None  # of the outermost backward, if they nest (checkpoint)
    undo: list[Callable[[], Any]] = []  # if that fails; a new list in each
    again: bool = False  # later slices of a vmap may go through the same graph


passing = _Passing()


def at_end_of_backward(do: Callable[[], Any], outermost: bool = False, undo: Callable[[], Any] | None = None) -> None:
    """Call a function at the end of the running backward, or of the outermost one; or `undo` if that fails."""
    ends = passing.last if outermost else passing.ends
    if ends is None:
        raise AutogradError("no backward is running in this thread: this is for hooks")
    ends.append(do)
    if undo is not None:
        passing.undo.append(undo)


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], Any], *, mode: str = "all") -> _MultiHandle:
    """Call `fn(gradients)` once a backward has computed the gradients of several tensors, None for those that it didn't
    reach; or, with mode "any", `fn(gradient)` for the first one.

    >>> x, y = flow.ones(1, requires_grad=True), flow.ones(1, requires_grad=True)
    >>> hook = flow.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * 2).backward()
    [tensor([2.]), None]
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f'register_multi_grad_hook(): mode is "all" or "any"; got {mode!r}')
    going: list[Any] = [None, []]  # which backward, and the gradients so far

    def noting(place: int) -> Callable[[Tensor], None]:
        def note(g: Tensor) -> None:
            if going[0] is not passing.ends:
                going[:] = passing.ends, [None] * len(tensors)
                if mode == "any":
                    fn(g)
                else:
                    at_end_of_backward(tell)
            going[1][place] = g

        return note

    def tell() -> None:
        found = going[1]
        going[:] = None, []
        fn(found)

    handles: Any = [t.register_hook(noting(i)) for i, t in enumerate(tensors)]
    return _MultiHandle(handles)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A context manager in which saved_tensors_hooks raise this message."""
    before, _refusing.message = _refusing.message, error_message
    try:
        yield
    finally:
        _refusing.message = before


class _Refusing(threading.local):
    message: str | None = None


_refusing = _Refusing()


class saved_tensors_hooks:
    """A context manager: `pack(tensor)` replaces what is saved for backward, and `unpack` restores it.

    For example to offload or compress activations. The innermost hooks apply; `pack` must not overwrite its argument.

    >>> x = flow.ones(2, requires_grad=True)
    >>> with flow.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), flow.tensor):
    ...     y = (x * x).sum()
    >>> y.backward(); x.grad.tolist()
    [2.0, 2.0]
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise ArgumentError(f"saved_tensors_hooks takes two functions, pack and unpack; got {hook!r}")
        self.pack, self.unpack = pack_hook, unpack_hook
        self._before: list[tuple[Any, ...]] = []

    def __enter__(self) -> None:
        if _refusing.message is not None:
            raise AutogradError(_refusing.message)
        self._before.append(here.stack)
        set_modes(stack=(*here.stack, self))  # no fast path, so that calls go through `record`

    def __exit__(self, *_: object) -> None:
        set_modes(stack=self._before.pop())

    def intercept(self, op: Op, args: tuple[Any, ...], proceed: Callable[..., Any]) -> Any:
        return proceed(op, args)


class save_on_cpu(saved_tensors_hooks):
    """Saved tensors are kept in host memory, and moved back to their device when backward needs them."""

    def __init__(self, pin_memory: bool = False) -> None:
        host = Device("cpu")

        def pack(t: Tensor) -> tuple[Tensor, Device]:
            if t.is_global or t.device is host:
                return t, host
            kept, device = to_device(t, host, t.device), t.device
            return (of_torch(local_data(kept, "save_on_cpu").pin_memory()) if pin_memory else kept), device

        def unpack(kept: tuple[Tensor, Device]) -> Tensor:
            t, device = kept
            return t if device is host else to_device(t, device, host)

        super().__init__(pack, unpack)


def hooks_around() -> saved_tensors_hooks | None:
    """The innermost hooks of this thread; None for symbols of a graph that is being traced."""
    if not here.stack or here.trace is not None:
        return None
    return next((i for i in reversed(here.stack) if isinstance(i, saved_tensors_hooks)), None)


class Packed:
    """A packed saved tensor; `edge` is where its gradient goes, with a weak reference to a leaf."""

    __slots__ = ("kept", "unpack", "edge")

    def __init__(self, t: Tensor, hooks: saved_tensors_hooks) -> None:
        memory = blob_of(t).data
        was = None if memory is None else memory._version
        with set_grad(False):
            self.kept = hooks.pack(rewrap(t))
        if memory is not None and memory._version != was:
            raise AutogradError(
                "A saved tensor pack hook is modifying its input in place, and the program's tensor with it: write "
                "into a copy, t.clone()"
            )
        self.unpack = hooks.unpack
        self.edge = (t.node or weakref.ref(t)) if t._requires_grad else None

    def open(self) -> Tensor:
        """The unpacked tensor, without its autograd node."""
        with set_grad(False):
            t = self.unpack(self.kept)
        if not isinstance(t, Tensor):
            raise AutogradError(
                f"saved_tensors_hooks: unpack must give a tensor; got {type(t).__name__}. It takes pack's result, "
                "and returns the tensor that pack was given"
            )
        return rewrap(t)
