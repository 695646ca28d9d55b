"""Recurrent layers: RNN, LSTM, GRU, and their single steps as cells.

The input's projection doesn't depend on earlier steps, so one matmul computes it for all time steps; each step adds the
state's projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from weft.core.errors import OptionError, ShapeError
from weft.functional.create.creation import tensor
from weft.functional.create.likeness import device_of
from weft.functional.shape.joining import stack
from weft.functional.shape.splitting import chunk, unbind
from weft.nn import functional as F
from weft.nn import init
from weft.nn.module.making import made
from weft.nn.module.module import Module
from weft.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from weft.ops import ops
from weft.tensor.tensor import Tensor

State = tuple[Tensor, ...]
Weights = tuple[Tensor, Tensor | None, Tensor | None]  # of the state, its bias, and the output projection

# ---- one step: from the projected input, the state, and the state's weights ----------------------------------


def _tanh_step(gates: Tensor, state: State, weights: Weights) -> State:
    return (ops.tanh(ops.add(gates, F.linear(state[0], weights[0], weights[1]))),)


def _relu_step(gates: Tensor, state: State, weights: Weights) -> State:
    return (ops.relu(ops.add(gates, F.linear(state[0], weights[0], weights[1]))),)


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
    "RNN_TANH": (1, 1, _tanh_step),
    "RNN_RELU": (1, 1, _relu_step),
    "LSTM": (4, 2, _lstm_step),
    "GRU": (3, 1, _gru_step),
}


def _mode_of(nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise OptionError(f"unknown nonlinearity {nonlinearity!r}; it is 'tanh' or 'relu'")
    return f"RNN_{nonlinearity.upper()}"


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


class RNNBase(Module):
    """Stacked recurrent layers, in one or both directions; `mode` names the kind of step."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if mode not in MODES:
            raise OptionError(f"unknown mode {mode!r}; it is one of {', '.join(MODES)}")
        if not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise OptionError(f"dropout should be a number in [0, 1], the probability of dropping; got {dropout!r}")
        if hidden_size < 1 or num_layers < 1:
            raise OptionError(f"hidden_size and num_layers must be at least 1; got {hidden_size} and {num_layers}")
        if proj_size and (mode != "LSTM" or not 0 < proj_size < hidden_size):
            raise OptionError(
                f"proj_size is for LSTM, above 0 and below hidden_size ({hidden_size}); got {proj_size} for {mode}"
            )
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        gates, shown, directions = MODES[mode][0] * hidden_size, proj_size or hidden_size, 2 if bidirectional else 1
        for layer in range(num_layers):
            width = input_size if layer == 0 else shown * directions
            for suffix in self._suffixes(layer):
                shapes = {"weight_ih": (gates, width), "weight_hh": (gates, shown)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    self.register_parameter(name + suffix, made(shape, device, dtype))
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 2 if self.bidirectional else 1]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction."""
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        every = [suffix for layer in range(self.num_layers) for suffix in self._suffixes(layer)]
        return [[self._parameters[k + s] for k in kinds if k + s in self._parameters] for s in every]

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: the weights need not be contiguous."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The output at every time step, and the last state of each layer and direction; packed, if the input is."""
        if isinstance(input, PackedSequence):
            padded, counts = pad_packed_sequence(input, self.batch_first)
            y, last = self._over_time(padded, hx, counts.tolist())
            ordered = input.sorted_indices is None
            return pack_padded_sequence(y, counts, self.batch_first, ordered), last
        return self._over_time(input, hx, None)

    def _over_time(self, input: Tensor, hx: Any, lengths: list[int] | None) -> tuple[Tensor, Any]:
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__} takes a sequence of shape (length, [batch,] {self.input_size}) or, with "
                f"batch_first, (batch, length, {self.input_size}); got {list(input.shape)}"
            )
        batched = input.ndim == 3
        x = ops.transpose(input, 0, 1) if batched and self.batch_first else input
        begin = self._begin(x, hx)
        ends: list[State] = []
        for layer in range(self.num_layers):
            both = []
            for suffix in self._suffixes(layer):
                state = None if begin is None else tuple(s[len(ends)] for s in begin)
                outputs, end = self._run(x, state, suffix, lengths)
                both.append(outputs)
                ends.append(end)
            x = both[0] if len(both) == 1 else ops.cat(both, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = self._dropped(x, lengths)
        last = [stack(list(s), 0) for s in zip(*ends, strict=True)]
        y = ops.transpose(x, 0, 1) if batched and self.batch_first else x
        return y, tuple(last) if len(last) > 1 else last[0]

    def _dropped(self, x: Tensor, lengths: list[int] | None) -> Tensor:
        """Dropout that draws nothing for padding, as torch does for packed sequences."""
        if lengths is None:
            return F.dropout(x, self.dropout, True)
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        return pad_packed_sequence(packed._replace(data=F.dropout(packed.data, self.dropout, True)))[0]

    def _begin(self, x: Tensor, hx: Any) -> tuple[tuple[Tensor, ...], ...] | None:
        """The initial states, a tensor per layer and direction."""
        if hx is None:
            return None
        given = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        count = MODES[self.mode][1]
        layers = self.num_layers * (2 if self.bidirectional else 1)
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[:count]
        wanted = [(layers, *x.shape[1:-1], width) for width in widths]
        if [tuple(s.shape) for s in given] != wanted:
            raise ShapeError(
                f"{type(self).__name__} takes initial states of shapes {[list(w) for w in wanted]} for an input of "
                f"{list(x.shape)}; got {[list(s.shape) for s in given]}"
            )
        return tuple(unbind(s, 0) for s in given)

    def _run(self, x: Tensor, state: State | None, suffix: str, lengths: list[int] | None) -> tuple[Tensor, State]:
        """One layer in one direction over all time steps; a sequence's state is kept after its end."""

        def own(name: str) -> Any:
            return getattr(self, name + suffix, None)

        _, count, step = MODES[self.mode]
        backwards = suffix.endswith("_reverse")
        whole = F.linear(x, own("weight_ih"), own("bias_ih"))
        if state is None:
            widths = (self.proj_size or self.hidden_size, self.hidden_size)[:count]
            first = ops.select(whole, 0, 0)
            state = tuple(ops.zeros_like(ops.narrow(first, -1, 0, width)) for width in widths)
        if x.ndim == 3 and not self.proj_size:
            weights = own("weight_hh"), own("bias_hh")
            if lengths is not None:
                return _scanned_each(self.mode, whole, state, weights, lengths, backwards)
            over_time = _scanned(self.mode, whole, state, weights, backwards)
            return over_time[0], tuple(ops.select(y, 0, 0 if backwards else -1) for y in over_time)
        gates = unbind(whole, 0)
        weights = own("weight_hh"), own("bias_hh"), own("weight_hr")
        outputs: list[Tensor] = []
        times = range(len(gates))
        for t in reversed(times) if backwards else times:
            after = step(gates[t], state, weights)
            if lengths is not None and min(lengths) <= t:
                goes_on = tensor([[n > t] for n in lengths], **device_of(x))
                after = tuple(ops.where(goes_on, new, old) for new, old in zip(after, state, strict=True))
            state = after
            outputs.append(state[0])
        return stack(outputs[::-1] if backwards else outputs, 0), state

    def extra_repr(self) -> str:
        plain = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False
        }  # fmt: skip
        said = [f"{name}={getattr(self, name)}" for name, usual in plain.items() if getattr(self, name) != usual]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *said])


class RNN(RNNBase):
    """h = tanh(W x + U h), or relu, over time.

    >>> y, h = flow.nn.RNN(3, 4)(flow.ones(5, 2, 3)); y.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            _mode_of(nonlinearity), input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: gates control what enters the cell state, what is kept, and what is output.

    >>> y, (h, c) = flow.nn.LSTM(3, 4, bidirectional=True)(flow.ones(5, 2, 3)); y.shape, c.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """Gated recurrent units: a reset gate and an update gate."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device,
            dtype=dtype,
        )  # fmt: skip


# ---- cells ---------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """One step of a recurrent layer, on (batch, features) or (features)."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, bias: bool, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.bias = mode, input_size, hidden_size, bias
        gates = MODES[mode][0] * hidden_size
        self.weight_ih = made((gates, input_size), device, dtype)
        self.weight_hh = made((gates, hidden_size), device, dtype)
        self.register_parameter("bias_ih", made((gates,), device, dtype) if bias else None)
        self.register_parameter("bias_hh", made((gates,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state."""
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__} takes an input of shape ([batch,] {self.input_size}); got {list(input.shape)}"
            )
        _, count, step = MODES[self.mode]
        gates = F.linear(input, self.weight_ih, self.bias_ih)
        if hx is None:
            state = (ops.zeros_like(ops.narrow(gates, -1, 0, self.hidden_size)),) * count
        else:
            state = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        after = step(gates, state, (self.weight_hh, self.bias_hh, None))
        return after if count > 1 else after[0]

    def extra_repr(self) -> str:
        said = [] if self.bias else ["bias=False"]
        kind = getattr(self, "nonlinearity", "tanh")
        return ", ".join(
            [f"{self.input_size}, {self.hidden_size}", *said, *[f"nonlinearity={kind}"] * (kind != "tanh")]
        )


class RNNCell(RNNCellBase):
    """One step of RNN."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(_mode_of(nonlinearity), input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity


class LSTMCell(RNNCellBase):
    """One step of LSTM; its state is (hidden, cell)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__("LSTM", input_size, hidden_size, bias, device, dtype)


class GRUCell(RNNCellBase):
    """One step of GRU."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__("GRU", input_size, hidden_size, bias, device, dtype)
