"""Conversion of a tensor's data to NumPy, and of lists of tensors to numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from weft.core import dtype as dtypes
from weft.core.errors import DtypeError
from weft.tensor.described import Described

TENSORS: Final = (Described, torch.Tensor)  # torch's may be stand-ins


def array_of(data: torch.Tensor) -> np.ndarray:
    try:
        return data.numpy() if data.device.type == "cpu" else data.cpu().numpy()
    except TypeError as cause:
        if data.layout is not torch.strided:
            raise DtypeError(
                f"can't convert a tensor of layout {data.layout} to numpy; use x.to_dense() first"
            ) from cause
        raise DtypeError(f"NumPy has no {dtypes.of_torch(data.dtype)}; write x.float().numpy()") from cause


def forwards(data: Any) -> Any:
    """An array that runs backwards, such as a flipped image, copied: torch has no negative strides. Else the data."""
    return data.copy() if isinstance(data, np.ndarray) and min(data.strides, default=0) < 0 else data


def numbers(data: Any) -> Any:
    """Nested lists with their tensors replaced by numbers; if they hold none, as they are, for torch to copy."""
    return _plain(data) if _holds_tensors(data) else forwards(data)


def _plain(data: Any) -> Any:
    tensor: Any = data if isinstance(data, (*TENSORS, np.ndarray)) else None
    if tensor is not None:  # of one element, a number, as in torch
        return tensor.item() if not isinstance(data, np.ndarray) and tensor.numel() == 1 else tensor.tolist()
    return [_plain(v) for v in data] if isinstance(data, (list, tuple)) else data


def _holds_tensors(data: Any) -> bool:
    kinds = {*map(type, data)} if isinstance(data, (list, tuple)) else set()
    bare = np.ndarray in kinds and not all(map(np.ndim, data))  # torch refuses 0-d arrays, too
    deeper = any(issubclass(k, (list, tuple)) for k in kinds)
    return bare or any(issubclass(k, TENSORS) for k in kinds) or (deeper and any(map(_holds_tensors, data)))
