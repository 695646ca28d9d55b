"""Products of matrices, which tensor parallelism splits, and of vectors; the matrix exponential."""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from torch import Tensor

from weft.core.sbp import broadcast, partial_sum, split
from weft.ops import notation
from weft.ops.declaration import op
from weft.ops.form import Form, alike
from weft.ops.linalg import onednn
from weft.ops.linalg.onednn import AVX512, SIZE
from weft.ops.notation import Rule, rules
from weft.ops.pointwise.arithmetic import conjugated, mul
from weft.ops.shape.broadcast import fit
from weft.ops.shape.joining import cat
from weft.ops.shape.slicing import narrow
from weft.ops.shape.views import axes, axes_at, reshape, transpose, unsqueeze

# elements to which MKL's product adds what was there more slowly than torch does afterwards: of Intel's CPUs with
# AVX-512, and of those without
LARGE: Final = 1 << 12, 1 << 16


def adjoint(x: Any) -> Any:
    """The conjugate transpose of matrices."""
    return transpose(conjugated(x), -2, -1)


@op(linear="input other", uniform=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product over the last two dimensions; leading dimensions broadcast; a 1-d operand is a vector.

    >>> flow.matmul(flow.ones(2, 3), flow.ones(3, 4)).tolist()
    [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
    """
    if input.dim() == 3 == other.dim() and input.shape[0] == other.shape[0]:
        return torch.bmm(input, other)
    if AVX512 and input.numel() >= SIZE and other.dim() == 2 <= input.dim():
        rows = _rows(input)
        if onednn.takes(rows, other):
            return onednn.product(rows, other).view(*input.shape[:-1], other.shape[1])
    return torch.matmul(input, other)


@matmul.layout
def _(a, b):
    left = "k" if len(a) == 1 else "... m k"
    right = "k" if len(b) == 1 else "... k n"
    out = " ".join((["..."] if max(len(a), len(b)) > 2 else []) + ["m"] * (len(a) > 1) + ["n"] * (len(b) > 1))
    if max(len(a), len(b)) <= 2:
        left, right = left.replace("... ", ""), right.replace("... ", "")
    return f"{left}, {right} -> {out}"


@matmul.out
def _(y, a, b):
    if a.dim() == 3 == b.dim() and a.shape[0] == b.shape[0]:
        torch.bmm(a, b, out=y)
    elif a.dim() >= 2 == b.dim():
        _write(_place(y), _rows(a), b)
    elif a.dim() == 1 or b.dim() == 1:  # torch would resize y
        y.copy_(torch.matmul(a, b))
    else:
        torch.matmul(a, b, out=y)


@matmul.prepared
def _(y, a, b, roomy=False):
    if a.dim() == 3 == b.dim() and a.shape[0] == b.shape[0]:
        return torch.bmm, (a, b), {"out": y}
    if b.dim() == 2 and (a.dim() == 2 or (a.dim() > 2 and a.is_contiguous())):
        return _product(_place(y), _rows(a), b, roomy=roomy)
    return None


def _product(y: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None, roomy: bool = False) -> list[Any]:
    """The calls that write a @ b + bias into given memory."""
    if AVX512 and onednn.writes(a, b, bias, roomy):
        return onednn.requests(y, a, b, bias, roomy=roomy)
    if bias is None:
        return [(torch.mm, (a, b), {"out": y})]
    apart = y.numel() >= LARGE[not AVX512] and y.dtype is torch.float32 and y.device.type == "cpu"
    if apart and not (AVX512 and onednn.amd()):
        return [(torch.mm, (a, b), {"out": y}), (y.add_, (bias,), {})]
    return [(torch.addmm, (bias, a, b), {"out": y})]


def _write(y: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None) -> None:
    for function, args, keywords in _product(y, a, b, bias):
        function(*args, **keywords)


@matmul.grad
def _(dy, input, other, input_shape, other_shape, needs):
    da = db = None
    if len(input_shape) == 1 or len(other_shape) == 1:
        dy, input, other = _as_matrices(dy, input, other, input_shape, other_shape)
    if needs[0]:
        da = _to(fit(matmul(dy, adjoint(other)), tuple(input.shape)), input_shape)
    if needs[1]:
        db = _to(fit(matmul(adjoint(input), dy), tuple(other.shape)), other_shape)
    return da, db


def _as_matrices(dy, a, b, a_shape, b_shape):
    if len(a_shape) == 1:
        a, dy = unsqueeze(a, 0), unsqueeze(dy, -2 if len(b_shape) > 1 else -1)
    if len(b_shape) == 1:
        b, dy = unsqueeze(b, 1), unsqueeze(dy, -1)
    return dy, a, b


def _to(g, shape):
    return g if tuple(g.shape) == tuple(shape) else reshape(g, tuple(shape))


@matmul.samples
def _(rand):
    yield rand(4, 6), rand(6, 8)
    yield rand(2, 4, 6), rand(2, 6, 3)
    yield rand(2, 4, 6), rand(6, 3)
    yield rand(6), rand(6, 4)
    yield rand(4, 6), rand(6)
    yield rand(6), rand(6)


@op("... k, n k, n -> ... n")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias.

    >>> flow.nn.functional.linear(flow.ones(1, 3), flow.ones(2, 3)).tolist()
    [[3.0, 3.0]]
    """
    if AVX512 and x.numel() >= SIZE and x.dim() > 1 < weight.dim():
        rows = _rows(x)
        if onednn.takes(rows, weight.t(), bias):
            return onednn.product(rows, weight.t(), bias).view(*x.shape[:-1], weight.shape[0])
    return torch.nn.functional.linear(x, weight, bias)


@linear.layout
def _(x, weight, bias):
    lead = "... " if len(x) > 1 else ""
    out = (*x[:-1], weight[0])
    if bias is None:
        return *rules(f"{lead}k, n k -> {lead}n", (x, weight), (out,)), *notation.linear(((0,), (1,)), 2, 1)
    found = rules(f"{lead}k!, n k!, n -> {lead}n", (x, weight, bias), (out,))
    # split along k, each product is a part of the sum, and the bias must be counted once
    return (*found, Rule((split(len(x) - 1), split(1), partial_sum), (partial_sum,)), *_linear_with_bias())


def _linear_with_bias() -> tuple[Rule, ...]:
    return (
        Rule((partial_sum, broadcast, partial_sum), (partial_sum,)),
        Rule((broadcast, partial_sum, partial_sum), (partial_sum,)),
    )


@linear.form
def _(x, weight, bias):
    fits = (
        len(weight.shape) == 2 and x.shape[-1:] == weight.shape[1:] and bias in (None, Form(weight.shape[:1], x.dtype))
    )
    return Form((*x.shape[:-1], weight.shape[0]), x.dtype) if fits and alike(x, weight) else None


@linear.out
def _(y, x, weight, bias):
    if weight.dim() == 1 or _for_no_row(bias, x):
        y.copy_(torch.nn.functional.linear(x, weight, bias))
    else:
        _write(_place(y), _rows(x), weight.t(), bias)


@linear.prepared
def _(y, x, weight, bias, roomy=False):
    if weight.dim() == 1 or _for_no_row(bias, x) or (x.dim() != 2 and not (x.is_contiguous() and x.dim() > 2)):
        return None
    return _product(_place(y), _rows(x), weight.t(), bias, roomy)


def _for_no_row(bias: Tensor | None, x: Tensor) -> bool:
    """Whether what is added differs between the rows of x, which aren't those of a matrix."""
    return bias is not None and bias.dim() > 1 and x.dim() > 2


linear.reads(lambda node: node.edges[0] is not None or node.edges[1] is not None)


@linear.grad
def _(dy, x, weight, weight_shape, bias_shape, needs):
    out = dy
    if len(weight_shape) == 1:  # a 0-d output
        out, weight = unsqueeze(dy, -1), unsqueeze(weight, 0)
    dw = linear_weight_grad(out, conjugated(x)) if needs[1] else None
    return (
        matmul(out, conjugated(weight)) if needs[0] else None,
        dw if dw is None or len(weight_shape) > 1 else reshape(dw, tuple(weight_shape)),
        fit(dy, bias_shape) if needs[2] else None,
    )


@linear.samples
def _(rand):
    yield rand(4, 6), rand(8, 6), rand(8)
    yield rand(4, 6), rand(8, 6)
    yield rand(2, 4, 6), rand(3, 6), rand(3)


def _rows(x: Tensor) -> Tensor:
    """The tensor as a matrix of rows; also for empty tensors, where -1 can't be inferred."""
    return x.flatten(0, -2) if x.dim() > 1 else x.unsqueeze(0)


def _place(y: Tensor) -> Tensor:
    """Likewise of given memory, which must not be copied."""
    return y.view(math.prod(y.shape[:-1]), y.shape[-1])


@op("... n, ... k -> n k", linear="dy x", returns="dw", uniform=True)
def linear_weight_grad(dy: Tensor, x: Tensor) -> Tensor:
    """The gradient of `linear`'s weight: dy.T @ x, summed over leading dimensions."""
    if dy.dim() != 2:
        dy, x = _rows(dy), _rows(x)
    if AVX512 and dy.numel() >= SIZE and onednn.takes(dy.t(), x):
        return onednn.product(dy.t(), x)
    return torch.mm(dy.t(), x)


@linear_weight_grad.out
def _(dw, dy, x):
    _write(dw, _rows(dy).t(), _rows(x))


@linear_weight_grad.prepared
def _(dw, dy, x, roomy=False):
    if not (dy.is_contiguous() and x.is_contiguous() and x.dim() > 1):
        return None
    return _product(dw, _rows(dy).t(), _rows(x), roomy=roomy)


@linear_weight_grad.grad
def _(ddw, dy, x, needs):
    return linear(conjugated(x), ddw) if needs[0] else None, matmul(conjugated(dy), ddw) if needs[1] else None


linear_weight_grad.samples(lambda rand: [(rand(4, 8), rand(4, 6)), (rand(2, 4, 8), rand(2, 4, 6))])


@op(returns="dw", uniform=True, adds="linear_weight_grad")
def add_linear_weight_grad(total: Tensor, dy: Tensor, x: Tensor) -> Tensor:
    """total + dy.T @ x: the weight's gradient, summed over slices."""
    a, b = _rows(dy).t(), _rows(x)
    if AVX512 and onednn.takes(a, b):
        return total + onednn.product(a, b)
    return torch.addmm(total, a, b)


@add_linear_weight_grad.layout
def _(total, dy, x):
    lead = " ".join(f"{a}!" for a in axes(len(dy) - 1))  # a sum over parts would count the total for each
    return f"n k, {lead} n, {lead} k -> n k"


@add_linear_weight_grad.out
def _(dw, total, dy, x):
    for function, args, keywords in _added(dw, total, _rows(dy).t(), _rows(x)):
        function(*args, **keywords)


@add_linear_weight_grad.prepared
def _(dw, total, dy, x):
    if not (dy.is_contiguous() and x.is_contiguous() and x.dim() > 1):
        return None
    return _added(dw, total, _rows(dy).t(), _rows(x))


def _added(dw: Tensor, total: Tensor, a: Tensor, b: Tensor) -> list[Any]:
    same = total.data_ptr() == dw.data_ptr()
    if same and AVX512 and onednn.writes(a, b):
        return onednn.requests(dw, a, b, add=True)
    return [(torch.addmm, (dw if same else total, a, b), {"out": dw})]  # one object, so that nothing is copied first


add_linear_weight_grad.reads(lambda node: any(e is not None for e in node.edges[1:]))


@add_linear_weight_grad.grad
def _(ddw, dy, x, needs):
    return ddw, linear(conjugated(x), ddw) if needs[1] else None, matmul(conjugated(dy), ddw) if needs[2] else None


@add_linear_weight_grad.samples
def _(rand):
    yield rand(8, 6), rand(4, 8), rand(4, 6)
    yield rand(8, 6), rand(2, 4, 8), rand(2, 4, 6)


@op("... i! j! -> ... i! j!")
def matrix_exponential(x: Tensor) -> Tensor:
    """The exponential of matrices."""
    return torch.linalg.matrix_exp(x)


@matrix_exponential.grad
def _(dy, x):
    n, t = tuple(x.shape)[-1], adjoint(x)  # the upper right of the exponential of [[t, dy], [0, t]]
    both = cat([cat([t, dy], -1), cat([mul(t, 0.0), t], -1)], -2)
    return narrow(narrow(matrix_exponential(both), -2, 0, n), -1, n, n)


matrix_exponential.samples(lambda rand: [(rand(3, 3),), (rand(4, 2, 2),)])


@op(linear="a b")
def cross(a: Tensor, b: Tensor, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along a dimension.

    >>> flow._C.cross(flow.tensor([1., 0., 0.]), flow.tensor([0., 1., 0.])).tolist()
    [0.0, 0.0, 1.0]
    """
    return torch.linalg.cross(a, b, dim=dim)


cross.layout(lambda a, b, dim: axes_at("<!>, <!> -> <!>", len(a), dim) if len(a) == len(b) else None)


@cross.grad
def _(dy, a, b, dim, needs):
    return cross(conjugated(b), dy, dim) if needs[0] else None, cross(dy, conjugated(a), dim) if needs[1] else None


cross.samples(lambda rand: [(rand(4, 3), rand(4, 3)), (rand(3, 4), rand(3, 4), 0)])
