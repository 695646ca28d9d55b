"""PixelShuffle, PixelUnshuffle and ChannelShuffle."""

from __future__ import annotations

from typing import Any

from weft.core.errors import OptionError
from weft.functional.neural import channels
from weft.nn.layers.activation import layer_of
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

ChannelShuffle = layer_of(
    "ChannelShuffle", channels.channel_shuffle, "Interleaves the channels of groups.", home=__name__, groups=...
)
PixelUnshuffle = layer_of(
    "PixelUnshuffle", channels.pixel_unshuffle, "Rearranges pixels to channels.", home=__name__, downscale_factor=...
)


class PixelShuffle(Module):
    """Rearranges channels to pixels. OneFlow's form takes separate factors for height and width."""

    def __init__(
        self, upscale_factor: int | None = None, h_upscale_factor: int | None = None,
        w_upscale_factor: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        each = h_upscale_factor, w_upscale_factor
        if (None in each) if upscale_factor is None else each != (None, None):
            raise OptionError("PixelShuffle takes an upscale_factor, or one for the height and one for the width")
        self.upscale_factor: Any = each if upscale_factor is None else upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return channels.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"
