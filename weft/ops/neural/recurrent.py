"""Recurrent layers over time: LSTM, GRU and RNN, after one `linear` has projected the input of all steps. A step is a
handful of small kernels, so their call overhead dominates: the loop over time is one op, rather than dozens of tape
nodes per step.

The backward step is written once. The gradient kernels run it on torch's tensors; for second derivatives it runs on
Weft's, with gates recomputed from the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.core.errors import ShapeError
from weft.ops.declaration import op
from weft.ops.form import Form, alike
from weft.ops.linalg import matmul
from weft.ops.neural.activations import sigmoid
from weft.ops.pointwise.arithmetic import add, mul
from weft.ops.pointwise.elementary import tanh
from weft.ops.shape import joining
from weft.ops.shape.broadcast import fit


class Calls(NamedTuple):
    """The functions that the backward step calls: torch's, or ops."""

    cat: Any
    stack: Any
    matmul: Any
    addmm: Any
    addcmul: Any


KERNELS = Calls(torch.cat, torch.stack, torch.matmul, torch.addmm, torch.addcmul)
PUBLIC = Calls(
    joining.cat, joining.stack, matmul.matmul, lambda x, a, b: add(x, matmul.matmul(a, b)),
    lambda x, a, b: add(x, mul(a, b)),
)  # fmt: skip


def _fits(gates: Any, states: Sequence[Any], weight: Any, bias: Any, count: int) -> bool:
    """Whether shapes fit: gates, `count` per hidden unit, states, weight and bias."""
    if len(gates.shape) != 3 or len(weight.shape) != 2 or not gates.shape[0]:
        return False
    _, batch, width = gates.shape
    hidden = weight.shape[1]
    wanted = [(batch, hidden)] * len(states) + [(width, hidden)] + [(width,)] * (bias is not None)
    given = [tuple(x.shape) for x in (*states, weight, *([] if bias is None else [bias]))]
    return given == wanted and width == count * hidden


def _check(name: str, gates: Tensor, states: Sequence[Tensor], weight: Tensor, bias: Tensor | None, count: int) -> None:
    if not _fits(gates, states, weight, bias, count):
        given = [list(x.shape) for x in (gates, *states, weight, *([] if bias is None else [bias]))]
        raise ShapeError(
            f"{name}(): gates of shape (time, batch, {count} * hidden), of one time step at least, states (batch, "
            f"hidden), a weight ({count} * hidden, hidden) and a bias ({count} * hidden); got "
            f"{', '.join(map(str, given))}"
        )


def _all_fit(over_time: Sequence[Any], gated: Any, weight: Any, gates: int, kept: int, state: Any = None) -> bool:
    """Whether a gradient's operands fit: tensors over time, and `kept` gates per hidden unit."""
    first = over_time[0]
    if len(first.shape) != 3 or not first.shape[0] or any(x.shape != first.shape for x in over_time):
        return False
    hidden = first.shape[2]
    return (
        tuple(gated.shape) == (*first.shape[:2], kept * hidden)
        and tuple(weight.shape) == (gates * hidden, hidden)
        and (state is None or tuple(state.shape) == tuple(first.shape[1:]))
    )


def _in_time(rows: Sequence[Iterable[Any]], backwards: bool) -> list[tuple[Any, ...]]:
    """The inputs of each step, in the order of the loop."""
    steps = list(zip(*rows, strict=True))
    return steps[::-1] if backwards else steps


def _rows(*over_time: Any) -> list[Any]:
    return [x.unbind(0) for x in over_time]


def states_before(call: Calls, y: Any, first: Any, backwards: bool) -> Any:
    """The states before each step."""
    lead = first.unsqueeze(0)
    return call.cat([y[1:], lead] if backwards else [lead, y[:-1]], 0)


def _stacked(call: Calls, parts: list[Any], backwards: bool) -> Any:
    """The results of the backward loop, in time order."""
    return call.stack(parts if backwards else parts[::-1], 0)


# ---- LSTM --------------------------------------------------------------------------------------------


@op("t! b g!, b h!, b h!, g! h!, g! -> t! b h!, t! b h!, t! b g!", returns="y cells | gated")
def lstm_scan(
    gates: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None, backwards: bool = False
) -> tuple[Tensor, Tensor]:
    """An LSTM over time: the hidden and cell states at each step, from the initial ones and the projected input.

    >>> y, cells = flow._C.lstm_scan(flow.zeros(2, 1, 4), flow.zeros(1, 1), flow.ones(1, 1), flow.zeros(4, 1))
    >>> cells.flatten().tolist()
    [0.5, 0.25]
    """
    _check("lstm_scan", gates, (h, c), weight, bias, 4)
    n = weight.shape[1]
    gated = gates.clone() if bias is None else gates + bias
    y, cells, transposed = gates.new_empty((*gates.shape[:2], n)), gates.new_empty((*gates.shape[:2], n)), weight.t()
    sums, entering, keeping, new, showing = (
        gated[..., a * n : b * n] for a, b in ((0, 2), (0, 1), (1, 2), (2, 3), (3, 4))
    )
    for z, both, enter, keep, fresh, show, cell, out in _in_time(
        _rows(gated, sums, entering, keeping, new, showing, cells, y), backwards
    ):
        z.addmm_(h, transposed)
        both.sigmoid_()
        fresh.tanh_()
        show.sigmoid_()
        torch.mul(keep, c, out=cell).addcmul_(enter, fresh)
        torch.tanh(cell, out=out).mul_(show)
        h, c = out, cell
    return y, cells, gated  # type: ignore[return-value]


@lstm_scan.form
def _(gates, h, c, weight, bias, backwards):
    if not _fits(gates, (h, c), weight, bias, 4) or not alike(gates, h, c, weight, bias):
        return None
    states = Form((*gates.shape[:2], h.shape[-1]), gates.dtype)
    return states, states, gates


@lstm_scan.grad
def _(dy, dcells, gates, h, c, weight, bias, bias_shape, y, cells, gated, backwards, needs):
    if here.grad:
        dgates, dh, dc = lstm_gradient(dy, dcells, gates, h, c, weight, bias, y, cells, backwards)
    else:
        dgates, dh, dc = lstm_scan_grad(dy, dcells, gated, cells, c, weight, backwards)
    dw = matmul.linear_weight_grad(dgates, states_before(PUBLIC, y, h, backwards)) if needs[3] else None
    return dgates, dh, dc, dw, fit(dgates, bias_shape) if needs[4] else None


def lstm_gradient(
    dy: Any, dcells: Any, gates: Any, h: Any, c: Any, weight: Any, bias: Any, y: Any, cells: Any, backwards: bool
) -> tuple[Any, Any, Any]:
    """The gradients of lstm_scan's gates and initial states in public ops, to be differentiated again."""
    parts = add(gates, matmul.linear(states_before(PUBLIC, y, h, backwards), weight, bias)).chunk(4, -1)
    gated = [tanh(z) if k == 2 else sigmoid(z) for k, z in enumerate(parts)]
    return _lstm_back(PUBLIC, dy, dcells, gated, cells, c, weight, backwards)


def _lstm_back(
    call: Calls, dy: Any, dcells: Any, gated: Sequence[Any], cells: Any, c: Any, weight: Any, backwards: bool
) -> tuple[Any, Any, Any]:
    enter, keep, fresh, show = gated
    seen = cells.tanh()
    of_memory = call.stack([  # the derivative of the cell state by each gate but the last
        fresh * enter * (1 - enter), states_before(call, cells, c, backwards) * keep * (1 - keep),
        enter * (1 - fresh * fresh),
    ], 2)  # fmt: skip
    over_time = dy, dcells, of_memory, seen * show * (1 - show), show * (1 - seen * seen), keep
    dc: Any = None
    stayed: Any = None
    parts: list[Any] = []
    for dy_t, dc_t, writes, shows, passes, stays in _in_time(_rows(*over_time), not backwards):
        dh = call.addmm(dy_t, parts[-1], weight) if parts else dy_t
        dc = call.addcmul(dc_t if dc is None else call.addcmul(dc_t, dc, stayed), dh, passes)
        parts.append(call.cat([(dc.unsqueeze(1) * writes).flatten(1), dh * shows], -1))
        stayed = stays
    return _stacked(call, parts, backwards), call.matmul(parts[-1], weight), dc * stayed


@op(
    "t! b h!, t! b h!, t! b g!, t! b h!, b h!, g! h! -> t! b g!, b h!, b h!", linear="dy+dcells", returns="dgates dh dc"
)
def lstm_scan_grad(
    dy: Tensor, dcells: Tensor, gated: Tensor, cells: Tensor, c: Tensor, weight: Tensor, backwards: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of lstm_scan's gates and initial states."""
    return _lstm_back(KERNELS, dy, dcells, gated.chunk(4, -1), cells, c, weight, backwards)


@lstm_scan_grad.form
def _(dy, dcells, gated, cells, c, weight, backwards):
    fits = _all_fit((dy, dcells, cells), gated, weight, 4, 4, c)
    return (gated, c, c) if fits and alike(dy, dcells, gated, cells, c, weight) else None


@lstm_scan.samples
def _(rand):
    yield rand(3, 2, 8), rand(2, 2), rand(2, 2), rand(8, 2), rand(8)
    yield rand(2, 3, 4), rand(3, 1), rand(3, 1), rand(4, 1), None, True


@lstm_scan_grad.samples
def _(rand):
    yield rand(3, 2, 2), rand(3, 2, 2), rand(3, 2, 8), rand(3, 2, 2), rand(2, 2), rand(8, 2)


# ---- GRU ---------------------------------------------------------------------------------------------


@op("t! b g!, b h!, g! h!, g! -> t! b h!, t! b k!", returns="y | gated")
def gru_scan(gates: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None, backwards: bool = False) -> Tensor:
    """A GRU over time: the hidden states at each step, from the initial one and the projected input.

    >>> flow._C.gru_scan(flow.zeros(2, 1, 3), flow.ones(1, 1), flow.zeros(3, 1)).flatten().tolist()
    [0.5, 0.25]
    """
    _check("gru_scan", gates, (h,), weight, bias, 3)
    n = weight.shape[1]
    y, gated, transposed = (
        gates.new_empty((*gates.shape[:2], n)),
        gates.new_empty((*gates.shape[:2], 4 * n)),
        weight.t(),
    )
    both, resetting, updating, fresh, seen = (
        gated[..., a * n : b * n] for a, b in ((0, 2), (0, 1), (1, 2), (2, 3), (3, 4))
    )
    for first, second, ru, r, u, new, memory, out in _in_time(
        _rows(gates[..., : 2 * n], gates[..., 2 * n :], both, resetting, updating, fresh, seen, y), backwards
    ):
        z = torch.mm(h, transposed) if bias is None else torch.addmm(bias, h, transposed)
        torch.add(first, z[:, : 2 * n], out=ru).sigmoid_()
        memory.copy_(z[:, 2 * n :])
        torch.addcmul(second, r, memory, out=new).tanh_()
        h = torch.lerp(new, h, u, out=out)
    return y, gated  # type: ignore[return-value]


@gru_scan.form
def _(gates, h, weight, bias, backwards):
    if not _fits(gates, (h,), weight, bias, 3) or not alike(gates, h, weight, bias):
        return None
    n = h.shape[-1]
    return Form((*gates.shape[:2], n), gates.dtype), Form((*gates.shape[:2], 4 * n), gates.dtype)


@gru_scan.grad
def _(dy, gates, h, weight, bias, bias_shape, y, gated, backwards, needs):
    before = states_before(PUBLIC, y, h, backwards)
    if here.grad:
        r, u, new = gates.chunk(3, -1)
        state_r, state_u, seen = matmul.linear(before, weight, bias).chunk(3, -1)
        r, u = sigmoid(add(r, state_r)), sigmoid(add(u, state_u))
        computed = r, u, tanh(new + r * seen), seen
        dgates, dstates, dh = _gru_back(PUBLIC, dy, computed, before, weight, backwards)
    else:
        dgates, dstates, dh = gru_scan_grad(dy, gated, before, weight, backwards)
    dw = matmul.linear_weight_grad(dstates, before) if needs[2] else None
    return dgates, dh, dw, fit(dstates, bias_shape) if needs[3] else None


def _gru_back(
    call: Calls, dy: Any, gated: Sequence[Any], before: Any, weight: Any, backwards: bool
) -> tuple[Any, Any, Any]:
    r, u, new, seen = gated
    derivatives = (1 - u) * (1 - new * new), (before - new) * u * (1 - u), seen * r * (1 - r)
    dh = None
    gates: list[Any] = []
    states: list[Any] = []
    for dy_t, freshens, updates, resets, r_t, u_t in _in_time(_rows(dy, *derivatives, r, u), not backwards):
        dh = dy_t if dh is None else dy_t + dh
        dnew = dh * freshens
        both = [dnew * resets, dh * updates]
        gates.append(call.cat([*both, dnew], -1))
        states.append(call.cat([*both, dnew * r_t], -1))
        dh = dh * u_t + call.matmul(states[-1], weight)
    return _stacked(call, gates, backwards), _stacked(call, states, backwards), dh


@op("t! b h!, t! b k!, t! b h!, g! h! -> t! b g!, t! b g!, b h!", linear="dy", returns="dgates dstates dh")
def gru_scan_grad(
    dy: Tensor, gated: Tensor, before: Tensor, weight: Tensor, backwards: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of gru_scan's gates, by input and by state, and of its initial state."""
    return _gru_back(KERNELS, dy, gated.chunk(4, -1), before, weight, backwards)


@gru_scan_grad.form
def _(dy, gated, before, weight, backwards):
    if not _all_fit((dy, before), gated, weight, 3, 4) or not alike(dy, gated, before, weight):
        return None
    gates = Form((*dy.shape[:2], weight.shape[0]), dy.dtype)
    return gates, gates, Form(dy.shape[1:], dy.dtype)


@gru_scan.samples
def _(rand):
    yield rand(3, 2, 6), rand(2, 2), rand(6, 2), rand(6)
    yield rand(2, 3, 3), rand(3, 1), rand(3, 1), None, True


gru_scan_grad.samples(lambda rand: [(rand(3, 2, 2), rand(3, 2, 8), rand(3, 2, 2), rand(6, 2))])


# ---- RNN ---------------------------------------------------------------------------------------------


@op("t! b h!, b h!, h! k!, h! -> t! b h!", promotes=True, memory_order="first")
def rnn_scan(
    gates: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None, relu: bool = False, backwards: bool = False
) -> Tensor:
    """An RNN over time: the hidden states at each step, tanh or relu of the projected input plus the projected state.

    >>> flow._C.rnn_scan(flow.ones(3, 1, 1), flow.zeros(1, 1), flow.ones(1, 1), None, True).flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    _check("rnn_scan", gates, (h,), weight, bias, 1)
    y, transposed = gates.clone() if bias is None else gates + bias, weight.t()
    for (out,) in _in_time(_rows(y), backwards):
        out.addmm_(h, transposed)
        h = out.relu_() if relu else out.tanh_()
    return y


@rnn_scan.form
def _(gates, h, weight, bias, relu, backwards):
    fits = _fits(gates, (h,), weight, bias, 1)
    return gates if fits and alike(gates, h, weight, bias) else None


@rnn_scan.grad
def _(dy, h, weight, bias_shape, y, relu, backwards, needs):
    if here.grad:
        dgates, dh = _rnn_back(PUBLIC, dy, y, weight, relu, backwards)
    else:
        dgates, dh = rnn_scan_grad(dy, y, weight, relu, backwards)
    dw = matmul.linear_weight_grad(dgates, states_before(PUBLIC, y, h, backwards)) if needs[2] else None
    return dgates, dh, dw, fit(dgates, bias_shape) if needs[3] else None


def _rnn_back(call: Calls, dy: Any, y: Any, weight: Any, relu: bool, backwards: bool) -> tuple[Any, Any]:
    dh = None
    parts: list[Any] = []
    for dy_t, derivative in _in_time(_rows(dy, y > 0 if relu else 1 - y * y), not backwards):
        parts.append((dy_t if dh is None else dy_t + dh) * derivative)
        dh = call.matmul(parts[-1], weight)
    return _stacked(call, parts, backwards), dh


@op("t! b h!, t! b h!, h! k! -> t! b h!, b h!", linear="dy", returns="dgates dh")
def rnn_scan_grad(
    dy: Tensor, y: Tensor, weight: Tensor, relu: bool = False, backwards: bool = False
) -> tuple[Tensor, Tensor]:
    """The gradients of rnn_scan's gates and initial state."""
    return _rnn_back(KERNELS, dy, y, weight, relu, backwards)


@rnn_scan_grad.form
def _(dy, y, weight, relu, backwards):
    return (y, Form(y.shape[1:], y.dtype)) if _all_fit((dy, y), y, weight, 1, 1) and alike(dy, y, weight) else None


@rnn_scan.samples
def _(rand):
    yield rand(3, 2, 2), rand(2, 2), rand(2, 2), rand(2)
    yield rand(2, 3, 1), rand(3, 1), rand(1, 1), None, True, True


rnn_scan_grad.samples(lambda rand: [(rand(3, 2, 2), rand(3, 2, 2), rand(2, 2))])
