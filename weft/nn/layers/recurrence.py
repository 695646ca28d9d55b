"""What recurrent layers compute: one step, and steps over time.

The input's projection doesn't depend on earlier steps, so one matmul computes it for all time steps; each step adds the
state's projection.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from weft.core.errors import ShapeError
from weft.functional.create.creation import tensor
from weft.functional.create.likeness import device_of
from weft.functional.shape.joining import stack
from weft.functional.shape.splitting import chunk, unbind
from weft.nn import functional as F
from weft.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from weft.ops import ops
from weft.tensor.tensor import Tensor

State = tuple[Tensor, ...]
Weights = tuple[Tensor, Tensor | None, Tensor | None]  # of the state, its bias, and the output projection

# ---- one step: from the projected input, the state, and the state's weights ----------------------------------


def _plain_step(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor, State, Weights], State]:
    return lambda gates, state, weights: (activation(ops.add(gates, F.linear(state[0], weights[0], weights[1]))),)


def _lstm_step(gates: Tensor, state: State, weights: Weights) -> State:
    before, memory = state
    enter, keep, new, show = chunk(ops.add(gates, F.linear(before, weights[0], weights[1])), 4, -1)
    memory = ops.add(ops.mul(ops.sigmoid(keep), memory), ops.mul(ops.sigmoid(enter), ops.tanh(new)))
    shown = ops.mul(ops.sigmoid(show), ops.tanh(memory))
    return (shown if weights[2] is None else F.linear(shown, weights[2])), memory


def _gru_step(gates: Tensor, state: State, weights: Weights) -> State:
    before = state[0]
    reset, update, new = chunk(gates, 3, -1)
    state_reset, state_update, state_new = chunk(F.linear(before, weights[0], weights[1]), 3, -1)
    fresh = ops.tanh(ops.add(new, ops.mul(ops.sigmoid(ops.add(reset, state_reset)), state_new)))
    return (ops.add(fresh, ops.mul(ops.sigmoid(ops.add(update, state_update)), ops.sub(before, fresh))),)


# mode: how many gates, how many states, the step
MODES: Final[dict[str, tuple[int, int, Callable[[Tensor, State, Weights], State]]]] = {
    "RNN_TANH": (1, 1, _plain_step(ops.tanh)),
    "RNN_RELU": (1, 1, _plain_step(ops.relu)),
    "LSTM": (4, 2, _lstm_step),
    "GRU": (3, 1, _gru_step),
}


def _scanned(mode: str, gates: Tensor, state: State, weights: tuple[Tensor, Tensor | None], backwards: bool) -> State:
    """The states at all time steps, by one op."""
    if mode == "LSTM":
        return ops.lstm_scan(gates, *state, *weights, backwards)
    if mode == "GRU":
        return (ops.gru_scan(gates, *state, *weights, backwards),)
    return (ops.rnn_scan(gates, *state, *weights, mode == "RNN_RELU", backwards),)


def _scanned_each(
    mode: str, gates: Tensor, state: State, weights: tuple[Tensor, Tensor | None], lengths: list[int], backwards: bool
) -> tuple[Tensor, State]:
    """Likewise for sequences of several lengths; outputs after a sequence's end are undefined.

    Backwards, each sequence starts at its own end: it is flipped before and after.
    """
    where = device_of(gates)
    each = tensor(list(range(len(lengths))), **where)
    turn = [[n - 1 - t if t < n else t for n in lengths] for t in range(gates.shape[0])] if backwards else []
    flipped = [tensor(turn, **where), each] if backwards else None
    over_time = _scanned(mode, gates if flipped is None else ops.index(gates, flipped), state, weights, False)
    ends = [tensor([n - 1 for n in lengths], **where), each]
    last = tuple(ops.index(y, ends) for y in over_time)
    return over_time[0] if flipped is None else ops.index(over_time[0], flipped), last


# ---- layers --------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """The weights of one layer in one direction."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None = None
    b_hh: Tensor | None = None
    w_hr: Tensor | None = None


def forward(self: Any, input: Any, hx: Any = None) -> tuple[Any, Any]:
    """The output at every time step, and the last state of each layer and direction; packed, if the input is."""
    if isinstance(input, PackedSequence):
        padded, counts = pad_packed_sequence(input, self.batch_first)
        y, last = _in_order(self, padded, hx, counts.tolist())
        return pack_padded_sequence(y, counts, self.batch_first, input.sorted_indices is None), last
    return _in_order(self, input, hx, None)


def _in_order(self: Any, input: Tensor, hx: Any, lengths: list[int] | None) -> tuple[Tensor, Any]:
    """Time first, and back."""
    name = self.mode.partition("_")[0]
    if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
        raise ShapeError(
            f"{name} takes a sequence of shape (length, [batch,] {self.input_size}) or, with batch_first, (batch, "
            f"length, {self.input_size}); got {list(input.shape)}"
        )
    turned = input.ndim == 3 and self.batch_first
    x = ops.transpose(input, 0, 1) if turned else input
    rows = [Row(*w) if self.bias else Row(*w[:2], w_hr=w[2] if len(w) > 2 else None) for w in self.all_weights]
    begin = None if hx is None else _begin(name, x, (hx,) if isinstance(hx, Tensor) else tuple(hx), rows, self.mode)
    alone = x.ndim == 2
    if alone:  # a batch of one
        x = ops.unsqueeze(x, 1)
        begin = begin and [tuple(ops.unsqueeze(s, 0) for s in states) for states in begin]
    dropout = self.dropout if self.training else 0.0
    x, last = _over_time(self.mode, x, begin, rows, 2 if self.bidirectional else 1, dropout, lengths)
    if alone:
        x, last = ops.squeeze(x, 1), tuple(ops.squeeze(s, 1) for s in last)
    return ops.transpose(x, 0, 1) if turned else x, last[0] if len(last) == 1 else last


def _begin(name: str, x: Tensor, given: State, rows: list[Row], mode: str) -> list[State]:
    """The initial state of each layer and direction."""
    gates, count, _ = MODES[mode]
    hidden, shown = rows[0].w_hh.shape
    wanted = [(len(rows), *x.shape[1:-1], width) for width in (shown, hidden // gates)[:count]]
    if [tuple(s.shape) for s in given] != wanted:
        raise ShapeError(
            f"{name} takes initial states of shapes {[list(w) for w in wanted]} for an input of {list(x.shape)}; got "
            f"{[list(s.shape) for s in given]}"
        )
    return list(zip(*(unbind(s, 0) for s in given), strict=True))


def _over_time(
    mode: str, x: Tensor, begin: list[State] | None, rows: list[Row], directions: int, dropout: float,
    lengths: list[int] | None,
) -> tuple[Tensor, State]:  # fmt: skip
    """Stacked layers, in one or both directions: the last one's outputs, and the last states of all."""
    ends: list[State] = []
    while len(ends) < len(rows):
        both = []
        for backwards in (False, True)[:directions]:
            at = len(ends)
            outputs, end = _run(mode, x, None if begin is None else begin[at], rows[at], backwards, lengths)
            both.append(outputs)
            ends.append(end)
        x = both[0] if len(both) == 1 else ops.cat(both, -1)
        if dropout and len(ends) < len(rows):
            x = _dropped(x, dropout, lengths)
    return x, tuple(stack(s, 0) if len(s) > 1 else ops.unsqueeze(*s, 0) for s in zip(*ends, strict=True))


def _dropped(x: Tensor, dropout: float, lengths: list[int] | None) -> Tensor:
    """Dropout that draws nothing for padding, as torch does for packed sequences."""
    if lengths is None:
        return F.dropout(x, dropout, True)
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    return pad_packed_sequence(packed._replace(data=F.dropout(packed.data, dropout, True)))[0]


def _run(
    mode: str, x: Tensor, state: State | None, row: Row, backwards: bool, lengths: list[int] | None
) -> tuple[Tensor, State]:
    """One layer in one direction over all time steps; a sequence's state is kept after its end."""
    step = MODES[mode][2]
    if mode == "LSTM" and lengths is None and row.w_hr is None and x.is_local and x.device.type == "cpu":
        outputs, *end = ops.lstm_layer(x, *(state or (None, None)), *row[:4], backwards)
        return outputs, tuple(end)
    whole = F.linear(x, row.w_ih, row.b_ih)
    if state is None:
        state = _zeros(mode, ops.select(whole, 0, 0), row.w_hh)
    if row.w_hr is None:
        weights = row.w_hh, row.b_hh
        if lengths is not None:
            return _scanned_each(mode, whole, state, weights, lengths, backwards)
        over_time = _scanned(mode, whole, state, weights, backwards)
        return over_time[0], tuple(ops.select(y, 0, 0 if backwards else -1) for y in over_time)
    gates = unbind(whole, 0)
    over: list[Tensor] = []
    times = range(len(gates))
    for t in reversed(times) if backwards else times:
        after = step(gates[t], state, (row.w_hh, row.b_hh, row.w_hr))
        if lengths is not None and min(lengths) <= t:
            goes_on = tensor([[n > t] for n in lengths], **device_of(x))
            after = tuple(ops.where(goes_on, new, old) for new, old in zip(after, state, strict=True))
        state = after
        over.append(state[0])
    return stack(over[::-1] if backwards else over, 0), state


def _zeros(mode: str, gates: Tensor, w_hh: Tensor) -> State:
    """First states of zeros, laid out like the gates."""
    kinds, count, _ = MODES[mode]
    rows, shown = w_hh.shape
    first = ops.zeros_like(ops.narrow(gates, -1, 0, shown))
    if shown * kinds == rows:
        return (first,) * count
    return first, ops.zeros_like(ops.narrow(gates, -1, 0, rows // kinds))


def recurrent(mode: str) -> Callable[..., Any]:
    """All layers and directions as a function: of a sequence, its states and weights, or of packed data, sizes, states
    and weights."""

    def call(input: Any, second: Any, third: Any, *more: Any) -> Any:
        packed = isinstance(more[0], (list, tuple))
        hx, weights, bias, layers, dropout, train, both, batch_first = (
            (third, *more, False) if packed else (second, third, *more)
        )
        per = len(weights) // (layers * (2 if both else 1))
        layer = SimpleNamespace(
            mode=mode, all_weights=[weights[i : i + per] for i in range(0, len(weights), per)], bias=bias,
            dropout=dropout, training=train, bidirectional=both, batch_first=batch_first,
            input_size=weights[0].shape[1],
        )  # fmt: skip
        y, last = forward(layer, PackedSequence(input, second) if packed else input, hx)
        return (y.data if packed else y, *((last,) if isinstance(last, Tensor) else last))

    return call


# ---- cells ---------------------------------------------------------------------------------------------------


def cell(mode: str) -> Callable[..., Any]:
    """The function of one step, with explicit weights."""

    def step(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        gates = F.linear(input, w_ih, b_ih)
        state = _zeros(mode, gates, w_hh) if hx is None else (hx,) if isinstance(hx, Tensor) else tuple(hx)
        after = MODES[mode][2](gates, state, (w_hh, b_hh, None))
        return after[0] if len(after) == 1 else after

    return step


CELLS: Final = {mode: cell(mode) for mode in MODES}


def next_state(self: Any, input: Tensor, hx: Any = None) -> Any:
    """The forward of a cell, on (batch, features) or (features)."""
    if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
        raise ShapeError(
            f"{self._get_name()} takes an input of shape ([batch,] {self.input_size}); got {list(input.shape)}"
        )
    return CELLS[self.mode](input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
