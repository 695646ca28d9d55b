"""interpolate and upsample: resizing of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.api.table import public
from weft.core.errors import OptionError, ShapeError
from weft.functional.neural.sizes import several
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor


@public("neural")
def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """(batch, channels, ...) resized: nearest neighbor or interpolated; `antialias` averages all that a new element
    covers.

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
    if antialias:
        if mode not in ("bilinear", "bicubic") or dims != 2:
            raise OptionError(
                f"antialias is for images, in mode 'bilinear' or 'bicubic'; got {mode!r} over {list(input.shape)}"
            )
        mode = f"antialiased {mode}"
    return ops.resize(input, wanted, mode, bool(align_corners), scales)


@public("neural")
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """interpolate, under its deprecated name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@public("neural")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode "nearest", under its deprecated name."""
    return interpolate(input, size, scale_factor, "nearest")


@public("neural")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode "bilinear" and aligned corners, under its deprecated name."""
    return interpolate(input, size, scale_factor, "bilinear", True)
