"""Views: whether they share memory with their base, and recomputing them after their base was overwritten."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from weft.autograd.node import Slot
from weft.core.dispatch import here, hooks, set_grad
from weft.core.errors import AutogradError
from weft.ops.declaration import Op
from weft.tensor.blob import Alias, Blob
from weft.tensor.counters import counters
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, View, rewrap
from weft.vm.dependency import alias, shared


def fresh(t: Tensor) -> Tensor:
    """A tensor, after `refresh` if it is a view."""
    if t._view_of is not None:
        refresh(t)
    return t


def current(t: Tensor) -> Tensor:
    """A tensor with its present value, to be read and not recorded."""
    with set_grad(False):
        return fresh(t)


def refresh(t: Tensor) -> None:
    """Compute a view again if its base was overwritten since: its autograd node and, for traced and global tensors, its
    value. A local view's memory has the new value already."""
    chain: list[Tensor] = []
    while t._view_of is not None and (here.trace is not None or not _is_newer(t)):
        chain.append(t)
        t = View(*t._view_of).base
    by_function = bool(chain) and made_by_function(t)
    for t in reversed(chain):
        assert t._view_of is not None
        by_function = by_function or _made_here(t)
        view = original_view(t)
        base = view.base
        now, moved = version_of(base), base.node is not view.node
        # a global view may be of a boxed copy: a graph, which writes memory, computes it at each launch
        captured = here.trace is not None and t.spec is not None and t.value is None
        if not moved and now is view.state and not captured:
            continue
        if not shares_memory(t):
            t._view_of, by_function = None, False
            continue
        if moved and not view.recorded:
            if here.grad:
                raise AutogradError(
                    "A view was created in no_grad mode and its base or another view of its base has been modified "
                    "inplace with grad mode enabled: whether it has a gradient is ambiguous. Make the view where "
                    "gradients are recorded, or take x.detach() of the base"
                )
            if now is view.state and not captured:
                continue
        if here.grad and by_function:
            raise AutogradError(
                "what a view that a custom autograd.Function made looks at has been modified inplace, and that "
                "function's gradient is no longer the view's. Return a copy from forward, or write on one: "
                "x = x.clone()"
            )
        before, here.grad = here.grad, view.recorded and (t._requires_grad or moved)
        try:
            again = hooks.call(view.op, view.of(base))
        finally:
            here.grad = before
        if again.value is not None and here.trace is not None:
            here.trace.memories.become(t, again.value)
        elif now is not None:
            t.spec, t.shard, again.shard.written = again.spec, again.shard, now
        set_node(t, again.node)
        t._requires_grad = again._requires_grad
        seen = base.node if view.recorded else view.node
        set_view(t, (*again._view_of[:3], seen, again._view_of[4], view.recorded))


def set_view(t: Tensor, view: Any) -> None:
    """Make a traced or global tensor a view, known to its base."""
    t._view_of = view
    if view is not None and (t.value is not None or t.spec is not None):
        base = view[0]
        if base._views is None:
            base._views = weakref.WeakValueDictionary()
        base._views[id(t)] = t


def rebase_views(x: Tensor, before: Tensor) -> None:
    """x takes another shape in place, as a view of `before`, of which its views are views from now on."""
    before._views, x._views = x._views, None
    for t in list(before._views.values()) if before._views else ():
        if t._view_of is not None and t._view_of[0] is x:
            t._view_of = (before, *t._view_of[1:])


def original_view(t: Tensor) -> View:
    """What a tensor is a view of. The base of a local one may have taken another shape in place since, as a view of
    what it was."""
    view = View(*t._view_of)  # type: ignore[misc]
    own = view
    while own.base._view_of is not None and t.value is None and t.spec is None and here.trace is None:
        try:
            found = own.op.kernel(*own.of(own.base._meta))
        except Exception:  # the shape doesn't take such a view
            found = None
        several = found if isinstance(found, (tuple, list)) else (found,)
        if any(f is not None and _same_place(f, t._meta) for f in several):
            return own
        own = View(own.base._view_of[0], own.op, own.attributes, None, None, own.recorded)
    return own


def requires_grad_by_base(t: Tensor) -> bool:
    """Whether a base was overwritten since by what requires a gradient, so that its view, not yet refreshed, does."""
    chain: list[Tensor] = []
    while t._view_of is not None:
        chain.append(t)
        view = View(*t._view_of)
        if view.base.node is not view.node:
            return view.base._requires_grad and all(map(shares_memory, chain))
        t = view.base
    return False


def _same_place(a: torch.Tensor, b: torch.Tensor) -> bool:
    """`is_set_to`, which torch doesn't have on meta tensors."""
    alike = a.untyped_storage()._cdata == b.untyped_storage()._cdata and a.storage_offset() == b.storage_offset()
    return alike and a.shape == b.shape and a.stride() == b.stride()


def set_node(t: Tensor, node: Any) -> None:
    """Give a tensor another node. Its hooks stay with the one before; the gradient that it retains is that of the
    tensor as it is now."""
    if t.node is not None and t.node is not node:
        t._hooks = None
        before = t.node.node if type(t.node) is Slot else t.node
        if t._retains_grad and before.retained is not None:
            before.retained.pop(t.output_nr, None)
    t.node = node
    if t._retains_grad and node is not None:
        t._requires_grad = True
        t.retain_grad()


def made_by_function(t: Tensor) -> bool:
    """Whether a view, or a view that it is of, was made by a custom function, whose gradient isn't known to be that of
    a view."""
    while t._view_of is not None:
        if _made_here(t):
            return True
        t = View(*t._view_of).base
    return False


def _made_here(t: Tensor) -> bool:
    function = getattr(t.node.node if type(t.node) is Slot else t.node, "function", None)
    return function is not None and not function.makes_views


def require_grad_of_views(base: Tensor, known: tuple[Any, ...]) -> None:
    """Views that were made of a tensor before it required a gradient require one, too; `known`: blobs of views that
    do."""
    access = base.blob.access
    if base.spec is not None or access is None or access.firsts is None:
        return
    others = [b for b in access.blobs() if b is not base.blob and not any(b is k for k in known)]
    for holder in gc.get_referrers(*others) if others else ():  # rarely: views are known by their memory alone
        fields = holder if isinstance(holder, dict) else holder.__dict__ if isinstance(holder, Tensor) else {}
        view_of = fields.get("_view_of")
        while view_of is not None:
            if view_of[0] is base:
                fields["_requires_grad"] = True
                break
            view_of = view_of[0]._view_of


def shares_memory(t: Tensor) -> bool:
    """Whether a view shares its base's memory: a reshape may have had to copy. For traced and global tensors it is
    inferred from logical shapes, as if all that is no view were contiguous, so that all ranks agree."""
    assert t._view_of is not None
    view = View(*t._view_of)
    base = view.base
    if t.value is None and t.spec is None:
        a, b = t._meta, base._meta if here.trace is None else here.trace.memories.data(base)
    else:
        b = _layout(base)
        a = view.op.kernel(*view.of(b))
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def own_memory(t: Tensor) -> None:
    """Give a global tensor that is a copy to the program, as a reshape of a transposed tensor is, memory of its own:
    this rank's part may have been viewed."""
    if View(*t._view_of).op.name == "reshape" and not shares_memory(t):  # type: ignore[misc]
        t._view_of, t.shard = None, Blob(local_data(t, "reshape").clone())


def is_contiguous(t: Tensor) -> bool:
    """Whether a tensor is contiguous; for traced and global ones inferred from logical shapes, too."""
    return (t._meta if t.value is None and t.spec is None else _layout(t)).is_contiguous()


def _layout(t: Tensor) -> torch.Tensor:
    if t._view_of is not None:
        view = View(*t._view_of)
        return view.op.kernel(*view.of(_layout(view.base)))
    return torch.empty(tuple(t.shape), dtype=t.dtype.torch, device="meta")


def version_of(base: Tensor) -> Any:
    """What a write changes, equally on every rank: a traced tensor's symbol, a global one's mark."""
    if here.trace is not None and base.value is None:
        here.trace.memories.follow(base)
    if base.value is not None:
        return base.value
    return getattr(base.shard, "written", 0) if base.spec is not None else None


def detached(t: Tensor) -> Tensor:
    """A view or a traced tensor, detached from autograd, over the same memory: each sees writes into the other.

    The detached view is the same view of its detached base, so that it keeps nothing of the autograd graph alive.
    """
    first = twin = rewrap(current(t))
    left = MAX_DETACHED if t.spec is None and here.trace is None else -1
    while t._view_of is not None:
        if left == 0:
            first._view_of = None
            return first
        view = View(*t._view_of)
        of = rewrap(view.base)
        set_view(twin, (of, view.op, view.attributes, None, version_of(of), True))
        t, twin, left = view.base, of, left - 1
    if here.trace is not None:
        here.trace.memories.share(t, twin)
    return first


def uncounted(t: Tensor) -> Tensor:
    """A local tensor detached from autograd, over the same memory with another count of versions."""
    made = rewrap(current(t))
    assert made.blob.data is not None
    made.blob = alias(made.blob, made.blob.data.data)
    return made


MAX_DETACHED = 4  # nested views stay views when detached, up to here: only graphs ask, as local memory is shared anyway


def _is_newer(t: Tensor) -> bool:
    """Whether nothing was overwritten since the view was made."""
    node = t.node.node if type(t.node) is Slot else t.node
    return node is not None and node.sequence > counters.overwritten


def views_at(
    x: Tensor, op: Op, attributes: Sequence[tuple[Any, ...]], parts: Sequence[torch.Tensor]
) -> tuple[Tensor, ...]:
    """The views of a local tensor that an op would make with each of these attributes, over existing memory; not
    recorded."""
    node, access, grad, found = x.node, x.blob.access, here.grad, []
    if access is None or access.firsts is None:
        access = shared(x.blob)
    for each, data in zip(attributes, parts):  # noqa: B905  (strict= takes longer)
        y = new(Tensor)
        y.blob = blob = Alias(access)
        blob.now = blob.data = data
        blob.access = access
        y._view_of = x, op, each, node, None, grad
        found.append(y)
    return tuple(found)


new = object.__new__
