"""Legacy tensor types: `flow.FloatTensor(2, 3)`."""

from __future__ import annotations

import inspect
from typing import Any

from weft.api.signature import Signature, door
from weft.api.table import public
from weft.core.dtype import DType
from weft.core.errors import ArgumentError
from weft.functional.create import creation
from weft.functional.tensor.conversion import TYPES
from weft.ops import ops
from weft.tensor.tensor import Tensor, size_asked


class TensorType:
    """A constructor of tensors with one dtype, on the CPU or CUDA, that also works in isinstance().

    >>> isinstance(flow.ones(2), flow.FloatTensor), isinstance(flow.ones(2), flow.LongTensor)
    (True, False)
    """

    def __init__(self, name: str, dtype: DType, is_cuda: bool = False) -> None:
        self.__name__ = self.__qualname__ = name
        self.dtype, self.is_cuda = dtype, is_cuda

        def make(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
            where = {"dtype": dtype, "device": device, "placement": placement, "sbp": sbp}
            if is_cuda and placement is None:
                where["device"] = device or "cuda"
            size = size_asked(data)
            if size is not None:
                return creation.empty(size, **where)
            x = data[0]
            alike = isinstance(x, Tensor) and x.is_local and x.dtype is dtype and x.is_cuda == is_cuda
            if alike and device is placement is sbp is None:
                return ops.permute(x, tuple(range(x.ndim)))  # another tensor of the same memory and computation
            return creation.tensor(x, **where)

        make.__name__ = make.__qualname__ = name
        where = ", on the current CUDA device" if is_cuda else ""
        self.__doc__ = make.__doc__ = (
            f"A {dtype.name} tensor of data, or an uninitialized one of a size{where}: {name}([1, 2]) or {name}(2, 3)."
        )
        self.functions = (make,)
        self.signatures = (Signature(make).text(name),)
        self._make, self.__signature__ = door(make), inspect.signature(make)

    def __call__(self, *data: Any, **where: Any) -> Tensor:
        return self._make(*data, **where)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype == self.dtype and x.is_cuda == self.is_cuda

    def __or__(self, other: Any) -> Any:
        """For annotations such as `flow.FloatTensor | None`, which mean any tensor."""
        return Tensor | other

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<class 'weft.{'cuda.' * self.is_cuda}{self.__name__}'>"


for _name, _kind in TYPES.items():
    if not _kind.is_complex:
        public("flow")(TensorType(_name, _kind))


@public("flow")
def set_default_tensor_type(t: Any) -> None:
    """Set the default floating-point dtype by a type's name, such as "flow.DoubleTensor"."""
    name = t if isinstance(t, str) else getattr(t, "__name__", str(t))
    kind = TYPES.get(name.rpartition(".")[2])
    if kind is None or not kind.is_floating_point:
        floats = ", ".join(n for n, k in TYPES.items() if k.is_floating_point)
        raise ArgumentError(f"set_default_tensor_type(): one of {floats}; got {t!r}")
    creation.set_default_dtype(kind)
