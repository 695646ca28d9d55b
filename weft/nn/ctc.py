"""Connectionist temporal classification: the loss of a sequence of labels whose places in time nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.core import dtype as dtypes
from weft.core.errors import OptionError, ShapeError
from weft.nn.losses import reduced
from weft.ops import OPS
from weft.tensor.tensor import Tensor, of_torch

__all__ = ["ctc_loss"]

add, sub, where, narrow, exp = (OPS[n] for n in ("add", "sub", "where", "narrow", "exp"))
NEVER = -1e30  # the logarithm of what cannot be, finite so that differences of it are numbers


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """-log of the probability of each target, over all ways to spread its labels over time with blanks between.

    `log_probs` is (time, batch, classes), `targets` (batch, labels) or all labels one after another. The mean is that
    of each loss divided by its target's length.
    """
    if log_probs.ndim == 2:
        times, sizes = (
            n if isinstance(n, (tuple, list)) or (isinstance(n, Tensor) and n.ndim) else [int(n)]
            for n in (input_lengths, target_lengths)
        )
        one = ctc_loss(OPS["unsqueeze"](log_probs, 1), targets, times, sizes, blank, reduction, zero_infinity)
        return OPS["squeeze"](one, 0) if reduction == "none" else one
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise OptionError(f"ctc_loss: blank is one of {classes} classes, 0 to {classes - 1}; got {blank}")
    times, sizes = _lengths("input_lengths", input_lengths, batch), _lengths("target_lengths", target_lengths, batch)
    if max(times, default=0) > steps:
        raise ShapeError(f"ctc_loss: input_lengths go up to {max(times)}, but log_probs has {steps} steps")
    labels = _padded(targets, sizes, blank)
    device = log_probs.device.torch

    def told(value: Any, dtype: torch.dtype = torch.int64) -> Tensor:
        return of_torch(torch.as_tensor(value, dtype=dtype).to(device))

    # every label with blanks around it; a step goes on to the next, or past a blank between two different labels
    path = torch.full((batch, 2 * labels.shape[1] + 1), blank)
    path[:, 1::2] = labels
    jumps = torch.zeros_like(path, dtype=torch.bool)
    jumps[:, 2:] = (path[:, 2:] != blank) & (path[:, 2:] != path[:, :-2])
    may_jump, width = told(jumps, torch.bool), path.shape[1]
    said = OPS["gather"](log_probs, 2, told(path.expand(steps, batch, width)))
    begun = told((torch.arange(width) < 2).expand(batch, width), torch.bool)
    alpha = where(begun, OPS["select"](said, 0, 0), NEVER)
    for t in range(1, steps):
        ways = [alpha, _shifted(alpha, 1, width), where(may_jump, _shifted(alpha, 2, width), NEVER)]
        running = told([[t < n] for n in times], torch.bool)
        alpha = where(running, add(_log_sum(ways), OPS["select"](said, 0, t)), alpha)
    ends = [OPS["gather"](alpha, 1, told([[max(2 * n - back, 0)] for n in sizes])) for back in (0, 1)]
    ends[1] = where(told([[n > 0] for n in sizes], torch.bool), ends[1], NEVER)
    loss = OPS["neg"](OPS["squeeze"](_log_sum(ends), 1))
    loss = where(OPS["gt"](loss, -NEVER / 10), 0.0 if zero_infinity else float("inf"), loss)
    if reduction == "mean":
        loss = OPS["div"](loss, OPS["cast"](told([max(n, 1) for n in sizes]), log_probs.dtype))
    return reduced(loss, reduction)


def _lengths(name: str, given: Any, batch: int) -> list[int]:
    found = [int(n) for n in (given.tolist() if isinstance(given, Tensor) else given)]
    if len(found) != batch or min(found, default=0) < 0:
        raise ShapeError(f"ctc_loss: {name} is a length for each of {batch} sequences; got {found}")
    return found


def _padded(targets: Tensor, sizes: Sequence[int], blank: int) -> torch.Tensor:
    """The labels as (batch, most labels)."""
    if targets.dtype not in (dtypes.int64, dtypes.int32):
        raise OptionError(f"ctc_loss: labels are integers; got {targets.dtype}")
    values, most = targets.to_torch().cpu().long(), max(sizes, default=0)
    flat = values.ndim == 1
    if sum(sizes) != values.numel() if flat else values.shape[0] != len(sizes) or values.shape[1] < most:
        raise ShapeError(f"ctc_loss: targets of shape {list(values.shape)} for target_lengths {list(sizes)}")
    rows = values.split(list(sizes)) if flat else [row[:n] for row, n in zip(values, sizes, strict=True)]
    labels = torch.full((len(sizes), most), blank)
    for out, row in zip(labels, rows, strict=True):
        out[: len(row)] = row
    return labels


def _shifted(alpha: Tensor, by: int, width: int) -> Tensor:
    return narrow(OPS["pad_with"](alpha, (by, 0), NEVER), 1, 0, width)


def _log_sum(parts: list[Tensor]) -> Tensor:
    """log(sum(exp)), without overflow."""
    largest = parts[0].detach()
    for p in parts[1:]:
        largest = OPS["maximum"](largest, p.detach())
    whole = exp(sub(parts[0], largest))
    for p in parts[1:]:
        whole = add(whole, exp(sub(p, largest)))
    return add(OPS["log"](whole), largest)
