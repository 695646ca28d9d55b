"""The dtypes, with OneFlow's names; each knows its torch counterpart."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch

from weft.core.errors import DtypeError, NoDtypeError

_by_torch: dict[torch.dtype, DType] = {}


class DType:
    """The class of `flow.float32` and the other dtypes. Equal means identical; torch's is equal, too."""

    __slots__ = ("name", "torch", "is_floating_point", "is_complex", "itemsize")
    library: ClassVar[str] = "weft"  # "torch" while programs see Weft in its place, as they write and read these texts

    def __init__(self, name: str, torch_dtype: torch.dtype) -> None:
        self.name, self.torch = name, torch_dtype
        self.is_floating_point, self.is_complex = torch_dtype.is_floating_point, torch_dtype.is_complex
        self.itemsize = torch_dtype.itemsize
        _by_torch[torch_dtype] = self

    def __eq__(self, other: object) -> bool:
        return self is other or self.torch is other

    __hash__ = object.__hash__  # the fastest, as dtypes are keys here: torch's finds no entry of ours

    def __repr__(self) -> str:
        return f"{self.library}.{self.name}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return named, (self.name,)

    @property
    def scalar(self) -> str:
        """The name in torch's messages, such as Float or Long."""
        return torch.empty(0, dtype=self.torch).type().rpartition(".")[2].removesuffix("Tensor")

    @property
    def bytes(self) -> int:
        """OneFlow's name for `itemsize`."""
        return self.itemsize

    @property
    def is_signed(self) -> bool:
        return self.torch.is_signed

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this one."""
        return of_torch(self.torch.to_complex())

    def to_real(self) -> DType:
        """The dtype of a complex one's parts."""
        return of_torch(self.torch.to_real())

    @property
    def differentiable(self) -> bool:
        return self.is_floating_point or self.is_complex


float32 = DType("float32", torch.float32)
float64 = DType("float64", torch.float64)
float16 = DType("float16", torch.float16)
bfloat16 = DType("bfloat16", torch.bfloat16)
int8 = DType("int8", torch.int8)
int16 = DType("int16", torch.int16)
int32 = DType("int32", torch.int32)
int64 = DType("int64", torch.int64)
uint8 = DType("uint8", torch.uint8)
bool_ = DType("bool", torch.bool)
complex64 = DType("complex64", torch.complex64)
complex128 = DType("complex128", torch.complex128)
every = tuple(_by_torch.values())
# storage formats: kept and converted; few kernels compute in them
float8_e4m3fn = DType("float8_e4m3fn", torch.float8_e4m3fn)
float8_e5m2 = DType("float8_e5m2", torch.float8_e5m2)
uint16 = DType("uint16", torch.uint16)
uint32 = DType("uint32", torch.uint32)
uint64 = DType("uint64", torch.uint64)
kept = (float8_e4m3fn, float8_e5m2, uint16, uint32, uint64)
_by_name = {d.name: d for d in (*every, *kept)} | {
    "float": float32, "double": float64, "half": float16, "char": int8, "short": int16, "int": int32, "long": int64,
}  # fmt: skip
_by_python = {float: float64, int: int64, bool: bool_, complex: complex128}  # as torch and numpy read them


def of_torch(dtype: torch.dtype) -> DType:
    found = _by_torch.get(dtype)
    if found is None:
        raise DtypeError(f"Weft has no counterpart of {dtype}; it has {', '.join(d.name for d in every)}")
    return found


def named(name: str) -> DType:
    found = _by_name.get(name)
    if found is None:
        raise NoDtypeError(f"no dtype is called {name!r}; there are {', '.join(d.name for d in every)}")
    return found


def of(value: Any) -> DType:
    """A DType from anything that names one: Weft's, torch's, NumPy's, Python's, a string."""
    if isinstance(value, DType):
        return value
    if isinstance(value, torch.dtype):
        return of_torch(value)
    if isinstance(value, str):
        return named(value.removeprefix("weft."))
    try:
        if value is None:  # numpy.dtype(None) is float64
            raise TypeError
        return _by_python[value] if value in _by_python else named(np.dtype(value).name)
    except (TypeError, ValueError):
        raise DtypeError(f"{value!r} is not a dtype; write flow.float32, say") from None
