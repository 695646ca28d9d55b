"""Graphs that many tests need: of a call, and of a step of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import nn


class Calls(nn.Graph):
    """A call of a module or a function."""

    def __init__(self, model: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model

    def build(self, *args: Any) -> Any:
        return self.model(*args)


class Trains(nn.Graph):
    """A step of training, by a loss of what the model gives."""

    def __init__(
        self, model: Any, optimizer: Any, loss: Callable[[Any], Any] = lambda y: y.square().mean(), steps: int = 1
    ) -> None:
        super().__init__()
        self.model, self.loss = model, loss
        self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(steps)

    def build(self, *args: Any) -> Any:
        loss = self.loss(self.model(*args))
        loss.backward()
        return loss
