"""Functions on (batch, channels, ...) that no op declares: borders, other sizes, windows; composed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.autograd import assign, no_grad
from weft.core.errors import OptionError, ShapeError
from weft.nn.making import several
from weft.nn.resampling import antialiased, nearest_exact
from weft.ops import OPS
from weft.tensor.tensor import Tensor

__all__ = [
    "fold", "instance_norm", "interpolate", "max_unpool1d", "max_unpool2d", "max_unpool3d", "pad", "pixel_shuffle",
    "pixel_unshuffle", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

reshape, mul, add, sub, mean = (OPS[n] for n in ("reshape", "mul", "add", "sub", "mean"))

# ---- borders and sizes -----------------------------------------------------------------------------------


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A border around: (left, right) of the last dimension, then of the one before it, and so on.

    >>> flow.nn.functional.pad(flow.ones(2), (1, 2)).tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    around = tuple(pad)
    if len(around) % 2 or len(around) > 2 * input.ndim:
        told = "be divisible by 2" if len(around) % 2 else "be less than or equal to two times the input dimension"
        raise ShapeError(
            f"Padding length should {told}: pad takes two numbers per dimension, from the last "
            f"one on, for at most {input.ndim}; got {list(around)}"
        )
    if mode == "constant":
        return OPS["pad_with"](input, around, 0.0 if value is None else value)
    if mode == "circular":
        for i in range(len(around) // 2):
            input = _wrapped(input, input.ndim - 1 - i, around[2 * i], around[2 * i + 1])
        return input
    return OPS["pad_edges"](input, around, mode)


def _wrapped(x: Tensor, dim: int, left: int, right: int) -> Tensor:
    if left < 0 or right < 0:  # cut off first; the border goes around what is left
        start = max(0, -left)
        x = OPS["narrow"](x, dim, start, max(0, x.shape[dim] - start - max(0, -right)))
        left, right = max(0, left), max(0, right)
    size = x.shape[dim]
    if max(left, right) > size:
        raise ShapeError(f"a circular border is at most as wide as what it goes around, {size}; got {left} and {right}")
    parts = [OPS["narrow"](x, dim, size - left, left), x, OPS["narrow"](x, dim, 0, right)]
    return OPS["cat"](parts, dim)


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """(batch, channels, ...) at another size: from the nearest, or blended between neighbours; with `antialias`, all
    that a new element covers counts.

    >>> flow.nn.functional.interpolate(flow.tensor([[[1.0, 2.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    dims = input.ndim - 2
    if (size is None) == (scale_factor is None):
        wrong = "either" if size is None else "only one of"
        raise OptionError(f"interpolate: {wrong} size or scale_factor should be defined")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise OptionError(f"align_corners is for blending: linear, bilinear, bicubic, trilinear; the mode is {mode!r}")
    scales = None
    if size is None:
        given = tuple(scale_factor) if isinstance(scale_factor, Sequence) else (scale_factor,) * dims
        if len(given) != dims:
            raise ShapeError(f"an input of shape {list(input.shape)} has {dims} sizes to scale; got {list(given)}")
        wanted = tuple(math.floor(n * s) for n, s in zip(input.shape[2:], given, strict=True))
        scales = None if recompute_scale_factor else tuple(float(s) for s in given)
    else:
        wanted = several(size, dims, "size")
    if mode == "area":
        return OPS[f"adaptive_avg_pool{dims}d"](input, wanted)
    if mode == "nearest-exact":
        return nearest_exact(input, wanted, scales)
    if antialias:
        return antialiased(input, wanted, scales, mode, bool(align_corners))
    return OPS["resize"](input, wanted, mode, bool(align_corners), scales)


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """interpolate, by its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate from the nearest, by its older name."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate between neighbours, the corners staying where they are, by its older name."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def pixel_shuffle(input: Tensor, upscale_factor: int | tuple[int, int]) -> Tensor:
    """Channels become pixels: (..., c * r * s, h, w) to (..., c, h * r, w * s)."""
    r, s = (upscale_factor, upscale_factor) if isinstance(upscale_factor, int) else upscale_factor
    *lead, channels, high, wide = input.shape
    if r < 1 or s < 1 or channels % (r * s):
        raise ShapeError(f"pixel_shuffle makes {r}x{s} pixels of {r * s} channels; {channels} don't divide by that")
    split = reshape(input, (*lead, channels // (r * s), r, s, high, wide))
    n = len(lead)
    mixed = OPS["permute"](split, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return reshape(mixed, (*lead, channels // (r * s), high * r, wide * s))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels become channels: (..., c, h * r, w * r) to (..., c * r * r, h, w)."""
    r = downscale_factor
    *lead, channels, high, wide = input.shape
    if r < 1 or high % r or wide % r:
        raise ShapeError(
            f"pixel_unshuffle takes {r}x{r} pixels each; a height of {high} or width of {wide} don't divide"
        )
    split = reshape(input, (*lead, channels, high // r, r, wide // r, r))
    n = len(lead)
    mixed = OPS["permute"](split, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return reshape(mixed, (*lead, channels * r * r, high // r, wide // r))


# ---- windows ---------------------------------------------------------------------------------------------


def _window(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[tuple[int, ...], ...]:
    given = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    return tuple(several(value, 2, name) for name, value in given.items())


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Each window of an image as a column: (batch, channels, h, w) to (batch, channels * window, windows)."""
    if input.ndim == 3:
        return OPS["squeeze"](unfold(OPS["unsqueeze"](input, 0), kernel_size, dilation, padding, stride), 0)
    return OPS["im2col"](input, *_window(kernel_size, dilation, padding, stride))


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The image of which `unfold` would make these columns; where windows meet, their sum."""
    if input.ndim == 2:
        one = OPS["unsqueeze"](input, 0)
        return OPS["squeeze"](fold(one, output_size, kernel_size, dilation, padding, stride), 0)
    wanted = several(output_size, 2, "output_size")
    return OPS["col2im"](input, wanted, *_window(kernel_size, dilation, padding, stride))


def _max_unpool(
    dims: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    if indices.shape != input.shape:
        raise ShapeError(f"every value has an index: shapes {list(input.shape)} and {list(indices.shape)} should agree")
    kernel = several(kernel_size, dims, "kernel_size")
    step = kernel if stride is None else several(stride, dims, "stride")
    border = several(padding, dims, "padding")
    lead, sizes = input.shape[:-dims], input.shape[-dims:]
    if output_size is None:
        wanted = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(sizes, step, border, kernel, strict=True))
    else:
        wanted = tuple(output_size)[-dims:]
    flat = reshape(input, (*lead, math.prod(sizes)))
    blank = OPS["pad_with"](OPS["zeros_like"](flat), (0, math.prod(wanted) - math.prod(sizes)), 0.0)
    placed = OPS["scatter"](blank, len(lead), reshape(indices, tuple(flat.shape)), flat)
    return reshape(placed, (*lead, *wanted))


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Each value where max_pool1d found it; zero elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Each value where max_pool2d found it; zero elsewhere."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Each value where max_pool3d found it; zero elsewhere."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


# ---- each channel of each sample -------------------------------------------------------------------------


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel of each sample scaled to mean zero and variance one, then weighed."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise OptionError("instance_norm without use_input_stats needs running_mean and running_var")
        return OPS["batch_norm"](input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ShapeError(f"one value per channel and sample has no variance: the input's shape is {list(input.shape)}")
    if running_mean is not None and running_var is not None:
        with no_grad():
            x = input.detach()
            inside = tuple(range(2, x.ndim))
            centre = mean(x, inside, True)
            spread = mul(mean(OPS["square"](sub(x, centre)), (0, *inside), False), count / (count - 1))
            for running, now in ((running_mean, mean(x, (0, *inside), False)), (running_var, spread)):
                assign(running, add(mul(running, 1 - momentum), mul(now, momentum)))
    return OPS["group_norm"](input, input.shape[1], weight, bias, eps)
