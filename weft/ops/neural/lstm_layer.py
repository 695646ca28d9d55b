"""An LSTM's layer on a CPU, with the projection of its input, by one call of oneDNN's. What that doesn't take, wide
and short floats, goes through the scan over time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from weft.core.dispatch import here
from weft.core.dtype import float32, of_torch, uint8
from weft.core.errors import ShapeError
from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import op
from weft.ops.form import Form, alike
from weft.ops.kernels import aten
from weft.ops.linalg.matmul import linear, linear_weight_grad, matmul
from weft.ops.neural.recurrent import KERNELS, PUBLIC, lstm_gradient, lstm_scan, lstm_scan_grad, states_before
from weft.ops.pointwise.arithmetic import add
from weft.ops.shape.broadcast import fit
from weft.ops.shape.slicing import narrow_scatter_zeros
from weft.ops.shape.views import unsqueeze

MODE: Final = 2  # torch's number of an LSTM


def _by_onednn(x: Any) -> bool:
    return x.dtype in (float32, torch.float32) and 0 not in x.shape and torch._C._get_mkldnn_enabled()


def _options(hidden: int, reverse: bool) -> tuple[Any, ...]:
    sizes: list[int] = []  # of packed batches
    layers, biases, both_ways, batch_first, train = 1, True, False, False, True
    return reverse, sizes, MODE, hidden, layers, biases, both_ways, batch_first, train


def _fits(x: Any, states: Sequence[Any], w_ih: Any, w_hh: Any, biases: Sequence[Any]) -> bool:
    """Whether shapes fit."""
    if len(x.shape) != 3 or len(w_hh.shape) != 2 or not x.shape[0]:
        return False
    width, hidden = w_hh.shape
    wanted = [(x.shape[1], hidden)] * len(states) + [(width, x.shape[2])] + [(width,)] * len(biases)
    given = (*states, w_ih, *biases)
    return width == 4 * hidden and all(t is None or tuple(t.shape) == s for t, s in zip(given, wanted, strict=True))


@op(returns="y last memory | kept")
def lstm_layer(
    x: Tensor, h: Tensor | None, c: Tensor | None, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None, backwards: bool = False,
) -> Any:  # fmt: skip
    """An LSTM of one layer, in one direction: its outputs at each step, and the last hidden and cell state. The first
    states are zeros unless given.

    >>> x, w_ih, w_hh = flow.zeros(2, 1, 3), flow.zeros(4, 3), flow.zeros(4, 1)
    >>> flow._C.lstm_layer(x, flow.zeros(1, 1), flow.ones(1, 1), w_ih, w_hh)[2].item()
    0.25
    """
    if not _fits(x, (h, c), w_ih, w_hh, (b_ih, b_hh)):
        given = [list(t.shape) for t in (x, h, c, w_ih, w_hh, b_ih, b_hh) if t is not None]
        raise ShapeError(
            "lstm_layer(): x of shape (time, batch, features), of one time step at least, states (batch, hidden), "
            "weights (4 * hidden, features) and (4 * hidden, hidden), biases (4 * hidden); got "
            f"{', '.join(map(str, given))}"
        )
    h, c = _states(x, h, c, w_hh)
    if not _by_onednn(x):
        y, cells, gated = lstm_scan.kernel(torch.nn.functional.linear(x, w_ih, b_ih), h, c, w_hh, b_hh, backwards)
        end = 0 if backwards else -1
        return y, y[end].clone(), cells[end].clone(), torch.cat([gated, cells], -1)
    weights = w_ih.contiguous(), w_hh.contiguous(), *_biases(w_ih, b_ih, b_hh)
    with torch.enable_grad():  # without, it keeps nothing
        return aten.mkldnn_rnn_layer(x.contiguous(), *weights, h, c, *_options(w_hh.shape[1], backwards))


def _states(x: Tensor, h: Tensor | None, c: Tensor | None, w_hh: Tensor) -> list[Tensor]:
    shape = x.shape[1], w_hh.shape[1]
    return [x.new_zeros(shape) if s is None else s.contiguous() for s in (h, c)]


def _biases(w_ih: Tensor, *given: Tensor | None) -> list[Tensor]:
    return [w_ih.new_zeros(w_ih.shape[0]) if b is None else b.contiguous() for b in given]


@functools.cache
def _bytes_kept(steps: int, batch: int, features: int, hidden: int) -> int:
    """How much oneDNN keeps for the gradient, which only a run tells."""
    with _disable_current_modes():
        shapes = (steps, batch, features), (batch, hidden), (4 * hidden, features), (4 * hidden, hidden)
        x, state, w_ih, w_hh = (torch.zeros(s, dtype=torch.float32, device="cpu") for s in shapes)
        return lstm_layer.kernel(x, state, state, w_ih, w_hh)[-1].numel()


@lstm_layer.form
def _forms(x, h, c, w_ih, w_hh, b_ih, b_hh, backwards):
    if not _fits(x, (h, c), w_ih, w_hh, (b_ih, b_hh)) or not alike(x, h, c, w_ih, w_hh, b_ih, b_hh):
        return None
    (steps, batch, features), hidden = x.shape, w_hh.shape[1]
    state = Form((batch, hidden), x.dtype)
    kept = Form((steps, batch, 5 * hidden), x.dtype)
    if _by_onednn(x):
        kept = Form((_bytes_kept(steps, batch, features, hidden),), uint8)
    return Form((steps, batch, hidden), x.dtype), state, state, kept


@lstm_layer.grad
def _(x, h, c, w_ih, w_hh, b_ih, b_hh, y, last, memory, kept, backwards, dy=None, dlast=None, dmemory=None):
    if not here.grad:
        dx, dh, dc, dw_ih, dw_hh, db = lstm_layer_grad(
            dy, dlast, dmemory, x, h, c, w_ih, w_hh, b_ih, b_hh, y, last, memory, kept, backwards
        )
        return dx, dh, dc, dw_ih, dw_hh, db, db
    dy, dlast, dmemory = (zeros_like(t) if d is None else d for d, t in ((dy, y), (dlast, last), (dmemory, memory)))
    h, c = (zeros_like(last) if s is None else s for s in (h, c))
    gates = linear(x, w_ih, b_ih)
    y, cells = lstm_scan(gates, h, c, w_hh, b_hh, backwards)
    end = 0 if backwards else x.shape[0] - 1
    dlast, dcells = (narrow_scatter_zeros(unsqueeze(d, 0), tuple(y.shape), 0, end, 1) for d in (dlast, dmemory))
    dgates, dh, dc = lstm_gradient(add(dy, dlast), dcells, gates, h, c, w_hh, b_hh, y, cells, backwards)
    dw_hh = linear_weight_grad(dgates, states_before(PUBLIC, y, h, backwards))
    db = fit(dgates, (w_ih.shape[0],))
    return matmul(dgates, w_ih), dh, dc, linear_weight_grad(dgates, x), dw_hh, db, db


@op(linear="dy+dlast+dmemory", returns="dx dh dc dw_ih dw_hh db")
def lstm_layer_grad(
    dy: Tensor | None, dlast: Tensor | None, dmemory: Tensor | None, x: Tensor, h: Tensor | None, c: Tensor | None,
    w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None, y: Tensor, last: Tensor, memory: Tensor,
    kept: Tensor, backwards: bool = False,
) -> Any:  # fmt: skip
    """The gradients of lstm_layer's operands; that of both biases is one."""
    given = dy, dlast, dmemory, x, h, c, w_ih, w_hh, b_ih, b_hh, y, last, memory, kept
    _check_gradient(*(None if t is None else (t.shape, t.dtype) for t in given))
    h, c = _states(x, h, c, w_hh)
    hidden = w_hh.shape[1]
    if kept.dtype is torch.uint8:
        weights = w_ih.contiguous(), w_hh.contiguous(), *_biases(w_ih, b_ih, b_hh)
        x, y, last, memory, kept = (t.contiguous() for t in (x, y, last, memory, kept))
        dy, dlast, dmemory = (None if d is None else d.contiguous() for d in (dy, dlast, dmemory))
        reverse, sizes, mode, *numbers, biases, both_ways, batch_first, train = _options(hidden, backwards)
        dx, dw_ih, dw_hh, db, _, dh, dc = aten.mkldnn_rnn_layer_backward(
            x, *weights, h, c, y, last, memory, dy, dlast, dmemory, reverse, mode, *numbers, biases, train, both_ways,
            sizes, batch_first, kept,
        )  # fmt: skip
        return dx, dh, dc, dw_ih, dw_hh, db
    end = 0 if backwards else -1
    dy, dcells, cells = torch.zeros_like(y) if dy is None else dy.clone(), torch.zeros_like(y), kept[..., 4 * hidden :]
    for total, d in ((dy, dlast), (dcells, dmemory)):
        if d is not None:
            total[end] += d
    dgates, dh, dc = lstm_scan_grad.kernel(dy, dcells, kept[..., : 4 * hidden], cells, c, w_hh, backwards)
    rows = dgates.flatten(0, 1).t()
    dw_ih, dw_hh = (rows @ t.flatten(0, 1) for t in (x, states_before(KERNELS, y, h, backwards)))
    return dgates @ w_ih, dh, dc, dw_ih, dw_hh, dgates.sum((0, 1))


@lstm_layer_grad.form
def _(dy, dlast, dmemory, x, h, c, w_ih, w_hh, b_ih, b_hh, y, last, memory, kept, backwards):
    forms = _forms(x, h, c, w_ih, w_hh, b_ih, b_hh, backwards)
    if forms is None or (y, last, memory, kept) != forms:
        return None
    if any(d is not None and d != f for d, f in zip((dy, dlast, dmemory), forms[:3], strict=True)):
        return None
    return x, last, memory, w_ih, w_hh, Form(w_ih.shape[:1], w_ih.dtype)


@functools.lru_cache(1 << 12)
def _check_gradient(*given: tuple[torch.Size, torch.dtype] | None) -> None:
    """Refuse operands that don't fit each other: oneDNN looks at the sizes of some of them only, and would write beyond
    the others' memory."""
    forms = [None if t is None else Form(tuple(t[0]), of_torch(t[1])) for t in given]
    if lstm_layer_grad.form_function(*forms, False) is None:  # pyright: ignore[reportOptionalCall]
        shown = ", ".join(f"{f.dtype.name}{list(f.shape)}" for f in forms if f is not None)
        raise RuntimeError(f"these don't come from one call of lstm_layer: {shown}")  # explained as a kernel's error


def _samples(rand: Any) -> Any:
    yield rand(3, 2, 3), rand(2, 2), rand(2, 2), rand(8, 3), rand(8, 2), rand(8), rand(8)
    yield rand(2, 3, 2), rand(3, 1), rand(3, 1), rand(4, 2), rand(4, 1), None, None, True


lstm_layer.samples(_samples)


@lstm_layer_grad.samples
def _(rand):
    for row in _samples(rand):
        *given, backwards = lstm_layer.bind(row, {})
        y, last, memory, kept = lstm_layer.kernel(*given, backwards)
        yield rand(*y.shape), rand(*last.shape), rand(*last.shape), *given, y, last, memory, kept, backwards
