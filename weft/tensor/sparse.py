"""Sparse gradients: of a table, the rows that were looked up, with their indices. The tensor's memory is one of torch's
COO tensors, with which many kernels can compute."""

from __future__ import annotations

from typing import Any

import torch

from weft.tensor.blob import Blob, blob_of
from weft.tensor.counters import counters
from weft.tensor.data import local_data
from weft.tensor.described import Described


def is_dense(t: Any) -> bool:
    """Whether each element has its place in memory. Cheap where nothing was ever sparse."""
    if not counters.sparse:
        return True
    data = blob_of(t).data
    return data is None or data.layout is torch.strided


def coalesced(t: Any) -> torch.Tensor:
    """The data of a sparse gradient, each index once and in order. The tensor keeps this form."""
    data = local_data(t, "a sparse gradient")
    made = data.coalesce()
    if made is not data:
        t.blob = Blob(made)
    return made


def numbers(t: Any) -> torch.Tensor:
    """The numbers of a sparse gradient, over its memory."""
    return coalesced(t)._values()


def layout_of(t: Described) -> torch.layout:
    data = blob_of(t).data
    return torch.strided if data is None else data.layout
