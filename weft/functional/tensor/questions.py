"""Queries about a tensor, and about the modes that a program runs in."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.autograd import modes
from weft.core.dispatch import here
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor


@public("tensor")
def untyped_storage(x: Tensor) -> Any:
    """The memory of x, or of this rank's shard: torch's own storage, with `data_ptr()` and `nbytes()`."""
    return local_data(x, "untyped_storage()").untyped_storage()


@public("tensor")
def storage(x: Tensor) -> Any:
    """`untyped_storage()` as elements of x's dtype: `size()` counts them."""
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
    """Whether gradients are off, which is all that inference mode does here."""
    return not here.grad


@public("flow")
def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on: errors in backward then show the stack of the forward call."""
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
