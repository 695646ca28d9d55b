"""Eager execution on local tensors: wait for pending writes, run the kernel in the calling thread, wrap the results.

The fast path of `autograd/entry.py` is this interpreter without the checks.
"""

from __future__ import annotations

from typing import Any

import torch

from weft.core.dispatch import hooks
from weft.ops.declaration import Op
from weft.ops.explain import apart, check_arguments, explain
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_torch
from weft.vm.dependency import alias


def run(op: Op, args: tuple[Any, ...]) -> tuple[list[Tensor], tuple[Any, ...]]:
    check_arguments(op, args)
    local = localize(op, args)
    for i in op.writes:
        for t in args[i] if isinstance(args[i], (list, tuple)) else (args[i],):
            if isinstance(t, Tensor) and t.blob.access is not None:
                hooks.wait_write(t.blob)
    meta = any_meta(op, local)
    if meta:
        refuse_others(op, _written(op, args), args)
    outputs = [of_torch(y) for y in execute(op, op.kernel, local, args)]
    if meta:
        refuse_others(op, outputs, args)
    if op.view:
        for y in outputs:
            at_once = y.blob.now is not None
            y.blob = alias(args[op.operands[0]].blob, y.blob.data)
            if not at_once:
                y.blob.now = None
    return outputs, args


def any_meta(op: Op, local: tuple[Any, ...]) -> bool:
    for i in op.operands:
        operand = local[i]
        for t in operand if operand.__class__ is list else (operand,):
            if t.__class__ is torch.Tensor and t.is_meta:
                return True
    return False


def refuse_others(op: Op, written: list[Tensor], args: tuple[Any, ...]) -> None:
    """Some of torch's kernels compute with meta tensors as if they had memory: what they write isn't on meta then."""
    if any(t.device.type != "meta" for t in written):
        raise apart(op, args)


def _written(op: Op, args: tuple[Any, ...]) -> list[Tensor]:
    lists = [args[i] if isinstance(args[i], (list, tuple)) else (args[i],) for i in op.writes]
    return [t for written in lists for t in written if isinstance(t, Tensor)]


def localize(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with torch tensors in place of Weft's, once nothing pending writes them."""
    local = list(args)
    for i in op.operands:
        value = args[i]
        if isinstance(value, Tensor):
            data = value.blob.now
            local[i] = local_data(value, op.name) if data is None else data
        elif isinstance(value, (list, tuple)):
            local[i] = [None if t is None else local_data(t, op.name) for t in value]
    return tuple(local)


def execute(op: Op, kernel: Any, local: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    """Run a kernel on local arguments; its error gets an explanation."""
    try:
        if op.keywords:
            n = len(local) - len(op.keywords)
            result = kernel(*local[:n], **dict(zip(op.keywords, local[n:], strict=True)))
        else:
            result = kernel(*local)
    except Exception as cause:
        raise explain(op, cause, args) from cause
    if len(op.returns) == 1:
        return (result,)
    return tuple(result) if op.returns else ()
