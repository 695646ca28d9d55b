"""`flow._C`'s recurrent cells and losses: the modules of the same name as functions with explicit weights."""

from __future__ import annotations

from typing import Any

from weft.api.table import named, public
from weft.nn import functional as F
from weft.nn.layers.rnn import MODES
from weft.nn.utils.rnn import pack_padded_sequence


def _step(mode: str, input: Any, state: tuple[Any, ...], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    return MODES[mode][2](F.linear(input, w_ih, b_ih), state, (w_hh, b_hh, None))


def _cell(name: str, mode: str, says: str) -> None:
    @public("bound flow")
    @named(name, f"One step of {says}: returns the new state.")
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return _step(mode, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


for _name, _mode, _says in (
    ("rnn_tanh_cell", "RNN_TANH", "a recurrent layer with tanh"),
    ("rnn_relu_cell", "RNN_RELU", "a recurrent layer with relu"),
    ("gru_cell", "GRU", "gated recurrent units"),
):
    _cell(_name, _mode, _says)


@public("bound flow")
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Any, Any]:
    """One step of LSTM: the new (hidden, cell) from the old."""
    shown, kept = _step("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)
    return shown, kept


@public("bound")
def kl_div_loss(input: Any, target: Any, log_target: bool = False, reduction: str = "mean") -> Any:
    """The Kullback-Leibler divergence of two distributions."""
    return F.kl_div(input, target, reduction, log_target)


@public("bound")
def binary_cross_entropy_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """Binary cross entropy: the negative log probability of each target."""
    return F.binary_cross_entropy(input, target, weight, reduction)


@public("bound")
def binary_cross_entropy_with_logits_loss(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Any:
    """binary_cross_entropy_loss of the sigmoid, numerically stable."""
    return F.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


public("bound")(pack_padded_sequence)
