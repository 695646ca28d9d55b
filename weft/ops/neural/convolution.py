"""Convolutions: one implementation for any number of dimensions; conv1d, conv2d, ... are the public names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from weft.core.errors import ShapeError
from weft.core.sbp import Sbp, broadcast, partial_sum, split
from weft.ops.declaration import Op, Size, op
from weft.ops.form import Form, alike
from weft.ops.kernels import aten
from weft.ops.notation import Rule
from weft.ops.reduce.sums import sum


def spread(value: Any, dims: int) -> tuple[int, ...]:
    """One number repeated for every dimension, or the numbers as given."""
    return (value,) * dims if isinstance(value, int) else tuple(value) * (dims if len(value) == 1 else 1)


def _rules(x: Size, weight: Size, bias: bool, groups: int, transposed: bool) -> list[Rule]:
    """Batches may be split; so may output channels together with the weight's; split input channels give partial
    sums."""
    ins, outs = (0, 1) if transposed else (1, 0)  # the weight's dimensions of input and output channels

    def rule(a: Sbp, b: Sbp, c: Sbp, y: Sbp) -> Rule:
        return Rule((a, b, c) if bias else (a, b), (y,))

    found = [rule(split(0), broadcast, broadcast, split(0))]
    if groups == 1:
        found.append(rule(broadcast, split(outs), split(0), split(1)))
        found.append(rule(split(1), split(ins), partial_sum, partial_sum))
    found.append(rule(partial_sum, broadcast, partial_sum, partial_sum))
    found.append(rule(broadcast, partial_sum, partial_sum, partial_sum))
    return found


def _run(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Size, padding: Size, dilation: Size, transposed: bool,
    output_padding: Size, groups: int,
) -> Tensor:  # fmt: skip
    if x.numel() == 0 or weight.numel() == 0:  # a rank's shard may be empty
        return _of_empty(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    return torch.convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _of_empty(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Size, padding: Size, dilation: Size, transposed: bool,
    output_padding: Size, groups: int,
) -> Tensor:  # fmt: skip
    """The result for an empty batch or no channels: zeros, or the bias."""
    shape = _shape(x, weight, stride, padding, dilation, transposed, output_padding, groups)
    y = x.new_zeros(shape)
    return y if bias is None else y + bias.reshape((1, -1, *(1 for _ in stride)))


def _shape(
    x: Any, weight: Any, stride: Size, padding: Size, dilation: Size, transposed: bool, output_padding: Size,
    groups: int,
) -> tuple[int, ...]:  # fmt: skip
    out = []
    for n, k, s, p, d, o in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding, strict=True):
        reach = d * (k - 1)
        out.append((n - 1) * s - 2 * p + reach + 1 + o if transposed else (n + 2 * p - reach - 1) // s + 1)
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    return x.shape[0], channels, *out


def _form(
    x: Form, weight: Form, bias: Form | None, stride: Size, padding: Size, dilation: Size, transposed: bool,
    output_padding: Size, groups: int,
) -> Form | None:  # fmt: skip
    sizes = stride, padding, dilation, output_padding
    if not alike(x, weight, bias) or any(len(s) != len(stride) for s in sizes) or min(*stride, *dilation, groups) < 1:
        return None
    shape = _shape(x, weight, stride, padding, dilation, transposed, output_padding, groups)
    fits = min(shape) > 0 and min(padding) >= 0 and weight.shape[0] % groups == 0
    return Form(shape, x.dtype) if fits and bias in (None, Form(shape[1:2], x.dtype)) else None


LANES: Final = 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 8  # channels in a block of oneDNN's


def _reordered(x: Tensor, weight: Tensor, y: Tensor) -> tuple[int, int, int]:
    """The bytes of a convolution's operands and result as oneDNN lays them out to compute: in blocks of channels."""
    lanes = [LANES] * 3
    if x.dtype is not torch.float32 or not torch.backends.mkldnn.is_available():
        lanes = [0] * 3
    elif weight[0, 0].numel() == 1 and not (x.shape[1] % LANES or y.shape[1] % LANES):
        lanes = [0] * 3  # a matrix product
    elif x.shape[1] < LANES:
        lanes[0] = 1 if x.shape[1] > LANES // 4 else 0

    def size(t: Tensor, lanes: int) -> int:
        return math.prod(-(-n // lanes) * lanes if i == 1 else n for i, n in enumerate(t.shape)) * 4 if lanes else 0

    x_size, y_size, w_size = (size(t, n) for t, n in zip((x, y, weight), lanes, strict=True))
    return x_size, y_size, w_size and -(-weight.shape[0] // LANES) * LANES * w_size // weight.shape[0]


def _check(name: str, dims: int, x: Tensor, weight: Tensor, channels: int) -> None:
    if x.dim() != dims + 2 or weight.dim() != dims + 2:
        raise ShapeError(
            f"{name} takes x of {dims + 2} dimensions (batch, channels, ...) and a weight of as many; "
            f"got {list(x.shape)} and {list(weight.shape)}"
        )
    if x.shape[1] != channels:
        raise ShapeError(
            f"{name}: weight of size {list(weight.shape)}, expected input{list(x.shape)} to have {channels} channels, "
            f"but got {x.shape[1]} channels instead"
        )


def _convolution(dims: int) -> Op:
    def body(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Size = 1, padding: int | Size = 0,
        dilation: int | Size = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        _check(f"conv{dims}d", dims, x, weight, weight.shape[1] * groups)
        s, p, d = (spread(v, dims) for v in (stride, padding, dilation))
        return _run(x, weight, bias, s, p, d, False, (0,) * dims, groups)

    body.__name__ = f"conv{dims}d"
    ones = f"flow.ones(1, 1, {', '.join('3' * dims)})"
    body.__doc__ = f"""Convolution over {dims} dimension{"s" * (dims > 1)}: weight is (out, in / groups, ...).

    >>> flow.nn.functional.conv{dims}d({ones}, {ones}).item()
    {3.0**dims}
    """
    declared = op(promotes=True)(body)

    @declared.layout
    def _(x, weight, bias, stride, padding, dilation, groups):
        return _rules(x, weight, bias is not None, groups, False)

    @declared.form
    def _(x, weight, bias, stride, padding, dilation, groups):
        s, p, d = (spread(v, dims) for v in (stride, padding, dilation))
        fits = len(x.shape) == dims + 2 == len(weight.shape) and x.shape[1] == weight.shape[1] * groups
        return _form(x, weight, bias, s, p, d, False, (0,) * dims, groups) if fits else None

    @declared.works_in
    def _(x, weight, bias, stride, padding, dilation, groups):
        s, p, d = (spread(v, dims) for v in (stride, padding, dilation))
        y = x.new_empty(_shape(x, weight, s, p, d, False, (0,) * dims, groups))
        a, b, c = _reordered(x, weight, y)
        return max(a + b + c - y.nbytes, b)

    @declared.grad
    def _(dy, x, weight, bias_shape, stride, padding, dilation, groups, needs):
        s, p, d = (spread(v, dims) for v in (stride, padding, dilation))
        return _backward(dy, x, weight, s, p, d, False, (0,) * dims, groups, needs)

    sizes = (7, 6, 5)[:dims]

    @declared.samples
    def _(rand):
        yield rand(4, 2, *sizes), rand(3, 2, *(3,) * dims), rand(3)
        yield rand(2, 4, *sizes), rand(4, 2, *(2,) * dims), None, 2, 1, 1, 2
        if dims == 2:
            yield rand(1, 3, 7, 6), rand(4, 3, 2, 3), None, (2, 1), (1, 0), 2

    return declared


def _transposed(dims: int) -> Op:
    def body(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Size = 1, padding: int | Size = 0,
        output_padding: int | Size = 0, groups: int = 1, dilation: int | Size = 1,
    ) -> Tensor:  # fmt: skip
        _check(f"conv_transpose{dims}d", dims, x, weight, weight.shape[0])
        s, p, o, d = (spread(v, dims) for v in (stride, padding, output_padding, dilation))
        return _run(x, weight, bias, s, p, d, True, o, groups)

    body.__name__ = f"conv_transpose{dims}d"
    ones = f"flow.ones(1, 1, {', '.join('2' * dims)})"
    body.__doc__ = f"""Transposed convolution over {dims} dimension{"s" * (dims > 1)}, the gradient of a convolution:
    weight is (in, out / groups, ...).

    >>> flow.nn.functional.conv_transpose{dims}d({ones}, {ones}).sum().item()
    {4.0**dims}
    """
    declared = op(promotes=True)(body)

    @declared.layout
    def _(x, weight, bias, stride, padding, output_padding, groups, dilation):
        return _rules(x, weight, bias is not None, groups, True)

    @declared.form
    def _(x, weight, bias, stride, padding, output_padding, groups, dilation):
        s, p, o, d = (spread(v, dims) for v in (stride, padding, output_padding, dilation))
        fits = len(x.shape) == dims + 2 == len(weight.shape) and x.shape[1] == weight.shape[0]
        return _form(x, weight, bias, s, p, d, True, o, groups) if fits else None

    @declared.works_in
    def _(x, weight, bias, stride, padding, output_padding, groups, dilation):
        s, p, o, d = (spread(v, dims) for v in (stride, padding, output_padding, dilation))
        y = x.new_empty(_shape(x, weight, s, p, d, True, o, groups))
        return 2 * y.nbytes if any(_reordered(x, weight, y)) else 0

    @declared.grad
    def _(dy, x, weight, bias_shape, stride, padding, output_padding, groups, dilation, needs):
        s, p, o, d = (spread(v, dims) for v in (stride, padding, output_padding, dilation))
        return _backward(dy, x, weight, s, p, d, True, o, groups, needs)

    sizes = (4, 3, 3)[:dims]

    @declared.samples
    def _(rand):
        yield rand(2, 3, *sizes), rand(3, 2, *(3,) * dims), rand(2)
        yield rand(2, 4, *sizes), rand(4, 2, *(2,) * dims), None, 2, 1, 1, 2

    return declared


# ---- the gradients -----------------------------------------------------------------------------------


def _backward(dy, x, weight, stride, padding, dilation, transposed, output_padding, groups, needs):
    attributes = stride, padding, dilation, transposed, output_padding, groups
    return (
        conv_input_grad(dy, weight, tuple(x.shape), *attributes) if needs[0] else None,
        conv_weight_grad(dy, x, tuple(weight.shape), *attributes) if needs[1] else None,
        sum(dy, (0, *range(2, len(dy.shape)))) if needs[2] else None,
    )


def again(
    x: Any, weight: Any, stride: Size, padding: Size, dilation: Size, transposed: bool, output_padding: Size,
    groups: int,
) -> Any:  # fmt: skip
    """The op of a convolution with these attributes."""
    dims = len(stride)
    if transposed:
        return TRANSPOSED[dims - 1](x, weight, None, stride, padding, output_padding, groups, dilation)
    return PLAIN[dims - 1](x, weight, None, stride, padding, dilation, groups)


@op(linear="dy weight", returns="dx", shape_of="shape")
def conv_input_grad(
    dy: Tensor, weight: Tensor, shape: Size, stride: Size, padding: Size, dilation: Size, transposed: bool,
    output_padding: Size, groups: int,
) -> Tensor:  # fmt: skip
    """The gradient of a convolution's x, of this shape."""
    if dy.numel() == 0 or weight.numel() == 0:
        return dy.new_zeros(tuple(shape))
    return aten.convolution_backward(
        dy, dy.new_empty(()).expand(tuple(shape)), weight, None, stride, padding, dilation, transposed,
        output_padding, groups, [True, False, False],
    )[0]  # fmt: skip


@conv_input_grad.layout
def _(dy, weight, shape, stride, padding, dilation, transposed, output_padding, groups):
    ins, outs = (0, 1) if transposed else (1, 0)
    yield Rule((split(0), broadcast), (split(0),))
    if groups == 1:
        yield Rule((broadcast, split(ins)), (split(1),))
        yield Rule((split(1), split(outs)), (partial_sum,))


@conv_input_grad.works_in
def _(dy, weight, shape, *_):
    """And x, which torch wants to see, whatever it is."""
    x = dy.new_empty(tuple(shape))
    b, a, c = _reordered(dy, weight, x)
    return a + max(b + c, x.nbytes) if a else x.nbytes + b + c


conv_input_grad.form(lambda a, b, shape, *_: Form(tuple(shape), a.dtype) if alike(a, b) else None)


@conv_input_grad.grad
def _(ddx, dy, weight, stride, padding, dilation, transposed, output_padding, groups, needs):
    attributes = stride, padding, dilation, transposed, output_padding, groups
    return (
        again(ddx, weight, *attributes) if needs[0] else None,
        conv_weight_grad(dy, ddx, tuple(weight.shape), *attributes) if needs[1] else None,
    )


@conv_input_grad.samples
def _(rand):
    yield rand(3, 3, 5, 4), rand(3, 2, 3, 3), (3, 2, 7, 6), (1, 1), (0, 0), (1, 1), False, (0, 0), 1
    yield rand(2, 2, 6), rand(3, 2, 3), (2, 3, 4), (1,), (0,), (1,), True, (0,), 1


@op(linear="dy x", returns="dw", shape_of="shape")
def conv_weight_grad(
    dy: Tensor, x: Tensor, shape: Size, stride: Size, padding: Size, dilation: Size, transposed: bool,
    output_padding: Size, groups: int,
) -> Tensor:  # fmt: skip
    """The gradient of a convolution's weight, of this shape."""
    if dy.numel() == 0 or x.numel() == 0:
        return dy.new_zeros(tuple(shape))
    return aten.convolution_backward(
        dy, x, dy.new_empty(()).expand(tuple(shape)), None, stride, padding, dilation, transposed,
        output_padding, groups, [False, True, False],
    )[1]  # fmt: skip


@conv_weight_grad.layout
def _(dy, x, shape, stride, padding, dilation, transposed, output_padding, groups):
    ins, outs = (0, 1) if transposed else (1, 0)
    yield Rule((split(0), split(0)), (partial_sum,))
    if groups == 1:
        yield Rule((broadcast, split(1)), (split(ins),))
        yield Rule((split(1), broadcast), (split(outs),))


@conv_weight_grad.works_in
def _(dy, x, shape, *_):
    a, b, c = _reordered(x, dy.new_empty(tuple(shape)), dy)
    return a + b + (c or dy.element_size() * math.prod(shape))


conv_weight_grad.form(lambda a, b, shape, *_: Form(tuple(shape), a.dtype) if alike(a, b) else None)


@conv_weight_grad.grad
def _(ddw, dy, x, stride, padding, dilation, transposed, output_padding, groups, needs):
    attributes = stride, padding, dilation, transposed, output_padding, groups
    return (
        again(x, ddw, *attributes) if needs[0] else None,
        conv_input_grad(dy, ddw, tuple(x.shape), *attributes) if needs[1] else None,
    )


@conv_weight_grad.samples
def _(rand):
    yield rand(3, 3, 5, 4), rand(3, 2, 7, 6), (3, 2, 3, 3), (1, 1), (0, 0), (1, 1), False, (0, 0), 1
    yield rand(2, 2, 6), rand(2, 3, 4), (3, 2, 3), (1,), (0,), (1,), True, (0,), 1


PLAIN: Sequence[Op] = [_convolution(dims) for dims in (1, 2, 3)]
TRANSPOSED: Sequence[Op] = [_transposed(dims) for dims in (1, 2, 3)]
conv1d, conv2d, conv3d = PLAIN
conv_transpose1d, conv_transpose2d, conv_transpose3d = TRANSPOSED
