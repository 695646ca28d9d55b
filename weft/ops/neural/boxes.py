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
    sides = boxes[order].cpu().T.contiguous()  # on the CPU, as each box waits for those before it
    area = (sides[2:] - sides[:2]).prod(0)
    kept = torch.ones(len(area), dtype=torch.bool)
    for i in range(len(area)):
        if kept[i]:
            this, rest = sides[:, i : i + 1], sides[:, i + 1 :]
            high, wide = (torch.minimum(this[2:], rest[2:]) - torch.maximum(this[:2], rest[:2])).clamp_min_(0)
            shared = high * wide
            kept[i + 1 :] &= ~(shared > iou_threshold * (area[i] + area[i + 1 :] - shared))
    return order[kept.to(order.device)]


@nms.samples
def _(rand):
    corner = rand(8, 2)
    yield torch.cat([corner, corner + 1], 1), rand(8), 0.3
