"""OneFlow's own names in `flow._C`: constants, gradients, losses, slices, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.api.table import public
from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, OpError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.index import indexing
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

# ---- constants ---------------------------------------------------------------------------------------


@public("bound", "constant tensor_constant global_constant global_tensor_constant")
def constant(
    shape: Sequence[int], value: Any, *, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None
) -> Tensor:
    """A tensor of one value, a number's or a 0-d tensor's."""
    kind = value.dtype if dtype is None and isinstance(value, Tensor) else dtype
    return creation.full(tuple(shape), value, kind, device, placement, sbp)


@public("bound")
def global_empty(shape: Sequence[int], *, dtype: Any = None, placement: Any, sbp: Any) -> Tensor:
    """An uninitialized global tensor."""
    return creation.empty(tuple(shape), dtype=dtype, placement=placement, sbp=sbp)


public("bound", "global_arange")(creation.arange)


@public("bound")
def eye_(x: Any) -> Tensor:
    """Overwrite a matrix with ones on its diagonal and zeros elsewhere."""
    return x.copy_(creation.eye(*x.shape, dtype=x.dtype, **device_of(x)))


# ---- gradients, and markers ----------------------------------------------------------------------------

for _names, _function, _says in (
    ("sigmoid_grad", lambda y, dy: ops.sigmoid_backward(dy, y), "The gradient of sigmoid, from its output."),
    ("tanh_grad", lambda x, dy: ops.tanh_backward(dy, ops.tanh(x)), "The gradient of tanh."),
    ("cosh_grad", lambda x, dy: dy * ops.sinh(x), "The gradient of cosh."),
    ("tan_grad", lambda x, dy: dy * (1 + ops.square(ops.tan(x))), "The gradient of tan."),
    (
        "softmax_cross_entropy_grad", lambda dy, label, prob: ops.unsqueeze(dy, -1) * (prob - label),
        "The gradient of softmax_cross_entropy, from the probabilities.",
    ),
    ("amp_black_identity amp_white_identity stream_touch", lambda x: x, "x: a marker for OneFlow's graph passes."),
):  # fmt: skip
    _function.__name__ = _function.__qualname__ = _names.partition(" ")[0]
    _function.__doc__ = _says
    public("bound", _names)(_function)

# ---- losses and norms --------------------------------------------------------------------------------


@public("bound", "sparse_cross_entropy distributed_sparse_cross_entropy")
def sparse_cross_entropy(prediction: Any, label: Any, depth: int) -> Any:
    """The negative log probability of each row's label."""
    rows = ops.reshape(prediction, (-1, depth))
    if rows.shape[0] != label.numel():
        raise ShapeError(
            f"sparse_cross_entropy(): {rows.shape[0]} predictions of {depth} classes, {list(prediction.shape)}, for "
            f"{label.numel()} labels, {list(label.shape)}: each has one"
        )
    picked = ops.pick(rows, ops.reshape(ops.cast(label, dtypes.int64), (-1,)))
    return ops.reshape(ops.neg(ops.log(picked)), tuple(label.shape))


@public("bound")
def layer_norm_affine(
    x: Any, gamma: Any, beta: Any, begin_norm_axis: int = 1, begin_params_axis: int = -1, epsilon: float = 1e-5
) -> Any:
    """layer_norm over the dimensions from `begin_norm_axis` on, with weight and bias."""
    shape = tuple(x.shape)[dim_of(begin_norm_axis, x.ndim) :]
    return ops.layer_norm(x, shape, ops.reshape(gamma, shape), ops.reshape(beta, shape), epsilon)


@public("bound")
def normalization(
    x: Any, moving_mean: Any = None, moving_variance: Any = None, gamma: Any = None, beta: Any = None, axis: int = 1,
    epsilon: float = 1e-5, momentum: float = 0.9, is_training: bool = False,
) -> Any:  # fmt: skip
    """batch_norm over all dimensions but one; `momentum` is the share of the running statistics that is kept."""
    d = dim_of(axis, x.ndim)
    moved = x if d == 1 else ops.transpose(x, d, 1)
    y = ops.batch_norm(moved, moving_mean, moving_variance, gamma, beta, is_training, 1 - momentum, epsilon)
    return y if d == 1 else ops.transpose(y, d, 1)


@public("bound")
def normalization_add_relu(
    x: Any, addend: Any = None, moving_mean: Any = None, moving_variance: Any = None, gamma: Any = None,
    beta: Any = None, axis: int = 1, epsilon: float = 1e-5, momentum: float = 0.9, is_training: bool = False,
) -> Any:  # fmt: skip
    """relu(normalization(x) + addend)."""
    y = normalization(x, moving_mean, moving_variance, gamma, beta, axis, epsilon, momentum, is_training)
    return ops.relu(y if addend is None else y + addend)


@public("bound")
def avg_pool2d_nhwc(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """avg_pool2d of (batch, height, width, channels)."""
    images = ops.permute(x, (0, 3, 1, 2))
    options = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override or None
    return ops.permute(ops.avg_pool2d(images, *options), (0, 2, 3, 1))


# ---- slices ------------------------------------------------------------------------------------------


@public("bound")
def split_like(x: Any, like: Sequence[Any], axis: int = 0) -> tuple[Any, ...]:
    """x split along an axis into slices as long as the others."""
    axis = dim_of(axis, x.ndim)
    for t in like:
        if not axis < t.ndim <= x.ndim or any(n != x.shape[d] for d, n in enumerate(t.shape) if d != axis):
            raise ShapeError(
                f"split_like(): parts of {list(x.shape)} along dimension {axis} differ from it in that one alone; "
                f"got {list(t.shape)}"
            )
    return x.split([t.shape[axis] for t in like], axis)


@public("bound")
def select_top_n(inputs: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The first n of several tensors."""
    return tuple(inputs[:n])


@public("bound")
def slice_view_1d_contiguous(x: Any, start: int, end: int) -> Any:
    """x[start:end], as a view."""
    return ops.narrow(x, 0, start, end - start)


@public("bound")
def scatterndlike(like: Any, indices: Any, updates: Any) -> Any:
    """Zeros of another tensor's shape, with the updates added at the indices' last dimension."""
    places = [ops.select(indices, -1, k) for k in range(indices.shape[-1])]
    return ops.index_put_zeros(updates, places, tuple(like.shape))


@public("bound")
def tensor_setitem(x: Any, index: Any, value: Any) -> None:
    """x[index] = value."""
    indexing.setitem(x, index, value)


@public("bound")
def assign_local_tensor(ref: Any, value: Any) -> None:
    """Overwrite a tensor with another one's values."""
    with no_grad():
        assign(ref, value)


@public("bound")
def throw_error(x: Any) -> Any:
    """Always raises, for tests of error handling."""
    raise OpError(f"throw_error() was called on a tensor of shape {list(x.shape)}, and always raises")


# ---- resizing ----------------------------------------------------------------------------------------


def _resized(x: Any, mode: str, scales: Sequence[float], size: Any, corners: bool, data_format: str) -> Any:
    if data_format != "channels_first":
        raise ArgumentError(f'upsample: data_format is "channels_first"; got {data_format!r}. Write x.permute(...)')
    if size is not None:
        return ops.resize(x, tuple(size), mode, corners)
    wanted = tuple(math.floor(n * s) for n, s in zip(x.shape[2:], scales, strict=True))
    return ops.resize(x, wanted, mode, corners, tuple(map(float, scales)))


_FIRST = "channels_first"


@public("bound")
def upsample_nearest_1d(x: Any, scale_factor: float = 1.0, output_size: Any = None, data_format: str = _FIRST) -> Any:
    """Sequences resized to the nearest neighbor."""
    return _resized(x, "nearest", (scale_factor,), output_size, False, data_format)


@public("bound")
def upsample_linear_1d(
    x: Any, scale_factor: float = 1.0, align_corners: bool = False, output_size: Any = None, data_format: str = _FIRST
) -> Any:
    """Sequences resized by linear interpolation."""
    return _resized(x, "linear", (scale_factor,), output_size, align_corners, data_format)


@public("bound")
def upsample_nearest_2d(
    x: Any, height_scale: float = 1.0, width_scale: float = 1.0, output_size: Any = None, data_format: str = _FIRST
) -> Any:
    """Images resized to the nearest neighbor."""
    return _resized(x, "nearest", (height_scale, width_scale), output_size, False, data_format)


@public("bound")
def upsample_bilinear_2d(
    x: Any, height_scale: float = 1.0, width_scale: float = 1.0, align_corners: bool = False, output_size: Any = None,
    data_format: str = _FIRST,
) -> Any:  # fmt: skip
    """Images resized by bilinear interpolation."""
    return _resized(x, "bilinear", (height_scale, width_scale), output_size, align_corners, data_format)


@public("bound")
def upsample_bicubic_2d(
    x: Any, height_scale: float = 1.0, width_scale: float = 1.0, align_corners: bool = False, output_size: Any = None,
    data_format: str = _FIRST,
) -> Any:  # fmt: skip
    """Images resized by bicubic interpolation."""
    return _resized(x, "bicubic", (height_scale, width_scale), output_size, align_corners, data_format)


@public("bound")
def upsample_nearest_3d(
    x: Any, depth_scale: float = 1.0, height_scale: float = 1.0, width_scale: float = 1.0, output_size: Any = None,
    data_format: str = _FIRST,
) -> Any:  # fmt: skip
    """Volumes resized to the nearest neighbor."""
    return _resized(x, "nearest", (depth_scale, height_scale, width_scale), output_size, False, data_format)


@public("bound")
def upsample_trilinear_3d(
    x: Any, depth_scale: float = 1.0, height_scale: float = 1.0, width_scale: float = 1.0, align_corners: bool = False,
    output_size: Any = None, data_format: str = _FIRST,
) -> Any:  # fmt: skip
    """Volumes resized by trilinear interpolation."""
    return _resized(x, "trilinear", (depth_scale, height_scale, width_scale), output_size, align_corners, data_format)
