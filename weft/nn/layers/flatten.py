"""Dimensions made one, and one made several."""

from __future__ import annotations

from typing import Any

from weft.core.errors import IndexingError
from weft.functional.shape import views
from weft.nn.module.module import Module
from weft.ops import ops
from weft.tensor.tensor import Tensor


class Unflatten(Module):
    """One dimension as several.

    >>> flow.nn.Unflatten(1, (2, 3))(flow.ones(4, 6)).shape
    torch.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        return views.unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Flatten(Module):
    """Dimensions from start_dim to end_dim become one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        if not x.ndim:
            raise IndexingError("Flatten makes one of several dimensions; a number has none: x.reshape(1)")
        start, end = self.start_dim % x.ndim, self.end_dim % x.ndim
        count = 1
        for n in x.shape[start : end + 1]:
            count *= n
        return ops.reshape(x, (*x.shape[:start], count, *x.shape[end + 1 :]))

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
