"""Max, average and adaptive pooling over the last one to three dimensions; leading dimensions may be split."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import int64
from weft.core.errors import ShapeError
from weft.ops.declaration import Op, Size, op
from weft.ops.form import Form, alike
from weft.ops.kernels import aten, blank, is_channels_last
from weft.ops.neural.convolution import spread
from weft.ops.shape.views import axes


def _notation(text: str, ndim: int, dims: int) -> str:
    """The notation with x and y for the axes before and after pooling: pooled dimensions aren't split."""
    x, y = (" ".join([*axes(ndim - dims), *(f"{a}!" for a in axes(dims, before))]) for before in "so")
    return text.replace("x", x).replace("y", y)


def _planes(kernel: Callable[..., Any], x: Tensor, dims: int, *sizes: tuple[int, ...], **options: Any) -> Any:
    """Run a kernel for (batch, channels, ...) with any leading dimensions, none or empty ones included; over one
    dimension it is that for two, with `sizes` for two."""
    if x.dim() < dims:
        raise ShapeError(f"pooling over {dims} dimensions takes x of {dims} or more; got {list(x.shape)}")
    if dims == 1:
        made = _planes(kernel, x.unsqueeze(-2), 2, *sizes, **options)
        return tuple(y.squeeze(-2) for y in made) if isinstance(made, tuple) else made.squeeze(-2)
    empty = x.numel() == 0 and 0 not in x.shape[-dims:]
    if x.dim() == dims + 2 and not empty:
        return kernel(x, *sizes, **options)
    lead, tail = x.shape[: x.dim() - dims], x.shape[x.dim() - dims :]
    made = kernel(x.new_empty((1, 1, *tail)) if empty else x.reshape((1, math.prod(lead), *tail)), *sizes, **options)
    several = made if isinstance(made, tuple) else (made,)
    shapes = [(*lead, *y.shape[2:]) for y in several]
    results = [y.new_empty(n) if empty else y.reshape(n) for y, n in zip(several, shapes, strict=True)]
    return tuple(results) if isinstance(made, tuple) else results[0]


def _sizes(dims: int, *sizes: int | Size) -> list[tuple[int, ...]]:
    """The window's size, stride, padding and dilation as the kernel takes them."""
    if dims > 1:
        return [spread(v, dims) for v in sizes]
    return [(unit, *spread(v, 1)) for v, unit in zip(sizes, (1, 1, 0, 1), strict=False)]


def _declare(body: Callable[..., Any], name: str, says: str, dims: int, size: int, **options: Any) -> Op:
    both = options.get("returns") == "y indices*"
    body.__name__ = name
    body.__doc__ = f"{says.format(f'{dims} dimension' + 's' * (dims > 1))}\n\n>>> " + (
        f"flow._C.{name}(flow.ones(1, 1, {', '.join('2' * dims)}), {size}){'[1]' * both}.item()\n{0 if both else 1.0}"
    )
    declared = op(steady="x", memory_order="channels_last of any", **options)(body)
    declared.layout(lambda x, *_: _notation("x -> y, y" if "returns" in options else "x -> y", len(x), dims))
    return declared


def _stride(stride: int | Size | None, kernel_size: int | Size) -> int | Size:
    """The stride, by default the window's size, as in torch."""
    return kernel_size if stride is None or stride == () or stride == [] else stride


def _pooled(x: Form, dims: int, size: Size, stride: Size, padding: Size, dilation: Size) -> Form | None:
    """The form after pooling with windows of these sizes."""
    if not alike(x) or len(x.shape) < dims or 0 in x.shape:
        return None
    if any(len(s) != dims for s in (size, stride, padding, dilation)) or min(*size, *stride, *dilation) < 1:
        return None
    if any(p < 0 or 2 * p > k for p, k in zip(padding, size, strict=True)):
        return None
    lead, tail = x.shape[: len(x.shape) - dims], x.shape[len(x.shape) - dims :]
    windows = zip(tail, size, stride, padding, dilation, strict=True)
    left = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in windows]
    return Form((*lead, *left), x.dtype) if min(left) > 0 else None


# ---- max pooling -------------------------------------------------------------------------------------

_LARGEST = (aten.max_pool2d_with_indices, aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)


def _max_pool(dims: int, shown: bool) -> Op:
    def body(
        x: Tensor, kernel_size: int | Size, stride: int | Size | None = None, padding: int | Size = 0,
        dilation: int | Size = 1, ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        sizes = _sizes(dims, kernel_size, _stride(stride, kernel_size), padding, dilation)
        return tuple(_planes(_LARGEST[dims - 1], x, dims, *sizes, ceil_mode=ceil_mode))

    declared = _declare(
        body, f"max_pool{dims}d" + "_with_indices" * shown,
        "The maximum of each window of {}" + (", and its flat index." if shown else "."), dims, 2,
        returns="y indices*" if shown else "y | indices",
    )  # fmt: skip

    @declared.form
    def _(x, kernel_size, stride, padding, dilation, ceil_mode):
        sizes = (kernel_size, _stride(stride, kernel_size), padding, dilation)
        made = _pooled(x, dims, *(spread(v, dims) for v in sizes)) if not ceil_mode else None
        return (made, Form(made.shape, int64)) if made else None

    declared.grad(_to_places(dims))
    declared.samples(lambda rand: [(rand(2, 3, *(6, 7, 5)[:dims]), 2), (rand(3, *(6, 7, 5)[:dims]), 3, 2, 1, 1, True)])

    return declared


def _to_places(dims: int) -> Callable[..., Any]:
    """The gradient of max pooling: it goes to the elements at the indices."""

    def gradient(dy, x_shape, indices):
        return scatter_places(dy, indices, tuple(x_shape), dims)

    return gradient


@op(linear="dy", returns="dx", shape_of="shape", memory_order="channels_last of indices")
def scatter_places(dy: Tensor, indices: Tensor, shape: Size, dims: int) -> Tensor:
    """Zeros of this shape with dy added at flat indices of the last dimensions."""
    lead, tail = shape[: len(shape) - dims], shape[len(shape) - dims :]
    if len(lead) == 2 and is_channels_last(indices):
        flat = dy.new_zeros((lead[0], math.prod(tail), lead[1])).transpose(1, 2)
    else:
        flat = dy.new_zeros((*lead, math.prod(tail)))
    flat.scatter_add_(-1, indices.flatten(-dims), dy.flatten(-dims))
    return flat.unflatten(-1, tuple(tail))


scatter_places.layout(lambda dy, indices, shape, dims: _notation("y, y -> x", len(shape), dims))
scatter_places.form(lambda dy, indices, shape, dims: Form(tuple(shape), dy.dtype) if alike(dy) else None)
scatter_places.grad(lambda ddx, indices, dims: (gather_places(ddx, indices, dims), None))
scatter_places.samples(lambda rand: [(rand(3, 2, 2), torch.randint(0, 12, (3, 2, 2)), (3, 4, 3), 2)])


@op(linear="x")
def gather_places(x: Tensor, indices: Tensor, dims: int) -> Tensor:
    """The elements at flat indices of the last dimensions."""
    return x.flatten(-dims).gather(-1, indices.flatten(-dims)).view(indices.shape)


gather_places.layout(lambda x, indices, dims: _notation("x, y -> y", len(x), dims))
gather_places.grad(lambda dy, indices, x_shape, dims: (scatter_places(dy, indices, tuple(x_shape), dims), None))
gather_places.samples(lambda rand: [(rand(3, 4, 3), torch.randint(0, 12, (3, 2, 2)), 2)])


# ---- average pooling ----------------------------------------------------------------------------------------

_MEAN = (aten.avg_pool2d, aten.avg_pool2d, aten.avg_pool3d)
_MEAN_BACK = (aten.avg_pool2d_backward, aten.avg_pool2d_backward, aten.avg_pool3d_backward)


def _avg_pool(dims: int) -> Op:
    def body(
        x: Tensor, kernel_size: int | Size, stride: int | Size | None = None, padding: int | Size = 0,
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        return _planes(
            _MEAN[dims - 1], x, dims, *_sizes(dims, kernel_size, _stride(stride, kernel_size), padding),
            ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor_override=divisor_override,
        )  # fmt: skip

    declared = _declare(body, f"avg_pool{dims}d", "The mean of each window of {}.", dims, 2, linear="x", rounds=True)

    @declared.form
    def _(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        sizes = [spread(v, dims) for v in (kernel_size, _stride(stride, kernel_size), padding, 1)]
        return _pooled(x, dims, *sizes) if not ceil_mode and divisor_override is None else None

    @declared.grad
    def _(dy, x_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        sizes = [spread(v, dims) for v in (kernel_size, _stride(stride, kernel_size), padding)]
        return avg_pool_grad(dy, tuple(x_shape), *sizes, ceil_mode, count_include_pad, divisor_override)

    @declared.samples
    def _(rand):
        yield rand(2, 3, *(6, 7, 5)[:dims]), 2
        yield rand(3, *(6, 7, 5)[:dims]), 3, 2, 1, True, False

    return declared


@op(linear="dy", returns="dx", shape_of="shape", rounds=True, memory_order="channels_last of any")
def avg_pool_grad(
    dy: Tensor, shape: Size, kernel_size: Size, stride: Size, padding: Size, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:  # fmt: skip
    """The gradient of average pooling: each dy spread over its window."""
    dims = len(kernel_size)
    sizes = _sizes(dims, kernel_size, stride, padding)
    return _planes_back(_MEAN_BACK[dims - 1], dy, shape, dims, *sizes, ceil_mode, count_include_pad, divisor_override)


def _planes_back(kernel: Callable[..., Tensor], dy: Tensor, shape: Size, dims: int, *options: Any) -> Tensor:
    """Run the kernel of a gradient, for any leading dimensions of x, which is of this shape."""
    planes, unit = math.prod(shape[: len(shape) - dims]), (1,) * (dims == 1)
    if planes == 0:
        return dy.new_zeros(tuple(shape))
    if dims > 1 and len(shape) == dims + 2 and is_channels_last(dy):
        return kernel(dy, blank(dy, shape, True), *options)
    g = dy.reshape((1, planes, *unit, *dy.shape[dy.dim() - dims :]))
    x = dy.new_empty(()).expand((1, planes, *unit, *shape[len(shape) - dims :]))
    return kernel(g, x, *options).reshape(tuple(shape))


avg_pool_grad.layout(lambda dy, shape, kernel_size, *_: _notation("y -> x", len(shape), len(kernel_size)))
avg_pool_grad.form(lambda dy, shape, *_: Form(tuple(shape), dy.dtype) if alike(dy) else None)


@avg_pool_grad.grad
def _(ddx, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    attributes = ceil_mode, count_include_pad, divisor_override
    return AVG[len(kernel_size) - 1](ddx, kernel_size, stride, padding, *attributes)


avg_pool_grad.samples(lambda rand: [(rand(2, 3, 3, 3), (2, 3, 6, 7), (2, 2), (2, 2), (0, 0), False, True, None)])


# ---- adaptive pooling ---------------------------------------------------------------------------------

_ADAPTED = (aten._adaptive_avg_pool2d, aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d)
_ADAPTED_BACK = (
    aten._adaptive_avg_pool2d_backward, aten._adaptive_avg_pool2d_backward, aten._adaptive_avg_pool3d_backward,
)  # fmt: skip
_ADAPTED_LARGEST = (aten.adaptive_max_pool2d, aten.adaptive_max_pool2d, aten.adaptive_max_pool3d)


def _target(x: Any, size: int | Sequence[int | None], dims: int) -> tuple[int, ...]:
    wanted = spread(size, dims)
    if len(wanted) != dims:
        raise ShapeError(f"output_size must be {dims}, a size for each dimension that is pooled; got {list(wanted)}")
    return tuple(m if n is None else n for n, m in zip(wanted, x.shape[-dims:], strict=False))


def _adaptive(dims: int, largest: bool) -> Op:
    def body(x: Tensor, output_size: int | Sequence[int | None]) -> Any:
        kernels, target = _ADAPTED_LARGEST if largest else _ADAPTED, _target(x, output_size, dims)
        if min(target, default=0) < 0:  # the kernel for averages gives such a tensor, if another size is zero
            raise ShapeError(f"Trying to create tensor with negative dimension: output_size is {list(target)}")
        if dims == 3 and target == (1, 1, 1) and not largest:  # unlike the kernel, sums 16-bit numbers in float32
            return x.mean((-3, -2, -1), True)
        return _planes(kernels[dims - 1], x, dims, (1,) * (dims == 1) + target)

    kind, says = ("max", "max") if largest else ("avg", "average")
    declared = _declare(
        body, f"adaptive_{kind}_pool{dims}d", f"Adaptive {says} pooling to an output size, over {{}}.", dims, 1,
        **({"returns": "y indices*"} if largest else {"linear": "x"}),
    )  # fmt: skip

    @declared.form
    def _(x, output_size):
        if not alike(x) or len(x.shape) < dims or 0 in x.shape:
            return None
        y = Form((*x.shape[: len(x.shape) - dims], *_target(x, output_size, dims)), x.dtype)
        if min(y.shape) < 1:
            return None
        return (y, Form(y.shape, int64)) if largest else y

    declared.grad(_to_places(dims) if largest else lambda dy, x_shape: adaptive_avg_pool_grad(dy, tuple(x_shape), dims))
    declared.samples(lambda rand: [(rand(2, 3, *(6, 7, 5)[:dims]), 2), (rand(3, *(6, 7, 5)[:dims]), (3, 2, 1)[:dims])])
    return declared


@op(linear="dy", returns="dx", shape_of="shape", memory_order="channels_last of any")
def adaptive_avg_pool_grad(dy: Tensor, shape: Size, dims: int) -> Tensor:
    """The gradient of adaptive average pooling: each dy spread over its window."""
    return _planes_back(_ADAPTED_BACK[dims - 1], dy, shape, dims)


adaptive_avg_pool_grad.layout(lambda dy, shape, dims: _notation("y -> x", len(shape), dims))
adaptive_avg_pool_grad.form(lambda dy, shape, *_: Form(tuple(shape), dy.dtype) if alike(dy) else None)


@adaptive_avg_pool_grad.grad
def _(ddx, dy_shape, dims):
    return ADAPTIVE_AVG[dims - 1](ddx, tuple(dy_shape)[len(dy_shape) - dims :])


adaptive_avg_pool_grad.samples(lambda rand: [(rand(2, 3, 2, 2), (2, 3, 5, 4), 2)])


for _dims in (1, 2, 3):
    _max_pool(_dims, False)
    _max_pool(_dims, True)
    _adaptive(_dims, True)
AVG = [_avg_pool(dims) for dims in (1, 2, 3)]
ADAPTIVE_AVG = [_adaptive(dims, False) for dims in (1, 2, 3)]
