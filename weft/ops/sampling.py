"""Images read at given places, and sequences told apart without alignment. Gradients end with the first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.core.errors import ArgumentError, AutogradError, ShapeError
from weft.ops.declaration import op
from weft.ops.kernels import aten

MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def once(name: str) -> None:
    if here.grad:
        raise AutogradError(f"{name} has a gradient, and that has none: leave create_graph=True out")


def _kernel(x: Tensor, grid: Tensor, mode: str, padding_mode: str) -> tuple[int, int, bool]:
    """The mode and the padding by number, and whether the image has three dimensions."""
    if mode not in MODES or padding_mode not in PADDINGS:
        raise ArgumentError(
            f"grid_sample: mode is one of {', '.join(MODES)} and padding_mode one of {', '.join(PADDINGS)}; "
            f"got {mode!r} and {padding_mode!r}"
        )
    if x.dim() not in (4, 5) or grid.dim() != x.dim() or grid.shape[-1] != x.dim() - 2:
        raise ShapeError(
            f"grid_sample takes (n, c, h, w) with a grid (n, i, j, 2), or (n, c, d, h, w) with (n, i, j, k, 3); "
            f"got {list(x.shape)} and {list(grid.shape)}"
        )
    return MODES.index(mode), PADDINGS.index(padding_mode), x.dim() == 5


def _terms(ndim: int) -> tuple[str, str, str]:
    before = " ".join(f"s{i}!" for i in range(ndim - 2))
    after = " ".join(f"o{i}" for i in range(ndim - 2))
    return f"n c {before}", f"n {after} k!", f"n c {after}"


@op(linear="x")
def grid_sample(
    x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Tensor:
    """x read at the places of a grid, which go from -1 to 1, the last dimension's first.

    >>> flow._C.grid_sample(flow.tensor([[[[1., 3.]]]]), flow.zeros(1, 1, 1, 2)).item()
    2.0
    """
    way, padding, deep = _kernel(x, grid, mode, padding_mode)
    return (torch.grid_sampler_3d if deep else torch.grid_sampler_2d)(x, grid, way, padding, align_corners)


@grid_sample.layout
def _(x, grid, mode, padding_mode, align_corners):
    image, places, out = _terms(len(x))
    return f"{image}, {places} -> {out}"


@grid_sample.grad
def _(dy, x, grid, mode, padding_mode, align_corners):
    once("grid_sample")
    return grid_sample_grad(dy, x, grid, mode, padding_mode, align_corners)


@grid_sample.samples
def _(rand):
    yield rand(2, 3, 4, 5), torch.tanh(rand(2, 3, 2, 2))
    yield rand(2, 2, 4, 5), rand(2, 3, 2, 2), "bilinear", "border", True
    yield rand(2, 2, 3, 4, 5), torch.tanh(rand(2, 2, 3, 2, 3))


@op(linear="dy", returns="dx dgrid")
def grid_sample_grad(dy: Tensor, x: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Any:
    """The gradients of grid_sample's image and grid."""
    way, padding, deep = _kernel(x, grid, mode, padding_mode)
    kernel = aten.grid_sampler_3d_backward if deep else aten.grid_sampler_2d_backward
    return kernel(dy, x, grid, way, padding, align_corners, (True, True))


@grid_sample_grad.layout
def _(dy, x, grid, mode, padding_mode, align_corners):
    image, places, out = (t.replace("c", "c!") for t in _terms(len(x)))
    held = " ".join(f"{a}!" if a[0] == "o" else a for a in out.split())
    places = " ".join(f"{a}!" if a[0] == "o" else a for a in places.split())
    return f"{held}, {image}, {places} -> {image}, {places}"


@grid_sample_grad.samples
def _(rand):
    yield rand(2, 3, 3, 2), rand(2, 3, 4, 5), torch.tanh(rand(2, 3, 2, 2)), "bilinear", "zeros", False


@op("t! n c!, n s!, n, n -> n", returns="loss")
def ctc_nll(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Per sequence, minus the logarithm of the probability of all alignments of its labels.

    >>> one = flow.tensor([1]); x = flow.zeros(1, 1, 2).log_softmax(-1)
    >>> round(flow._C.ctc_nll(x, flow.tensor([[1]]), one, one).item(), 4)
    0.6931
    """
    if log_probs.device.type == "meta" or not log_probs.numel():
        return log_probs.new_empty(log_probs.shape[1])
    loss = torch._ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)[0]
    return torch.where(torch.isinf(loss), 0.0, loss) if zero_infinity else loss


@ctc_nll.grad
def _(dloss, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    once("ctc_loss")
    dx = ctc_nll_grad(dloss, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    return dx, None, None, None


def _sequences(rand: Any) -> tuple[Any, ...]:
    labels = torch.tensor([[1, 2, 3], [2, 2, 1]])
    return rand(6, 2, 4).log_softmax(-1), labels, torch.tensor([6, 5]), torch.tensor([3, 2])


@ctc_nll.samples
def _(rand):
    yield _sequences(rand)


@op("n, t! n c!, n s!, n, n -> t! n c!", returns="dx")
def ctc_nll_grad(
    dloss: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int,
    zero_infinity: bool,
) -> Tensor:  # fmt: skip
    """The gradient of ctc_nll's logarithms."""
    if dloss.numel() != target_lengths.numel():
        raise ShapeError(
            f"ctc_nll_grad: a dloss for each of {target_lengths.numel()} sequences; got {list(dloss.shape)}"
        )
    if log_probs.device.type == "meta" or not log_probs.numel():
        return torch.empty_like(log_probs)
    rest = targets, input_lengths, target_lengths
    loss, alpha = torch._ctc_loss(log_probs, *rest, blank, zero_infinity)
    return aten._ctc_loss_backward(dloss, log_probs, *rest, loss, alpha, blank, zero_infinity)


@ctc_nll_grad.samples
def _(rand):
    yield rand(2), *_sequences(rand), 0, False
