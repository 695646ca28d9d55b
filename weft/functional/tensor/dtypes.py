"""Functions of dtypes: `is_tensor`, `numel`, `finfo`, `can_cast`, ..."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import DtypeError
from weft.tensor.tensor import Tensor


@public("flow")
def finfo(dtype: Any = None) -> torch.finfo:
    """The limits of a floating point dtype: eps, max, min, tiny, bits.

    >>> flow.finfo(flow.float32).bits
    32
    """
    kind = dtypes.of(torch.get_default_dtype() if dtype is None else dtype)
    if not kind.differentiable:
        raise DtypeError(f"finfo() takes a floating-point dtype; {kind} is an integer one: use flow.iinfo")
    return torch.finfo(kind.torch)


@public("flow")
def iinfo(dtype: Any) -> torch.iinfo:
    """The limits of an integer dtype: max, min, bits.

    >>> flow.iinfo(flow.int8).max
    127
    """
    kind = dtypes.of(dtype)
    if kind.differentiable or kind is dtypes.bool_:
        raise DtypeError(f"iinfo() takes an integer dtype; {kind} isn't one: use flow.finfo")
    return torch.iinfo(kind.torch)


@public("flow")
def is_tensor(obj: Any) -> bool:
    """Whether obj is a Weft tensor."""
    return isinstance(obj, Tensor)


@public("flow")
def numel(x: Tensor) -> int:
    """How many elements x has."""
    return x.numel()


@public("flow")
def is_floating_point(x: Tensor) -> bool:
    """Whether x holds floating point numbers."""
    return x.is_floating_point()


@public("flow tensor")
def is_nonzero(x: Tensor) -> bool:
    """Whether the only element of x is nonzero."""
    return bool(x)


@public("flow")
def result_type(a: Any, b: Any) -> dtypes.DType:
    """The dtype of arithmetic between the two."""
    forms = [torch.empty((1,) * v.ndim, dtype=v.dtype.torch) if isinstance(v, Tensor) else v for v in (a, b)]
    return dtypes.of_torch(torch.result_type(*forms))


def common_type(tensors: Iterable[Tensor]) -> dtypes.DType:
    """The dtype of arithmetic among several tensors; 0-d ones don't widen it."""
    kinds: dict[bool, list[torch.dtype]] = {}
    for t in tensors:
        kinds.setdefault(t.ndim > 0, []).append(t.dtype.torch)
    forms = [
        torch.empty((1,) if has else (), dtype=functools.reduce(torch.promote_types, kind), device="meta")
        for has, kind in kinds.items()
    ]
    return dtypes.of_torch(torch.result_type(forms[0], forms[-1]))


@public("flow")
def promote_types(a: Any, b: Any) -> dtypes.DType:
    """The smallest dtype that holds both."""
    return dtypes.of_torch(torch.promote_types(dtypes.of(a).torch, dtypes.of(b).torch))


@public("flow")
def typename(x: Any) -> str:
    """The name of a tensor's type, such as weft.FloatTensor; of anything else, its class's."""
    return x.type() if isinstance(x, Tensor) else f"{type(x).__module__}.{type(x).__qualname__}"


@public("flow")
def can_cast(from_: Any, to: Any) -> bool:
    """Whether casting from one dtype to the other is allowed."""
    return torch.can_cast(dtypes.of(from_).torch, dtypes.of(to).torch)


@public("flow")
def convert_oneflow_dtype_to_numpy_dtype(oneflow_dtype: Any) -> Any:
    """The numpy dtype of a dtype."""
    return np.dtype(dtypes.of(oneflow_dtype).name.removesuffix("_"))
