"""OneFlow's ops of `flow._C` about two sets of boxes, from which a detector's loss is made: the parts of the complete
IoU (Zheng et al., Distance-IoU Loss, 2020)."""

from __future__ import annotations

import math

from weft.api.table import public
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("bound")
def fused_get_boundding_boxes_coord(
    x1: Tensor, y1: Tensor, w1: Tensor, h1: Tensor, x2: Tensor, y2: Tensor, w2: Tensor, h2: Tensor
) -> tuple[Tensor, ...]:
    """The edges of boxes given by centres and sizes: left, right, top and bottom of the first, and of the second."""
    spans = ((x1, w1), (y1, h1), (x2, w2), (y2, h2))
    return tuple(edge for centre, size in spans for edge in (centre - size / 2, centre + size / 2))


@public("bound")
def fused_get_intersection_area(
    b1_x1: Tensor, b1_x2: Tensor, b2_x1: Tensor, b2_x2: Tensor,
    b1_y1: Tensor, b1_y2: Tensor, b2_y1: Tensor, b2_y2: Tensor,
) -> Tensor:  # fmt: skip
    """The area that the boxes share."""
    width = ops.minimum(b1_x2, b2_x2) - ops.maximum(b1_x1, b2_x1)
    height = ops.minimum(b1_y2, b2_y2) - ops.maximum(b1_y1, b2_y1)
    return ops.clamp(width, 0) * ops.clamp(height, 0)


@public("bound")
def fused_get_iou(w1: Tensor, h1: Tensor, w2: Tensor, h2: Tensor, inter: Tensor, eps: float) -> Tensor:
    """The shared area by that which one of the boxes covers."""
    return inter / (w1 * h1 + w2 * h2 - inter + eps)


@public("bound")
def fused_get_convex_diagonal_squared(
    b1_x1: Tensor, b1_x2: Tensor, b2_x1: Tensor, b2_x2: Tensor,
    b1_y1: Tensor, b1_y2: Tensor, b2_y1: Tensor, b2_y2: Tensor, eps: float,
) -> Tensor:  # fmt: skip
    """The squared diagonal of the smallest box around both."""
    width = ops.maximum(b1_x2, b2_x2) - ops.minimum(b1_x1, b2_x1)
    height = ops.maximum(b1_y2, b2_y2) - ops.minimum(b1_y1, b2_y1)
    return ops.square(width) + ops.square(height) + eps


@public("bound")
def fused_get_center_dist(
    b1_x1: Tensor, b1_x2: Tensor, b2_x1: Tensor, b2_x2: Tensor,
    b1_y1: Tensor, b1_y2: Tensor, b2_y1: Tensor, b2_y2: Tensor,
) -> Tensor:  # fmt: skip
    """The squared distance of the boxes' centres."""
    across, down = b2_x1 + b2_x2 - b1_x1 - b1_x2, b2_y1 + b2_y2 - b1_y1 - b1_y2
    return (ops.square(across) + ops.square(down)) / 4


@public("bound")
def fused_get_ciou_diagonal_angle(w1: Tensor, h1: Tensor, w2: Tensor, h2: Tensor, eps: float) -> Tensor:
    """How much the angles of the boxes' diagonals differ: from 0 to 1."""
    return ops.square(ops.atan(w2 / (h2 + eps)) - ops.atan(w1 / (h1 + eps))) * (4 / math.pi**2)


@public("bound")
def fused_get_ciou_result(v: Tensor, iou: Tensor, rho2: Tensor, c2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The complete IoU, and the weight of the angles in it, which counts as a constant in the gradients."""
    alpha = (v / (v - iou + (1 + eps))).detach()
    return iou - (rho2 / c2 + v * alpha), alpha
