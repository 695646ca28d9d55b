"""OneFlow's own names in `flow._C`: constants, gradients, losses, slices, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from weft.api.table import named, public
from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, OpError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.index import indexing
from weft.ops import ops
from weft.ops.declaration import REQUIRED, positional
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


SIDES: Final = ("depth_scale", "height_scale", "width_scale")


def _upsample(mode: str, dims: int, says: str) -> None:
    """Bind `upsample_{mode}_{dims}d`, which takes a scale for each side."""
    scales = SIDES[-dims:] if dims > 1 else ("scale_factor",)
    takes = positional(
        ("x", "Any", REQUIRED), *((name, "float", 1.0) for name in scales),
        *[("align_corners", "bool", False)] * (mode != "nearest"),
        ("output_size", "Any", None), ("data_format", "str", "channels_first"),
    )  # fmt: skip

    @named(f"upsample_{mode}_{dims}d", says)
    def resize(*args: Any, **kwargs: Any) -> Any:
        bound = takes.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if given["data_format"] != "channels_first":
            raise ArgumentError(
                f'upsample: data_format is "channels_first"; got {given["data_format"]!r}. Write x.permute(...)'
            )
        x, size, factors = given["x"], given["output_size"], tuple(float(given[name]) for name in scales)
        scaled = tuple(math.floor(n * s) for n, s in zip(x.shape[2:], factors, strict=True)) if size is None else size
        return ops.resize(x, tuple(scaled), mode, given.get("align_corners", False), factors if size is None else None)

    resize.__signature__ = takes
    public("bound")(resize)


for _mode, _dims, _says in (
    ("nearest", 1, "Sequences resized to the nearest neighbor."),
    ("linear", 1, "Sequences resized by linear interpolation."),
    ("nearest", 2, "Images resized to the nearest neighbor."),
    ("bilinear", 2, "Images resized by bilinear interpolation."),
    ("bicubic", 2, "Images resized by bicubic interpolation."),
    ("nearest", 3, "Volumes resized to the nearest neighbor."),
    ("trilinear", 3, "Volumes resized by trilinear interpolation."),
):
    _upsample(_mode, _dims, _says)
