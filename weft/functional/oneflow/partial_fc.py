"""Partial FC: a training step with some of a layer's classes, where there are too many for one device."""

from __future__ import annotations

import math

from weft.api.table import public
from weft.core.errors import ArgumentError
from weft.core.sbp import split
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.random import random_tensors
from weft.functional.tensor import conversion
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("flow")
def distributed_partial_fc_sample(weight: Tensor, label: Tensor, num_sample: int) -> tuple[Tensor, Tensor, Tensor]:
    """The labels' classes and as many others as fit, drawn: each label's place among them, the classes, their rows.

    Each part of a weight that is split by rows gives the same number. A label whose class didn't fit has the place
    `num_sample`, which a loss refuses.

    >>> place, classes, rows = flow.distributed_partial_fc_sample(flow.randn(9, 4), flow.tensor([7, 2, 7]), 5)
    >>> classes[place].tolist(), tuple(rows.shape)
    ([7, 2, 7], (5, 4))
    """
    classes, width = weight.shape
    if not 0 < num_sample <= classes:
        raise ArgumentError(f"distributed_partial_fc_sample(): {num_sample} of {classes} classes can't be drawn")
    axes = zip(weight.placement.hierarchy, weight.sbp, strict=True) if weight.is_global else ()
    parts = math.prod(n for n, s in axes if s == split(0))
    if classes % parts or num_sample % parts:
        parts = 1
    where = device_of(weight)
    label = conversion.to_global(label, sbp=where["sbp"]) if label.is_global else label
    score = ops.scatter(random_tensors.rand(classes, **where), 0, label, 2.0)
    places = ops.sort(ops.topk(ops.reshape(score, (parts, -1)), num_sample // parts, 1)[1], 1)[0]
    first = ops.unsqueeze(creation.arange(0, classes, classes // parts, **where), 1)
    drawn = ops.reshape(ops.add(places, first), (-1,))
    rows = ops.gather(ops.reshape(weight, (parts, -1, width)), 1, ops.expand(ops.unsqueeze(places, 2), (-1, -1, width)))
    found = ops.clamp(ops.searchsorted(drawn, label), None, num_sample - 1)
    place = ops.where(ops.eq(ops.index_select(drawn, 0, found), label), found, num_sample)
    return ops.cast(place, label.dtype), ops.cast(drawn, label.dtype), ops.reshape(rows, (num_sample, width))
