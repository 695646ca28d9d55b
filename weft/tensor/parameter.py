"""A parameter: a tensor that a module trains. A buffer: one that it keeps."""

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
        _over(self, data)
        self.requires_grad = requires_grad


@final
class Buffer(Tensor):
    """A tensor over the same memory, which modules list among their buffers once it is their attribute; saved with
    their state unless `persistent=False`.

    >>> m = flow.nn.Module(); m.count = flow.nn.Buffer(flow.zeros(1)); list(m.state_dict())
    ['count']
    """

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        _over(self, data)
        self.persistent = persistent
        self.requires_grad = isinstance(data, Tensor) and data.requires_grad


def _over(x: Tensor, data: Any) -> None:
    """Let a new tensor have the memory of another, or what data says."""
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
