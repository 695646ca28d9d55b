"""Normalization per channel (batch_norm, which keeps running statistics) and per group of channels (group_norm)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import float32
from weft.core.errors import ArgumentError, ShapeError
from weft.core.sbp import broadcast
from weft.ops.create.convert import to_global
from weft.ops.declaration import op
from weft.ops.form import FLOATS, WIDE, Form, alike
from weft.ops.kernels import aten, memory_format
from weft.ops.neural.layer_norm import absent, gradients, in_kernels_dtype, second_gradient, statistics_of, widen
from weft.ops.pointwise.arithmetic import add, mul, square, sub
from weft.ops.pointwise.copies import cast
from weft.ops.pointwise.elementary import rsqrt
from weft.ops.reduce.sums import mean, sum
from weft.ops.shape.views import axes, reshape


def _channels(n: int, ndim: int) -> tuple[int, ...]:
    """The shape in which a vector per channel broadcasts against x."""
    return (1, n, *(1,) * (ndim - 2))


def _others(ndim: int) -> tuple[int, ...]:
    return (0, *range(2, ndim))


def _term(ndim: int, whole: bool) -> str:
    """The notation of x; with `whole` batches, only channels may be split."""
    return " ".join("c" if i == 1 else f"{a}!" if whole else a for i, a in enumerate(axes(ndim)))


def _fits(dy: Form, x: Form, weight: Form | None) -> bool:
    """Whether operands of a gradient go together; else the kernel raises."""
    one_each = weight is None or weight.shape == x.shape[1:2]
    return dy.shape == x.shape and len(x.shape) > 1 and 0 not in x.shape and alike(x) and one_each


# ---- batch_norm --------------------------------------------------------------------------------------


@op(returns="y | save_mean save_rstd", writes="running_mean running_var", memory_order="channels_last of any")
def batch_norm(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / deviation per channel, times weight, plus bias. Training uses the batch's statistics and updates the
    running ones, which are used otherwise.

    >>> x = flow.tensor([[1.0], [3.0]])
    >>> flow._C.batch_norm(x, None, None, None, None, True, 0.1, 0.0).tolist()
    [[-1.0], [1.0]]
    """
    if x.dim() < 2:
        raise ShapeError(f"batch_norm takes x of two dimensions or more (batch, channels, ...); got {list(x.shape)}")
    if not training and (running_mean is None or running_var is None):
        raise ArgumentError("batch_norm: expected running_mean and running_var when not training; pass training=True")
    named = ("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)
    for name, t in named:  # the kernel doesn't check, and would access memory out of bounds
        if t is not None and t.numel() != x.shape[1]:
            raise ShapeError(
                f"batch_norm: {name} should contain {x.shape[1]} elements not {t.numel()}: one per channel of x "
                f"{list(x.shape)}"
            )
    if not x.numel():  # an empty batch, which changes no statistics; a rank's shard of fewer channels than ranks
        n = x.shape[1] if training else 0
        return x.clone(), widen(x.new_zeros(n)), widen(x.new_zeros(n))  # type: ignore[return-value]
    y, save_mean, save_rstd = torch.native_batch_norm(
        x, weight, bias, running_mean, running_var, training, momentum, eps
    )
    if training:
        return y, widen(save_mean), widen(save_rstd)  # type: ignore[return-value]
    return y, widen(x.new_empty(0)), widen(x.new_empty(0))  # type: ignore[return-value]


@batch_norm.layout
def _(x, running_mean, running_var, weight, bias, training, momentum, eps):
    term = _term(len(x), training)
    saved = "c" if training else "z!"
    ins = ", ".join([term, *("c" for t in (running_mean, running_var, weight, bias) if t is not None)])
    return f"{ins} -> {term}, {saved}, {saved}"


@batch_norm.form
def _(x, running_mean, running_var, weight, bias, training, momentum, eps):
    channel = Form(x.shape[1:2], x.dtype)
    others = (running_mean, running_var, weight, bias)
    if len(x.shape) < 2 or 0 in x.shape or not alike(x) or any(t not in (None, channel) for t in others):
        return None
    saved = statistics_of(x, channel.shape if training else (0,))
    return x, saved, saved


@batch_norm.instead
def _(x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float):
    if not training or all(s.is_broadcast or s.dim == 1 for s in x.sbp):
        return NotImplemented
    # the statistics of a split batch: partial sums, reduced at once, as they are small, and not in 16 bits
    ndim, n, dtype = len(x.shape), x.shape[1], x.dtype
    if dtype in FLOATS - WIDE:
        x = cast(x, float32)
    count, whole = x.shape.numel() // max(n, 1), tuple(s if s.dim == 1 else broadcast for s in x.sbp)
    centre = to_global(mean(x, _others(ndim), True), x.placement, whole)
    away = sub(x, centre)
    variance = to_global(mean(square(away), _others(ndim), True), x.placement, whole)
    if running_mean is not None and count:
        unbiased = mul(variance.detach(), count / max(count - 1, 1))
        for running, value in ((running_mean, centre.detach()), (running_var, unbiased)):
            value = reshape(value, (n,))
            blend(running, value if running.dtype is value.dtype else cast(value, running.dtype), momentum)
    y = mul(away, rsqrt(add(variance, eps)))
    if weight is not None:
        y = mul(y, reshape(weight, _channels(n, ndim)))
    if bias is not None:
        y = add(y, reshape(bias, _channels(n, ndim)))
    return y if y.dtype is dtype else cast(y, dtype)


@batch_norm.grad
def _(dy, x, running_mean, running_var, weight, bias_shape, save_mean, save_rstd, training, eps, needs):
    wanted = (needs[0], needs[3], needs[4])
    if training:
        running_mean = running_var = None
    dx, dw, db = batch_norm_grad(dy, x, weight, running_mean, running_var, save_mean, save_rstd, training, eps, wanted)
    return dx if needs[0] else None, None, None, dw if needs[3] else None, db if needs[4] else None


@batch_norm.samples
def _(rand):
    yield rand(4, 5, 3), rand(5), rand(5).abs(), rand(5), rand(5), True, 0.2
    yield rand(4, 5, 3, 2), rand(5), rand(5).abs(), rand(5), rand(5), False
    yield rand(4, 5), None, None, None, None, True


@op(returns="", writes="running")
def blend(running: Tensor, value: Tensor, weight: float) -> tuple[()]:
    """Update a running average: running += weight * (value - running)."""
    running.lerp_(value, weight)
    return ()


blend.layout(lambda running, value, weight: f"{' '.join(axes(len(running)))}, {' '.join(axes(len(running)))} -> ")
blend.samples(lambda rand: [(rand(4, 6), rand(4, 6), 0.1)])


@op(returns="", writes="x", linear="x+value")
def store(x: Tensor, value: Tensor) -> tuple[()]:
    """Overwrite x with a value of its shape: a graph's in-place writes end in this op."""
    x.copy_(value)
    return ()


store.layout(lambda x, value: f"{' '.join(axes(len(x)))}, {' '.join(axes(len(x)))} -> ")
store.samples(lambda rand: [(rand(4, 6), rand(4, 6))])


@op(returns="dx dw db", uniform=True, memory_order="channels_last of x")
def batch_norm_grad(
    dy: Tensor, x: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    save_mean: Tensor, save_rstd: Tensor, training: bool, eps: float, wanted: tuple[bool, ...],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of batch_norm's x, weight and bias; those that aren't needed are zero."""
    used = (save_mean, save_rstd) if training else (running_mean, running_var)
    of_each = [-1 if t is None else t.numel() for t in used] + [x.shape[1] if weight is None else weight.numel()]
    if dy.shape != x.shape or of_each != [x.shape[1]] * 3:  # the kernel would read out of bounds
        raise ShapeError(
            f"batch_norm_grad(): dy needs x's shape, statistics and weight one for each of its {x.shape[1]} channels"
        )
    if not x.numel():  # the kernel divides by it
        nothing = torch.empty_like(x), x.new_zeros(x.shape[1]), x.new_zeros(x.shape[1])
        return tuple(absent(x, g if n else None) for g, n in zip(nothing, wanted, strict=True))  # type: ignore[return-value]
    save_mean, save_rstd = in_kernels_dtype(x, running_mean if weight is None else weight, save_mean, save_rstd)
    grads = aten.native_batch_norm_backward(
        dy, x, weight, running_mean, running_var, save_mean, save_rstd, training, eps, [bool(n) for n in wanted]
    )
    return tuple(absent(x, g if n else None) for g, n in zip(grads, wanted, strict=True))  # type: ignore[return-value]


@batch_norm_grad.form
def _(dy, x, weight, running_mean, running_var, save_mean, save_rstd, training, eps, wanted):
    return gradients(x, weight, x.shape[1:2], wanted) if _fits(dy, x, weight) else None


@batch_norm_grad.layout
def _(dy, x, weight, running_mean, running_var, save_mean, save_rstd, training, eps, wanted):
    term, saved = _term(len(x), training), "c" if training else "z!"
    per_channel = ["c" for t in (weight, running_mean, running_var) if t is not None]
    outs = [t if n else "" for t, n in zip((term, "c", "c"), wanted, strict=True)]
    return f"{', '.join([term, term, *per_channel, saved, saved])} -> {', '.join(outs)}"


@batch_norm_grad.grad
def _(ddx, ddw, ddb, dy, x, weight, running_mean, running_var, save_mean, save_rstd, training, eps, wanted):
    ndim, n = len(x.shape), x.shape[1]
    each = _channels(n, ndim)
    w = None if weight is None else reshape(weight, each)
    b = reshape(ddw, each) if wanted[1] else None
    c = reshape(ddb, each) if wanted[2] else None
    if training:
        centre, rstd = (reshape(cast(t, x.dtype), each) for t in (save_mean, save_rstd))
        hat = mul(sub(x, centre), rstd)
        d_dy, d_x, d_w = second_gradient(ddx, b, c, dy, hat, rstd, w, _others(ndim), wanted)
    else:
        rstd = rsqrt(add(reshape(running_var, each), eps))
        d_dy, d_x, d_w = _second_in_evaluation(
            ddx, b, c, dy, mul(sub(x, reshape(running_mean, each)), rstd), rstd, w, wanted
        )
    return d_dy, d_x, None if d_w is None else reshape(d_w, (n,)), None, None, None, None


def _second_in_evaluation(a, b, c, dy, hat, rstd, w, wanted):
    """The second derivative with fixed statistics: dx = dy * w * rstd, dw = sum(dy * hat), db = sum(dy)."""
    dims = _others(len(dy.shape))
    d_dy = d_x = d_w = None
    if wanted[0]:
        scaled = mul(a, rstd)
        d_dy = scaled if w is None else mul(scaled, w)
        d_w = None if w is None else sum(mul(scaled, dy), dims, True)
    if wanted[1]:
        d_x = mul(mul(b, dy), rstd)
        d_dy = mul(b, hat) if d_dy is None else add(d_dy, mul(b, hat))
    if wanted[2]:
        d_dy = add(mul(dy, 0.0), c) if d_dy is None else add(d_dy, c)
    return d_dy, d_x, d_w


@batch_norm_grad.samples
def _(rand):
    x, w = rand(4, 5, 3), rand(5)
    _, save_mean, save_rstd = torch.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-5)
    nothing = x.new_empty(0)
    yield rand(4, 5, 3), x, w, None, None, save_mean, save_rstd, True, 1e-5, (True, True, True)
    yield rand(4, 5, 3), x, w, rand(5), rand(5).abs(), nothing, nothing, False, 1e-5, (True, True, True)


# ---- group_norm --------------------------------------------------------------------------------------


@op(returns="y | mean rstd", memory_order="channels_last of any on CPUs")
def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / deviation per sample and group of channels, times weight, plus bias, per channel.

    >>> flow._C.group_norm(flow.tensor([[1.0, 3.0]]), 1, None, None, 0.0).tolist()
    [[-1.0, 1.0]]
    """
    if x.dim() < 2 or num_groups < 1 or x.shape[1] % num_groups:
        raise ShapeError(
            "group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.shape)} and num_groups={num_groups}; x is (batch, channels, ...)"
        )
    x = x.contiguous(memory_format=memory_format(x))
    y, mean, rstd = aten.native_group_norm(x, _dense(weight), _dense(bias), *_sizes(x), num_groups, eps)
    return y, widen(mean), widen(rstd)  # type: ignore[return-value]


def _dense(t: Tensor | None) -> Any:
    """Contiguous memory, as the kernel ignores strides."""
    return None if t is None else t.contiguous()


def _sizes(x: Tensor) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def _samples(ndim: int) -> str:
    return " ".join(a if i == 0 else f"{a}!" for i, a in enumerate(axes(ndim)))


@group_norm.layout
def _(x, num_groups, weight, bias, eps):
    term = _samples(len(x))
    ins = [term, *("c!" for t in (weight, bias) if t is not None)]
    return f"{', '.join(ins)} -> {term}, a0 g!, a0 g!"


@group_norm.form
def _(x, num_groups, weight, bias, eps):
    channel = Form(x.shape[1:2], x.dtype)
    fits = len(x.shape) > 1 and alike(x) and num_groups > 0 and x.shape[1] % num_groups == 0
    if not fits or any(t not in (None, channel) for t in (weight, bias)):
        return None
    statistics = statistics_of(x, (x.shape[0], num_groups))
    return x, statistics, statistics


@group_norm.grad
def _(dy, x, weight, bias_shape, mean, rstd, num_groups, needs):
    dx, dw, db = group_norm_grad(dy, x, mean, rstd, weight, num_groups, needs)
    return dx if needs[0] else None, dw if needs[1] else None, db if needs[2] else None


group_norm.samples(lambda rand: [(rand(4, 6, 3), 2, rand(6), rand(6)), (rand(4, 6, 2, 3), 3)])


@op(linear="dy", returns="dx dw db", uniform=True, memory_order="channels_last of x on CPUs")
def group_norm_grad(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, num_groups: int, wanted: tuple[bool, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of group_norm's x, weight and bias; those that aren't needed are zero."""
    mean, rstd = in_kernels_dtype(x, weight, mean, rstd)
    lies = memory_format(x)
    dy, x = (t.contiguous(memory_format=lies) for t in (dy, x))  # the kernel takes both for alike
    asked = [bool(wanted[0]) or lies is not torch.contiguous_format, *map(bool, wanted[1:])]  # without, it crashes
    grads = aten.native_group_norm_backward(
        dy, x, _dense(mean), _dense(rstd), _dense(weight), *_sizes(x), num_groups, asked
    )
    return tuple(absent(x, g if n else None) for g, n in zip(grads, wanted, strict=True))  # type: ignore[return-value]


@group_norm_grad.form
def _(dy, x, mean, rstd, weight, num_groups, wanted):
    return gradients(x, weight, x.shape[1:2], wanted) if _fits(dy, x, weight) else None


@group_norm_grad.layout
def _(dy, x, mean, rstd, weight, num_groups, wanted):
    term = _samples(len(x))
    outs = [t if n else "" for t, n in zip((term, "c!", "c!"), wanted, strict=True)]
    weighted = ", c!" if weight is not None else ""
    return f"{term}, {term}, a0 g!, a0 g!{weighted} -> {', '.join(outs)}"


@group_norm_grad.grad
def _(ddx, ddw, ddb, dy, x, mean, rstd, weight, num_groups, wanted):
    shape, mean, rstd = tuple(x.shape), cast(mean, x.dtype), cast(rstd, x.dtype)
    parted = (shape[0], num_groups, shape[1] // num_groups, math.prod(shape[2:]))
    per_channel = (1, num_groups, shape[1] // num_groups, 1)
    per_group = (shape[0], num_groups, 1, 1)
    g, h, centre, r = reshape(dy, parted), reshape(x, parted), reshape(mean, per_group), reshape(rstd, per_group)
    w = None if weight is None else reshape(weight, per_channel)
    a = reshape(ddx, parted) if wanted[0] else None
    b = reshape(ddw, per_channel) if wanted[1] else None
    c = reshape(ddb, per_channel) if wanted[2] else None
    d_dy, d_x, d_w = second_gradient(a, b, c, g, mul(sub(h, centre), r), r, w, (2, 3), wanted)
    return (
        None if d_dy is None else reshape(d_dy, shape), None if d_x is None else reshape(d_x, shape), None, None,
        None if d_w is None else reshape(d_w, (shape[1],)),
    )  # fmt: skip


@group_norm_grad.samples
def _(rand):
    x, w = rand(4, 6, 3), rand(6)
    _, mean, rstd = aten.native_group_norm(x, w, w, 4, 6, 3, 2, 1e-5)
    yield rand(4, 6, 3), x, mean, rstd, w, 2, (True, True, True)
    yield rand(4, 6, 3), x, mean, rstd, None, 2, (True, False, False)
