"""The memory order (strides) in which kernels make results, and that of local values in the eager program: draws over
them follow that order, though a chain may lay them out otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

from weft.core.substitution import substituted
from weft.job.aliasing import Memories
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.ops.kernels import FORMATS, is_channels_last
from weft.plan.spans import contiguous
from weft.tensor.tensor import Tensor


def alike(shape: tuple[int, ...], operands: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """The strides of results of torch's elementwise kernels: dimensions are ordered as in the first operand that
    orders them. Of what has dimensions of one element, whose strides say nothing, they know two formats."""
    for kind in (torch.contiguous_format, FORMATS[4])[: 2 if len(shape) == 4 else 1] if 1 in shape else ():
        if all(x.shape == shape and x.is_contiguous(memory_format=kind) for x in operands):
            return torch.empty(shape, device="meta", memory_format=kind).stride()
    rows = []
    for x in operands:
        missing = len(shape) - x.dim()
        row = [
            0 if n == 1 != shape[missing + d] else step
            for d, (n, step) in enumerate(zip(x.shape, x.stride(), strict=True))
        ]
        rows.append([0] * missing + row)

    def compared(a: int, b: int) -> int:
        """-1 if dimension a is inside b in memory, 1 if outside, 0 if no operand orders them."""
        for row in rows:
            if row[a] == 0 or row[b] == 0:
                continue
            if row[a] != row[b]:
                return -1 if row[a] < row[b] else 1
            if shape[a] > shape[b]:
                return 1
        return 0

    order = [*reversed(range(len(shape)))]  # innermost first
    for i in range(1, len(order)):
        at = i
        for j in reversed(range(i)):
            found = compared(order[j], order[at])
            if found < 0:
                break
            if found > 0:
                order[at], order[j], at = order[j], order[at], j
    strides, step = [0] * len(shape), 1
    for d in order:
        strides[d], step = step, step * max(shape[d], 1)
    return tuple(strides)


def lies(x: torch.Tensor, strides: tuple[int, ...]) -> bool:
    """Whether a tensor has these strides."""
    return all(a == b or n == 1 for a, b, n in zip(x.stride(), strides, x.shape, strict=True))


def results(op: Op, args: Sequence[Any], shapes: Sequence[tuple[int, ...]], device: str) -> list[tuple[int, ...]]:
    """The strides of an op's results of these shapes, as its kernel makes them for this type of device; meta tensors
    among the arguments lie as its operands."""
    said = dict(zip(op.names, args, strict=True))
    order = op.memory_order if isinstance(op.memory_order, str) else op.memory_order(*args)
    named, _, where = order.partition(" on ")
    every = [t for a in args for t in (a if isinstance(a, tuple) else (a,)) if isinstance(t, torch.Tensor)]
    flat = [*map(contiguous, shapes)]
    if op.view or named == "meta":
        with contextlib.suppress(RuntimeError):  # of a lazy value, which may lie otherwise
            made = op.compute(args)
            return [t.stride() for t in (made if isinstance(made, (tuple, list)) else (made,))]
    if said.get("strides") is not None:
        return [said["strides"]]
    if "channels_last" in named or said.get("channels_last"):
        which = named.rpartition(" ")[2]
        images = [t for t in ([said[which]] if which in said else every) if t.dim() in FORMATS]
        found = [*map(is_channels_last, images)]
        kept = any(found) and (which != "all" or all(found)) and (not where or device == "cpu")
        if kept or said.get("channels_last"):
            kinds = [FORMATS.get(len(s), torch.contiguous_format) for s in shapes]
            return [torch.empty(s, device="meta", memory_format=k).stride() for s, k in zip(shapes, kinds, strict=True)]
    leading = [said[named]] if named in said else every[:1] if named.startswith("first") else every
    as_rows = named == "first in rows" and all(t.stride(-1) == 1 for t in every[:3])
    if not (as_rows or named in ("first", *said) or (op.elementwise and named != "contiguous" and not op.writes)):
        return flat
    laid = alike(shapes[0], leading)
    return [laid if s == shapes[0] else f for s, f in zip(shapes, flat, strict=True)]


class Order:
    """Infers strides: views by meta tensors; draws, elementwise results and those whose op declares how they lie, from
    their operands; all else is contiguous."""

    def __init__(self, job: Job, memories: Memories) -> None:
        self.job, self.memories = job, memories
        self.known: dict[Value, torch.Tensor] = {}

    def given(self, v: Value, t: Tensor) -> None:
        """Set the strides of an input or variable: those of the tensor with which it was traced, if it is local, and
        before the program wrote into it."""
        self.known[v] = v.meta.new_empty_strided(v.shape, self.memories.data(t).stride()) if t.is_local else v.meta

    def settled(self, v: Value) -> None:
        """Set a value to contiguous, as the program asked for it."""
        self.known[v] = v.meta

    def laid(self, v: Value) -> torch.Tensor:
        """A value as a meta tensor with these strides."""
        todo = [v]
        while todo:
            node = self.job.producer[todo[-1]]
            missing = [o for o in node.operands() if o not in self.known]
            if todo[-1] not in self.known and missing:
                todo += missing
                continue
            at = todo.pop()
            if at not in self.known:
                self._run(node)
        return self.known[v]

    def _run(self, node: Node) -> None:
        if node.op == "variable":
            return self.given(node.outputs[0], self.job.variables[node.outputs[0]])
        shapes = [v.shape for v in node.outputs]
        made = [*map(contiguous, shapes)]
        if node.op == "unpack":
            made = [self.known[node.args[0]].stride()]
        elif node.op in OPS:
            args = substituted(node.args, Value, self.known.__getitem__)
            made = results(OPS[node.op], args, shapes, node.outputs[0].device_type)
        for v, strides in zip(node.outputs, made, strict=True):
            self.known[v] = v.meta.new_empty_strided(v.shape, strides)
        return None
