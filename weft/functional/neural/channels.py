"""Functions over the channels of images: shuffling, and normalizations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.autograd import no_grad
from weft.autograd.freshness import fresh
from weft.autograd.overwrite import assign
from weft.core.errors import OptionError, ShapeError
from weft.ops import ops
from weft.ops.kernels import is_channels_last
from weft.tensor.tensor import Tensor


def _rearranged(x: Tensor, before: Sequence[Any], after: Sequence[Any], sizes: Mapping[Any, int]) -> Tensor:
    """x with its dimensions split to those that `before` names for each, which are then joined as in `after`; with
    channels innermost where x has them so, in its gradient, too."""
    n = x.ndim
    last = x.spec is None and is_channels_last(fresh(x)._meta)
    if last:
        before, after = ([*groups[:1], *groups[2:], groups[1]] for groups in (before, after))
        x = ops.permute(x, (0, *range(2, n), 1))
    names, joined = ([name for group in groups for name in group] for groups in (before, after))
    parted = ops.permute(ops.reshape(x, tuple(sizes[d] for d in names)), tuple(map(names.index, joined)))
    y = ops.reshape(ops.contiguous(parted), tuple(math.prod(sizes[d] for d in group) for group in after))
    return ops.permute(y, (0, n - 1, *range(1, n - 1))) if last else y


@public("neural flow")
@in_one(torch.channel_shuffle)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels interleaved: the first of each group, then the second of each, and so on."""
    n, channels, *rest = input.shape
    if channels % groups:
        raise ShapeError(f"channel_shuffle: {channels} channels don't divide into {groups} groups")
    sizes = {"n": n, "g": groups, "c": channels // groups, **dict(enumerate(rest))}
    inner = [[d] for d in range(len(rest))]
    return _rearranged(input, ["n", "gc", *inner], ["n", "cg", *inner], sizes)


@public("neural")
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """x divided by a power of the mean square of neighboring channels."""
    if 0 in input.shape:
        return input
    squares = ops.unsqueeze(ops.reshape(input * input, (*input.shape[:2], -1)), 1)
    padded = ops.pad_with(squares, (0, 0, size // 2, (size - 1) // 2), 0.0)
    around = ops.avg_pool2d(padded, (size, 1), (1, 1))
    around = ops.reshape(around, tuple(input.shape))
    return input / ops.pow(around * alpha + k, beta)


@public("neural flow")
@in_one(torch.pixel_shuffle)
def pixel_shuffle(input: Tensor, upscale_factor: int | tuple[int, int]) -> Tensor:
    """Rearranges channels to pixels: (..., c * r * s, h, w) to (..., c, h * r, w * s)."""
    r, s = (upscale_factor, upscale_factor) if isinstance(upscale_factor, int) else upscale_factor
    *lead, channels, high, wide = input.shape
    if r < 1 or s < 1 or channels % (r * s):
        raise ShapeError(f"pixel_shuffle makes {r}x{s} pixels of {r * s} channels; {channels} don't divide by that")
    sizes = {"c": channels // (r * s), "r": r, "s": s, "h": high, "w": wide, **dict(enumerate(lead))}
    outer = [[d] for d in range(len(lead))]
    return _rearranged(input, [*outer, "crs", "h", "w"], [*outer, "c", "hr", "ws"], sizes)


@public("neural flow")
@in_one(torch.pixel_unshuffle)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearranges pixels to channels: (..., c, h * r, w * r) to (..., c * r * r, h, w)."""
    r = downscale_factor
    *lead, channels, high, wide = input.shape
    if r < 1 or high % r or wide % r:
        raise ShapeError(
            f"pixel_unshuffle takes {r}x{r} pixels each; a height of {high} or width of {wide} don't divide"
        )
    sizes = {"c": channels, "h": high // r, "r": r, "w": wide // r, "s": r, **dict(enumerate(lead))}
    outer = [[d] for d in range(len(lead))]
    return _rearranged(input, [*outer, "c", "hr", "ws"], [*outer, "crs", "h", "w"], sizes)


def _several(shape: Sequence[int]) -> None:
    """Raise if the channels of this shape have one value each."""
    if math.prod((*shape[:1], *shape[2:])) == 1:
        raise ShapeError(
            f"Expected more than 1 value per channel when training; got input of shape {list(shape)}. One "
            "is its own mean: give larger batches (a loader's drop_last=True leaves the rest out), or call eval()"
        )


@public("neural")
def batch_norm(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    if training:
        if eps <= 0:
            raise OptionError(f"batch_norm eps must be positive during training, but got {eps}")
        _several(x.shape)
    return ops.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)


@public("neural")
def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    if x.ndim > 1 and num_groups > 0:
        _several((x.shape[0] * x.shape[1] // num_groups, num_groups, *x.shape[2:]))
    return ops.group_norm(x, num_groups, weight, bias, eps)


@public("neural flow")
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel of each sample normalized to mean zero and variance one, times weight, plus bias."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise OptionError("instance_norm without use_input_stats needs running_mean and running_var")
        return ops.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ShapeError(f"one value per channel and sample has no variance: the input's shape is {list(input.shape)}")
    if running_mean is not None and running_var is not None:
        with no_grad():
            x = input.detach()
            inside = tuple(range(2, x.ndim))
            centre = ops.mean(x, inside, True)
            spread = ops.mul(ops.mean(ops.square(ops.sub(x, centre)), (0, *inside), False), count / (count - 1))
            for running, now in ((running_mean, ops.mean(x, (0, *inside), False)), (running_var, spread)):
                assign(running, ops.add(ops.mul(running, 1 - momentum), ops.mul(now, momentum)))
    return ops.group_norm(ops.contiguous(input), input.shape[1], weight, bias, eps)
