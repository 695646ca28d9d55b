"""Functional collectives, which return new tensors, as in `torch.distributed._functional_collectives`: those of
`distributed.nn.functional`, with gradients, under other names and along any dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.distributed import collectives
from weft.distributed.collectives import ReduceOp
from weft.distributed.groups import ProcessGroup, get_world_size
from weft.distributed.mesh import DeviceMesh
from weft.distributed.nn import functional
from weft.ops import ops
from weft.tensor.tensor import Tensor


def _group(group: Any) -> Any:
    """A group from itself, from a list of ranks, from a mesh, or from a mesh and an axis."""
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    return ProcessGroup(group) if isinstance(group, (list, tuple)) else group


def _reduction(name: str) -> str:
    """A reduction by the name of its `ReduceOp`."""
    return ReduceOp.__members__.get(name.upper(), name)


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The reduction over the ranks, on each."""
    by = _reduction(reduceOp)
    if by in (ReduceOp.SUM, ReduceOp.AVG) or self.requires_grad:
        return functional.all_reduce(self, by, _group(group))
    collectives.all_reduce(out := self.clone(), by, _group(group))
    return out


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of rank `src`, on each rank."""
    return functional.broadcast(self, src, _group(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The ranks' tensors, joined along a dimension."""
    return ops.cat(list(functional.all_gather(self, _group(group))), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This rank's slice, along a dimension, of the reduction over the ranks."""
    group = _group(group)
    parts = self.chunk(get_world_size(group), scatter_dim)
    return functional.reduce_scatter(parts[0], parts, _reduction(reduceOp), group)


def all_to_all_single(
    self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any,
    tag: str = "",
) -> Tensor:  # fmt: skip
    """A slice of the tensor to each rank, and one from each."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = self.new_empty((rows, *self.shape[1:]))
    return functional.all_to_all_single(out, self, output_split_sizes, input_split_sizes, _group(group))


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor itself: it is there."""
    return tensor


all_gather_tensor_autograd, all_to_all_single_autograd = all_gather_tensor, all_to_all_single
reduce_scatter_tensor_autograd = reduce_scatter_tensor

__all__ = [
    "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce", "all_to_all_single", "all_to_all_single_autograd",
    "broadcast", "reduce_scatter_tensor", "reduce_scatter_tensor_autograd", "wait_tensor",
]  # fmt: skip
