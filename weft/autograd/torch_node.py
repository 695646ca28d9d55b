"""Gradients by torch's autograd, of functions that torch computes in one call, and Weft by a composition of ops: the
tape gets one node, which holds torch's own. What it can't do, to be differentiated again or traced, is done by the
composition."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from weft.autograd.call import check_unwritten, edge, version
from weft.autograd.engine import grad
from weft.autograd.modes import enable_grad
from weft.autograd.node import Node
from weft.core.dispatch import here
from weft.core.errors import AutogradError
from weft.ops import ops
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_torch
from weft.tensor.written import next_sequence


class TorchsCall:
    """What the tape asks of a node's op."""

    visible, differentiable, saves = 1, (True,), ()
    lists, keeps_tensors, reads_kept, steady = False, True, None, ()

    def __init__(self, f: Callable[..., Any], composed: Callable[..., Any]) -> None:
        self.name, self.composed = f.__name__, composed
        self.keywords = [p.name for p in inspect.signature(f).parameters.values() if p.kind is p.KEYWORD_ONLY]

    def unpack(self, node: Node, gradients: Sequence[Any], saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the operands that want one."""
        (dy,), (result, leaves, args, wanting, versions) = gradients, saved
        if here.grad or here.trace is not None:
            return self._composed(dy, args, wanting, versions)
        try:
            found = torch.autograd.grad(result, leaves, local_data(dy, self.name), retain_graph=True, allow_unused=True)
        except RuntimeError as error:  # a leaf, or the result, was overwritten
            raise AutogradError(str(error)) from error
        return tuple([g if g is None else of_torch(g) for g in found])

    def _composed(self, dy: Any, args: list[Any], wanting: list[int], versions: dict[int, int]) -> tuple[Any, ...]:
        given, again = list(args), here.grad
        for i, was in versions.items():  # an index or a limit, too, which is read again
            check_unwritten(args[i], was, f"argument {i} of {self.name}()", "Give a copy, t.clone()")
        with enable_grad():
            for i in wanting:
                given[i] = ops.mul(args[i], 1)
            inputs = [given[i] for i in wanting]
            n = len(given) - len(self.keywords)
            y = self.composed(*given[:n], **dict(zip(self.keywords, given[n:], strict=True)))
            return grad(y, inputs, dy, create_graph=again, allow_unused=True)


class TorchNode(Node):
    """Its gradients may lie in one memory, so it is no `Node` whose gradients become a leaf's."""

    __slots__ = ()


def taped(
    op: TorchsCall, kernel: Callable[..., Any], data: Sequence[Any], operands: Sequence[int], args: list[Any]
) -> Any:
    """The function's result, on the tape; None where torch has no gradient of it. `data` are the kernel's operands,
    `operands` their places among the function's arguments."""
    leaves, edges, wanting, given = [], [], [], list(data)
    for k, i in enumerate(operands):
        t = args[i]
        if isinstance(t, Tensor) and t._requires_grad:
            given[k] = leaf = data[k].detach().requires_grad_()
            leaves.append(leaf)
            edges.append(edge(t))
            wanting.append(i)
    if torch.is_grad_enabled():
        result = kernel(*given)
    else:
        with torch.enable_grad():
            result = kernel(*given)
    if result.__class__ is not torch.Tensor or not result.requires_grad:
        return None
    y, node = of_torch(result.detach()), TorchNode()
    node.op, node.sequence, node.edges = op, next_sequence(), tuple(edges)  # type: ignore[assignment]
    node.saved, node.versions = (result, leaves, args, wanting, {i: version(args[i]) for i in operands}), ()
    node.attributes = ()
    y.node, y._requires_grad = node, True
    return y
