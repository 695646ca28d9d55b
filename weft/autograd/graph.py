"""What the tape does with the tensors that it keeps for backward: `flow.autograd.graph.saved_tensors_hooks`."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from weft.core.device import Device
from weft.core.dispatch import here, set_grad
from weft.core.errors import ArgumentError, AutogradError
from weft.ops.declaration import Op
from weft.ops.move import to_device
from weft.tensor.tensor import Tensor, of_torch, rewrap


class saved_tensors_hooks:
    """Inside, `pack(tensor)` gives what is kept in a saved tensor's stead, and backward gets it again by `unpack`.

    For keeping activations elsewhere, or smaller. The innermost hooks count; `pack` must not overwrite its argument.

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
        self._before: list[tuple[tuple[Any, ...], bool]] = []

    def __enter__(self) -> None:
        self._before.append((here.stack, here.plain))
        here.stack, here.plain = (*here.stack, self), False  # off the short way, so that calls come by `record`

    def __exit__(self, *_: object) -> None:
        here.stack, here.plain = self._before.pop()

    def intercept(self, op: Op, args: tuple[Any, ...], proceed: Callable[..., Any]) -> Any:
        return proceed(op, args)


class save_on_cpu(saved_tensors_hooks):
    """Inside, what is kept for backward lies in the host's memory, and comes back to its device when it is needed."""

    def __init__(self, pin_memory: bool = False) -> None:
        host = Device("cpu")

        def pack(t: Tensor) -> tuple[Tensor, Device]:
            if t.spec is not None or t.device is host:
                return t, host
            kept, device = to_device(t, host, t.device), t.device
            return (of_torch(kept._local("save_on_cpu").pin_memory()) if pin_memory else kept), device

        def unpack(kept: tuple[Tensor, Device]) -> Tensor:
            t, device = kept
            return t if device is host else to_device(t, device, host)

        super().__init__(pack, unpack)


def hooks_around() -> saved_tensors_hooks | None:
    """The innermost hooks of this thread; none apply to the symbols of a graph that is being traced."""
    if not here.stack or here.trace is not None:
        return None
    return next((i for i in reversed(here.stack) if isinstance(i, saved_tensors_hooks)), None)


class Packed:
    """What `pack` made of a saved tensor; `edge` is where the tensor's own gradient goes, a leaf held weakly."""

    __slots__ = ("kept", "unpack", "edge")

    def __init__(self, t: Tensor, hooks: saved_tensors_hooks) -> None:
        with set_grad(False):
            self.kept = hooks.pack(rewrap(t))
        self.unpack = hooks.unpack
        self.edge = (t.node or weakref.ref(t)) if t._requires_grad else None

    def open(self) -> Tensor:
        """The tensor again, without its place in the graph of gradients."""
        with set_grad(False):
            t = self.unpack(self.kept)
        if not isinstance(t, Tensor):
            raise AutogradError(
                f"saved_tensors_hooks: unpack must give a tensor; got {type(t).__name__}. It is called with what pack "
                "gave, and gives the tensor that pack was given"
            )
        return rewrap(t)
