"""Dropout."""

from __future__ import annotations

from typing import Any

from weft.core.errors import OptionError
from weft.nn import functional as F
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor


class _Dropout(Module):
    """Zeroes elements with probability p while training, and scales the others."""

    function = "dropout"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise OptionError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        return getattr(F, self.function)(x, self.p, True, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class AlphaDropout(_Dropout):
    """Dropout that keeps a SELU network's mean and variance."""

    function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """Alpha dropout of whole channels."""

    function = "feature_alpha_dropout"


class Dropout(_Dropout):
    """Dropout of elements. OneFlow's extra arguments: a generator, and an addend: `dropout(x, addend)`."""

    def __init__(self, p: float = 0.5, inplace: bool = False, generator: Any = None) -> None:
        super().__init__(p, inplace)
        self.generator = generator

    def forward(self, x: Tensor, addend: Tensor | None = None) -> Tensor:
        if addend is None and self.generator is None:
            return super().forward(x)
        dropping = self.training and self.p > 0
        return F.dropout(x, self.p, dropping, self.inplace, generator=self.generator, addend=addend)


class Dropout1d(_Dropout):
    """Dropout of whole channels of (batch, channels, length)."""

    function = "dropout1d"


class Dropout2d(_Dropout):
    """Dropout of whole channels of (batch, channels, height, width)."""

    function = "dropout2d"


class Dropout3d(_Dropout):
    """Dropout of whole channels of (batch, channels, depth, height, width)."""

    function = "dropout3d"
