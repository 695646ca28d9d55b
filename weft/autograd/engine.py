"""Backward: gradients flow from later nodes to earlier ones. No recursion: a heap ordered by the nodes' sequence."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.autograd.call import edge
from weft.autograd.graph import passing
from weft.autograd.modes import anomaly
from weft.autograd.node import Node, Slot
from weft.autograd.overwrite import make_overwriting
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, AutogradError, ShapeError
from weft.core.sbp import broadcast
from weft.ops import OPS
from weft.tensor.blob import blob_of
from weft.tensor.hook import waiting_for_gradients
from weft.tensor.tensor import Tensor, of_shard, rewrap


def backward(
    tensors: Sequence[Tensor] | Tensor, grad_tensors: Sequence[Tensor | None] | Tensor | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:  # fmt: skip
    """Add the gradients of `tensors` to `.grad` of every leaf, or of `inputs` only."""
    outputs = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    gradients = (grad_tensors,) if isinstance(grad_tensors, Tensor) else tuple(grad_tensors or (None,) * len(outputs))
    _check(outputs, gradients)
    if here.trace is not None and not create_graph:
        here.trace.loss(outputs)
    wanted = None if inputs is None else _tensors(inputs, "backward(inputs=...)")
    if wanted is not None and not wanted:
        raise AutogradError("backward(inputs=[]): no tensor was named; leave inputs out to reach every leaf")
    found = _run(outputs, gradients, retain_graph, create_graph, wanted, accumulate=True)
    if wanted is not None:
        for t in wanted:
            g = found.get(id(t))
            if g is not None and t.node is not None:
                _accumulate(t, g, create_graph, shared=True)


def grad(
    outputs: Sequence[Tensor] | Tensor, inputs: Sequence[Tensor] | Tensor,
    grad_outputs: Sequence[Tensor | None] | Tensor | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    Of an input that the outputs don't depend on: None if `allow_unused`, zeros if `materialize_grads`. If
    `is_grads_batched`, the `grad_outputs` have one dimension more in front, and so have the results: one after another.
    """
    if is_grads_batched:
        options = (create_graph, only_inputs, allow_unused, False, materialize_grads)
        return _each_of_a_batch(outputs, inputs, grad_outputs, retain_graph, options)
    if not only_inputs:
        raise ArgumentError("grad(): only the gradients of the inputs are found; use backward() for those of leaves")
    outs, ins = _tensors(outputs, "the outputs of grad()"), _tensors(inputs, "the inputs of grad()")
    given = (grad_outputs,) if isinstance(grad_outputs, Tensor) or grad_outputs is None else tuple(grad_outputs)
    if grad_outputs is None:
        given = (None,) * len(outs)
    _check(outs, given)
    for t in ins:
        if not t._requires_grad:
            raise AutogradError(
                "one of the inputs of grad() does not require a gradient; call x.requires_grad_() first"
            )
    found = _run(outs, given, retain_graph, create_graph, ins, accumulate=False)
    result = tuple(found.get(id(t)) for t in ins)
    if materialize_grads:
        return tuple(OPS["zeros_like"](t) if g is None else g for t, g in zip(ins, result, strict=True))
    if not allow_unused and any(g is None for g in result):
        missing = [i for i, g in enumerate(result) if g is None]
        raise AutogradError(
            f"the outputs don't depend on inputs {missing}; pass allow_unused=True to get None for those"
        )
    return result


def _each_of_a_batch(outs: Any, ins: Any, grad_outputs: Any, retain: bool | None, options: Any) -> Any:
    """`grad` for each place along the first dimension of the gradients that are given."""
    given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs or ())
    sizes = {g.shape[0] for g in given if g is not None}
    if len(sizes) != 1:
        raise ArgumentError(f"grad(is_grads_batched=True): grad_outputs of one first size; got {sorted(sizes)}")
    n, found = sizes.pop(), []
    for i in range(n):
        one = [None if g is None else OPS["select"](g, 0, i) for g in given]
        found.append(grad(outs, ins, one, True if i < n - 1 else retain, *options))
    cat, wider = OPS["cat"], OPS["unsqueeze"]
    return tuple(None if k[0] is None else cat([wider(g, 0) for g in k], 0) for k in zip(*found, strict=True))


def _tensors(value: Any, what: str) -> list[Tensor]:
    found = [value] if isinstance(value, Tensor) else list(value) if isinstance(value, Iterable) else [value]
    for t in found:
        if not isinstance(t, Tensor):
            raise ArgumentError(f"{what} must be a tensor or several; got {type(t).__name__}: {t!r}")
    return found


def _check(outputs: Sequence[Any], gradients: Sequence[Any]) -> None:
    """One gradient, a tensor or None, for each output."""
    if len(outputs) != len(gradients):
        raise ArgumentError(
            f"{len(gradients)} gradients for {len(outputs)} outputs: give one each, None for a scalar output's own 1"
        )
    for t in outputs:
        if not isinstance(t, Tensor):
            raise ArgumentError(f"backward goes from tensors; got {type(t).__name__}: {t!r}")
    for g in gradients:
        if g is not None and not isinstance(g, Tensor):
            raise ArgumentError(f"a gradient must be a tensor or None; got {type(g).__name__}: {g!r}")


def _start(t: Tensor, gradient: Tensor | None, position: int) -> Tensor:
    if not t._requires_grad:
        raise AutogradError(
            f"element {position} of tensors does not require grad and does not have a grad_fn: nothing that it was "
            "computed from requires a gradient. Set requires_grad=True on an input, or check for no_grad() and detach()"
        )
    if gradient is None:
        if t.numel() != 1:
            raise AutogradError(
                f"grad can be implicitly created only for scalar outputs; this one has shape {list(t.shape)}. "
                "Reduce it (loss.mean().backward()) or pass the gradient: y.backward(gradient)"
            )
        return OPS["ones_like"](t) if here.trace is None else here.trace.begun(t)
    if gradient.shape != t.shape:
        raise ShapeError(
            f"a gradient of shape {list(gradient.shape)} for a tensor of shape {list(t.shape)}: they must agree"
        )
    return gradient if gradient.dtype is t.dtype else OPS["cast"](gradient, t.dtype)


def _run(
    outputs: Sequence[Tensor], gradients: Sequence[Tensor | None], retain_graph: bool | None, create_graph: bool,
    wanted: list[Tensor] | None, accumulate: bool,
) -> dict[int, Tensor]:  # fmt: skip
    retain = create_graph if retain_graph is None else retain_graph
    before, here.grad = here.grad, create_graph
    around, passing.ends = passing.ends, []
    try:
        found = _Sweep(retain, create_graph, wanted, accumulate).go(outputs, gradients)
        for end in passing.ends:
            end()
        return found
    finally:
        here.grad, passing.ends = before, around


class _Sweep:
    """One backward pass: pending gradients per node, and a heap of the nodes to visit, latest first."""

    def __init__(self, retain: bool, create_graph: bool, wanted: list[Tensor] | None, accumulate: bool) -> None:
        self.retain, self.create_graph, self.accumulate = retain, create_graph, accumulate
        self.pending: dict[Node, list[Tensor | None]] = {}
        self.heap: list[tuple[int, Node]] = []
        self.leaves: dict[int, tuple[Tensor, Tensor]] = {}
        self.found: dict[int, Tensor] = {}
        self.held: set[int] = set()  # blobs of gradients that somebody holds: the user, or a leaf
        self.anomaly = anomaly()
        self.wanted_leaves: set[int] | None = None
        self.wanted_outputs: dict[Node, list[tuple[int, Tensor]]] = {}
        self.useful: set[Node] | None = None
        self.uses: dict[int, int] = {}  # of leaves that somebody waits for: how many calls have yet to send a gradient
        if wanted is not None:
            self.wanted_leaves = {id(t) for t in wanted if t.node is None}
            for t in wanted:
                if t.node is not None:
                    node, index = _place(t.node)
                    self.wanted_outputs.setdefault(node, []).append((index, t))

    def go(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> dict[int, Tensor]:
        places = [edge(t) for t in outputs]  # views of what was overwritten are made anew
        if self.wanted_leaves is not None:
            self.useful = self._ancestors([t.node for t in outputs if t.node is not None])
        for i, (t, given) in enumerate(zip(outputs, gradients, strict=True)):
            if given is not None:
                self.held.add(id(blob_of(given)))
            self._send(places[i], _start(t, given, i))
        if waiting_for_gradients[0] and self.wanted_leaves is None and here.trace is None:
            self.uses = _uses(self.pending)
        while self.heap:
            node = heapq.heappop(self.heap)[1]
            self._visit(node, self.pending.pop(node))
        for leaf, g in self.leaves.values():
            self._finish_leaf(leaf, g)
        return self.found

    def _ancestors(self, roots: list[Any]) -> set[Node]:
        """The nodes on a way to something wanted: only they need visiting."""
        order: list[Node] = []
        seen: set[Node] = set()
        todo = [_place(r)[0] for r in roots]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            order.append(node)
            todo.extend(_place(e)[0] for e in node.edges if e is not None and not isinstance(e, Tensor))
        order.sort(key=lambda n: n.sequence)
        useful: set[Node] = set()
        assert self.wanted_leaves is not None
        for node in order:
            for e in node.edges:
                if e is None:
                    continue
                if isinstance(e, Tensor):
                    hit = id(e) in self.wanted_leaves
                else:
                    source = _place(e)[0]
                    hit = source in useful or source in self.wanted_outputs
                if hit:
                    useful.add(node)
                    break
        return useful

    def _send(self, edge: Any, g: Tensor) -> None:
        kind = type(edge)
        if kind is Node:
            node, index = edge, 0
        elif kind is Slot:
            node, index = edge.node, edge.index
        elif isinstance(edge, Tensor):
            known = self.leaves.get(id(edge))
            self.leaves[id(edge)] = (edge, g if known is None else _add(known[1], g))
            return
        else:
            node, index = edge, 0
        waiting = self.pending.get(node)
        if waiting is None:
            waiting = self.pending[node] = [None] * max(node.outputs_count, 1)
            heapq.heappush(self.heap, (-node.sequence, node))
        before = waiting[index]
        waiting[index] = g if before is None else _add(before, g)

    def _visit(self, node: Node, gradients: list[Tensor | None]) -> None:
        if node.hooks is not None:
            for index, table in node.hooks.items():
                gradients[index] = _hooked(table, gradients[index])
        if node.retained is not None and self.accumulate:
            for index, t in node.retained.items():
                g = gradients[index]
                if g is not None:  # it goes on to others, too
                    _accumulate(t, g, self.create_graph, shared=True)
        for index, t in self.wanted_outputs.get(node, ()):
            g = gradients[index]
            if g is not None:
                self.found[id(t)] = g
        if self.useful is not None and node not in self.useful:
            return
        try:
            results = node.backward(gradients)
            if self.anomaly is not None and self.anomaly.check_nan:
                _check_numbers(node, results)
        except Exception as error:
            if node.origin is not None:
                error.add_note(f"the forward call of `{node.name}` was made here:\n{node.origin}")
            raise
        if not self.retain:
            node.release()
        for target, g in zip(node.edges, results, strict=True):
            if target is not None and g is not None:
                self._send(target, g)
        if self.uses:
            self._finish_early(node, gradients, results)

    def _finish_early(self, node: Node, gradients: Sequence[Tensor | None], results: Sequence[Tensor | None]) -> None:
        """Leaves whose last gradient this was: their hooks run now, amid backward."""
        flowing = [_memory(g) for g in (*gradients, *results) if g is not None]
        for target, g in zip(node.edges, results, strict=True):
            left = self.uses.get(id(target))
            if left is None:
                continue
            self.uses[id(target)] = left - 1
            if left == 1 and id(target) in self.leaves:
                leaf, total = self.leaves.pop(id(target))
                place = _memory(total)
                if g is None or flowing.count(place) > (place == _memory(g)):  # it goes on to others, too
                    self.held.add(id(blob_of(total)))
                self._finish_leaf(leaf, total)

    def _finish_leaf(self, leaf: Tensor, g: Tensor) -> None:
        if leaf._hooks:
            hooked = _hooked(leaf._hooks, g)
            assert hooked is not None
            g = hooked
        if self.wanted_leaves is not None:
            if id(leaf) not in self.wanted_leaves:
                return
            self.found[id(leaf)] = g
        if self.accumulate:
            place = id(blob_of(g))
            _accumulate(leaf, g, self.create_graph, shared=place in self.held)
            self.held.add(place)
            if leaf._accumulated:
                for hook in tuple(leaf._accumulated.values()):
                    hook(leaf)


def _uses(roots: Iterable[Node]) -> dict[int, int]:
    """How many calls will send gradients to each leaf that has hooks for when they are there."""
    todo = list(roots)
    seen = set(todo)
    uses: dict[int, int] = {}
    while todo:
        for e in todo.pop().edges:
            if isinstance(e, Tensor):
                if e._accumulated:
                    uses[id(e)] = uses.get(id(e), 0) + 1
            elif e is not None:
                source = _place(e)[0]
                if source not in seen:
                    seen.add(source)
                    todo.append(source)
    return uses


def _memory(g: Tensor) -> int:
    data = blob_of(g).data
    return 0 if data is None else data.untyped_storage()._cdata


def _check_numbers(node: Node, results: Sequence[Tensor | None]) -> None:
    for i, g in enumerate(results):
        if g is not None and g.value is None and g.dtype.differentiable and OPS["isnan"](g).any().item():
            raise AutogradError(f"`{node.name}` gave nan as gradient {i}, of shape {list(g.shape)}")


def _place(edge: Any) -> tuple[Node, int]:
    return (edge.node, edge.index) if type(edge) is Slot else (edge, 0)


def _add(a: Tensor, b: Tensor) -> Tensor:
    return OPS["add"](a, b)


def _hooked(table: dict[int, Any], g: Tensor | None) -> Tensor | None:
    for hook in tuple(table.values()):
        if g is None:
            return None
        replaced = hook(g)
        if replaced is not None:
            g = replaced
    return g


def _accumulate(t: Tensor, g: Tensor, create_graph: bool, shared: bool = False) -> None:
    """Add to `.grad`; while a graph is traced, tell the trace. Of memory that is `shared`, take a copy.

    A global tensor's gradient is boxed to the tensor's own layout, partial sums made whole.
    """
    if here.trace is not None:
        here.trace.gradient(t, g)
        return
    if t.spec is not None:
        g = OPS["to_global"](g, t.spec.placement, tuple(broadcast if s.kind == "P" else s for s in t.spec.nd_sbp))
    if t.grad is None:
        # a gradient that somebody else holds too (an expanded view, the user's own tensor) must stay as it is
        t.grad = OPS["clone"](g) if shared else g if create_graph else _own(g)
    elif create_graph or t.grad.node is not None:
        t.grad = _add(t.grad, g)
    else:
        _adding()(t.grad, g)  # who holds .grad, or looks at it, sees it grow


@functools.cache
def _adding() -> Callable[..., Any]:
    """`add_`, by its written entry."""
    return make_overwriting(OPS["add"])


def _own(g: Tensor) -> Tensor:
    if g._view_of is not None:
        return OPS["clone"](g)
    if g.spec is None and g.node is None:
        return g
    data = blob_of(g).data
    if data is not None and not data.is_contiguous() and 0 in data.stride():
        return OPS["clone"](g)
    return rewrap(g) if g.spec is None or g.node is not None else of_shard(blob_of(g), g.spec)
