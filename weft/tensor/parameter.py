"""A parameter: a tensor that a module trains."""

from __future__ import annotations

from typing import Any, final

from weft.tensor.tensor import Tensor


@final
class Parameter(Tensor):
    """A tensor over the same memory, which modules list among their parameters.

    >>> p = flow.nn.Parameter(flow.ones(2)); p.requires_grad
    True
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        if isinstance(data, Tensor):
            self.blob = data.blob
            if data.spec is not None:
                self.spec, self.shard = data.spec, data.shard
            if data.value is not None:
                self.value = data.value
        else:
            super().__init__(data)
        self.requires_grad = requires_grad
