"""Layer, RMS, group and local response normalization."""

from __future__ import annotations

from typing import Any

from weft.core.errors import OptionError
from weft.functional.neural import channels
from weft.functional.neural.sizes import sizes
from weft.nn import functional as F
from weft.nn import init
from weft.nn.layers.activation import layer_of
from weft.nn.module.making import made
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor


def begin(layer: Module) -> None:
    """Initialize a scale and shift as the identity."""
    if layer.weight is not None:
        init.ones_(layer.weight)
    if layer.bias is not None:
        init.zeros_(layer.bias)


class LayerNorm(Module):
    """Normalizes over the last dimensions, `normalized_shape`."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = sizes(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", made(self.normalized_shape, device, dtype) if elementwise_affine else None)
        biased = elementwise_affine and bias
        self.register_parameter("bias", made(self.normalized_shape, device, dtype) if biased else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        begin(self)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Scales to a root mean square of one, over the last dimensions."""

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = sizes(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", made(self.normalized_shape, device, dtype) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalizes each sample over groups of its channels."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise OptionError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", made((num_channels,), device, dtype) if affine else None)
        self.register_parameter("bias", made((num_channels,), device, dtype) if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        begin(self)

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        scales = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {scales}"


LocalResponseNorm = layer_of(
    "LocalResponseNorm", channels.local_response_norm, "x over a power of the mean square of neighboring channels.",
    home=__name__, bare="size", size=..., alpha=1e-4, beta=0.75, k=1.0,
)  # fmt: skip
