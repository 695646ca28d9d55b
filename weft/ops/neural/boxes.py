"""Bounding boxes: non-maximum suppression."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.ops.declaration import op


@op(dynamic=True, returns="kept*")
def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Non-maximum suppression: the indices of boxes (x1, y1, x2, y2) that overlap no better one by more than the
    threshold.

    >>> boxes = flow.tensor([[0., 0., 2., 2.], [0., 0., 2., 2.1], [3., 3., 4., 4.]])
    >>> flow.nms(boxes, flow.tensor([0.5, 0.9, 0.7]), 0.5).tolist()
    [1, 2]
    """
    if boxes.device.type == "meta":
        return torch.empty(0, dtype=torch.int64, device="meta")
    order = scores.argsort(descending=True, stable=True)
    b = boxes[order]
    area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    corner = torch.maximum(b[:, None, :2], b[None, :, :2])
    sides = (torch.minimum(b[:, None, 2:], b[None, :, 2:]) - corner).clamp_min(0)
    shared = sides[..., 0] * sides[..., 1]
    over = (shared > iou_threshold * (area[:, None] + area[None] - shared)).cpu()
    kept = torch.ones(len(b), dtype=torch.bool)
    for i in range(len(b)):
        if kept[i]:
            kept[i + 1 :] &= ~over[i, i + 1 :]
    return order[kept.to(order.device)]


@nms.samples
def _(rand):
    corner = rand(8, 2)
    yield torch.cat([corner, corner + 1], 1), rand(8), 0.3
