"""A node of the tape: the op of a call, where gradients go, what its gradient saved."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import ref

import torch
from torch import Size

from weft.autograd.graph import Packed
from weft.autograd.unpack import unpacking
from weft.core.dispatch import here
from weft.core.errors import AutogradError
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.tensor.blob import Blob, blob_of
from weft.tensor.tensor import RemovableHook, Tensor, rewrap
from weft.tensor.written import next_sequence

BEFORE, AFTER, METADATA = "before", "after", "metadata"  # keys among a node's hooks
RELEASED = (
    "Trying to backward through the graph a second time: what `{}` had saved has been released since the first. "
    "Write .backward(retain_graph=True) the first time"
)


class Hooked:
    """What programs ask of a node of the tape: hooks around it, and the nodes it passes gradients to."""

    __slots__ = ()
    hooks: Any
    edges: tuple[Any, ...]

    def hook(self, index: Any, table: dict[Any, Any]) -> None:
        if self.hooks is None:
            self.hooks = {}
        self.hooks[index] = table

    def _table(self, kind: str) -> OrderedDict[Any, Any]:
        hooks = self.hooks = self.hooks or {}
        return hooks.setdefault(kind, OrderedDict())

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHook:
        """Call `fn(grad_outputs)` before the node's backward; what it returns replaces them."""
        return RemovableHook(self._table(BEFORE), fn)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHook:
        """Call `fn(grad_inputs, grad_outputs)` after the node's backward; what it returns replaces `grad_inputs`."""
        return RemovableHook(self._table(AFTER), fn)

    @property
    def metadata(self) -> dict[Any, Any]:
        """For whatever a program wants to keep with the node."""
        return self._table(METADATA)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple((e.node, e.index) if type(e) is Slot else (_function(e), 0) for e in self.edges)


class AccumulateGrad(Hooked):
    """The end of the tape at a leaf, its `variable`: what `next_functions` shows in its place."""

    edges = ()

    def __init__(self, leaf: Tensor) -> None:
        self.variable, self.hooks = leaf, None

    def name(self) -> str:
        return type(self).__name__

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHook:
        return self.variable.register_hook(lambda g: _only(fn((g,))))

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHook:
        return self.variable.register_post_accumulate_grad_hook(lambda leaf: fn((), (leaf.grad,)) and None)


def _function(edge: Any) -> Any:
    return AccumulateGrad(edge) if isinstance(edge, Tensor) else edge


def _only(replaced: Any) -> Any:
    return replaced[0] if isinstance(replaced, tuple) else replaced


class Node(Hooked):
    """One recorded call. `sequence` grows with time, so descending order is a topological order of backward.

    edges      per flattened operand: the Node or Slot that produced it, the leaf itself, or None
    saved      operands as tensors, outputs as (blob or value, spec): an output must not keep its own node alive
    versions   of the saved memory, to detect that it was overwritten
    """

    __slots__ = (
        "op", "sequence", "edges", "saved", "versions", "attributes", "outputs", "hooks", "retained", "origin",
        "__weakref__",
    )  # fmt: skip
    op: Op
    sequence: int
    edges: tuple[Any, ...]
    saved: tuple[Any, ...] | None
    versions: tuple[Any, ...]  # a list for a list
    attributes: tuple[Any, ...]
    outputs: Any  # for several outputs: makes zeros for one without a gradient
    hooks: dict[Any, dict[Any, Any]] | None  # by output: its tensor's; and by BEFORE, AFTER, METADATA
    retained: dict[int, Any] | None
    origin: Any  # anomaly mode: the stack of the forward call

    def __init__(self) -> None:
        self.hooks = self.retained = self.outputs = self.origin = None

    @staticmethod
    def of(op: str, edges: tuple[Any, ...], saved: tuple[Any, ...] = (), versions: tuple[int, ...] = ()) -> Node:
        """The node of a call that the program didn't make."""
        node = Node()
        node.op, node.sequence, node.edges = OPS[op], next_sequence(), edges
        node.saved, node.versions, node.attributes = saved, versions, ()
        return node

    def name(self) -> str:
        return f"{self.op.name}_backward"

    @property
    def outputs_count(self) -> int:
        return self.op.visible

    def retain(self, index: int, tensor: Any) -> None:
        if self.retained is None:
            self.retained = {}
        self.retained[index] = tensor

    def release(self) -> None:
        op = self.op
        if op.keeps_tensors:
            if op.reads_kept is None or op.reads_kept(self):
                self.saved = None
            elif self.saved is not None:  # backward may run again, without what it doesn't read
                self.saved = tuple(None if isinstance(s, Tensor) else s for s in self.saved)

    def backward(self, gradients: list[Tensor | None]) -> tuple[Tensor | None, ...]:
        """Gradients of the operands from those of the outputs."""
        saved = self.saved
        if saved is None:
            raise AutogradError(RELEASED.format(self.name()))
        op = self.op
        unpack = op.unpack
        if unpack is None:
            unpack = op.unpack = unpacking(op)
        result = unpack(self, gradients, saved)
        if type(result) is not tuple:
            result = (result,)
        if op.lists:
            result = tuple(_flatten(result))
        if op.steady and here.grad:
            result = tuple(_tied(g, self.edges[i]) if i in op.steady else g for i, g in enumerate(result))
        assert len(result) == len(self.edges), (
            f"{op.name}'s gradient gives {len(result)} for {len(self.edges)} operands"
        )
        return result

    def _operand(self, saved: Any, at: int) -> Any:
        if type(saved) in (list, tuple):
            return [self._as_saved(t, was) for t, was in zip(saved, self.versions[at], strict=True)]
        return opened(saved) if type(saved) is Packed else self._as_saved(saved, self.versions[at])

    def _as_saved(self, saved: Any, was: int) -> Any:
        """A saved operand, or a stand-in that raises if it was overwritten."""
        if isinstance(saved, Tensor):
            data = blob_of(saved).data
            if data is not None and data._version != was:
                return Overwritten(self._story(data, was), tuple(saved.shape))
        return saved

    def _output(self, saved: Any, index: int, at: int) -> Tensor:
        """The output as a tensor of this node, so that its gradient is differentiable."""
        out = saved.open() if type(saved) is Packed else self._wrapped(saved, at)
        if index < self.op.visible and self.op.differentiable[index]:
            out.node = self if self.op.visible == 1 else Slot(self, index)
            out._requires_grad = True
        return out

    def _wrapped(self, saved: Any, at: int) -> Tensor:
        blob, spec, value = saved
        out = object.__new__(Tensor)
        if value is not None:
            out.blob, out.spec, out.value = blob, spec, value
            return out
        self._check(blob.data, at)
        if spec is None:
            out.blob = blob
        else:
            out.blob, out.spec, out.shard = ABSENT_BLOB, spec, blob
        return out

    def _check(self, data: torch.Tensor | None, at: int) -> None:
        if data is not None and data._version != self.versions[at]:
            raise AutogradError(self._story(data, self.versions[at]))

    def _story(self, data: torch.Tensor, was: int) -> str:
        return (
            f"the gradient of `{self.op.name}` needs a tensor of shape {list(data.shape)} that an in-place op "
            f"overwrote since: it has been modified by an inplace operation, and is at version {data._version}; saved "
            f"was {was}. Use the op that is not in place (x = x.relu(), not x.relu_()), or clone before"
        )

    def _zeros(self, place: int) -> Tensor | None:
        return None if self.outputs is None else self.outputs[place]()

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def opened(packed: Packed) -> Tensor:
    """A saved operand, unpacked; if backward is recorded, with the operand's edge."""
    t = packed.open()
    edge = packed.edge() if type(packed.edge) is ref else packed.edge
    if edge is not None:
        t.node, t._requires_grad = leading(edge) if isinstance(edge, Tensor) else edge, True
    return t


def leading(leaf: Tensor) -> Node:
    """A node that passes gradients on to a leaf, for a tensor that stands for it."""
    return Node.of("clone", (leaf,))


class Overwritten(Tensor):
    """A stand-in for a saved operand that was overwritten: reading its values raises."""

    def __init__(self, story: str, shape: tuple[int, ...]) -> None:
        self._story, self._shape = story, Size(shape)

    @property
    def shape(self) -> Size:
        return self._shape

    @property
    def blob(self) -> Blob:
        raise AutogradError(self._story)


class Slot:
    """One output of a node with several."""

    __slots__ = ("node", "index")

    def __init__(self, node: Node, index: int) -> None:
        self.node, self.index = node, index

    def __repr__(self) -> str:
        return repr(self.node)


ABSENT_BLOB = Blob(None)


def _tied(gradient: Tensor | None, edge: Any) -> Tensor | None:
    """A gradient that is being recorded and doesn't depend on its operand, made to look as if it did."""
    if gradient is None or edge is None:
        return gradient
    tied = rewrap(gradient)
    before = (gradient.node or gradient) if gradient._requires_grad else None
    tied.node, tied._requires_grad = Node.of("steady", (before, edge)), True
    return tied


def _flatten(values: Any) -> Any:
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from v
        else:
            yield v
