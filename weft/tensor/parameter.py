"""Parameter and Buffer: tensors that a module trains, and that it keeps; and those whose size isn't known yet."""

from __future__ import annotations

from typing import Any, Self, TypeGuard, final

import torch

from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.errors import ShapeError
from weft.tensor.tensor import Tensor, of_torch

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy",
]  # fmt: skip


class Parameter(Tensor):
    """A tensor that modules list among their parameters; it shares its data's memory.

    >>> p = flow.nn.Parameter(flow.ones(2)); p.requires_grad
    True
    """

    _copies_grad = False  # a copied model begins without gradients, as in PyTorch and OneFlow

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        _over(self, data)
        self.requires_grad = requires_grad


@final
class Buffer(Tensor):
    """A tensor that modules list among their buffers once it is an attribute, sharing its data's memory; saved unless
    `persistent=False`.

    >>> m = flow.nn.Module(); m.count = flow.nn.Buffer(flow.zeros(1)); list(m.state_dict())
    ['count']
    """

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        _over(self, data)
        self.persistent = persistent
        self.requires_grad = isinstance(data, Tensor) and data.requires_grad


class UninitializedTensorMixin(Tensor):
    """A member whose shape isn't known yet. It has a dtype and a place, which conversions of its module change, and no
    memory. Its `data` is a tensor without elements."""

    cls_to_become: type[Tensor] = Tensor
    held: Tensor

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        kind = torch.get_default_dtype() if dtype is None else dtypes.of(dtype).torch
        self.held = of_torch(
            torch.empty(0, dtype=kind, device=None if device is None else Device(device).check().torch)
        )
        self.requires_grad = requires_grad

    @property
    def data(self) -> Tensor:
        return self.held

    @data.setter
    def data(self, other: Tensor) -> None:
        self._hold(other)

    def _hold(self, other: Tensor) -> None:
        self.held = other

    @property
    def blob(self) -> Any:  # whatever asks for the shape or the memory asks this
        raise ShapeError(
            f"an {type(self).__name__} has neither shape nor values before its module's first input: call the module "
            "once, layer(x), or load its state"
        )

    @property
    def dtype(self) -> DType:
        return self.held.dtype

    @property
    def device(self) -> Device:
        return self.held.device

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary one of a shape, whose values are arbitrary."""
        kind = (self.dtype if dtype is None else dtypes.of(dtype)).torch
        where = (self.device if device is None else Device(device).check()).torch
        self.become(of_torch(torch.empty(tuple(shape), dtype=kind, device=where)))

    def become(self, data: Tensor) -> None:
        del self.held
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        self._hold(data)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = memo.get(id(self))
        if copied is None:
            copied = memo[id(self)] = object.__new__(type(self))
            copied.held, copied._requires_grad = self.held, self._requires_grad
        return copied

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]  # a property for an attribute
    """A parameter whose shape isn't known yet."""

    cls_to_become = Parameter


class UninitializedBuffer(UninitializedTensorMixin):
    """A buffer whose shape isn't known yet."""


def is_lazy(x: Any) -> TypeGuard[UninitializedTensorMixin]:
    """Whether a parameter's or buffer's shape isn't known yet."""
    return isinstance(x, UninitializedTensorMixin)


def _over(x: Tensor, data: Any) -> None:
    """Set a new tensor's memory to another's, or to data."""
    if not isinstance(data, Tensor):
        Tensor.__init__(x, *(() if data is None else (data,)))
        return
    x.blob = data.blob
    if data.spec is not None:
        x.spec, x.shard = data.spec, data.shard
    if data.value is not None:
        x.value = data.value
    if data.part_of is not None:
        x.part_of = data.part_of
