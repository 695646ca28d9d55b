"""Layers of quantization: observers, fake quantization, and convolutions that train for it."""

from __future__ import annotations

from typing import Any

from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.functional.create import creation
from weft.nn.layers.conv import Conv1d, Conv2d, Conv3d
from weft.nn.module.module import Module
from weft.nn.oneflow.quantization import (
    checked,
    fake_quantization,
    min_max_observer,
    moving_average_min_max_observer,
    quantization,
)
from weft.ops import ops
from weft.tensor.tensor import Tensor


class MinMaxObserver(Module):
    """Observes scale and zero point: `scale, zero_point = observer(x)`."""

    def __init__(
        self, quantization_formula: str = "google", quantization_bit: int = 8, quantization_scheme: str = "symmetric",
        per_layer_quantization: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.options = checked(quantization_formula, quantization_bit, quantization_scheme)
        self.per_layer_quantization = per_layer_quantization

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return min_max_observer(x, *self.options, self.per_layer_quantization)


class MovingAverageMinMaxObserver(Module):
    """Observes scale and zero point by running extremes: `scale, zero_point = observer(x, step)`."""

    def __init__(
        self, stop_update_after_iters: int = 1, quantization_formula: str = "google", quantization_bit: int = 8,
        quantization_scheme: str = "symmetric", momentum: float = 0.95,
    ) -> None:  # fmt: skip
        super().__init__()
        self.options = checked(quantization_formula, quantization_bit, quantization_scheme)
        self.stop_update_after_iters, self.momentum = stop_update_after_iters, momentum
        self.register_buffer("moving_max", creation.zeros(1))
        self.register_buffer("moving_min", creation.zeros(1))

    def reset_running_stats(self) -> None:
        """Reset the running extremes."""
        with no_grad():
            for running in (self.moving_max, self.moving_min):
                assign(running, ops.zeros_like(running))

    def forward(self, x: Tensor, current_train_step: Tensor) -> tuple[Tensor, Tensor]:
        return moving_average_min_max_observer(
            x, current_train_step, self.moving_max, self.moving_min, self.training, self.stop_update_after_iters,
            *self.options, self.momentum,
        )  # fmt: skip


class Quantization(Module):
    """x quantized to integers, by a scale and a zero point."""

    def __init__(
        self, quantization_formula: str = "google", quantization_bit: int = 8, quantization_scheme: str = "symmetric"
    ) -> None:
        super().__init__()
        self.options = checked(quantization_formula, quantization_bit, quantization_scheme)

    def forward(self, x: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
        return quantization(x, scale, zero_point, *self.options)


class FakeQuantization(Quantization):
    """x rounded to a few bits, with a straight-through gradient."""

    def forward(self, x: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
        return fake_quantization(x, scale, zero_point, *self.options)


def _trained(kind: Any) -> type[Module]:
    class Qat(kind):
        def __init__(
            self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
            dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
            quantization_formula: str = "google", quantization_bit: int = 8, quantization_scheme: str = "symmetric",
            weight_quant_per_layer: bool = True, input_quant_momentum: float = 0.95,
        ) -> None:  # fmt: skip
            super().__init__(
                in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode
            )
            given = quantization_formula, quantization_bit, quantization_scheme
            self.input_min_max_observer = MovingAverageMinMaxObserver(1, *given, input_quant_momentum)
            self.register_buffer("current_train_step", creation.zeros(1, dtype="int64"))  # stays: it always observes
            self.weight_min_max_observer = MinMaxObserver(*given, weight_quant_per_layer)
            self.fake_quantizer = FakeQuantization(*given)

        def forward(self, x: Tensor) -> Tensor:
            x = self.fake_quantizer(x, *self.input_min_max_observer(x, self.current_train_step))
            weight = self.fake_quantizer(self.weight, *self.weight_min_max_observer(self.weight))
            return self._conv_forward(x, weight, self.bias)

    Qat.__name__ = Qat.__qualname__ = f"Qat{kind.__name__}"
    Qat.__doc__ = f"{kind.__name__} with fake quantization of input and weight, which it trains for."
    Qat.__module__ = __name__
    return Qat


QatConv1d, QatConv2d, QatConv3d = map(_trained, (Conv1d, Conv2d, Conv3d))
