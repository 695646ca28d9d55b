"""In-place ops: memory is overwritten, and the tensor and its base, if it is a view, get a new node."""

from __future__ import annotations

from typing import Any, Final

import torch

from weft.autograd.call import as_it_is, call, flat_operands, record, version
from weft.autograd.freshness import (
    made_by_function,
    original_view,
    refresh,
    require_grad_of_views,
    set_node,
    set_view,
    shares_memory,
    version_of,
)
from weft.autograd.node import Node
from weft.autograd.plain import plain
from weft.core.dispatch import here, hooks, in_own_dtypes, traced, without_torchs_casts
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, AutogradError, DtypeError, ShapeError, TraceError
from weft.interpreter import eager_local, stack
from weft.ops import OPS, ops
from weft.ops.declaration import Op
from weft.ops.explain import check_arguments, explain
from weft.tensor.blob import Blob
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, View, of_torch, rewrap
from weft.tensor.written import mark


def in_place(op: Op, args: tuple[Any, ...]) -> Tensor:
    """Run an op into its first operand, and return that operand."""
    if here.torchs:
        with without_torchs_casts():
            return in_place(op, args)
    if here.casting:  # memory has the dtype it has
        return in_own_dtypes(in_place)(op, args)
    args = plain(args)
    x = args[0]
    if not isinstance(x, Tensor):
        check_arguments(op, args)
        raise ArgumentError(f"{op.name}_(): the first argument is overwritten and must be a tensor")
    if x._view_of is not None:
        refresh(x)
    wants = here.grad and x._view_of is not None and any(t._requires_grad for t in stack.tensors(op, args))
    check_writable(x, f"{op.name}_", wants)
    if here.trace is None:
        stack.is_global(op, args, "_")  # raises for a mix
    if x.value is not None or x.spec is not None or here.trace is not None or here.stack or op.inplace_kernel is None:
        y = call(op, _kept(op, args))
        if tuple(y.shape) != tuple(x.shape):
            raise ShapeError(
                f"{op.name}_: the result has shape {list(y.shape)}, which doesn't fit into {list(x.shape)}"
            )
        _move(x, y if y.dtype is x.dtype else ops.cast(y, held(op.name, y.dtype, x.dtype)))
        return x
    eager_local.check_arguments(op, args)
    if wants:
        _check_scatter(x)
    before = stand_in(x)
    local = eager_local.localize(op, args)
    if eager_local.any_meta(op, local):
        eager_local.refuse_others(op, [x], args)
    if x.blob.access is not None:
        hooks.wait_write(x.blob)
    if here.grad and _reads_what_goes(op, args):
        before.blob = Blob(local[0].clone())
    versions = {id(t): version(t) for t in flat_operands(op, (before, *args[1:]))}
    eager_local.execute(op, op.inplace_kernel, local, args)
    if here.grad and op.vjp is not None:
        y = of_torch(local[0])
        y.blob = x.blob
        record(op, (before, *args[1:]), (y,), (), before=versions)
        if y.node is not None:
            rebase(x, y)
    return x


def held(name: str, made: DType, dtype: DType) -> DType:
    """The dtype that is overwritten, if it can hold the result: integers can't hold fractions."""
    if not torch.can_cast(made.torch, dtype.torch):
        raise DtypeError(
            f"{name}_: result type {made.scalar} can't be cast to the desired output type {dtype.scalar}: the result "
            f"is {made}, which x of {dtype} can't hold. Write x = x.{name}(...), or make x floating"
        )
    return dtype


def _kept(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with a copy of the first operand if its gradient reads the old value."""
    x = args[0]
    if x.value is not None or here.trace is not None or not here.grad or not _reads_what_goes(op, args):
        return args
    before, copy = as_it_is(stand_in(x)), Blob(local_data(x, "in place").clone())
    if x.shard is not None:
        before.shard = copy
    else:
        before.blob = copy
    return (before, *args[1:])


def _reads_what_goes(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether the gradient reads the first operand's value: not if the op is linear in it."""
    if ("operand", 0) not in op.saves:
        return False
    wants = [isinstance(t, Tensor) and t._requires_grad for t in flat_operands(op, args)]
    return any(wants[1:]) or (wants[0] and not any(op.names[0] in group for group in op.linear))


def check_writable(x: Tensor, name: str, wants: bool = False) -> None:
    """Refuse to overwrite what gradients couldn't follow; `wants`: another operand requires one."""
    if here.grad and x._requires_grad and x.node is None:
        raise AutogradError(
            f"{name}: a leaf Variable that requires grad is being used in an in-place operation, and its gradient "
            f"would be lost. Write it under flow.no_grad(), or on a copy: x = x.clone()"
        )
    if here.grad and made_by_function(x):
        raise AutogradError(
            f"{name}: a view that a custom autograd.Function made is being modified inplace, and that function's "
            "gradient would no longer be that of its base. Return a copy from forward, or write on one: y = y.clone()"
        )
    base, recorded = x, True
    while here.grad and base._view_of is not None and shares_memory(base):
        view = View(*base._view_of)
        base, recorded = view.base, recorded and view.recorded
        if not recorded and (wants or base._requires_grad):
            raise AutogradError(
                f"{name}: A view was created in no_grad mode and is being modified inplace with grad mode enabled: "
                "whether its base's gradient sees that is ambiguous. Make the view where gradients are recorded, or "
                "write it under flow.no_grad()"
            )
        if base._requires_grad and base.node is None:
            raise AutogradError(
                f"{name}: a view of a leaf Variable that requires grad is being used in an in-place operation; write "
                f"it under flow.no_grad(), or on a copy"
            )


def stand_in(x: Tensor) -> Tensor:
    """The tensor's old state, for the tape; the saved version shows that its memory changes."""
    old = object.__new__(Tensor)
    old.__dict__.update(x.__dict__)
    return old


def _move(x: Tensor, y: Tensor) -> None:
    """Give x the value of y: the symbol of a traced tensor, or the shard's content of an eager one."""
    if x._view_of is not None and not shares_memory(x):
        x._view_of = None
    if x.value is not None or y.value is not None:
        if x.spec is not None and y.spec is not x.spec:
            y = ops.to_global(y, x.spec.placement, x.spec.nd_sbp)
        traced().write(x, y.value)
    elif x.spec is not None:
        _overwrite(x, y)
    else:
        if x.blob.access is not None:
            hooks.wait_write(x.blob)
        local_data(x, "in place").copy_(local_data(y, "in place"))
    rebase(x, y)


def exchange(x: Tensor, y: Tensor) -> None:
    """`x.data = y` while a graph is traced: x holds y's symbol; what was captured is overwritten by it."""
    trace = traced()
    memories = trace.memories
    memories.follow(x)
    if memories.stands_over(x):
        if memories.of(x) is memories.of(y) and x.spec is y.spec and x._view_of is None is y._view_of:
            return  # its own, as `x.data = x.data.to(device)` or `x.data.mul_(2)` give it
        if y.value is None:
            raise TraceError(
                "x.data = y inside build(), with two tensors from outside the graph: they would share memory from "
                "then on. Write x.copy_(y) under flow.no_grad(), which copies it at each launch, or do it outside of "
                "build()"
            )
        if x.shape != y.shape or x.dtype is not y.dtype:
            raise TraceError(
                f"x.data = y inside build(): x has shape {list(x.shape)} and {x.dtype}, y {list(y.shape)} and "
                f"{y.dtype}. What was there before the graph keeps its form; exchange it outside of build()"
            )
        if x._view_of is not None or not memories.alone(x):
            raise TraceError(
                "x.data = y inside build(), while other tensors share x's memory and would keep its old value. "
                "Write x.copy_(y) under flow.no_grad() if they shall see y, or take x.clone() for them"
            )
        trace.write(x, y.value)
        memories.share(x, y)
    else:
        x._view_of = None
        memories.exchange(x, y)


def _overwrite(x: Tensor, y: Tensor) -> None:
    """Copy the value of one global tensor to the memory of another."""
    assert x.spec is not None and x.shard is not None
    if y.spec is not x.spec:
        y = ops.to_global(y, x.spec.placement, x.spec.nd_sbp)
    memory = x.shard.now
    if memory is None:
        hooks.wait_write(x.shard)
        memory = x.shard.now
    assert memory is not None
    given = local_data(y, "in place")
    if given.untyped_storage()._cdata == memory.untyped_storage()._cdata:  # a view's part, put back
        given = given.clone()
    try:
        memory.copy_(given)
    except RuntimeError as error:
        raise explain(OPS["copy"], error, (x, y)) from error


def _check_scatter(x: Tensor) -> None:
    assert x._view_of is not None
    view = View(*x._view_of)
    if view.op.scatter is None:
        raise AutogradError(
            f"in place on a view made by {view.op.name}: its gradient isn't known; use x = x.clone() first"
        )


def _turn(x: Tensor, y: Tensor, views: tuple[Any, ...] = ()) -> None:
    """Give x the place of y in the graph of gradients."""
    newly = y._requires_grad and not x._requires_grad
    set_node(x, y.node)
    x._requires_grad = y._requires_grad or x._requires_grad
    if newly and x._view_of is None and here.trace is None:
        require_grad_of_views(x, views)


def is_plain_part(x: Tensor) -> bool:
    """Whether a view is a part, as it is now, of a tensor that is no view and has a gradient: `put_back` will do."""
    base, op, _, node, _, recorded = x._view_of  # type: ignore[misc]
    current = node is base.node and node is not None and type(x.node) is Node
    return current and recorded and base._view_of is None and isinstance(op.scatter, Op)


def put_back(x: Tensor) -> None:
    """Give the base of such a view, which was overwritten, a node for the view's part."""
    base, op, attributes, before, state, recorded = x._view_of  # type: ignore[misc]
    whole = Node.of(op.scatter.name, (before, x.node))
    whole.attributes = attributes
    set_node(base, whole)
    x._view_of = (base, op, attributes, STALE, state, recorded)


STALE: Final = object()  # no node: the view is computed again


def rebase(x: Tensor, y: Tensor, views: tuple[Any, ...] = ()) -> None:
    """Give x the node of y; if x is a view, its base gets a node for the scatter. `views`: the blobs of the views of x
    through which it was written."""
    if here.grad:  # else gradients aren't affected
        _turn(x, y, views)
    mark((x.shard,))
    if x._view_of is None:
        return
    view = original_view(x)
    base, op = view.base, view.op
    lazy, everywhere = x.value is not None, x.spec is not None  # a global view may look at what was boxed for it
    if not shares_memory(x):
        x._view_of = None
        return
    if not (lazy or everywhere) and not (here.grad and (x.node is not None or base.node is not None)):
        return
    _check_scatter(x)
    old = stand_in(base)
    if not (lazy or everywhere):  # the base's memory holds the change already: scatter only extends the graph
        old.blob = Blob(local_data(base, "in place"))
    part = stand_in(x)
    part._view_of = None
    if isinstance(op.scatter, Op) and here.plain and not (lazy or everywhere):
        whole = rewrap(base)
        record(op.scatter, (old, part, *view.attributes), (whole,), ())
    else:
        whole = op.scatter(old, part, *view.attributes)
    if lazy:
        traced().write(base, whole.value)
    elif everywhere:
        _overwrite(base, whole)
    mark((base.shard, x.shard))
    if here.grad:
        _turn(base, whole, (*views, x.blob))
    if base._view_of is not None:
        rebase(base, base, (*views, x.blob))
    # from the next use on a view of the base as it is now, through which its gradient goes
    seen = base.node if lazy or not here.grad else STALE
    set_view(x, (base, op, view.attributes, seen, version_of(base), view.recorded))
