"""Images sampled at computed positions: deformable convolution and RoI align, composed of ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.neural.sizes import several
from weft.ops import ops
from weft.tensor.tensor import Tensor


def _read(flat: Any, y: Any, x: Any, high: int, wide: int) -> Any:
    """Pixels at integer positions, zero outside. `flat` is (groups, channels, high * wide), positions (groups, n)."""
    inside = (y >= 0) * (y <= high - 1) * (x >= 0) * (x <= wide - 1)
    at = ops.cast(ops.where(inside, y * wide + x, 0.0), dtypes.int64)
    shape = (flat.shape[0], flat.shape[1], at.shape[-1])
    found = ops.gather(flat, 2, ops.expand(ops.unsqueeze(at, 1), shape))
    return found * ops.unsqueeze(ops.cast(inside, flat.dtype), 1)


def _blend(flat: Any, y: Any, x: Any, high: int, wide: int) -> Any:
    """Bilinear interpolation between four pixels."""
    y0, x0 = ops.floor(y).detach(), ops.floor(x).detach()
    dy, dx = y - y0, x - x0
    total: Any = None
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        share = (dy if i else 1 - dy) * (dx if j else 1 - dx)
        part = _read(flat, y0 + i, x0 + j, high, wide) * ops.unsqueeze(share, 1)
        total = part if total is None else total + part
    return total


@public("neural flow")
def deform_conv2d(
    input: Tensor, offset: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """Deformable convolution: each tap of the kernel reads at an offset, (y, x).

    `offset` is (batch, 2 * groups * window, out high, out wide), the mask (batch, groups * window, ...): a weight for
    each tap.
    """
    given = {"stride": stride, "padding": padding, "dilation": dilation}
    (sy, sx), (py, px), (ey, ex) = (several(value, 2, name) for name, value in given.items())
    n, channels, high, wide = input.shape
    outputs, inner, kh, kw = weight.shape
    oh = (high + 2 * py - ey * (kh - 1) - 1) // sy + 1
    ow = (wide + 2 * px - ex * (kw - 1) - 1) // sx + 1
    groups, taps = offset.shape[1] // (2 * kh * kw), kh * kw
    wanted = (n, 2 * groups * taps, oh, ow)
    if not groups or tuple(offset.shape) != wanted or channels % groups or channels % inner:
        raise ShapeError(
            f"deform_conv2d: an offset of shape {list(offset.shape)} for an input of {list(input.shape)} and a weight "
            f"of {list(weight.shape)}; it is (batch, 2 * groups * {taps}, {oh}, {ow}), groups dividing the channels"
        )
    lines = {"dtype": input.dtype, **device_of(input)}
    rows = ops.reshape(creation.arange(kh, **lines) * ey, (kh, 1, 1, 1)) + ops.reshape(
        creation.arange(oh, **lines) * sy - py, (1, 1, oh, 1)
    )
    columns = ops.reshape(creation.arange(kw, **lines) * ex, (1, kw, 1, 1)) + ops.reshape(
        creation.arange(ow, **lines) * sx - px, (1, 1, 1, ow)
    )
    moved = ops.reshape(offset, (n * groups, taps, 2, oh, ow))
    full = (kh, kw, oh, ow)
    y = ops.reshape(ops.expand(rows, full), (taps, oh, ow)) + ops.select(moved, 2, 0)
    x = ops.reshape(ops.expand(columns, full), (taps, oh, ow)) + ops.select(moved, 2, 1)
    flat = ops.reshape(input, (n * groups, channels // groups, high * wide))
    places = (n * groups, taps * oh * ow)
    read = _blend(flat, ops.reshape(y, places), ops.reshape(x, places), high, wide)
    if mask is not None:
        read = read * ops.reshape(mask, (n * groups, 1, taps * oh * ow))
    kernels = channels // inner  # groups of the convolution itself
    read = ops.reshape(read, (n, kernels, inner * taps, oh * ow))
    found = ops.matmul(ops.reshape(weight, (1, kernels, outputs // kernels, inner * taps)), read)
    found = ops.reshape(found, (n, outputs, oh, ow))
    return found if bias is None else ops.add(found, ops.reshape(bias, (-1, 1, 1)))


@public("flow")
def roi_align(
    x: Tensor, rois: Any, spatial_scale: float = 1.0, pooled_h: int = 1, pooled_w: int = 1, sampling_ratio: int = -1,
    aligned: bool = False,
) -> Any:  # fmt: skip
    """RoI align: each box of an image pooled to one size; a cell averages `sampling_ratio` x `sampling_ratio` samples.

    `rois` are rows of (image number, x1, y1, x2, y2), or a list of boxes for each image.
    """
    if isinstance(rois, (list, tuple)):
        rois = _numbered(rois) if rois else creation.zeros(0, 5, dtype=x.dtype)
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise ShapeError(f"roi_align: rois are rows of (image, x1, y1, x2, y2); got shape {list(rois.shape)}")
    if pooled_h < 1 or pooled_w < 1:
        raise OptionError(f"roi_align: a box is pooled to at least one cell; got {pooled_h} and {pooled_w}")
    pixels = ops.reshape(ops.permute(x, (0, 2, 3, 1)), (-1, x.shape[1]))
    cells, rois = (pooled_h, pooled_w), rois.detach()
    if sampling_ratio > 0 and rois.shape[0]:
        return _pooled(x, pixels, rois, spatial_scale, cells, (sampling_ratio, sampling_ratio), aligned)
    parts = []  # as many samples as a cell has pixels
    for i, row in enumerate(rois.tolist()):
        size = [max((row[b] - row[a]) * spatial_scale, 0.0 if aligned else 1.0) for a, b in ((2, 4), (1, 3))]
        counts = [max(-int(-s // n), 1) for s, n in zip(size, cells, strict=True)]
        one = ops.narrow(rois, 0, i, 1)
        parts.append(_pooled(x, pixels, one, spatial_scale, cells, (counts[0], counts[1]), aligned))
    if not parts:  # no boxes in a batch: the gradient is zero
        none = ops.reshape(ops.narrow(pixels, 0, 0, 0), (0, x.shape[1], 1, 1))
        return ops.expand(none, (0, x.shape[1], *cells))
    return ops.cat(parts, 0)


def _numbered(boxes: Sequence[Any]) -> Any:
    rows = [ops.cat([ops.full_like(ops.narrow(b, 1, 0, 1), float(i)), b], 1) for i, b in enumerate(boxes)]
    return ops.cat(rows, 0)


def _pooled(
    x: Any, pixels: Any, rois: Any, scale: float, cells: tuple[int, int], counts: tuple[int, int], aligned: bool
) -> Any:
    """Each cell is a weighted sum of rows of `pixels`, (pixels of all images, channels)."""
    image, x1, y1, x2, y2 = (ops.select(rois, 1, i) for i in range(5))
    shift = 0.5 if aligned else 0.0
    k, (channels, high, wide) = rois.shape[0], x.shape[1:]
    taps = []
    for low, high_end, cell, count, size in ((y1, y2, cells[0], counts[0], high), (x1, x2, cells[1], counts[1], wide)):
        start = low * scale - shift
        length = high_end * scale - shift - start
        length = length if aligned else ops.clamp(length, 1.0)
        steps = (creation.arange(cell * count, dtype=x.dtype, **device_of(x)) + 0.5) / (cell * count)
        at, share = _taps(ops.unsqueeze(start, 1) + ops.unsqueeze(length, 1) * steps, size)
        taps.append([ops.reshape(part, (k, cell, 2 * count)) for part in (at, share / count)])
    (y, down), (z, along) = taps
    first = ops.reshape(ops.cast(image, dtypes.int64) * high, (k, 1, 1))
    at = _outer(ops.add, (first + y) * wide, z)
    found = ops.matmul(ops.unsqueeze(_outer(ops.mul, down, along), 3), ops.embedding(pixels, at))
    return ops.permute(ops.reshape(found, (k, *cells, channels)), (0, 3, 1, 2))


def _taps(line: Any, size: int) -> tuple[Any, Any]:
    """The two pixels between which each sample of a line lies, and their shares; none has a share outside."""
    inside = ops.cast((line >= -1.0) * (line <= float(size)), line.dtype)
    line = ops.clamp(line, 0.0, size - 1.0)
    low = ops.floor(line)
    at = ops.cast(ops.stack([low, ops.clamp(low + 1.0, None, size - 1.0)], 2), dtypes.int64)
    return at, ops.stack([(1 - line + low) * inside, (line - low) * inside], 2)


def _outer(f: Any, rows: Any, columns: Any) -> Any:
    """f of each pair of a cell's rows and columns: (boxes, cells, n) and (boxes, cells, m) give (boxes, cells high,
    cells wide, n * m)."""
    (k, high, n), (_, wide, m) = rows.shape, columns.shape
    pairs = f(ops.reshape(rows, (k, high, 1, n, 1)), ops.reshape(columns, (k, 1, wide, 1, m)))
    return ops.reshape(pairs, (k, high, wide, n * m))
