"""Padding: constant, reflect, replicate."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from weft.core.errors import MissingFormulaError
from weft.core.sbp import partial_sum
from weft.ops.declaration import Scalar, Size, op
from weft.ops.kernels import aten
from weft.ops.notation import Rule, rules
from weft.ops.shape.views import axes


def _padded(shape: tuple[int, ...], pad: Size) -> tuple[str, tuple[int, ...]]:
    """The notation, in which padded dimensions aren't split, and the output's shape."""
    out = list(shape)
    names = axes(len(shape))
    before, after = list(names), list(names)
    for i in range(len(pad) // 2):
        d = len(shape) - 1 - i
        out[d] += pad[2 * i] + pad[2 * i + 1]
        if pad[2 * i] or pad[2 * i + 1]:
            before[d], after[d] = f"{names[d]}!", f"{names[d]}o!"
    return f"{' '.join(before)} -> {' '.join(after)}", tuple(out)


@op(memory_order="channels_last of any")
def pad_with(x: Tensor, pad: Size, value: Scalar = 0.0) -> Tensor:
    """x padded with `value`: (left, right) of the last dimension, then of the one before it, and so on.

    >>> flow._C.pad_with(flow.ones(1), (1, 2)).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    return aten.constant_pad_nd(x, tuple(pad), value)


@pad_with.layout
def _(x, pad, value):
    text, out = _padded(x, pad)
    # a partial sum can be padded with zeros only
    linear = (Rule((partial_sum,), (partial_sum,)),) if value == 0 else ()
    return *rules(text, (x,), (out,)), *linear


pad_with.grad(lambda dy, pad: pad_with(dy, tuple(-n for n in pad), 0.0))
pad_with.samples(lambda rand: [(rand(4, 6), (1, 2)), (rand(4, 6), (0, -2, 1, 1), 5.0)])


# ---- with the edge's elements ------------------------------------------------------------------------

_EDGES = {  # by mode and number of dimensions: the kernel, and its gradient's
    (mode, dims): (getattr(aten, f"{name}_pad{dims}d"), getattr(aten, f"{name}_pad{dims}d_backward"))
    for mode, name in (("reflect", "reflection"), ("replicate", "replication"))
    for dims in (1, 2, 3)
}


def _edges(pad: Size, mode: str) -> tuple[int, Any, Any]:
    dims = len(pad) // 2
    if (mode, dims) not in _EDGES:
        raise MissingFormulaError(
            f"pad: mode {mode!r} of {dims} dimensions; there are 'reflect' and 'replicate' of one to three, and "
            "'constant' of any"
        )
    return dims, *_EDGES[mode, dims]


@op(linear="x", steady="x", memory_order="channels_last of any on CPUs")
def pad_edges(x: Tensor, pad: Size, mode: str) -> Tensor:
    """x padded with its own elements: mirrored (mode "reflect") or repeated (mode "replicate").

    >>> flow._C.pad_edges(flow.tensor([[1., 2., 3.]]), (1, 1), "reflect").tolist()
    [[2.0, 1.0, 2.0, 3.0, 2.0]]
    """
    dims, kernel, _ = _edges(pad, mode)
    lead = x.shape[: x.dim() - dims]
    if 0 in lead:
        return x.new_empty(_padded(tuple(x.shape), pad)[1])
    if len(lead) == 2:
        return kernel(x, tuple(pad))
    y = kernel(x.reshape((1, -1, *x.shape[x.dim() - dims :])), tuple(pad))
    return y.reshape((*lead, *y.shape[2:]))


pad_edges.layout(lambda x, pad, mode: _padded(x, pad)[0])
pad_edges.grad(lambda dy, x_shape, pad, mode: pad_edges_grad(dy, tuple(x_shape), pad, mode))
pad_edges.samples(lambda rand: [(rand(4, 6), (1, 2), "reflect"), (rand(2, 3, 4, 5), (1, 0, 2, 1), "replicate")])


@op(linear="dy", returns="dx", shape_of="shape")
def pad_edges_grad(dy: Tensor, shape: Size, pad: Size, mode: str) -> Tensor:
    """The gradient of pad_edges: the padding's gradient is added to the elements that it was copied from."""
    dims, _, kernel = _edges(pad, mode)
    tail = tuple(shape[len(shape) - dims :])
    if dy.numel() == 0:
        return dy.new_zeros(tuple(shape))
    g = dy.reshape((1, -1, *dy.shape[dy.dim() - dims :]))
    return kernel(g, dy.new_empty(()).expand((1, g.shape[1], *tail)), tuple(pad)).reshape(tuple(shape))


@pad_edges_grad.layout
def _(dy, shape, pad, mode):
    before, _, after = _padded(tuple(shape), pad)[0].partition(" -> ")
    return f"{after} -> {before}"


pad_edges_grad.grad(lambda ddx, pad, mode: pad_edges(ddx, pad, mode))
pad_edges_grad.samples(lambda rand: [(rand(4, 9), (4, 6), (1, 2), "reflect")])
