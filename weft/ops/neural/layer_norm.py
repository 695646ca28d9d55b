"""Normalization over the last dimensions: layer_norm and rms_norm, with second derivatives in closed form."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import float32, float64
from weft.core.errors import DtypeError, ShapeError
from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Size, op
from weft.ops.form import FLOATS, WIDE, Form
from weft.ops.kernels import aten, memory_format
from weft.ops.pointwise.arithmetic import add, conjugated, mul, neg, square, sub
from weft.ops.pointwise.copies import cast
from weft.ops.pointwise.elementary import rsqrt
from weft.ops.reduce.sums import mean as mean_of
from weft.ops.shape.broadcast import fit
from weft.ops.shape.views import axes


def _terms(shape: tuple[int, ...], normalized: Size) -> tuple[str, str, str]:
    """The notation of x, of the normalized part, and of the statistics."""
    names = axes(len(shape))
    first = len(shape) - len(normalized)
    part = [f"{a}!" for a in names[first:]]
    lead = names[:first]
    return " ".join([*lead, *part]), " ".join(part), " ".join([*lead, *("1" for _ in part)])


def _dims(normalized: Size) -> tuple[int, ...]:
    return tuple(range(-len(normalized), 0))


def _fits(x: Form, normalized: Size, *parts: Form | None) -> bool:
    """Whether x ends with the normalized dimensions, and weight and bias have them, in x's dtype or float32."""
    part, kinds = tuple(normalized), {p.dtype for p in parts if p is not None}
    return (
        x.shape[len(x.shape) - len(part) :] == part != ()
        and x.dtype in FLOATS
        and (kinds <= {x.dtype} or (x.dtype not in WIDE and kinds <= {float32}))
        and all(p is None or p.shape == part for p in parts)
    )


def widen(x: Tensor) -> Tensor:
    """x, in float32 if it has 16 bits: too few for sums of squares, and for statistics."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def in_kernels_dtype(x: Tensor, weight: Tensor | None, *statistics: Tensor) -> tuple[Tensor, ...]:
    """Statistics in the dtype that the kernel expects: on the CPU that of the weight."""
    kind = (x if weight is None else weight).dtype
    return tuple(t if t.dtype is kind or not x.is_cpu else t.to(kind) for t in statistics)


def statistics_of(x: Form, shape: tuple[int, ...]) -> Form:
    """The form of saved means and deviations: float32 for 16-bit operands, on every device."""
    return Form(shape, x.dtype if x.dtype in WIDE else float32)


def gradients(x: Form, weight: Form | None, part: tuple[int, ...], wanted: tuple[bool, ...]) -> tuple[Form, ...]:
    """The forms of the gradients of x, weight and bias."""
    own = Form(part, x.dtype if weight is None else weight.dtype)
    return tuple(form if n else Form((), x.dtype) for form, n in zip((x, own, own), wanted, strict=True))


def absent(like: Tensor, g: Tensor | None) -> Tensor:
    """The gradient of an operand that needs none: an empty tensor."""
    return like.new_zeros(()) if g is None else g


# ---- layer_norm --------------------------------------------------------------------------------------


@op(returns="y | mean rstd")
def layer_norm(
    x: Tensor, normalized_shape: Size, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / deviation over the last dimensions, times weight, plus bias.

    >>> flow.nn.functional.layer_norm(flow.tensor([[1., 3.]]), (2,), eps=0.).tolist()
    [[-1.0, 1.0]]
    """
    y, mean, rstd = torch.native_layer_norm(x, tuple(normalized_shape), weight, bias, eps)
    return y, widen(mean), widen(rstd)  # type: ignore[return-value]


@layer_norm.prepared
def _(x, normalized_shape, weight, bias, eps):
    if widen(x) is not x:
        return None
    return torch.native_layer_norm, (x, tuple(normalized_shape), weight, bias, eps), {}


@layer_norm.layout
def _(x, normalized_shape, weight, bias, eps):
    whole, part, statistics = _terms(x, normalized_shape)
    return f"{whole}, {part}, {part} -> {whole}, {statistics}, {statistics}"


@layer_norm.form
def _(x, normalized_shape, weight, bias, eps):
    if not _fits(x, normalized_shape, weight, bias):
        return None
    lead = len(x.shape) - len(normalized_shape)
    statistics = statistics_of(x, (*x.shape[:lead], *(1 for _ in normalized_shape)))
    return x, statistics, statistics


@layer_norm.grad
def _(dy, x, mean, rstd, weight, bias_shape, normalized_shape, needs):
    dx, dw, db = layer_norm_grad(dy, x, mean, rstd, weight, normalized_shape, needs)
    return dx if needs[0] else None, dw if needs[1] else None, db if needs[2] else None


@layer_norm.samples
def _(rand):
    yield rand(4, 5, 6), (6,), rand(6), rand(6)
    yield rand(4, 6), (6,)
    yield rand(4, 6), (6,), rand(6)
    yield rand(4, 2, 3), (2, 3), rand(2, 3), rand(2, 3)


@op(returns="dx dw db", uniform=True, linear="dy")
def layer_norm_grad(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, normalized_shape: Size,
    wanted: tuple[bool, ...],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of layer_norm's x, weight and bias; those that aren't needed are zero."""
    rows = math.prod(x.shape[: x.ndim - len(normalized_shape)])
    if not mean.is_floating_point() or not rstd.is_floating_point():
        raise DtypeError(f"layer_norm_grad: mean and rstd are fractions; got {mean.dtype} and {rstd.dtype}")
    if dy.shape != x.shape or not mean.numel() == rstd.numel() == rows:
        raise ShapeError(  # the kernel doesn't check, and would read out of bounds
            f"layer_norm_grad: dy needs x's shape, {list(x.shape)}, mean and rstd {rows} elements; got "
            f"{list(dy.shape)}, {list(mean.shape)} and {list(rstd.shape)}"
        )
    mean, rstd = in_kernels_dtype(x, weight, mean, rstd)
    # the kernel only checks whether there is a bias
    grads = aten.native_layer_norm_backward(
        dy, x, tuple(normalized_shape), mean.contiguous(), rstd.contiguous(), weight, weight, [bool(n) for n in wanted]
    )
    return tuple(absent(x, g) for g in grads)  # type: ignore[return-value]


@layer_norm_grad.prepared
def _(dy, x, mean, rstd, weight, normalized_shape, wanted):
    if not all(wanted) or not (mean.is_contiguous() and rstd.is_contiguous()) or widen(x) is not x:
        return None
    backward = aten.native_layer_norm_backward.default
    return backward, (dy, x, tuple(normalized_shape), mean, rstd, weight, weight, tuple(wanted)), {}


@layer_norm_grad.form
def _(dy, x, mean, rstd, weight, normalized_shape, wanted):
    if dy.shape != x.shape or not _fits(x, normalized_shape, weight):
        return None
    return gradients(x, weight, tuple(normalized_shape), wanted)


@layer_norm_grad.layout
def _(dy, x, mean, rstd, weight, normalized_shape, wanted):
    whole, part, statistics = _terms(x, normalized_shape)
    outs = [term if n else "" for term, n in zip((whole, part, part), wanted, strict=True)]
    return f"{whole}, {whole}, {statistics}, {statistics}, {part} -> {', '.join(outs)}"


@layer_norm_grad.grad
def _(ddx, ddw, ddb, dy, x, mean, rstd, weight, normalized_shape, wanted):
    mean, rstd = cast(mean, x.dtype), cast(rstd, x.dtype)
    hat = mul(sub(x, mean), rstd)
    # mean and rstd are functions of x: their gradient is part of x's
    d_dy, d_x, d_w = second_gradient(ddx, ddw, ddb, dy, hat, rstd, weight, _dims(normalized_shape), wanted)
    return d_dy, d_x, None, None, d_w


@layer_norm_grad.samples
def _(rand):
    x, w = rand(4, 6), rand(6)
    _, mean, rstd = torch.native_layer_norm(x, (6,), w, w, 1e-5)
    yield rand(4, 6), x, mean, rstd, w, (6,), (True, True, True)
    yield rand(4, 6), x, mean, rstd, None, (6,), (True, False, False)


def second_gradient(a, b, c, dy, hat, rstd, weight, dims, wanted, centred=True):
    """The second derivative of a normalization: the gradients of a = ddx, b = ddw, c = ddb with respect to dy, x and
    weight.

    With g = dy * weight and E the mean over the normalized dimensions, the first gradient is
    dx = rstd * P(g), where P(g) = g - E[g] - hat * E[g * hat]; dw = sum(dy * hat); db = sum(dy). P is symmetric.
    Everything here broadcasts against dy; the gradient through the statistics is part of x's.
    """

    def mean(t: Any) -> Any:
        return mean_of(t, dims, True)

    def project(t: Any) -> Any:
        flat = sub(t, mul(hat, mean(mul(t, hat))))
        return sub(flat, mean(t)) if centred else flat

    g = dy if weight is None else mul(dy, weight)
    d_dy = d_x = d_w = None
    if wanted[0]:
        pa = mul(project(a), rstd)
        d_dy = pa if weight is None else mul(pa, weight)
        if weight is not None:
            d_w = fit(mul(dy, pa), tuple(weight.shape))
        a_hat, g_hat = mean(mul(a, hat)), mean(mul(g, hat))
        along = neg(mul(rstd, add(mul(a, g_hat), mul(g, a_hat))))
        explicit = sub(mul(a, g), mul(a_hat, g_hat))  # its mean is what rstd scales
        if centred:
            explicit = sub(explicit, mul(mean(a), mean(g)))
        d_x = neg(mul(mul(mul(rstd, rstd), hat), mean(explicit)))
        if wanted[1]:
            along = add(along, mul(b, dy))
        d_x = add(d_x, mul(rstd, project(along)))
    elif wanted[1]:
        d_x = mul(rstd, project(mul(b, dy)))
    if wanted[1]:
        d_dy = mul(b, hat) if d_dy is None else add(d_dy, mul(b, hat))
    if centred and wanted[2]:
        d_dy = add(zeros_like(dy), c) if d_dy is None else add(d_dy, c)
    return d_dy, d_x, d_w


# ---- rms_norm ----------------------------------------------------------------------------------------


def _rstd(x: Tensor, normalized: Size, eps: float) -> Tensor:
    return torch.rsqrt(x.square().mean(_dims(normalized), True) + eps)


def _least(dtype: Any, eps: float | None) -> float:
    """The default eps: the machine epsilon of the dtype that sums are computed in."""
    return eps if eps is not None else 2.0 ** (-52 if dtype in (torch.float64, float64) else -23)


@op(memory_order="channels_last of any on CPUs")
def rms_norm(x: Tensor, normalized_shape: Size, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x divided by the root of its mean square over the last dimensions, times weight. The default eps is the machine
    epsilon.

    >>> flow.nn.functional.rms_norm(flow.tensor([[3., -3.]]), (2,), eps=0.).tolist()
    [[1.0, -1.0]]
    """
    if not normalized_shape or tuple(x.shape[-len(normalized_shape) :]) != tuple(normalized_shape):
        raise ShapeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[{', '.join(map(str, ('*', *normalized_shape)))}], but got input of size{list(x.shape)}"
        )
    if weight is not None and tuple(weight.shape) != tuple(normalized_shape):
        raise ShapeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} "
            f"and normalized_shape = {list(normalized_shape)}"
        )
    given = widen(x).contiguous(memory_format=memory_format(x))  # as torch's results are
    y = given * _rstd(given, normalized_shape, _least(x.dtype, eps))
    return (y if weight is None else y * weight).to(x.dtype)


@rms_norm.layout
def _(x, normalized_shape, weight, eps):
    whole, part, _ = _terms(x, normalized_shape)
    return f"{whole}, {part} -> {whole}"


rms_norm.form(lambda x, normalized, weight, eps: x if _fits(x, normalized, weight) else None)


@rms_norm.grad
def _(dy, x, weight, normalized_shape, eps, needs):
    x, weight = conjugated(x), conjugated(weight)
    dx, dw = rms_norm_grad(dy, x, weight, normalized_shape, _least(x.dtype, eps), needs)
    return dx if needs[0] else None, dw if needs[1] else None


rms_norm.samples(lambda rand: [(rand(4, 5, 6), (6,), rand(6)), (rand(4, 6), (6,), None, 0.1)])


@op(returns="dx dw", uniform=True, linear="dy")
def rms_norm_grad(
    dy: Tensor, x: Tensor, weight: Tensor | None, normalized_shape: Size, eps: float, wanted: tuple[bool, ...]
) -> tuple[Tensor, Tensor]:
    """The gradients of rms_norm's x and weight; those that aren't needed are zero."""
    given, dy = widen(x), widen(dy)
    rstd = _rstd(given, normalized_shape, eps)
    hat = given * rstd
    dx = dw = None
    if wanted[0]:
        g = dy if weight is None else dy * weight
        dx = ((g - hat * (g * hat).mean(_dims(normalized_shape), True)) * rstd).to(x.dtype)
    if wanted[1]:
        dw = (dy * hat).sum_to_size(tuple(normalized_shape)).to(x.dtype if weight is None else weight.dtype)
    return absent(x, dx), absent(x, dw)


@rms_norm_grad.layout
def _(dy, x, weight, normalized_shape, eps, wanted):
    whole, part, _ = _terms(x, normalized_shape)
    outs = [term if n else "" for term, n in zip((whole, part), wanted, strict=True)]
    return f"{whole}, {whole}, {part} -> {', '.join(outs)}"


@rms_norm_grad.grad
def _(ddx, ddw, dy, x, x_dtype, weight, normalized_shape, eps, wanted):
    dy, x, weight = map(conjugated, (dy, x, weight))
    rstd = rsqrt(add(mean_of(square(x), _dims(normalized_shape), True), eps))
    dims = _dims(normalized_shape)
    of_dy, of_x, *rest = second_gradient(ddx, ddw, None, dy, mul(x, rstd), rstd, weight, dims, wanted, False)
    return of_dy, of_x if of_x is None or of_x.dtype is x_dtype else cast(of_x, x_dtype), *rest


@rms_norm_grad.samples
def _(rand):
    yield rand(4, 6), rand(4, 6), rand(6), (6,), 1e-6, (True, True)
    yield rand(4, 6), rand(4, 6), None, (6,), 1e-6, (True, False)
