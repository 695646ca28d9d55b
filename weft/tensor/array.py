"""Conversion of a tensor's data to NumPy."""

from __future__ import annotations

import numpy as np
import torch

from weft.core import dtype as dtypes
from weft.core.errors import DtypeError


def array_of(data: torch.Tensor) -> np.ndarray:
    try:
        return data.numpy() if data.device.type == "cpu" else data.cpu().numpy()
    except TypeError as cause:
        raise DtypeError(f"NumPy has no {dtypes.of_torch(data.dtype)}; write x.float().numpy()") from cause
