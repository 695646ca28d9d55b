"""One backward pass over the tape, without recursion: a heap ordered by the nodes' sequence, latest first."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from weakref import ref

from weft.autograd.call import edge
from weft.autograd.modes import anomaly
from weft.autograd.node import AFTER, BEFORE, Node, Slot
from weft.autograd.overwrite import overwriting
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, AutogradError, ShapeError
from weft.core.sbp import broadcast
from weft.ops import OPS, ops
from weft.ops.kernels import is_channels_last
from weft.tensor.blob import Blob, blob_of
from weft.tensor.counters import counters
from weft.tensor.gradient import check_kind
from weft.tensor.sparse import is_dense, numbers
from weft.tensor.tensor import Tensor, of_shard, of_torch, rewrap

NOTHING: Final = (
    "none of its inputs requires a gradient. Set requires_grad=True on an input, or check for no_grad() "
    "and detach(). For a graph's outputs, call backward() in its build()"
)
NOTHING_TRACED: Final = (
    "none of its inputs requires a gradient. A graph's inputs are data, whatever they required outside: "
    "make what is trained an nn.Parameter of a module, or call x.requires_grad_() in build() and "
    "return x.grad"
)


def _start(t: Tensor, gradient: Tensor | None, position: int, accumulate: bool) -> Tensor:
    """With what backward starts at an output. In a graph `.grad` accumulates shares, and `autograd.grad` wholes."""
    trace = here.trace if accumulate else None
    if not t._requires_grad:
        why = NOTHING if here.trace is None else NOTHING_TRACED
        raise AutogradError(f"element {position} of tensors does not require grad and does not have a grad_fn: {why}")
    if gradient is None:
        if t.numel() != 1:
            raise AutogradError(
                f"grad can be implicitly created only for scalar outputs; this one has shape {list(t.shape)}. "
                "Reduce it (loss.mean().backward()) or pass the gradient: y.backward(gradient)"
            )
        return ops.ones_like(t) if trace is None else trace.gradients.begun(t)
    check_kind(t.is_global, gradient, f"gradient {position}, which was given")
    if gradient.shape != t.shape:
        raise ShapeError(
            f"a gradient of shape {list(gradient.shape)} for a tensor of shape {list(t.shape)}: they must agree"
        )
    given = gradient if gradient.dtype is t.dtype else ops.cast(gradient, t.dtype)
    return given if trace is None else trace.gradients.share(given)


class Sweep:
    """One backward pass: pending gradients per node, and a heap of the nodes to visit, latest first."""

    def __init__(self, retain: bool, create_graph: bool, wanted: list[Tensor] | None, accumulate: bool) -> None:
        self.retain, self.create_graph, self.accumulate = retain, create_graph, accumulate
        self.pending: dict[Node, list[Tensor | None]] = {}
        self.heap: list[tuple[int, Node]] = []
        self.leaves: dict[int, tuple[Tensor, Tensor]] = {}
        self.found: dict[int, Tensor] = {}
        # blobs of gradients with other references, the user's or a leaf's: weakly, since ids of freed ones return
        self.held: dict[int, ref[Blob]] = {}
        self.anomaly = anomaly()
        self.wanted_leaves: set[int] | None = None
        self.wanted_outputs: dict[Node, list[tuple[int, Tensor]]] = {}
        self.useful: set[Node] | None = None  # the nodes that run, if not all
        self.reached: set[Node] | None = None  # those, and the wanted ones that don't run
        self.uses: dict[int, int] = {}  # of leaves with hooks: how many gradients are still to come
        if wanted is not None:
            self.wanted_leaves = {id(t) for t in wanted if t.node is None}
            for t in wanted:
                if t.node is not None:
                    node, index = _place(t.node)
                    self.wanted_outputs.setdefault(node, []).append((index, t))

    def go(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> dict[int, Tensor]:
        places = [edge(t) for t in outputs]  # stale views are brought up to date
        if self.wanted_leaves is not None:
            self.useful = self._ancestors([t.node for t in outputs if t.node is not None])
            if self.accumulate:
                self.useful.update(self.wanted_outputs)
            self.reached = self.useful.union(self.wanted_outputs)
        for i, (t, given) in enumerate(zip(outputs, gradients, strict=True)):
            if given is not None:
                self._hold(given)
            self._send(places[i], _start(t, given, i, self.accumulate))
        if counters.accumulated and self.wanted_leaves is None and here.trace is None:
            self.uses = _uses(self.pending)
        self._all()
        for leaf, g in self.leaves.values():
            self._finish_leaf(leaf, g)
        return self.found

    def _all(self) -> None:
        """Visit the nodes, latest first; inlined for nodes without hooks."""
        pending, heap, leaves, retain = self.pending, self.heap, self.leaves, self.retain
        watched = self.anomaly is not None or self.useful is not None or self.wanted_outputs or self.uses
        while heap:
            node = heapq.heappop(heap)[1]
            gradients = pending.pop(node)
            if watched or node.hooks is not None or node.retained is not None:
                self._visit(node, gradients)
                continue
            try:
                results = node.backward(gradients)
            except Exception as error:
                _tell_origin(node, error)
                raise
            if not retain:
                node.release()
            if type(node) is not Node:
                self._show(results)
            for target, g in zip(node.edges, results, strict=True):
                if target is None or g is None:
                    continue
                if type(target) is not Node:
                    if id(target) in leaves or not isinstance(target, Tensor):
                        self._send(target, g)
                    else:
                        leaves[id(target)] = target, g
                    continue
                waiting = pending.get(target)
                if waiting is None:
                    pending[target] = [g] if target.op.visible < 2 else [g, *[None] * (target.op.visible - 1)]
                    heapq.heappush(heap, (-target.sequence, target))
                else:
                    before = waiting[0]
                    waiting[0] = g if before is None else _add(before, g)

    def _ancestors(self, roots: list[Any]) -> set[Node]:
        """The nodes on a path to a wanted tensor: only they are visited."""
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
            if self.wanted_leaves is not None and id(edge) not in self.wanted_leaves:
                return
            known = self.leaves.get(id(edge))
            self.leaves[id(edge)] = (edge, g if known is None else _add(known[1], g))
            return
        else:
            node, index = edge, 0
        if self.reached is not None and node not in self.reached:
            return
        waiting = self.pending.get(node)
        if waiting is None:
            waiting = self.pending[node] = [None] * max(node.outputs_count, 1)
            heapq.heappush(self.heap, (-node.sequence, node))
        before = waiting[index]
        waiting[index] = g if before is None else _add(before, g)

    def _visit(self, node: Node, gradients: list[Tensor | None]) -> None:
        runs = self.useful is None or node in self.useful
        wanted = tuple(gradients) if runs else gradients  # as in torch, hooks change what is found only where it ends
        for index, table in node.hooks.items() if node.hooks else ():
            if type(index) is int:
                gradients[index] = self._hooked(table, gradients[index])
        for index, t in node.retained.items() if node.retained else ():
            g = gradients[index]
            if g is not None:  # it is shared
                accumulate(t, g, self.create_graph, shared=True)
        for index, t in self.wanted_outputs.get(node, ()):
            g = wanted[index]
            if g is not None:
                self.found[id(t)] = g
        if not runs:
            return
        for hook in tuple(node.hooks.get(BEFORE, {}).values()) if node.hooks else ():
            self._show(gradients)
            gradients = _replaced(hook, (tuple(gradients),), gradients)
            self._show(gradients)
        try:
            results = node.backward(gradients)
            if type(node) is not Node:
                self._show(results)
            if self.anomaly is not None and self.anomaly.check_nan:
                _check_numbers(node, results)
        except Exception as error:
            _tell_origin(node, error)
            raise
        for hook in tuple(node.hooks.get(AFTER, {}).values()) if node.hooks else ():
            self._show((*results, *gradients))
            results = _replaced(hook, (tuple(results), tuple(gradients)), results)
            self._show(results)
        if not self.retain:
            node.release()
        for target, g in zip(node.edges, results, strict=True):
            if target is not None and g is not None:
                self._send(target, g)
        if self.uses:
            self._finish_early(node, gradients, results)

    def _hooked(self, table: dict[int, Any], g: Tensor | None) -> Tensor | None:
        for hook in tuple(table.values()):
            if g is None:
                return None
            self._show((g,))
            replaced = hook(g)
            if replaced is not None:
                _check_replaced(hook, g, replaced)
                g = replaced
        self._show((g,))
        return g

    def _show(self, gradients: Iterable[Tensor | None]) -> None:
        """Keep what a program's own code saw, hooks or functions, from becoming memory of a leaf, to which is added."""
        for g in gradients:
            if g is not None:
                self._hold(g)

    def _hold(self, g: Tensor) -> None:
        blob = blob_of(g)
        self.held[id(blob)] = ref(blob)

    def _finish_early(self, node: Node, gradients: Sequence[Tensor | None], results: Sequence[Tensor | None]) -> None:
        """Run the hooks of leaves that have their last gradient, during backward."""
        flowing = [_memory(g) for g in (*gradients, *results) if g is not None]
        for target, g in zip(node.edges, results, strict=True):
            left = self.uses.get(id(target))
            if left is None:
                continue
            self.uses[id(target)] = left - 1
            if left == 1 and id(target) in self.leaves:
                leaf, total = self.leaves.pop(id(target))
                place = _memory(total)
                if g is None or flowing.count(place) > (place == _memory(g)):  # it is shared
                    self._hold(total)
                self._finish_leaf(leaf, total)

    def _finish_leaf(self, leaf: Tensor, g: Tensor) -> None:
        if leaf._hooks:
            hooked = self._hooked(leaf._hooks, g)
            assert hooked is not None
            g = hooked
        if leaf.spec is not g.spec:
            check_kind(leaf.is_global, g, "a hook's gradient")
        if self.wanted_leaves is not None:
            self.found[id(leaf)] = g
        if self.accumulate and leaf._requires_grad:  # it may have been frozen since
            blob = blob_of(g)
            held = self.held.get(id(blob))
            accumulate(leaf, g, self.create_graph, shared=held is not None and held() is blob)
            self.held[id(blob)] = ref(blob)
            if leaf._accumulated:
                for hook in tuple(leaf._accumulated.values()):
                    if hook(leaf) is not None:
                        raise AutogradError(
                            "Tensor post accumulate grad hooks should return None: they run after .grad is set, and "
                            "may write it; register_hook's may return another gradient"
                        )


def _tell_origin(node: Node, error: Exception) -> None:
    if node.origin is not None:
        error.add_note(f"the forward call of `{node.name()}` was made here:\n{node.origin}")


def _uses(roots: Iterable[Node]) -> dict[int, int]:
    """How many gradients each leaf with post-accumulate hooks will get."""
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
    return 0 if data is None or not is_dense(g) else data.untyped_storage()._cdata


def _check_numbers(node: Node, results: Sequence[Tensor | None]) -> None:
    for i, g in enumerate(results):
        if g is None or g.value is not None or not g.dtype.differentiable:
            continue
        if ops.isnan(g if is_dense(g) else of_torch(numbers(g))).any().item():
            raise AutogradError(f"`{node.name()}` gave nan as gradient {i}, of shape {list(g.shape)}")


def _place(edge: Any) -> tuple[Node, int]:
    return (edge.node, edge.index) if type(edge) is Slot else (edge, 0)


def _add(a: Tensor, b: Tensor) -> Tensor:
    return ops.add(a, b) if is_dense(a) else ops.add(b, a)  # torch adds a sparse tensor to a dense one, not the reverse


def _replaced(hook: Any, args: tuple[Any, ...], before: Sequence[Tensor | None]) -> list[Tensor | None]:
    """A node's gradients after one of its hooks."""
    made = hook(*args)
    found = list(before if made is None else made if isinstance(made, (tuple, list)) else (made,))
    if len(found) != len(before):
        raise AutogradError(
            f"a hook of a node got {len(before)} gradients and returned {len(found)}: return as many, or None"
        )
    for was, now in zip(before, found, strict=True):
        if was is not None and now is not None:
            check_kind(was.is_global, now, f"hook {_name(hook)!r} returned a gradient of another kind")
    return found


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _check_replaced(hook: Any, g: Tensor, replaced: Any) -> None:
    """A hook's result must be a gradient of the same tensor. Messages contain torch's phrases."""
    name = _name(hook)
    if not isinstance(replaced, Tensor):
        raise ArgumentError(
            f"expected Variable, but hook returned {type(replaced).__name__!r}: {name} may return another gradient in "
            "place of the one that it is given, or None to leave it"
        )
    check_kind(g.is_global, replaced, f"hook {name!r} returned a gradient of another kind")
    changed = [
        f"hook {name!r} has changed the {what} of value (was {before} got {now})"
        for what, before, now in (("size", g.shape, replaced.shape), ("type", g.dtype, replaced.dtype))
        if before != now
    ]
    if changed:
        raise AutogradError(f"{changed[0]}: it must return a gradient of the same tensor")


def accumulate(t: Tensor, g: Tensor, create_graph: bool, shared: bool = False) -> None:
    """Add to `.grad`; while a graph is traced, record it. Memory that is `shared` is copied.

    A global tensor's gradient is boxed to the tensor's own layout, which reduces partial sums.
    """
    if here.trace is not None:
        here.trace.gradients.add(t, g)
        return
    if t.spec is not None:
        g = ops.to_global(g, t.spec.placement, tuple(broadcast if s.kind == "P" else s for s in t.spec.nd_sbp))
    if t._grad is None:
        # a gradient with other references (an expanded view, the user's tensor) must not change
        t._grad = ops.clone(g) if shared else g if create_graph else _own(g, t)
    elif create_graph or t.node is not None or (is_dense(g) and not is_dense(t._grad)):
        # what is computed retains a sum; the last one was read, perhaps
        t._grad = _add(t._grad, g)
    else:
        _adding()(t._grad, g)  # in place, so that references to .grad see it


@functools.cache
def _adding() -> Callable[..., Any]:
    """`add_`, by its generated entry."""
    return overwriting(OPS["add"])


def _own(g: Tensor, t: Tensor) -> Tensor:
    """A gradient in memory of its own, contiguous or channels_last as the tensor is: programs flatten it by view(-1),
    and updates of what lies otherwise are slow."""
    data, own = blob_of(g).data if is_dense(g) else None, blob_of(t).data
    scattered = data is not None and not data.is_contiguous()
    if data is not None and own is not None and own.is_contiguous() is scattered:
        if scattered or is_channels_last(own):
            return ops.contiguous(g, not scattered)
    if g._view_of is not None:
        return ops.clone(g)
    if g.spec is None and g.node is None:
        return g
    if data is not None and scattered and 0 in data.stride():
        return ops.clone(g)
    return rewrap(g) if g.spec is None or g.node is not None else of_shard(blob_of(g), g.spec)
