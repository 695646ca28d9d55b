"""Connectionist temporal classification (CTC) loss."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from weft.core.errors import DtypeError, IndexingError, ShapeError
from weft.ops.declaration import op
from weft.ops.kernels import aten
from weft.ops.neural.grid_sample import once


@op("t! n c!, n s!, n, n -> n, n, n t! a!", returns="loss | raw alpha")
def ctc_nll(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Per sequence, the negative log probability of all alignments of its labels.

    >>> one = flow.tensor([1]); x = flow.zeros(1, 1, 2).log_softmax(-1)
    >>> round(flow._C.ctc_nll(x, flow.tensor([[1]]), one, one).item(), 4)
    0.6931
    """
    steps, batch, _ = log_probs.shape
    states = log_probs.new_empty(batch, steps, 2 * targets.shape[1] + 1)  # its labels, with blanks around
    if log_probs.device.type == "meta" or not log_probs.numel():
        return log_probs.new_empty(batch), log_probs.new_empty(batch), states
    raw, alpha = torch._ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    time, place = (torch.arange(n, device=alpha.device) for n in states.shape[1:])
    ends, last = (n.reshape(-1, 1, 1) for n in (input_lengths, 2 * target_lengths))
    unused = (time.view(-1, 1) >= ends) | (place > last)  # what the kernel leaves as it is
    states[..., : alpha.shape[2]] = alpha
    states.masked_fill_(unused, -math.inf)
    return (torch.where(torch.isinf(raw), 0.0, raw) if zero_infinity else raw.clone()), raw, states


@ctc_nll.grad
def _(dloss, log_probs, targets, input_lengths, target_lengths, raw, alpha, blank, zero_infinity):
    once("ctc_loss")
    dx = ctc_nll_grad(dloss, log_probs, targets, input_lengths, target_lengths, raw, alpha, blank, zero_infinity)
    return dx, None, None, None


def _sequences(rand: Any) -> tuple[Any, ...]:
    labels = torch.tensor([[1, 2, 3], [2, 2, 1]])
    return rand(6, 2, 4).log_softmax(-1), labels, torch.tensor([6, 5]), torch.tensor([3, 2])


ctc_nll.samples(lambda rand: [_sequences(rand)])


@op("n, t! n c!, n s!, n, n, n, n t! a! -> t! n c!", returns="dx")
def ctc_nll_grad(
    dloss: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, raw: Tensor,
    alpha: Tensor, blank: int, zero_infinity: bool,
) -> Tensor:  # fmt: skip
    """The gradient of ctc_nll's log probabilities."""
    rest = targets, input_lengths, target_lengths
    _check_kept(blank, dloss, log_probs, *rest, raw, alpha)
    if log_probs.device.type == "meta" or not log_probs.numel():
        return torch.empty_like(log_probs)
    alpha = alpha[..., : 2 * int(target_lengths.max()) + 1]  # as the kernel for CUDA asks
    return aten._ctc_loss_backward.Tensor(dloss, log_probs, *rest, raw, alpha, blank, zero_infinity)


def _check_kept(blank: int, dloss: Tensor, log_probs: Tensor, targets: Tensor, *kept: Tensor) -> None:
    """Refuse what the kernel would take for addresses."""
    input_lengths, target_lengths, raw, alpha = kept
    given = dloss, log_probs, targets, *kept
    fits = log_probs.dim() == 3 and targets.dim() == 2
    if fits:
        steps, batch, _ = log_probs.shape
        fits = targets.shape[0] == batch and alpha.shape == (batch, steps, 2 * targets.shape[1] + 1)
        fits = fits and all(t.shape == (batch,) for t in (dloss, input_lengths, target_lengths, raw))
    if not fits:
        raise ShapeError(
            "ctc_nll_grad: takes a dloss for each sequence, what ctc_nll took, and what it kept; got shapes "
            f"{', '.join(str(list(t.shape)) for t in given)}"
        )
    counted = all(t.dtype in (torch.int32, torch.int64) for t in given[2:5])
    if not counted or not dloss.dtype == log_probs.dtype == raw.dtype == alpha.dtype:
        raise DtypeError(
            "ctc_nll_grad: takes labels and lengths as int64 or int32, and all else as log_probs is; got "
            f"{', '.join(str(t.dtype)[6:] for t in given)}"
        )
    if log_probs.device.type != "cpu" or not log_probs.numel():  # elsewhere values would be waited for
        return
    steps, _, classes = log_probs.shape
    for t, most in ((input_lengths, steps), (target_lengths, targets.shape[1]), (targets, classes - 1)):
        if t.numel() and (int(t.min()) < 0 or int(t.max()) > most):
            raise IndexingError(f"ctc_nll_grad: lengths and labels are 0 to {most} here; got {t.tolist()!s:.80}")
    if not 0 <= blank < classes:
        raise IndexingError(f"ctc_nll_grad: blank is 0 to {classes - 1}; got {blank}")


@ctc_nll_grad.samples
def _(rand):
    given = _sequences(rand)
    yield rand(2), *given, *ctc_nll.kernel(*given)[1:], 0, False
