"""`Facade`: a Weft tensor that looks like torch's to code written for torch.

A layer of torch's passes a tensor's dtype to `torch.zeros`, and checks for `torch.Tensor`. So inside torch's modules
tensors have torch's attributes, and compute by Weft. Methods go to Weft's of the same name; torch's functions dispatch
by `__torch_function__` to those of functions.py.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Final

import torch
from torch.overrides import _get_current_function_mode_stack as modes
from torch.overrides import _pop_mode_temporarily

from weft.core import device as devices
from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.dispatch import here, tracing
from weft.core.dtype import DType
from weft.core.errors import ArgumentError
from weft.core.sbp import broadcast
from weft.interop.inside import inside
from weft.ops import ops
from weft.tensor.data import whole_data
from weft.tensor.parameter import Buffer, Parameter
from weft.tensor.tensor import Tensor, of_torch

Function = Callable[..., Any]
without_torch_function = torch._C.DisableTorchFunction  # a context in which torch's functions are its own


class Facade(torch.Tensor):
    """The tensor that torch's modules see; `of` is Weft's. To torch's C++ it is a meta tensor of one element, valid
    wherever a tensor, a number or a size may be; calls go to `__torch_function__` before it is read."""

    __slots__ = ("of",)
    of: Tensor

    @property
    def _is_param(self) -> bool:
        return type(self.of) is Parameter

    @_is_param.setter
    def _is_param(self, value: bool) -> None:  # type: ignore[override]
        """`torch.nn.Parameter(x)` makes one of `x.detach()`."""
        self.of = Parameter(self.of, self.of.requires_grad)
        self.of.__dict__["_facade"] = self

    @classmethod
    def __torch_function__(cls, func: Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return inside.answers[func](args, kwargs or {})

    def __repr__(self, **_: Any) -> str:
        with without_torch_function():
            return repr(self.of)

    def __hash__(self) -> int:
        return id(self.of)

    def __iter__(self) -> Any:
        with without_torch_function():
            return iter([outward(t) for t in self.of])

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with without_torch_function():
            return (
                whole_data(self.of.detach(), "to_torch()") if COPIED in memo else outward(copy.deepcopy(self.of, memo))
            )

    def __reduce_ex__(self, protocol: Any) -> Any:
        with without_torch_function():
            return facade, (self.of,)

    def as_subclass(self, cls: type) -> Any:
        return self

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device; of a global tensor, that of its placement's type."""
        with without_torch_function():
            return self.of.device.torch if self.of.spec is None else Device(self.of.spec.placement.type).torch

    @property
    def data(self) -> Any:
        with without_torch_function():
            return outward(self.of.data)

    @data.setter
    def data(self, value: Any) -> None:
        """A global parameter keeps its layout, as the optimizer writes it there."""
        with without_torch_function():
            value, spec = inward(value), self.of.spec
            if type(self.of) is Parameter and spec is not None:
                moved = _moved_to(value, spec.placement)
                value = (value if moved is None else moved).to_global(spec.placement, spec.nd_sbp)
            self.of.data = value

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The tensor as another type; or torch's name of its type, which programs compare with theirs."""
        with without_torch_function():
            made: Any = self.of.type(inward(dtype))
            return made.replace("weft", "torch", 1) if isinstance(made, str) else outward(made)

    def data_ptr(self) -> int:
        """The address of its memory; of a tensor without any yet, a unique number."""
        with without_torch_function():
            return id(self.of) if self.of.value is not None else self.of.data_ptr()

    def untyped_storage(self) -> Any:
        """Its storage; of a tensor without any yet, a common empty one."""
        with without_torch_function():
            return (
                torch.empty(0).untyped_storage() if self.of.value is not None else self.of.to_torch().untyped_storage()
            )


COPIED: Final = "copied tensors are torch's"  # in a memo of copy.deepcopy
PLACEHOLDER: Final = torch.empty((), dtype=torch.int64, device="meta")
make = torch.Tensor._make_subclass


def facade(x: Tensor) -> Facade:
    """A facade of a tensor; a parameter's is always the same object, as programs compare them by `is`."""
    if type(x) is Parameter or type(x) is Buffer:
        return cached_facade(x)
    made = make(Facade, PLACEHOLDER)
    made.of = x
    return made


def cached_facade(x: Tensor) -> Facade:
    """The cached facade of a tensor that modules hold."""
    known = x.__dict__.get("_facade")
    if known is None or known.of is not x:  # a copy of x has the original's
        known = make(Facade, PLACEHOLDER)
        known.of = x
        object.__setattr__(known, "__dict__", x.__dict__)  # what is set on one of them is set on both
        x.__dict__["_facade"] = known
    return known


# ---- in and out --------------------------------------------------------------------------------------


def inward(v: Any) -> Any:
    """Convert from torch's types to Weft's: tensors, dtypes, devices, and containers of them."""
    convert = TO_WEFTS.get(type(v))
    if convert is not None:
        return convert(v)
    if isinstance(v, torch.Tensor) and type(v) is not Facade:
        return _data(v)
    return _rebuilt(v, inward) if isinstance(v, tuple) and type(v) is not torch.Size else v


def outward(v: Any) -> Any:
    """Convert from Weft's types to torch's."""
    convert = TO_TORCHS.get(type(v))
    if convert is not None:
        return convert(v)
    return _rebuilt(v, outward) if isinstance(v, tuple) and type(v) is not torch.Size else v


def _rebuilt(v: Any, convert: Function) -> Any:
    parts = [convert(p) for p in v]
    return v._make(parts) if hasattr(v, "_make") else type(v)(parts)


def _data(v: torch.Tensor) -> Tensor:
    """A plain torch tensor as Weft's, whatever mode is active."""
    with without_torch_function():
        return of_torch(v.detach())


def _parameter(v: torch.nn.Parameter) -> Any:
    """A parameter of a module that wasn't converted, if it isn't to be trained."""
    if v.requires_grad and here.grad:
        raise ArgumentError(
            f"a parameter of torch's, of shape {list(v.shape)}, outside of the module that from_torch took: torch "
            "would not see what Weft computes with it, so it would never be trained. Let the module hold it, or its "
            "layer; or freeze it: p.requires_grad_(False). A function that a module holds, a lambda, say, refers to "
            "layers of the original after copy.deepcopy: convert the original"
        )
    return _data(v)


def _of(v: Facade) -> Tensor:
    return v.of


def _dtype(v: torch.dtype) -> Any:
    return dtypes._by_torch.get(v, v)


TO_WEFTS: dict[type, Function] = {
    Facade: _of,
    torch.Tensor: _data,
    torch.nn.Parameter: _parameter,
    torch.dtype: _dtype,
    torch.device: devices.of_torch,
    list: lambda v: [inward(p) for p in v],
    tuple: lambda v: tuple([inward(p) for p in v]),
    dict: lambda v: {k: inward(p) for k, p in v.items()},
    slice: lambda v: slice(inward(v.start), inward(v.stop), inward(v.step)),
    **{kind: lambda v: v for kind in (int, float, bool, str, type(None), Tensor, torch.Size)},
}
TO_TORCHS: dict[type, Function] = {
    Tensor: facade,
    Parameter: cached_facade,
    Buffer: cached_facade,
    torch.Tensor: lambda v: facade(_data(v)),
    torch.nn.Parameter: lambda v: facade(_data(v)),
    DType: lambda v: v.torch,
    Device: lambda v: v.torch,
    list: lambda v: [outward(p) for p in v],
    tuple: lambda v: tuple([outward(p) for p in v]),
    dict: lambda v: {k: outward(p) for k, p in v.items()},
    **{kind: lambda v: v for kind in (int, float, bool, str, type(None), Facade, torch.Size)},
}


def records_inward(v: Any) -> Any:
    """Convert from torch's types to Weft's, in dataclasses and similar records of tensors, too."""
    return _record(v, inward, TO_WEFTS)


def records_outward(v: Any) -> Any:
    """Likewise from Weft's types to torch's."""
    return _record(v, outward, TO_TORCHS)


def call_outside(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call code that was written for torch on Weft's tensors: a module, say, or a trainer. What it writes into lists
    and dicts that it is given, such as caches, the caller finds there."""
    lent, named = tuple(map(records_outward, args)), records_outward(kwargs)
    copies = list(_copies((*args, *kwargs.values()), (*lent, *named.values())))
    result = records_inward(f(*lent, **named))
    own = {id(theirs): mine for mine, theirs, _ in copies}
    for mine, theirs, before in copies:
        changed = {k: p for k, p in _parts(theirs).items() if k not in before or before[k] is not p}
        found = {k: own[id(p)] if id(p) in own else records_inward(p) for k, p in changed.items()}
        if isinstance(mine, dict):
            for k in mine.keys() - theirs.keys():
                del mine[k]
            for k, p in found.items():
                mine[k] = p
        elif found or len(theirs) != len(before):
            mine[:] = [found[i] if i in found else mine[i] for i in range(len(theirs))]
    return result


def _copies(mine: Any, theirs: Any) -> Iterator[tuple[Any, Any, dict[Any, Any]]]:
    """Lists and dicts in a tree with their copies in the other, and what these hold."""
    if not isinstance(mine, (list, dict, tuple)):
        return
    if not isinstance(mine, tuple):
        yield mine, theirs, _parts(theirs)
    for part, other in zip(_parts(mine).values(), _parts(theirs).values(), strict=True):
        yield from _copies(part, other)


def _parts(v: Any) -> dict[Any, Any]:
    return dict(v if isinstance(v, dict) else enumerate(v))


def _record(v: Any, convert: Function, table: dict[type, Function]) -> Any:
    kind = type(v)
    if kind is list or isinstance(v, tuple):
        return _rebuilt(v, lambda p: _record(p, convert, table)) if kind is not torch.Size else v
    if kind is dict:
        return {k: _record(p, convert, table) for k, p in v.items()}
    if kind in table:
        return convert(v) if kind not in (torch.dtype, torch.device) else v
    if isinstance(v, dict):
        changed = {k: r for k, p in v.items() if (r := _record(p, convert, table)) is not p}
        if changed:
            v = copy.copy(v)
            for k, p in changed.items():
                v[k] = p
    elif dataclasses.is_dataclass(v) and not isinstance(v, type):
        changed = {k: r for k, p in vars(v).items() if (r := _record(p, convert, table)) is not p}
        v = copy.copy(v) if changed else v
        for k, p in changed.items():
            object.__setattr__(v, k, p)
    return v


def on_one_placement(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments with all tensors made global if one is, and moved to the later pipeline stage if stages differ."""
    found: list[Any] = []
    _facades(args, found)
    if kwargs:
        _facades(tuple(kwargs.values()), found)
    places = [f.of.placement for f in found if type(f) is Facade and f.of.is_global]
    if places:
        where = places[0] if len(places) == 1 else max(places, key=lambda p: tuple(p.ranks.ravel()))
    elif found and here.trace is not None and here.place is not None:  # a graph is global as a whole
        where = here.place[0]
    else:
        return args, kwargs
    moved = {id(f): facade(y) for f in found if (y := _moved_to(f, where)) is not None}
    return (_replaced(args, moved), {k: _replaced(v, moved) for k, v in kwargs.items()}) if moved else (args, kwargs)


def _moved_to(f: Any, where: Any) -> Tensor | None:
    """A tensor moved to a placement: a local one is assumed to be the same on all ranks, like a module's buffer."""
    t: Tensor = f.of if type(f) is Facade else inward(f)
    if t.is_global:
        return None if type(t) is Parameter or t.placement == where else t.to_global(where, t.sbp)
    made = ops.from_local
    flat = (broadcast,) * where.ndim
    if here.trace is None or t.value is not None or t.requires_grad:
        return made(t, where, flat, t.shape)
    known, y = t.__dict__.get("_everywhere", (None, None))
    if known is not t.blob or y.placement != where:  # the graph knows what it captures by its blob
        with tracing(None):
            y = made(t, where, flat, t.shape)
        t.__dict__["_everywhere"] = t.blob, y
    here.trace.capture_as(t, y)
    return y


def _facades(values: Any, found: list[Any]) -> None:
    for v in values:
        kind = type(v)
        if kind is Facade or kind is torch.Tensor:
            found.append(v)
        elif kind is list or kind is tuple:
            _facades(v, found)


def _replaced(v: Any, moved: dict[int, Facade]) -> Any:
    return type(v)(_replaced(p, moved) for p in v) if type(v) in (list, tuple) else moved.get(id(v), v)


# ---- attributes and methods --------------------------------------------------------------------------


def _property(name: str) -> property:
    def get(self: Facade) -> Any:
        with without_torch_function():
            return outward(getattr(self.of, name))

    def put(self: Facade, value: Any) -> None:
        with without_torch_function():
            setattr(self.of, name, inward(value))

    return property(get, put)


def method(ours: Function, name: str) -> Function:
    """A method of Weft's, wrapped for facades."""
    writes = name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))

    def call(self: Facade, *args: Any, **kwargs: Any) -> Any:
        given = self
        with without_torch_function():
            if inside.everywhere:
                (self, *rest), kwargs = on_one_placement((self, *args), kwargs)
                args = tuple(rest)
            if kwargs:
                kwargs = {k: inward(v) for k, v in kwargs.items()}
            y = ours(self.of, *[inward(a) for a in args], **kwargs)
            if y is self.of:  # not moved for nothing: `self.mask = self.mask.to(x.dtype)` leaves what was there
                return self if writes else given
            return outward(y)

    call.__name__ = call.__qualname__ = name
    return call


def _answered(theirs: Function) -> Function:
    """A method that only torch has: the replacement of torch's function, without the mode, as in a mode's call."""

    def call(self: Facade, *args: Any, **kwargs: Any) -> Any:
        with _pop_mode_temporarily() if modes() else nullcontext():
            return inside.answers[theirs]((self, *args), kwargs)

    return call


def _install() -> None:
    """Give facades all attributes of torch's tensors: Weft's of the same name, or a replacement of torch's function."""
    for name in {*dir(torch.Tensor), *(n for n in dir(Tensor) if not n.startswith("_"))} - {*vars(Facade), *PYTHONS}:
        theirs, ours = getattr(torch.Tensor, name, None), getattr(Tensor, name, None)
        if isinstance(theirs, GETTERS) or (theirs is None and not callable(ours)):
            setattr(Facade, name, _property(name))
        elif callable(ours):
            setattr(Facade, name, method(ours, name))
        elif callable(theirs) and not name.startswith("__"):
            setattr(Facade, name, _answered(theirs))


GETTERS = (property, type(torch.Tensor.requires_grad))
PYTHONS = (set(dir(object)) | {"__dict__", "__module__", "__torch_dispatch__", "__weakref__"}) - {
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__format__"
}  # fmt: skip
_install()
