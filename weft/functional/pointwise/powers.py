"""ldexp, float_power, frexp."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import DtypeError
from weft.functional.results import Parts, returning
from weft.functional.tensor.conversion import cast
from weft.functional.tensor.in_place import with_in_place
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("flow tensor")
def positive(x: Tensor) -> Tensor:
    """x."""
    if x.dtype is dtypes.bool_:
        raise DtypeError("positive(): The `+` operator, on a bool tensor is not supported: x.int()")
    return x


@with_in_place
def ldexp(x: Any, other: Any) -> Any:
    """x * 2 ** other."""
    made = x * ops.pow(2.0, other)
    whole = isinstance(other, Tensor) and not other.dtype.differentiable  # 2 to that is of the usual width
    return ops.cast(made, x.dtype) if whole and x.dtype.differentiable else made


@with_in_place
@in_one(torch.float_power)
def float_power(x: Any, exponent: Any) -> Any:
    """x ** exponent, in float64, or of complex numbers in complex128."""
    tensors = [t for t in (x, exponent) if isinstance(t, Tensor)]
    complex_ = any(t.dtype.is_complex for t in tensors) or isinstance(x, complex) or isinstance(exponent, complex)
    wide = dtypes.complex128 if complex_ else dtypes.float64
    return ops.pow(*(cast(t, wide) if isinstance(t, Tensor) else t for t in (x, exponent)))


public("flow tensor")(returning(Parts, "frexp"))
