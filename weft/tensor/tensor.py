"""The tensor: a handle to memory (a blob), or to a shard and the spec of the whole.

    local    blob is the memory; spec is None
    global   spec is of the logical tensor; blob is this rank's shard
    lazy     value is a symbol of a graph that is being traced; spec or meta describe it

Methods that are ops (`relu`, `sum`, `__add__`, ...) are bound by `functional/` from the registry of ops.
"""

from __future__ import annotations

import contextlib
import math
from collections import OrderedDict
from collections.abc import Callable
from numbers import Number
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Size

from weft.core.device import Device
from weft.core.dispatch import here, hooks
from weft.core.errors import ArgumentError, AutogradError, DtypeError, PlacementError, ShapeError, TraceError
from weft.core.spec import Spec
from weft.tensor.array import array_of, numbers
from weft.tensor.blob import Blob
from weft.tensor.counters import counters
from weft.tensor.data import local_data, whole_data
from weft.tensor.described import Described
from weft.tensor.gradient import check_gradient
from weft.tensor.hook import RemovableHook

ABSENT = Blob(None)  # the blob of tensors without local memory: no fast path

NOT_COPIED = (
    "_hooks",
    "_accumulated",
    "_retains_grad",
    "_static",
    "_view_of",
    "_views",
    "_grad",
    "node",
)  # by copy.deepcopy


def size_asked(data: tuple[Any, ...]) -> tuple[int, ...] | None:
    """The size in a legacy constructor's call: f(2, 3), f(x.shape) or f(); None for data."""
    if len(data) == 1 and not isinstance(data[0], (int, np.integer)):
        return data[0] if isinstance(data[0], Size) else None
    return data or (0,)


class View(msgspec.Struct, frozen=True, eq=False):
    """What a tensor is a view of. A tensor has its fields as a tuple, which is made sooner: `View(*t._view_of)`.

    base        the tensor whose memory it looks at
    op          the op that makes it of the base, its first operand
    attributes  the op's other arguments, in their order
    node        what had computed the base when the view was made, for its gradient
    state       what the base was then: a traced one's symbol, a global one's mark; None of local memory
    recorded    whether gradients were recorded then: if not, the view isn't part of its base's gradient
    """

    base: Tensor
    op: Any  # an `Op`, which is declared a layer above
    attributes: tuple[Any, ...]
    node: Any
    state: Any
    recorded: bool = True

    def of(self, base: Any) -> tuple[Any, ...]:
        """The op's arguments, with this for the base."""
        at = self.op.operands[0]
        return (*self.attributes[:at], base, *self.attributes[at:])


class Tensor(Described):
    """An n-d array on one device, or, with a placement and an sbp, on many."""

    node: Any = None  # what computed it, for the gradient
    _grad: Tensor | None = None
    _requires_grad: bool = False
    _retains_grad: bool = False
    _copies_grad: bool = True  # whether a copy has it, too
    _hooks: OrderedDict[int, Callable[[Tensor], Tensor | None]] | None = None
    _accumulated: OrderedDict[int, Callable[[Tensor], None]] | None = None
    _view_of: tuple[Any, ...] | None = None  # a `View`, without names
    _views: Any = None  # of a traced or global tensor: its views by their ids, held weakly

    def __init__(self, *data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> None:
        size = size_asked(data)
        given: Any = data[0] if size is None else size
        place, new = placement is not None or sbp is not None, not isinstance(given, (Tensor, torch.Tensor))
        if new:
            made = torch.tensor if size is None else torch.empty
            given = math.nan if given is None else numbers(given)  # OneFlow's loaders pass None where nothing is known
            given, place = made(given, dtype=torch.get_default_dtype()), place or here.place is not None
        if isinstance(given, Tensor):
            if not place and device is None and given.spec is None and given.value is None:
                alias = given.permute(tuple(range(given.ndim)))
                self.__dict__.update(alias.__dict__)  # the same memory and computation
                return
            given = whole_data(given, "Tensor(tensor)")
        if place:
            self.__dict__.update(hooks.placed(given, device, placement, sbp).__dict__)
            return
        self.blob = Blob(given if device is None else given.to(Device(device).check().torch))
        if new and here.trace is not None:
            here.trace.memories.made(self)

    # ---- gradients -----------------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        g = self._grad
        return g if g is None or here.trace is None else here.trace.gradients.read(self)

    @grad.setter
    def grad(self, given: Tensor | None) -> None:
        if here.trace is not None:
            here.trace.gradients.given(self)
        self._grad = None if given is None else check_gradient(self, given)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad or (self._view_of is not None and hooks.requires_grad_by_base(self))

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and not self.dtype.differentiable:
            raise DtypeError(
                f"only Tensors of floating point and complex dtype can require gradients; this one is {self.dtype}"
            )
        if not value and self.node is not None:
            raise AutogradError("only a leaf can stop requiring a gradient; use .detach() to leave the graph")
        if type(self) is not Tensor and self._requires_grad is not bool(value):  # a parameter is frozen, or thawed
            counters.exchanged += 1
        self._requires_grad = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self.requires_grad = requires_grad
        return self

    def _is_view(self) -> bool:
        """Whether it is a view of another tensor, in the words of torch's own Python."""
        return self._view_of is not None

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        if self._view_of is not None:
            hooks.fresh(self)
        return None if self.node is None else getattr(self.node, "node", self.node)

    @property
    def output_nr(self) -> int:
        return getattr(self.node, "index", 0)

    def backward(
        self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
        inputs: Any = None,
    ) -> None:  # fmt: skip
        """Add this tensor's gradients to `.grad` of the leaves (or of `inputs`)."""
        hooks.backward((self,), (gradient,), retain_graph, create_graph, inputs)

    def retain_grad(self) -> None:
        if not self.requires_grad:
            raise AutogradError(
                "can't retain_grad on Tensor that has requires_grad=False: no gradient reaches it. Call "
                "x.requires_grad_() before it is used"
            )
        if self._view_of is not None:
            hooks.fresh(self)
        if self.node is not None:
            self._retains_grad = True
            slot = self.node
            node = getattr(slot, "node", slot)
            node.retain(getattr(slot, "index", 0), self)

    @property
    def retains_grad(self) -> bool:
        return self._retains_grad

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHook:
        """`hook(gradient)` runs when this tensor's gradient is known; what it returns replaces the gradient."""
        if not self.requires_grad:
            raise AutogradError("can't register a hook on a tensor that doesn't require a gradient")
        if self._view_of is not None:
            hooks.fresh(self)
        if self._hooks is None:
            self._hooks = OrderedDict()
            if self.node is not None:
                slot = self.node
                getattr(slot, "node", slot).hook(getattr(slot, "index", 0), self._hooks)
        return RemovableHook(self._hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHook:
        """`hook(tensor)` runs once backward has accumulated a leaf's `.grad`."""
        if self.node is not None or not self._requires_grad:
            raise AutogradError("a post-accumulate hook belongs to a leaf that requires a gradient")
        if self._accumulated is None:
            self._accumulated = OrderedDict()
            counters.accumulated += 1
        return RemovableHook(self._accumulated, hook)

    def detach(self) -> Tensor:
        """A tensor over the same memory, detached from the autograd graph."""
        if self._view_of is None and here.trace is None:
            return rewrap(self)
        return hooks.detached(self)

    @property
    def data(self) -> Tensor:
        """The same memory, with a count of versions of its own: a write into it isn't seen by gradients, as torch's."""
        if here.trace is not None or self.spec is not None or self.value is not None or self.blob.data is None:
            return self.detach()  # a graph knows what it captures by its blob
        return hooks.uncounted(self)

    @data.setter
    def data(self, other: Tensor) -> None:
        if not isinstance(other, Tensor):
            if not isinstance(other, torch.Tensor):
                raise DtypeError(f"tensor.data takes a tensor; got {type(other).__name__}")
            other = hooks.taken(other)
        if other.is_global is not self.is_global:
            both = "x is local and y global" if other.is_global else "x is global and y local"
            raise PlacementError(f"x.data = y: {both}. Convert y: y.to_local(), or y.to_global(placement=..., sbp=...)")
        self._hold(other)

    def _hold(self, other: Tensor) -> None:
        """Take another tensor's memory and layout, whatever they are."""
        if here.trace is not None:
            return hooks.exchange(self, other)
        if self.part_of is not None or other.part_of is not None:  # such as another dtype of a shard
            same = other.spec is None and self.spec is None and other.shape == self.shape
            self.part_of = other.part_of or (self.part_of if same else None)
        self.blob, self.spec, self.shard, self.value = other.blob, other.spec, other.shard, other.value
        self._view_of = None
        counters.exchanged += 1

    # ---- reading -------------------------------------------------------------------------------------

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The value as an array, which shares a CPU tensor's memory; also of a tensor that requires a gradient, as in
        OneFlow, so there is nothing that `force` would have to force. Of a global tensor, every rank of the world asks
        and gets it, wherever the tensor lies."""
        return array_of(whole_data(self, "numpy()"))

    to_numpy = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        out = array_of(whole_data(self, "numpy.asarray(tensor)"))
        out = out if dtype is None else out.astype(dtype)
        return out.copy() if copy else out

    def tolist(self) -> Any:
        return whole_data(self, "tolist()").tolist()

    def item(self) -> Any:
        blob = self.blob
        data = blob.now if blob.now is not None and here.plain else whole_data(self, "item()")
        try:
            return data.item()
        except RuntimeError:
            if data.numel() == 1:
                raise
            raise ShapeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar: its shape is "
                f"{tuple(self.shape)}; index it"
            ) from None

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return whole_data(self, "__dlpack__()").__dlpack__(*args, **kwargs)

    def __dlpack_device__(self) -> Any:
        return local_data(self, "__dlpack_device__()").__dlpack_device__()

    def data_ptr(self) -> int:
        return local_data(self, "data_ptr()").data_ptr()

    def to_torch(self) -> torch.Tensor:
        """The local data as a torch tensor, sharing memory."""
        return local_data(self, "to_torch()")

    def __bool__(self) -> bool:
        if self.value is not None:
            return bool(
                hooks.traced(
                    self,
                    "a branch on a tensor's value can't be traced: inside build() the value isn't known yet. "
                    "Write flow.where(condition, a, b), or decide outside the graph",
                )
            )
        if self.numel() != 1:
            raise ShapeError(
                f"Boolean value of Tensor with {'no values' if not self.numel() else 'more than one value'} is "
                f"ambiguous: its shape is {tuple(self.shape)}; use .any() or .all()"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.differentiable or self.numel() != 1:
            raise DtypeError("only an integer tensor of one element can be used as an index")
        return int(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ArgumentError("len() of a 0-d tensor")
        return self.shape[0]

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, (Tensor, Number)):
            raise ArgumentError(f"a tensor has numbers, and {type(element).__name__} is none: {element!r}")
        whole: Any = whole_data(self, "in")
        return bool((whole == (whole_data(element, "in") if isinstance(element, Tensor) else element)).any())

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        with contextlib.suppress(KeyError):
            return memo[id(self)]
        if here.trace is not None and self.value is None and not here.trace.memories.is_made(self):
            raise TraceError(
                "copy.deepcopy() in a graph's build() would copy what a tensor holds while it is traced, and each "
                "launch would begin with that. Copy it in __init__, or write x.detach().clone(), which is computed anew"
            )
        copied = type(self).__new__(type(self))
        copied.__dict__.update({k: v for k, v in self.__dict__.items() if k not in NOT_COPIED})
        copied._requires_grad = self._requires_grad and self.node is None  # what was computed is copied as a value
        setattr(copied, "blob" if self.spec is None else "shard", Blob(local_data(self, "deepcopy").clone()))
        if here.trace is not None:
            here.trace.memories.made(copied)
        memo[id(self)] = copied
        if self.grad is not None and self._copies_grad:
            copied.grad = self.grad.__deepcopy__(memo)
        return copied


_first: Any = object.__new__(Tensor)  # a class's first few instances say which attributes need no dictionary
_first.blob = _first._requires_grad = _first._view_of = _first.node = _first.spec = _first.shard = _first._grad = None


def of_torch(data: torch.Tensor) -> Tensor:
    """A local tensor over a torch tensor's memory."""
    self = object.__new__(Tensor)
    self.blob = Blob(data)
    return self


def of_shard(shard: torch.Tensor | Blob, spec: Spec) -> Tensor:
    """A global tensor from this rank's part."""
    self = object.__new__(Tensor)
    self.blob, self.spec = ABSENT, spec
    self.shard = Blob(shard) if isinstance(shard, torch.Tensor) else shard
    return self


def of_value(value: Any, spec: Spec | None) -> Tensor:
    """A lazy tensor: a symbol of the graph that is being traced."""
    self = object.__new__(Tensor)
    self.blob, self.spec, self.value = ABSENT, spec, value
    return self


def rewrap(t: Tensor) -> Tensor:
    """Another tensor over the same memory or symbol, without autograd state."""
    self = object.__new__(Tensor)
    self.blob = t.blob
    if t.spec is not None:
        self.spec, self.shard = t.spec, t.shard
    if t.value is not None:
        self.value = t.value
    if t.part_of is not None:
        self.part_of = t.part_of
    return self


def still_part(y: Tensor, x: Tensor) -> Tensor:
    """Mark y, which has x's value, as a shard of what x is a shard of."""
    if x.part_of is not None and y.is_local and y.value is None:
        y.part_of = x.part_of
    return y
