"""Further names that programs use: older ones, short forms of others, and questions that have one answer here."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from weft.autograd import modes
from weft.core import dtype as dtypes
from weft.core.dispatch import here
from weft.functional import arithmetic, linalg, overwrite, parts, pieces
from weft.functional.conversion import cast
from weft.functional.table import public
from weft.ops import OPS
from weft.ops.complex import imag
from weft.ops.shape import dim_of
from weft.tensor.tensor import Tensor, of_torch

# ---- numbers ---------------------------------------------------------------------------------------------


@public("flow tensor")
def isreal(x: Tensor) -> Tensor:
    """Whether the elements have no imaginary part.

    >>> flow.isreal(flow.tensor([1.0, 2j])).tolist()
    [True, False]
    """
    return OPS["eq"](imag(x), 0) if x.dtype.is_complex else OPS["ones_like"](x, dtypes.bool_)


class Parts(NamedTuple):
    """What `frexp` gives."""

    mantissa: Any
    exponent: Any


@public("flow tensor")
def frexp(x: Any) -> Parts:
    """The elements as mantissa * 2 ** exponent, with mantissas from 0.5 to 1.

    >>> [part.tolist() for part in flow.frexp(flow.tensor([6.0]))]
    [[0.75], [3]]
    """
    return Parts(*OPS["frexp"](x))


@public("flow tensor", "resolve_conj resolve_neg")
def resolve_conj(x: Tensor) -> Tensor:
    """x: conjugates, and what is negated, are computed, not marked."""
    return x


@public("flow tensor")
def is_neg(x: Tensor) -> bool:
    """False: what is negated is computed, not marked."""
    return False


overwrite.composed("ldexp", pieces.ldexp)
overwrite.composed("float_power", pieces.float_power)
overwrite.composed("renorm", pieces.renorm)
overwrite.composed("addmv", arithmetic.addmv)


@public("flow")
def frobenius_norm(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares, over some dimensions or all."""
    return linalg.vector_norm(x, 2, None if dim == () else dim, keepdim)


@public("flow")
def nuclear_norm(x: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    return linalg.matrix_norm(x, "nuc", dim, keepdim)


@public("flow")
def constant_pad_nd(x: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """A border of one number: (left, right) of the last dimension, then of the one before it, and so on.

    >>> flow.constant_pad_nd(flow.ones(1), (1, 1), 5).tolist()
    [5.0, 1.0, 5.0]
    """
    return OPS["pad_with"](x, tuple(pad), value)


@public("flow")
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """What is left of the input once it was a whole number of steps of `scale` within these bounds. The gradient
    passes by the rounding, and is zero beyond the bounds.

    >>> flow.fake_quantize_per_tensor_affine(flow.tensor([0.6, -9.0]), 0.25, 0, -8, 7).tolist()
    [0.5, -2.0]
    """
    steps = OPS["round"](input.detach() * (1.0 / scale) + zero_point)
    inside = OPS["logical_and"](steps >= quant_min, steps <= quant_max)
    known = (OPS["clamp"](steps, float(quant_min), float(quant_max)) - zero_point) * scale
    through = OPS["where"](inside, input, 0.0)
    return OPS["cast"](known, input.dtype) + (through - through.detach())


@public("flow")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for every channel along an axis."""
    along = [-1 if d == dim_of(axis, input.ndim) else 1 for d in range(input.ndim)]
    steps, zero = (OPS["reshape"](t, tuple(along)) for t in (scale, zero_point))
    return fake_quantize_per_tensor_affine(input, steps, zero, quant_min, quant_max)


# ---- tensors ---------------------------------------------------------------------------------------------


@public("flow")
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector that shares memory with an object that has bytes.

    >>> flow.frombuffer(bytearray([1, 0, 2, 0]), dtype=flow.int16).tolist()
    [1, 2]
    """
    made = of_torch(torch.frombuffer(buffer, dtype=dtypes.of(dtype).torch, count=count, offset=offset))
    return made.requires_grad_(requires_grad) if requires_grad else made


@public("tensor")
def cfloat(x: Tensor) -> Tensor:
    """x in complex64."""
    return cast(x, dtypes.complex64)


@public("tensor")
def cdouble(x: Tensor) -> Tensor:
    """x in complex128."""
    return cast(x, dtypes.complex128)


public("flow tensor", "unsafe_chunk")(parts.chunk)
public("flow tensor", "unsafe_split unsafe_split_with_sizes")(parts.split)


@public("tensor")
def to_dense(x: Tensor) -> Tensor:
    """x: every tensor is dense here."""
    return x


@public("tensor", "untyped_storage storage")
def untyped_storage(x: Tensor) -> Any:
    """The memory that x looks at, of this rank's part of it: torch's own storage, with `data_ptr()` and `nbytes()`."""
    return x._local("untyped_storage()").untyped_storage()


@public("tensor")
def record_stream(x: Tensor, stream: Any) -> None:
    """Nothing: memory is given back when the last who reads it is done."""


@public("flow")
def get_device(x: Tensor) -> int:
    """The number of the device that x lies on; -1 for the CPU."""
    return x.get_device()


# ---- how the program goes --------------------------------------------------------------------------------


@public("flow")
def is_inference_mode_enabled() -> bool:
    """Whether no gradients are recorded: inference mode is no more than that here."""
    return not here.grad


@public("flow")
def is_anomaly_enabled() -> bool:
    """Whether every call's stack is kept, for what backward may find."""
    return modes.anomaly() is not None


@public("flow")
def is_anomaly_check_nan_enabled() -> bool:
    """Whether a gradient that is no number is an error in anomaly mode."""
    mode = modes.anomaly()
    return mode is None or mode.check_nan


@public("flow")
def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Set anomaly mode, from here on."""
    modes.set_detect_anomaly(mode, check_nan)
