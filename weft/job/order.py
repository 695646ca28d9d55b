"""In which order the elements of local values lie in memory where the program runs eagerly: draws over them go in that
order, and a chain may lay them out otherwise.
"""

from __future__ import annotations

import functools

import torch

from weft.job.job import Job
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.tensor.tensor import Tensor


class Order:
    """What is so for the values that matter. Views say it of meta tensors; element-wise ops lie as a sum of their operands
    does, for their own meta kernels may load a compiler; draws as what they are drawn for; all others in order."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.known: dict[Value, torch.Tensor] = {}

    def given(self, v: Value, t: Tensor) -> None:
        """A value that comes in lies as the tensor does that it was traced with."""
        if t.spec is None:
            self.known[v] = torch.empty_strided(v.shape, t.stride(), dtype=v.dtype.torch, device="meta")

    def settled(self, v: Value) -> None:
        """The program asked for its elements in order."""
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
        elif op is not None and op.random and node.operands():
            made = self.known[node.operands()[0]]
        elif op is not None and op.elementwise and node.operands() and not op.writes:
            operands = [self.known[v].to(torch.float32) for v in node.operands()]
            made = functools.reduce(torch.add, operands[1:], torch.empty_like(operands[0]))
        elif op is not None and op.view:
            args = [self._meta(a) for a in node.args]
            n = len(args) - len(op.keywords)
            made = op.kernel(*args[:n], **dict(zip(op.keywords, args[n:], strict=True)))
        results = made if isinstance(made, (tuple, list)) else (made,) * len(node.outputs)
        for v, y in zip(node.outputs, results, strict=False):
            self.known[v] = y if isinstance(y, torch.Tensor) and y.shape == v.shape else v.meta
        return None

    def _meta(self, a: object) -> object:
        if isinstance(a, Value):
            return self.known[a]
        return [self._meta(v) for v in a] if isinstance(a, tuple) and any(isinstance(v, Value) for v in a) else a
