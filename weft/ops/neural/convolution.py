"""Convolutions: one implementation for any number of dimensions; conv1d, conv2d, ... are the public names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from weft.core.dtype import of_torch
from weft.core.errors import DtypeError, ShapeError
from weft.core.sbp import Sbp, broadcast, partial_sum, split
from weft.ops.declaration import REQUIRED, Op, Size, op, positional
from weft.ops.form import Form, alike
from weft.ops.kernels import aten, blank, is_channels_last
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


class Geometry(NamedTuple):
    """A convolution's attributes in the order of torch's kernels; sizes have a number for each dimension."""

    stride: Size
    padding: Size
    dilation: Size
    transposed: bool
    output_padding: Size
    groups: int

    def channels(self, weight: Any) -> int:
        """The channels of the input."""
        return weight.shape[0] if self.transposed else weight.shape[1] * self.groups

    def shape(self, x: Any, weight: Any) -> tuple[int, ...]:
        """The shape of the result."""
        out = []
        sizes = zip(
            x.shape[2:], weight.shape[2:], self.stride, self.padding, self.dilation, self.output_padding, strict=True
        )
        for n, k, s, p, d, o in sizes:
            reach = d * (k - 1)
            out.append((n - 1) * s - 2 * p + reach + 1 + o if self.transposed else (n + 2 * p - reach - 1) // s + 1)
        return x.shape[0], weight.shape[1] * self.groups if self.transposed else weight.shape[0], *out


def _run(x: Tensor, weight: Tensor, bias: Tensor | None, *attributes: Any) -> Tensor:
    if x.numel() and weight.numel():
        return torch.convolution(x, weight, bias, *attributes)
    y = x.new_zeros(Geometry(*attributes).shape(x, weight))  # of a rank's empty shard: zeros, or the bias
    return y if bias is None else y + bias.reshape((1, -1, *(1,) * (x.dim() - 2)))


def _form(x: Form, weight: Form, bias: Form | None, g: Geometry) -> Form | None:
    sizes = g.padding, g.dilation, g.output_padding
    if not alike(x, weight, bias) or any(len(s) != len(g.stride) for s in sizes):
        return None
    if min(*g.stride, *g.dilation, g.groups) < 1:
        return None
    shape = g.shape(x, weight)
    fits = min(shape) > 0 and min(g.padding) >= 0 and weight.shape[0] % g.groups == 0
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


def _check(name: str, dims: int, x: Tensor, weight: Tensor, bias: Tensor | None, channels: int) -> None:
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
    if bias is not None and bias.dtype is not x.dtype:  # the kernel would drop fractions and imaginary parts
        kinds = f"Input type ({of_torch(x.dtype)}) and bias type ({of_torch(bias.dtype)})"
        raise DtypeError(f"{name}: {kinds} should be the same: bias.to(x.dtype)")


def _says(name: str, dims: int, transposed: bool) -> str:
    ones = f"flow.ones(1, 1, {', '.join(('2' if transposed else '3') * dims)})"
    over = f"over {dims} dimension{'s' * (dims > 1)}"
    says = (
        f"Transposed convolution {over}, the gradient of a convolution: weight is (in, out / groups, ...)."
        if transposed
        else f"Convolution {over}: weight is (out, in / groups, ...)."
    )
    return f"""{says}

    >>> flow.nn.functional.{name}({ones}, {ones}).sum().item()
    {4.0**dims if transposed else 3.0**dims}
    """


def _samples(rand: Any, dims: int, transposed: bool) -> Iterator[tuple[Any, ...]]:
    sizes = (4, 3, 3)[:dims] if transposed else (7, 6, 5)[:dims]
    if transposed:
        yield rand(2, 3, *sizes), rand(3, 2, *(3,) * dims), rand(2)
    else:
        yield rand(4, 2, *sizes), rand(3, 2, *(3,) * dims), rand(3)
    yield rand(2, 4, *sizes), rand(4, 2, *(2,) * dims), None, 2, 1, 1, 2
    if dims == 2 and not transposed:
        yield rand(1, 3, 7, 6), rand(4, 3, 2, 3), None, (2, 1), (1, 0), 2


def _convolution(dims: int, transposed: bool) -> Op:
    name = f"conv{'_transpose' * transposed}{dims}d"

    def geometry(stride: Any, padding: Any, *rest: Any) -> Geometry:
        output_padding, groups, dilation = rest if transposed else (0, rest[1], rest[0])
        s, p, d, o = (spread(v, dims) for v in (stride, padding, dilation, output_padding))
        return Geometry(s, p, d, transposed, o, groups)

    def plain(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Size = 1, padding: int | Size = 0,
        dilation: int | Size = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        _check(name, dims, x, weight, bias, weight.shape[1] * groups)
        s, p, d = spread(stride, dims), spread(padding, dims), spread(dilation, dims)
        return _run(x, weight, bias, s, p, d, False, (0,) * dims, groups)

    def backwards(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Size = 1, padding: int | Size = 0,
        output_padding: int | Size = 0, groups: int = 1, dilation: int | Size = 1,
    ) -> Tensor:  # fmt: skip
        _check(name, dims, x, weight, bias, weight.shape[0])
        return _run(x, weight, bias, *geometry(stride, padding, output_padding, groups, dilation))

    body = backwards if transposed else plain
    body.__name__, body.__doc__ = name, _says(name, dims, transposed)
    declared = op(promotes=True, memory_order="channels_last of any")(body)

    @declared.layout
    def _(x, weight, bias, *attributes):
        return _rules(x, weight, bias is not None, geometry(*attributes).groups, transposed)

    @declared.form
    def _(x, weight, bias, *attributes):
        g = geometry(*attributes)
        fits = len(x.shape) == dims + 2 == len(weight.shape) and x.shape[1] == g.channels(weight)
        return _form(x, weight, bias, g) if fits else None

    @declared.works_in
    def _(x, weight, bias, *attributes):
        y = x.new_empty(geometry(*attributes).shape(x, weight))
        a, b, c = _reordered(x, weight, y)
        if transposed:
            return 2 * y.nbytes if any((a, b, c)) else 0
        return max(a + b + c - y.nbytes, b)

    def gradient(dy, x, weight, bias_shape, needs, *attributes):
        g = geometry(*attributes)
        return (
            conv_input_grad(dy, weight, tuple(x.shape), *g, is_channels_last(x._meta)) if needs[0] else None,
            conv_weight_grad(dy, x, tuple(weight.shape), *g) if needs[1] else None,
            sum(dy, (0, *range(2, len(dy.shape)))) if needs[2] else None,
        )

    asked = ("dy", "x", "weight", "bias_shape", "needs", *declared.names[3:])
    gradient.__signature__ = positional(*((n, "Any", REQUIRED) for n in asked))
    declared.grad(gradient)
    declared.samples(lambda rand: _samples(rand, dims, transposed))
    return declared


# ---- the gradients -----------------------------------------------------------------------------------


def again(x: Any, weight: Any, g: Geometry) -> Any:
    """The op of a convolution with these attributes."""
    if g.transposed:
        rest = g.output_padding, g.groups, g.dilation
        return TRANSPOSED[len(g.stride) - 1](x, weight, None, g.stride, g.padding, *rest)
    return PLAIN[len(g.stride) - 1](x, weight, None, g.stride, g.padding, g.dilation, g.groups)


@op(linear="dy weight", returns="dx", shape_of="shape", memory_order="channels_last of any")
def conv_input_grad(
    dy: Tensor, weight: Tensor, shape: Size, stride: Size, padding: Size, dilation: Size, transposed: bool,
    output_padding: Size, groups: int, channels_last: bool = False,
) -> Tensor:  # fmt: skip
    """The gradient of a convolution's x, of this shape, whose channels were innermost in memory, or not."""
    if dy.numel() == 0 or weight.numel() == 0:
        return dy.new_zeros(tuple(shape))
    return aten.convolution_backward(
        dy, blank(dy, shape, channels_last or is_channels_last(dy)), weight, None, stride, padding, dilation,
        transposed, output_padding, groups, [True, False, False],
    )[0]  # fmt: skip


@conv_input_grad.layout
def _(dy, weight, shape, stride, padding, dilation, transposed, output_padding, groups, channels_last):
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
    g = Geometry(stride, padding, dilation, transposed, output_padding, groups)
    return (
        again(ddx, weight, g) if needs[0] else None,
        conv_weight_grad(dy, ddx, tuple(weight.shape), *g) if needs[1] else None,
    )


@conv_input_grad.samples
def _(rand):
    yield rand(3, 3, 5, 4), rand(3, 2, 3, 3), (3, 2, 7, 6), (1, 1), (0, 0), (1, 1), False, (0, 0), 1
    yield rand(2, 2, 6), rand(3, 2, 3), (2, 3, 4), (1,), (0,), (1,), True, (0,), 1


@op(linear="dy x", returns="dw", shape_of="shape", memory_order="channels_last of any")
def conv_weight_grad(
    dy: Tensor, x: Tensor, shape: Size, stride: Size, padding: Size, dilation: Size, transposed: bool,
    output_padding: Size, groups: int,
) -> Tensor:  # fmt: skip
    """The gradient of a convolution's weight, of this shape."""
    if dy.numel() == 0 or x.numel() == 0:
        return dy.new_zeros(tuple(shape))
    # torch is wrong for groups of 1x1 kernels with channels last in float64, and they lie alike either way
    channels_last = max(shape[2:]) > 1 and (is_channels_last(dy) or is_channels_last(x))
    return aten.convolution_backward(
        dy, x, blank(dy, shape, channels_last), None, stride, padding, dilation, transposed,
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
    g = Geometry(stride, padding, dilation, transposed, output_padding, groups)
    return (again(x, ddw, g) if needs[0] else None, conv_input_grad(dy, ddw, tuple(x.shape), *g) if needs[1] else None)


@conv_weight_grad.samples
def _(rand):
    yield rand(3, 3, 5, 4), rand(3, 2, 7, 6), (3, 2, 3, 3), (1, 1), (0, 0), (1, 1), False, (0, 0), 1
    yield rand(2, 2, 6), rand(2, 3, 4), (3, 2, 3), (1,), (0,), (1,), True, (0,), 1


PLAIN: Sequence[Op] = [_convolution(dims, False) for dims in (1, 2, 3)]
TRANSPOSED: Sequence[Op] = [_convolution(dims, True) for dims in (1, 2, 3)]
conv1d, conv2d, conv3d = PLAIN
conv_transpose1d, conv_transpose2d, conv_transpose3d = TRANSPOSED
