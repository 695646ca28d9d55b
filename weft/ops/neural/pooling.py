"""Max, average and adaptive pooling over the last one to three dimensions; leading dimensions may be split."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import int64
from weft.core.errors import ShapeError
from weft.core.sbp import broadcast
from weft.ops.create.convert import to_global
from weft.ops.declaration import Op, Size, op
from weft.ops.form import Form, alike
from weft.ops.kernels import aten
from weft.ops.neural.convolution import spread
from weft.ops.shape.views import axes


def _notation(text: str, ndim: int, dims: int) -> str:
    """The notation with x and y for the axes before and after pooling: pooled dimensions aren't split."""
    x, y = (" ".join([*axes(ndim - dims), *(f"{a}!" for a in axes(dims, before))]) for before in "so")
    return text.replace("x", x).replace("y", y)


def _planes(run: Callable[[Tensor], Any], x: Tensor, dims: int) -> Any:
    """Run a kernel for (batch, channels, ...) with any leading dimensions, none or empty ones included."""
    if x.dim() < dims:
        raise ShapeError(f"pooling over {dims} dimensions takes x of {dims} or more; got {list(x.shape)}")
    lead, tail = x.shape[: x.dim() - dims], x.shape[x.dim() - dims :]
    if x.numel() == 0 and 0 not in tail:
        made = run(x.new_empty((1, 1, *tail)))
        results = [y.new_empty((*lead, *y.shape[2:])) for y in (made if isinstance(made, tuple) else (made,))]
        return tuple(results) if isinstance(made, tuple) else results[0]
    made = run(x.reshape((1, -1, *tail)) if len(lead) != 2 else x)
    if len(lead) == 2:
        return made
    results = [y.reshape((*lead, *y.shape[2:])) for y in (made if isinstance(made, tuple) else (made,))]
    return tuple(results) if isinstance(made, tuple) else results[0]


def _flat(run: Callable[..., Any], dims: int) -> Callable[..., Any]:
    """A kernel over two dimensions as one over one dimension."""
    if dims > 1:
        return run

    def one(x: Tensor, *sizes: tuple[int, ...], **rest: Any) -> Any:
        wide = [(unit, *s) for s, unit in zip(sizes, (1, 1, 0, 1), strict=False)]
        made = run(x.unsqueeze(-2), *wide, **rest)
        return tuple(y.squeeze(-2) for y in made) if isinstance(made, tuple) else made.squeeze(-2)

    return one


def _example(name: str, dims: int, size: int, part: str = "", gives: str = "1.0") -> str:
    return f"\n\n>>> flow._C.{name}(flow.ones(1, 1, {', '.join('2' * dims)}), {size}){part}.item()\n{gives}"


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
    kernel = _flat(_LARGEST[dims - 1], dims)

    def body(
        x: Tensor, kernel_size: int | Size, stride: int | Size | None = None, padding: int | Size = 0,
        dilation: int | Size = 1, ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        sizes = [spread(v, dims) for v in (kernel_size, _stride(stride, kernel_size), padding, dilation)]
        return tuple(_planes(lambda t: kernel(t, *sizes, ceil_mode=ceil_mode), x, dims))

    body.__name__ = f"max_pool{dims}d_with_indices" if shown else f"max_pool{dims}d"
    says = ", and its flat index." if shown else "."
    body.__doc__ = f"The maximum of each window of {dims} dimension{'s' * (dims > 1)}{says}" + (
        _example(body.__name__, dims, 2, "[1]", "0") if shown else _example(body.__name__, dims, 2)
    )
    declared = op(returns="y indices*" if shown else "y | indices", steady="x")(body)

    declared.layout(lambda x, *_: _notation("x -> y, y", len(x), dims))

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


@op(linear="dy", returns="dx", shape_of="shape")
def scatter_places(dy: Tensor, indices: Tensor, shape: Size, dims: int) -> Tensor:
    """Zeros of this shape with dy added at flat indices of the last dimensions."""
    flat = dy.new_zeros((*shape[: len(shape) - dims], math.prod(shape[len(shape) - dims :])))
    flat.scatter_add_(-1, indices.flatten(-dims), dy.flatten(-dims))
    return flat.view(tuple(shape))


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
    kernel = _flat(_MEAN[dims - 1], dims)

    def body(
        x: Tensor, kernel_size: int | Size, stride: int | Size | None = None, padding: int | Size = 0,
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        sizes = [spread(v, dims) for v in (kernel_size, _stride(stride, kernel_size), padding)]
        options = {
            "ceil_mode": ceil_mode, "count_include_pad": count_include_pad, "divisor_override": divisor_override
        }  # fmt: skip
        return _planes(lambda t: kernel(t, *sizes, **options), x, dims)

    body.__name__ = f"avg_pool{dims}d"
    body.__doc__ = f"The mean of each window of {dims} dimension{'s' * (dims > 1)}." + _example(body.__name__, dims, 2)
    declared = op(linear="x", steady="x")(body)

    declared.layout(lambda x, *_: _notation("x -> y", len(x), dims))

    @declared.form
    def _(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        sizes = [spread(v, dims) for v in (kernel_size, _stride(stride, kernel_size), padding, 1)]
        return _pooled(x, dims, *sizes) if not ceil_mode and divisor_override is None else None

    @declared.instead
    def _(x, *options):
        whole = tuple(s if s.is_split and s.dim < x.ndim - dims else broadcast for s in x.sbp)
        if x.dtype.differentiable or whole == tuple(x.sbp):
            return NotImplemented
        return declared(to_global(x, x.placement, whole), *options)  # rounding isn't linear in partial sums of integers

    @declared.grad
    def _(dy, x_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        sizes = [spread(v, dims) for v in (kernel_size, _stride(stride, kernel_size), padding)]
        return avg_pool_grad(dy, tuple(x_shape), *sizes, ceil_mode, count_include_pad, divisor_override)

    @declared.samples
    def _(rand):
        yield rand(2, 3, *(6, 7, 5)[:dims]), 2
        yield rand(3, *(6, 7, 5)[:dims]), 3, 2, 1, True, False

    return declared


@op(linear="dy", returns="dx", shape_of="shape")
def avg_pool_grad(
    dy: Tensor, shape: Size, kernel_size: Size, stride: Size, padding: Size, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:  # fmt: skip
    """The gradient of average pooling: each dy spread over its window."""
    dims = len(kernel_size)
    tail = tuple(shape[len(shape) - dims :])
    wide = [(unit,) * (dims == 1) + tuple(s) for s, unit in ((kernel_size, 1), (stride, 1), (padding, 0))]
    planes = math.prod(shape[: len(shape) - dims])
    if planes == 0:
        return dy.new_zeros(tuple(shape))
    g = dy.reshape((1, planes, *(1,) * (dims == 1), *dy.shape[dy.dim() - dims :]))
    x = dy.new_empty(()).expand((1, planes, *(1,) * (dims == 1), *tail))
    dx = _MEAN_BACK[dims - 1](g, x, *wide, ceil_mode, count_include_pad, divisor_override)
    return dx.view(tuple(shape))


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
    return tuple(m if n is None else n for n, m in zip(wanted, x.shape[len(x.shape) - dims :], strict=True))


def _adaptive_avg(dims: int) -> Op:
    kernel = _flat(_ADAPTED[dims - 1], dims)

    def body(x: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
        return _planes(lambda t: kernel(t, _target(x, output_size, dims)), x, dims)

    body.__name__ = f"adaptive_avg_pool{dims}d"
    says = f"Adaptive average pooling to an output size, over {dims} dimension{'s' * (dims > 1)}."
    body.__doc__ = says + _example(body.__name__, dims, 1)
    declared = op(linear="x", steady="x")(body)

    declared.layout(lambda x, *_: _notation("x -> y", len(x), dims))

    @declared.form
    def _(x, output_size):
        fits = len(x.shape) >= dims and alike(x) and 0 not in x.shape
        return Form((*x.shape[: len(x.shape) - dims], *_target(x, output_size, dims)), x.dtype) if fits else None

    declared.grad(lambda dy, x_shape: adaptive_avg_pool_grad(dy, tuple(x_shape), dims))
    declared.samples(lambda rand: [(rand(2, 3, *(6, 7, 5)[:dims]), 2), (rand(3, *(6, 7, 5)[:dims]), (3, 2, 1)[:dims])])

    return declared


@op(linear="dy", returns="dx", shape_of="shape")
def adaptive_avg_pool_grad(dy: Tensor, shape: Size, dims: int) -> Tensor:
    """The gradient of adaptive average pooling: each dy spread over its window."""
    tail = tuple(shape[len(shape) - dims :])
    planes = math.prod(shape[: len(shape) - dims])
    if planes == 0:
        return dy.new_zeros(tuple(shape))
    g = dy.reshape((1, planes, *(1,) * (dims == 1), *dy.shape[dy.dim() - dims :]))
    x = dy.new_empty(()).expand((1, planes, *(1,) * (dims == 1), *tail))
    return _ADAPTED_BACK[dims - 1](g, x).reshape(tuple(shape))


adaptive_avg_pool_grad.layout(lambda dy, shape, dims: _notation("y -> x", len(shape), dims))
adaptive_avg_pool_grad.form(lambda dy, shape, *_: Form(tuple(shape), dy.dtype) if alike(dy) else None)


@adaptive_avg_pool_grad.grad
def _(ddx, dy_shape, dims):
    return ADAPTIVE_AVG[dims - 1](ddx, tuple(dy_shape)[len(dy_shape) - dims :])


adaptive_avg_pool_grad.samples(lambda rand: [(rand(2, 3, 2, 2), (2, 3, 5, 4), 2)])


def _adaptive_max(dims: int) -> Op:
    kernel = _flat(_ADAPTED_LARGEST[dims - 1], dims)

    def body(x: Tensor, output_size: int | Sequence[int | None]) -> Any:
        return tuple(_planes(lambda t: kernel(t, _target(x, output_size, dims)), x, dims))

    body.__name__ = f"adaptive_max_pool{dims}d"
    says = f"Adaptive max pooling to an output size, over {dims} dimension{'s' * (dims > 1)}."
    body.__doc__ = says + _example(body.__name__, dims, 1, "[1]", "0")
    declared = op(returns="y indices*", steady="x")(body)

    declared.layout(lambda x, *_: _notation("x -> y, y", len(x), dims))

    @declared.form
    def _(x, output_size):
        if not alike(x) or len(x.shape) not in (dims + 1, dims + 2) or 0 in x.shape:
            return None
        shape = (*x.shape[:-dims], *_target(x, output_size, dims))
        return (Form(shape, x.dtype), Form(shape, int64)) if min(shape) > 0 else None

    declared.grad(_to_places(dims))
    declared.samples(lambda rand: [(rand(2, 3, *(6, 7, 5)[:dims]), 2)])

    return declared


for _dims in (1, 2, 3):
    _max_pool(_dims, False)
    _max_pool(_dims, True)
    _adaptive_max(_dims)
AVG = [_avg_pool(dims) for dims in (1, 2, 3)]
ADAPTIVE_AVG = [_adaptive_avg(dims) for dims in (1, 2, 3)]
