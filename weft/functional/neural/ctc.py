"""Connectionist temporal classification: ctc_loss and a greedy decoder."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.neural.losses import reduced
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("neural flow")
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """The negative log probability of each target, over all alignments of its labels with blanks between.

    `log_probs` is (time, batch, classes), `targets` (batch, labels) or all labels concatenated. The mean divides each
    loss by its target's length first.

    >>> x = flow.zeros(1, 1, 2).log_softmax(-1)
    >>> round(flow.nn.functional.ctc_loss(x, flow.tensor([[1]]), [1], [1]).item(), 4)
    0.6931
    """
    alone = log_probs.ndim == 2
    if alone:
        log_probs, targets = ops.unsqueeze(log_probs, 1), ops.reshape(targets, (1, -1))
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise OptionError(f"ctc_loss: blank must be one of {classes} classes, 0 to {classes - 1}; got {blank}")
    if targets.dtype.is_floating_point:  # OneFlow takes labels so
        targets = ops.cast(targets, dtypes.int64)
    if targets.dtype not in (dtypes.int64, dtypes.int32):
        raise OptionError(f"ctc_loss: labels are int64, int32 or whole floats; got {targets.dtype}")
    times, sizes = _lengths("input_lengths", input_lengths, batch), _lengths("target_lengths", target_lengths, batch)
    known = _numbers(times), _numbers(sizes)
    if max(known[0], default=0) > steps:
        raise ShapeError(f"ctc_loss: input_lengths go up to {max(known[0])}, but log_probs has {steps} steps")
    joined = targets.ndim == 1
    if joined:  # lengths must be known to split the labels
        known = known[0], known[1] or (sizes.tolist() if isinstance(sizes, Tensor) else [])
    _check_targets(targets, known[1], batch)
    counts = _as_lengths(sizes, log_probs)
    rows = _rows(targets, known[1]) if joined else targets
    loss = ops.ctc_nll(log_probs, rows, _as_lengths(times, log_probs), counts, blank, zero_infinity)
    if reduction == "mean":
        loss = ops.div(loss, ops.cast(ops.clamp(counts, 1, None), loss.dtype))
    return ops.reshape(loss, ()) if alone and reduction == "none" else reduced(loss, reduction)


def _lengths(name: str, given: Any, batch: int) -> Any:
    """A length for each sequence, as a list if known, else as a tensor."""
    if isinstance(given, Tensor):
        counts = ops.reshape(ops.cast(given, dtypes.int64), (-1,))
        found, n = _numbers(counts), counts.shape[0]
    else:
        counts = found = [given] if isinstance(given, int) else [int(n) for n in given]
        n = len(found)
    if n != batch or min(found, default=0) < 0:
        raise ShapeError(f"ctc_loss: {name} is a length for each of {batch} sequences; got {found or n}")
    return counts


def _numbers(counts: Any) -> list[int]:
    """Lengths as numbers, if they can be read without communication or tracing."""
    if not isinstance(counts, Tensor):
        return counts
    return counts.tolist() if counts.is_local and counts.is_eager else []


def _as_lengths(counts: Any, x: Tensor) -> Tensor:
    return counts if isinstance(counts, Tensor) else creation.tensor(counts, dtype=dtypes.int64, **device_of(x))


def _check_targets(targets: Tensor, sizes: list[int], batch: int) -> None:
    shape = tuple(targets.shape)
    fits = sum(sizes) == shape[0] if len(shape) == 1 else shape[0] == batch and max(sizes, default=0) <= shape[1]
    if not fits:
        raise ShapeError(f"ctc_loss: targets of shape {list(shape)} for target_lengths {sizes}")


def _rows(targets: Tensor, sizes: list[int]) -> Tensor:
    """Concatenated labels as padded rows."""
    rows, at, width = [], 0, max([*sizes, 1])
    for n in sizes:
        rows.append(ops.pad_with(ops.narrow(targets, 0, at, n), (0, width - n), 0))
        at += n
    return ops.cat([ops.reshape(row, (1, -1)) for row in rows], 0)


@public("neural")
def ctc_greedy_decoder(log_probs: Any, input_lengths: Any, merge_repeated: bool = True) -> tuple[Tensor, Tensor]:
    """Greedy decoding: the most likely class at each time, repetitions merged, blanks (the last class) removed. Returns
    the labels of each sequence, padded with zeros, and the negative log probability of the path.

    >>> scores = flow.tensor([[[0.0, 2.0, 1.0]], [[0.0, 2.0, 1.0]], [[0.0, 1.0, 2.0]], [[0.0, 2.0, 1.0]]])
    >>> flow.nn.functional.ctc_greedy_decoder(scores, flow.tensor([4]))[0].tolist()
    [[1, 1, 0, 0]]
    """
    if log_probs.ndim != 3:
        raise ShapeError(f"ctc_greedy_decoder: log_probs are (time, batch, classes); got {list(log_probs.shape)}")
    steps, batch, classes = log_probs.shape
    best, choice = ops.max(log_probs, 2)
    lengths = (
        input_lengths if isinstance(input_lengths, Tensor) else creation.tensor(input_lengths, **device_of(log_probs))
    )
    goes_on = ops.unsqueeze(creation.arange(steps, **device_of(log_probs)), 1) < lengths
    kept = goes_on * (choice != classes - 1)
    if merge_repeated and steps > 1:
        again = ops.narrow(choice, 0, 1, steps - 1) == ops.narrow(choice, 0, 0, steps - 1)
        first = creation.zeros((1, batch), dtype=dtypes.bool_, **device_of(log_probs))
        kept = kept * ops.logical_not(ops.cat([first, again], 0))
    at = ops.where(kept, ops.cumsum(ops.cast(kept, dtypes.int64), 0) - 1, steps)  # dropped elements go past the end
    blank = creation.zeros((steps + 1, batch), dtype=choice.dtype, **device_of(log_probs))
    decoded = ops.narrow(ops.scatter(blank, 0, at, choice), 0, 0, steps)
    path = -ops.sum(best * ops.cast(goes_on, best.dtype), 0)
    return ops.transpose(decoded, 0, 1), ops.unsqueeze(path, 1)
