"""`flow._C`'s recurrent layers, cells and losses: the modules of the same name as functions with explicit weights."""

from __future__ import annotations

from typing import Any

from weft.api.table import named, public
from weft.nn import functional as F
from weft.nn.layers.recurrence import cell, recurrent
from weft.nn.utils.rnn import pack_padded_sequence

for _name, _mode, _says in (
    ("rnn_tanh", "RNN_TANH", "a recurrent layer with tanh: returns the new state"),
    ("rnn_relu", "RNN_RELU", "a recurrent layer with relu: returns the new state"),
    ("gru", "GRU", "gated recurrent units: returns the new state"),
    ("lstm", "LSTM", "LSTM: the new (hidden, cell) from the old"),
):
    public("bound")(
        named(_name, f"nn.{_mode.partition('_')[0]} of weights: outputs and last states.")(recurrent(_mode))
    )
    public("bound flow")(named(f"{_name}_cell", f"One step of {_says}.")(cell(_mode)))


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
