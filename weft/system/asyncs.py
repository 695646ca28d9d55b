"""`flow.asyncs`: ops on a thread of their own. Reading a result waits for it."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from weft.autograd.call import record
from weft.autograd.trees import mapped
from weft.core.dispatch import here, intercept
from weft.interpreter import eager_local, stack
from weft.ops.declaration import Op
from weft.ops.form import Form
from weft.ops.infer import infer
from weft.tensor.blob import Blob
from weft.tensor.tensor import Tensor, of_torch
from weft.vm.machine import vm_of


class Thread:
    """A worker thread for ops, which run there in program order."""

    _count = itertools.count()
    _free: deque[str] = deque()  # streams of those that are gone

    def __init__(self) -> None:
        try:
            self.stream = self._free.popleft()
        except IndexError:
            self.stream = f"async:{next(self._count)}"

    def __del__(self) -> None:
        self._free.append(self.stream)


class thread:
    """A context manager: its ops run on a `Thread`.

    >>> worker = flow.asyncs.Thread()
    >>> with flow.asyncs.thread(worker):
    ...     y = flow.ones(2, 2) @ flow.ones(2, 2)
    >>> y.tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    def __init__(self, worker: Thread) -> None:
        self.worker = worker
        self._contexts: list[Any] = []

    def __enter__(self) -> thread:
        self._contexts.append(intercept(self))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._contexts.pop().__exit__(*error)

    def intercept(self, op: Op, args: tuple[Any, ...], proceed: Callable[..., Any]) -> Any:
        """Issue the call to the worker; run it here if it returns a view, draws, or has a data-dependent shape."""
        given = stack.tensors(op, args)
        local = here.trace is None and bool(given) and all(t.is_local and t.value is None for t in given)
        if not local or op.view or op.random or op.dynamic or op.writes or op.conversion:
            return proceed(op, args)
        eager_local.check_arguments(op, args)
        forms = infer(op, tuple(_formed(a) for a in args))
        outputs = [of_torch(torch.empty(f.shape, dtype=f.dtype.torch, device=given[0].device.torch)) for f in forms]
        blobs = [t.blob for t in given]
        _submit(self.worker.stream, op, args, blobs, [y.blob for y in outputs])
        visible = tuple(outputs[: op.visible])
        if here.grad and op.vjp is not None:
            record(op, args, visible, tuple(outputs[op.visible :]))
        return visible[0] if op.visible == 1 else visible


def _submit(stream: str, op: Op, args: tuple[Any, ...], blobs: list[Blob], outputs: list[Blob]) -> None:
    def run() -> None:
        made = eager_local.execute(op, op.kernel, mapped(args, _read), args)
        for blob, y in zip(outputs, made, strict=True):
            assert blob.data is not None
            blob.data.data.copy_(y)  # through an alias, so that the tape sees no in-place write

    machine = vm_of()
    machine.submit("op", machine.stream(stream, "worker"), run, const=blobs, mut=outputs, name=op.name)


def _formed(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Form(tuple(value.shape), value.dtype)
    return tuple(map(_formed, value)) if isinstance(value, (list, tuple)) else value


def _read(leaf: Any) -> Any:
    return leaf.blob.data if isinstance(leaf, Tensor) else leaf


__all__ = ["Thread", "thread"]
