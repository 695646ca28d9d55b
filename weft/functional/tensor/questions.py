"""Queries about a tensor, and about the modes that a program runs in."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.autograd import modes
from weft.core.dispatch import here
from weft.functional.linalg import norms, products
from weft.functional.pointwise import powers
from weft.functional.shape import splitting
from weft.functional.tensor import in_place
from weft.ops import ops
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor

in_place.composed("ldexp", powers.ldexp)
in_place.composed("float_power", powers.float_power)
in_place.composed("renorm", norms.renorm)
in_place.composed("addmv", products.addmv)


@public("flow")
def constant_pad_nd(x: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """Constant padding: (left, right) of the last dimension, then of the one before it, and so on.

    >>> flow.constant_pad_nd(flow.ones(1), (1, 1), 5).tolist()
    [5.0, 1.0, 5.0]
    """
    return ops.pad_with(x, tuple(pad), value)


public("flow tensor", "unsafe_chunk")(splitting.chunk)
public("flow tensor", "unsafe_split unsafe_split_with_sizes")(splitting.split)


@public("tensor")
def to_dense(x: Tensor) -> Tensor:
    """x: every tensor is dense here."""
    return x


@public("tensor")
def untyped_storage(x: Tensor) -> Any:
    """The memory that x looks at, of this rank's part of it: torch's own storage, with `data_ptr()` and `nbytes()`."""
    return local_data(x, "untyped_storage()").untyped_storage()


@public("tensor")
def storage(x: Tensor) -> Any:
    """Likewise, as elements of x's dtype: `size()` counts them."""
    return local_data(x, "storage()")._typed_storage()


@public("tensor")
def record_stream(x: Tensor, stream: Any) -> None:
    """Does nothing: memory is freed after its last reader."""


@public("flow")
def get_device(x: Tensor) -> int:
    """The index of x's device; -1 for the CPU."""
    return x.get_device()


# ---- modes -----------------------------------------------------------------------------------------------


@public("flow")
def is_inference_mode_enabled() -> bool:
    """Whether gradients are off: inference mode is no more than that here."""
    return not here.grad


@public("flow")
def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on, which keeps every call's stack for errors in backward."""
    return modes.anomaly() is not None


@public("flow")
def is_anomaly_check_nan_enabled() -> bool:
    """Whether a NaN gradient is an error in anomaly mode."""
    mode = modes.anomaly()
    return mode is None or mode.check_nan


@public("flow")
def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Set anomaly mode."""
    modes.set_detect_anomaly(mode, check_nan)
