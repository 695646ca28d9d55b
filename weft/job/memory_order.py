"""The memory order (strides) of local values in the eager program: draws over them follow that order, though a chain
may lay them out otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import torch

from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.kernels import FORMATS, channels_innermost
from weft.tensor.tensor import Tensor

FLAT = torch.contiguous_format


def alike(shape: tuple[int, ...], operands: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """The strides of results of torch's elementwise kernels: dimensions are ordered as in the first operand that
    orders them."""
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


def by_channels(node: Node, are_so: Callable[[Value], bool]) -> bool:
    """Whether a kernel lays out its results with channels innermost, where some operands `are_so`, as its op says."""
    op = OPS[node.op]
    if "by_channels" in op.names and node.args[op.names.index("by_channels")]:
        return True
    if "channels" not in op.memory_order:
        return False
    which, _, where = op.memory_order.partition("channels")
    if where.endswith(" on CPUs") and node.outputs[0].device_type != "cpu":
        return False
    name = where.removesuffix(" on CPUs").removeprefix(" of ")
    operands = [node.args[op.names.index(name)]] if name in op.names else node.operands()
    found = [are_so(v) for v in operands if len(v.shape) in FORMATS]
    return any(found) and (all(found) or which != "all ")


class Order:
    """Infers strides: views by meta tensors; draws, elementwise results and those whose op declares how they lie, from
    their operands; all else is contiguous."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.known: dict[Value, torch.Tensor] = {}

    def given(self, v: Value, t: Tensor) -> None:
        """Set the strides of an input or variable: those of the tensor with which it was traced, if it is local."""
        self.known[v] = v.meta.new_empty_strided(v.shape, t.stride()) if t.is_local else v.meta

    def settled(self, v: Value) -> None:
        """Set a value to contiguous, as the program asked for it."""
        self.known[v] = v.meta

    def strides(self, v: Value) -> tuple[int, ...]:
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
        return self.known[v].stride()

    def _run(self, node: Node) -> None:
        op = OPS.get(node.op)
        if node.op == "variable":
            return self.given(node.outputs[0], self.job.variables[node.outputs[0]])
        made: object = None
        if node.op == "unpack":
            v = node.outputs[0]
            made = self.known[node.args[0]][: v.shape[0]] if v.shape else None
        elif node.op == "draw" and node.args[-1] is not None:
            made = torch.empty_strided(node.args[0], node.args[-1], device="meta")
        elif op is not None and op.random and node.operands():
            made = self.known[node.operands()[0]]
        elif op is not None and by_channels(node, lambda v: channels_innermost(self.known[v])):
            made = [v.meta.contiguous(memory_format=FORMATS.get(len(v.shape), FLAT)) for v in node.outputs]
        elif op is not None and (op.memory_order == "first" or op.elementwise) and node.operands():
            v = node.outputs[0]
            given = [self.known[o] for o in node.operands()]
            if not op.writes and op.memory_order != "contiguous":
                strides = alike(v.shape, given[:1] if op.memory_order == "first" else given)
                made = torch.empty_strided(v.shape, strides, dtype=v.dtype.torch, device="meta")
        elif op is not None and op.memory_order == "first in rows":
            first, *_ = given = [self.known[o] for o in node.operands()]
            if all(x.stride(-1) == 1 for x in given[:3]):  # `empty_like` would load sympy on meta
                made = torch.empty_strided(first.shape, alike(first.shape, [first]), dtype=first.dtype, device="meta")
        elif node.op == "reshape":
            with contextlib.suppress(RuntimeError):  # a reshape that has to copy
                made = self.known[node.args[0]].view(node.outputs[0].shape)
        elif op is not None and op.view:
            made = op.compute([self._meta(a) for a in node.args])
        results = made if isinstance(made, (tuple, list)) else (made,) * len(node.outputs)
        for v, y in zip(node.outputs, results, strict=False):
            self.known[v] = y if isinstance(y, torch.Tensor) and y.shape == v.shape else v.meta
        return None

    def _meta(self, a: object) -> object:
        if isinstance(a, Value):
            return self.known[a]
        return [self._meta(v) for v in a] if isinstance(a, tuple) and any(isinstance(v, Value) for v in a) else a
