"""Conversions between local and global tensors and between layouts. Boxing does them (`boxing/`), not a kernel."""

from __future__ import annotations

from torch import Tensor

from weft.core.placement import Placement
from weft.core.sbp import NdSbp, broadcast
from weft.ops.declaration import Size, op


@op(conversion=True)
def to_global(x: Tensor, placement: Placement, sbp: NdSbp) -> Tensor:
    """A global tensor with another placement and sbp, and the same logical value."""
    return x


@to_global.grad
def _(dy, x_placement, x_sbp):
    # a partial sum's gradient is whole on every rank that holds a part of the sum
    return to_global(dy, x_placement, tuple(broadcast if s.kind == "P" else s for s in x_sbp))


@op(conversion=True)
def to_local(x: Tensor) -> Tensor:
    """This rank's shard of a global tensor, sharing memory."""
    return x


@to_local.grad
def _(dy, x_placement, x_sbp, x_shape):
    return from_local(dy, x_placement, tuple(broadcast if s.kind == "P" else s for s in x_sbp), tuple(x_shape), False)


@op(conversion=True)
def from_local(x: Tensor, placement: Placement, sbp: NdSbp, shape: Size, copy: bool = False) -> Tensor:
    """The global tensor whose shard on this rank is x."""
    return x


@from_local.grad
def _(dy, placement, sbp):
    return to_local(to_global(dy, placement, tuple(broadcast if s.kind == "P" else s for s in sbp)))
