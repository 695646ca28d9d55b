"""Parameter and Buffer: tensors that a module trains, and that it keeps."""

from __future__ import annotations

from typing import Any, final

from weft.tensor.tensor import Tensor


@final
class Parameter(Tensor):
    """A tensor that modules list among their parameters; it shares its data's memory.

    >>> p = flow.nn.Parameter(flow.ones(2)); p.requires_grad
    True
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        _over(self, data)
        self.requires_grad = requires_grad


@final
class Buffer(Tensor):
    """A tensor that modules list among their buffers once it is an attribute, sharing its data's memory; saved unless
    `persistent=False`.

    >>> m = flow.nn.Module(); m.count = flow.nn.Buffer(flow.zeros(1)); list(m.state_dict())
    ['count']
    """

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        _over(self, data)
        self.persistent = persistent
        self.requires_grad = isinstance(data, Tensor) and data.requires_grad


def _over(x: Tensor, data: Any) -> None:
    """Set a new tensor's memory to another's, or to data."""
    if not isinstance(data, Tensor):
        Tensor.__init__(x, *(() if data is None else (data,)))
        return
    x.blob = data.blob
    if data.spec is not None:
        x.spec, x.shard = data.spec, data.shard
    if data.value is not None:
        x.value = data.value
    if data.part_of is not None:
        x.part_of = data.part_of
