"""Methods of tensors beyond ops: queries, in-place shape changes, pickling, deprecated names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from weft.api.table import named, public
from weft.autograd.freshness import rebase_views, set_view
from weft.autograd.inplace import check_writable
from weft.core.dispatch import here
from weft.core.errors import AutogradError, DtypeError, IndexingError, ShapeError
from weft.core.rank import current
from weft.core.spec import Spec
from weft.functional.create.creation import Sizes, size_of
from weft.functional.shape import views
from weft.functional.tensor import conversion, memory_format
from weft.functional.tensor.in_place import refuse_out
from weft.ops import ops
from weft.tensor.blob import blob_of
from weft.tensor.data import local_data, own_data, whole_data
from weft.tensor.parameter import Parameter
from weft.tensor.sparse import layout_of
from weft.tensor.tensor import RemovableHook, Tensor, of_shard, of_torch, size_asked

# ---- queries -----------------------------------------------------------------------------------------


def _kind(x: Tensor) -> str:
    return x.placement.type if x.is_global else x.device.type


PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "itemsize": lambda x: x.dtype.itemsize,
    "nbytes": lambda x: x.dtype.itemsize * x.numel(),
    "is_cpu": lambda x: _kind(x) == "cpu",
    "is_meta": lambda x: _kind(x) == "meta",
    **dict.fromkeys(("is_sparse_csr", "is_quantized", "is_mkldnn", "is_mps", "is_xpu", "is_nested"), lambda x: False),
    "is_sparse": lambda x: layout_of(x) is torch.sparse_coo,
    "is_consistent": lambda x: x.is_global,
    "layout": lambda x: layout_of(x),
    "names": lambda x: (None,) * x.ndim,
}


@public("tensor")
def global_id(x: Tensor) -> int:
    """A number that identifies this tensor, equal on all ranks that ask in the same order."""
    if not x.is_global:
        raise ShapeError("only global tensors have a global_id; use id(x) for a local one")
    if "_global_id" not in x.__dict__:
        count = current().resource("global ids", lambda rank: [0])
        count[0] += 1
        x.__dict__["_global_id"] = count[0]
    return x.__dict__["_global_id"]


@public("tensor")
def _register_post_grad_accumulation_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHook:
    """OneFlow's: call the hook with x's gradient once it is accumulated; its result replaces the gradient."""

    def accumulated(leaf: Tensor) -> None:
        assert leaf.grad is not None
        given = hook(leaf.grad)
        if given is not None:
            leaf.grad = given

    return x.register_post_accumulate_grad_hook(accumulated)


@public("flow tensor")
def is_signed(x: Tensor) -> bool:
    """Whether x's dtype has negative numbers."""
    return x.dtype.torch.is_signed


@public("flow tensor")
def is_same_size(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return x.shape == other.shape


@public("flow tensor")
def is_inference(x: Tensor) -> bool:
    """Whether x was made in torch's inference mode; in Weft's, tensors are ordinary ones."""
    data = blob_of(x).data
    return data is not None and data.is_inference()


def _never(name: str, why: str) -> None:
    @public("flow tensor")
    @named(name, f"False: {why}.")
    def is_so(x: Tensor) -> bool:
        return False


_never("is_conj", "conjugation is never lazy")
_never("is_neg", "negation is never lazy here")


@public("tensor")
def is_shared(x: Tensor) -> bool:
    """Whether x is in memory that other processes see."""
    return local_data(x, "is_shared()").is_shared()


@public("tensor")
def share_memory_(x: Tensor) -> Tensor:
    """Move a CPU tensor's data to memory that other processes see."""
    local_data(x, "share_memory_()").share_memory_()
    return x


@public("tensor")
def check_meta_consistency(x: Tensor) -> None:
    """Does nothing: a global tensor's shape and dtype are compared across ranks when it is created."""


# ---- in place ----------------------------------------------------------------------------------------


def _tell_the_tape(x: Tensor) -> None:
    """Gradients that saved x don't fit it any more: its memory counts as overwritten."""
    data = blob_of(x).data
    if data is not None:
        torch.autograd.graph.increment_version(data)


def _reshaping(name: str, f: Callable[..., Tensor]) -> None:
    """Bind `name_`, by which the tensor becomes its view."""

    @public("tensor", f"{name}_")
    @named(f"{name}_", f"`{name}`, in place: the tensor's shape changes.")
    def become(x: Tensor, *args: Any, **options: Any) -> Tensor:
        refuse_out(name, options)
        check_writable(x, f"{name}_")
        before = object.__new__(Tensor)
        before.__dict__.update(x.__dict__)
        rebase_views(x, before)
        y = f(before, *args, **options)
        for member in ("blob", "spec", "shard", "value", "node", "_view_of"):
            if member in y.__dict__:
                x.__dict__[member] = y.__dict__[member]
        set_view(x, y._view_of and (*y._view_of[:5], True))
        _tell_the_tape(x)
        return x


for _name, _f in {
    "squeeze": ops.squeeze, "unsqueeze": ops.unsqueeze, "transpose": ops.transpose, "t": views.t,
    "swapaxes": ops.transpose, "swapdims": ops.transpose,
}.items():  # fmt: skip
    _reshaping(_name, _f)


@public("tensor")
def detach_(x: Tensor) -> Tensor:
    """Detach the tensor from the autograd graph, in place."""
    if x._view_of is not None and x.node is not None:
        raise AutogradError("detach_(): this is a view of another tensor; use y = x.detach()")
    x.node, x._requires_grad = None, False
    return x


@public("flow")
def detach(x: Tensor) -> Tensor:
    """A tensor over the same memory, detached from the autograd graph."""
    return x.detach()


@public("tensor")
def contiguous_(x: Tensor) -> Tensor:
    """Make x contiguous, in place."""
    if not x.is_contiguous():
        with_order = memory_format.contiguous(x)
        x.blob, x.shard = with_order.blob, with_order.shard
        x.node, x._view_of = with_order.node, None
    return x


@public("tensor")
def resize_(x: Tensor, *size: Sizes) -> Tensor:
    """Change the shape in place; existing elements keep their order, new ones are uninitialized."""
    check_writable(x, "resize_")
    data = own_data(x, "resize_()")
    y = data.new_empty(size_of("resize_", size))
    kept = min(y.numel(), data.numel())
    y.view(-1)[:kept] = data.reshape(-1)[:kept]
    x.data = of_torch(y)
    return x


@public("tensor")
def resize_as_(x: Tensor, other: Tensor) -> Tensor:
    """`resize_` to the other's shape."""
    return resize_(x, tuple(other.shape))


@public("tensor")
def apply_(x: Tensor, f: Callable[[Any], Any]) -> Tensor:
    """Overwrite each element of a CPU tensor with f(element). Slow."""
    return x.copy_(of_torch(whole_data(x, "apply_()").clone().apply_(f)))


@public("tensor")
def map_(x: Tensor, other: Tensor, f: Callable[[Any, Any], Any]) -> Tensor:
    """Overwrite each element of a CPU tensor with f(element, the other's element). Slow."""
    return x.copy_(of_torch(whole_data(x, "map_()").clone().map_(whole_data(other, "map_()"), f)))


@public("tensor")
def is_set_to(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors share memory, shape and strides."""
    return local_data(x, "is_set_to()").is_set_to(local_data(other, "is_set_to()"))


@public("tensor")
def dim_order(x: Tensor) -> tuple[int, ...]:
    """The dimensions in memory order: by stride, the largest first."""
    return torch.empty_strided(tuple(x.shape), x.stride(), device="meta").dim_order()


@public("tensor")
def set_(x: Tensor, source: Tensor) -> Tensor:
    """Set x to the source's memory and shape."""
    check_writable(x, "set_")
    if source.is_global or here.trace is not None:
        x.data = source
        return x
    data, version = local_data(source, "set_()").data, x._version  # which has a count of versions of its own
    x.data = of_torch(data)
    torch._C._autograd._unsafe_set_version_counter((data,), (version + 1,))  # type: ignore[attr-defined]
    return x


# ---- others ------------------------------------------------------------------------------------------


@public("tensor")
def new(x: Tensor, *data: Any) -> Tensor:
    """A tensor of x's dtype on x's device, from data or a size."""
    size = size_asked(data)
    if size is not None:
        return x.new_empty(size)
    given = data[0]
    if isinstance(given, Tensor) and given.is_local and given.dtype is x.dtype and given.device is x.device:
        return ops.permute(given, tuple(range(given.ndim)))  # another tensor of the same memory and computation
    return x.new_tensor(given)


@public("tensor")
def to_consistent(x: Tensor, placement: Any = None, sbp: Any = None, **options: Any) -> Any:
    """`to_global`, under its deprecated name."""
    return conversion.to_global(x, placement, sbp, **options)


@public("tensor")
def _zero_grad_(x: Tensor) -> None:
    """Overwrite the gradient with zeros."""
    if x.grad is not None:
        x.grad.zero_()


@public("tensor")
def _copy_from_numpy(x: Tensor, array: Any) -> None:
    """Overwrite x with an array's elements."""
    x.copy_(of_torch(torch.as_tensor(array)))


@public("tensor")
def _copy_to_numpy(x: Tensor, array: Any) -> None:
    """Overwrite an array with x's elements."""
    array[...] = x.detach().numpy()


def delete(x: Tensor, key: Any) -> None:
    raise IndexingError("a tensor's elements can't be deleted: its shape is fixed. Keep the others: x[mask]")


def as_complex(x: Tensor) -> complex:
    return complex(x.item())


def reduce(x: Tensor, protocol: Any) -> Any:
    """Pickling: this rank's data, its spec, and whether it requires a gradient."""
    if here.trace is not None or x.value is not None:
        raise DtypeError("a tensor of a graph that is being traced has no data to copy")
    state = {k: v for k, v in x.__dict__.items() if not k.startswith("_") and k not in _OWN}
    spec = None if x.spec is None else (x.spec.shape, x.spec.dtype, x.spec.placement, x.spec.nd_sbp)
    return remake, (type(x), local_data(x, "a copy").detach(), spec, x.requires_grad), state or None


_OWN = ("blob", "shard", "spec", "value", "node", "grad", "requires_grad")


def remake(kind: type[Tensor], data: torch.Tensor, spec: tuple[Any, ...] | None, requires_grad: bool) -> Tensor:
    """A tensor from the result of `reduce`."""
    x = of_torch(data) if spec is None else of_shard(data, Spec(*spec))
    if kind is not Tensor:
        x = kind(x) if kind is not Parameter else Parameter(x, requires_grad)
    if requires_grad:
        x.requires_grad = True
    return x


def set_state(x: Tensor, state: dict[str, Any]) -> None:
    x.__dict__.update(state)


def wrapped(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """The result of a NumPy ufunc on a tensor, as a tensor: `np.sqrt(x)`."""
    if self.requires_grad and here.grad:
        name = context[0].__name__ if context else "..."
        raise AutogradError(
            f"np.{name}() computes on arrays, and the gradient would be lost: call Weft's function of the tensor, or "
            f"np.{name}(x.detach())"
        )
    return of_torch(torch.from_numpy(np.asarray(array)))


def computed(self: Tensor, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a NumPy function to arrays. NumPy itself would call the tensor's method of that name, which may differ:
    torch's `repeat` and `nonzero` aren't NumPy's."""
    return function(*map(_array, args), **{k: _array(v) for k, v in kwargs.items()})


def _array(v: Any) -> Any:
    if isinstance(v, Tensor):
        return v.numpy()
    return type(v)(map(_array, v)) if type(v) in (list, tuple) else v


def bind() -> None:
    """Bind these methods to Tensor."""
    Tensor.__array_wrap__, Tensor.__array_function__ = wrapped, computed
    for name, f in PROPERTIES.items():
        setattr(Tensor, name, property(f))
    Tensor.__delitem__, Tensor.__complex__ = delete, as_complex  # type: ignore[attr-defined]
    Tensor.__reduce_ex__, Tensor.__setstate__ = reduce, set_state  # type: ignore[assignment, attr-defined]
