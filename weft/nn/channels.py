"""Layers beyond the daily ones: over channels, pairs, bags of rows, and what only knows its size later."""

from __future__ import annotations

import inspect
import math
from typing import Any

from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.errors import ShapeError
from weft.core.idle import idle
from weft.functional import creation, shaping
from weft.nn import functional as F
from weft.nn import init, margins
from weft.nn.activation import layer_of, usual_dim
from weft.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from weft.nn.linear import Linear
from weft.nn.making import made
from weft.nn.module import Module
from weft.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from weft.nn.shaping import _Dropout
from weft.nn.spatial import _Pad
from weft.ops import OPS
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor


class Bilinear(Module):
    """x1 @ weight[k] @ x2 for every output k."""

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = made((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", made((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in1_features)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return margins.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class EmbeddingBag(Module):
    """The sums, means or largest elements of bags of rows of a table."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        idle("EmbeddingBag(sparse)", sparse)
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.options = max_norm, norm_type, scale_grad_by_freq, mode, False
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        if _weight is None:
            self.weight = made((num_embeddings, embedding_dim), device, dtype)
            init.normal_(self.weight)
        else:
            self.weight = Parameter(_weight)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return margins.embedding_bag(
            input, self.weight, offsets, *self.options, per_sample_weights, self.include_last_offset, self.padding_idx
        )

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


class Unflatten(Module):
    """One dimension as several.

    >>> flow.nn.Unflatten(1, (2, 3))(flow.ones(4, 6)).shape
    torch.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        return shaping.unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


Softmin = layer_of(
    "Softmin", lambda x, dim: F.softmin(x, usual_dim(x) if dim is None else dim), "softmax(-x).", home=__name__,
    dim=None,
)  # fmt: skip
Tanhshrink = layer_of("Tanhshrink", F.tanhshrink, "x - tanh(x).", home=__name__)
Softmax2d = layer_of("Softmax2d", lambda x: F.softmax(x, -3), "softmax over the channels of images.", home=__name__)
ChannelShuffle = layer_of(
    "ChannelShuffle", margins.channel_shuffle, "Channels dealt out anew among groups.", home=__name__, groups=...
)
LocalResponseNorm = layer_of(
    "LocalResponseNorm", margins.local_response_norm, "x over a power of the mean square of the channels around.",
    home=__name__, bare="size", size=..., alpha=1e-4, beta=0.75, k=1.0,
)  # fmt: skip
_WINDOW: dict[str, Any] = {"norm_type": ..., "kernel_size": ..., "stride": None, "ceil_mode": False, "home": __name__}
LPPool1d = layer_of("LPPool1d", margins.lp_pool1d, "The p-norm of every window of sequences.", **_WINDOW)
LPPool2d = layer_of("LPPool2d", margins.lp_pool2d, "The p-norm of every window of images.", **_WINDOW)
LPPool3d = layer_of("LPPool3d", margins.lp_pool3d, "The p-norm of every window of volumes.", **_WINDOW)


class RReLU(Module):
    """x, or below zero x times a slope that is drawn while training."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, x: Tensor) -> Tensor:
        return margins.rrelu(x, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"


class CircularPad1d(_Pad):
    """What lies at the other end, around sequences."""

    dims, mode = 1, "circular"


class CircularPad2d(_Pad):
    """What lies at the other end, around images."""

    dims, mode = 2, "circular"


class CircularPad3d(_Pad):
    """What lies at the other end, around volumes."""

    dims, mode = 3, "circular"


class AlphaDropout(_Dropout):
    """Drops elements to where a SELU network's mean and variance stay as they are."""

    function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """Likewise, whole channels."""

    function = "feature_alpha_dropout"


class CoinFlip(Module):
    """Draws `batch_size` times 1 with a probability, else 0."""

    def __init__(
        self, batch_size: int = 1, random_seed: int | None = None, probability: float = 0.5, device: Any = None,
        placement: Any = None, sbp: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.batch_size, self.probability = batch_size, probability
        self.where = None if device is None else Device(device), placement, sbp
        self.seed = random_seed

    def forward(self) -> Tensor:
        device, placement, sbp = self.where
        drawn = creation.rand(self.batch_size, device=device, placement=placement, sbp=sbp)
        return OPS["cast"](OPS["lt"](drawn, self.probability), dtypes.int8)


# ---- layers that learn their size from what comes first ---------------------------------------------------


def _lazy(kind: type[Module], at: int) -> type[Module]:
    """A layer without its first size, which dimension `at` of the first input tells."""

    class Lazy(Module):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__()
            self.__dict__["_later"] = (args, options)

        def forward(self, x: Tensor) -> Tensor:
            args, options = self.__dict__["_later"]
            if x.ndim < 2:
                raise ShapeError(f"{type(self).__name__} learns its size from a batch; got shape {list(x.shape)}")
            layer = kind(x.shape[at], *args, **options).train(self.training)
            del self.__dict__["_later"]
            self.__class__ = kind  # type: ignore[assignment]  # from now on it is such a layer
            self.__dict__.update(layer.__dict__)
            return self(x)

        def extra_repr(self) -> str:
            args, options = self.__dict__["_later"]
            return ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in options.items())])

    self, _, *others = inspect.signature(kind.__init__).parameters.values()
    Lazy.__init__.__signature__ = inspect.Signature([self, *others])  # type: ignore[attr-defined]
    Lazy.__name__ = Lazy.__qualname__ = f"Lazy{kind.__name__}"
    Lazy.__doc__ = f"{kind.__name__} that takes its first size from its first input. Make the optimizer after that."
    Lazy.__module__ = __name__
    return Lazy


LazyLinear = _lazy(Linear, -1)
LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(k, 1) for k in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(k, 1) for k in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(k, 1) for k in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (_lazy(k, 1) for k in (BatchNorm1d, BatchNorm2d, BatchNorm3d))

__all__ = [
    "AlphaDropout", "Bilinear", "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "CoinFlip",
    "EmbeddingBag", "FeatureAlphaDropout", "LPPool1d", "LPPool2d", "LPPool3d", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
    "LocalResponseNorm", "RReLU", "Softmax2d", "Softmin", "Tanhshrink", "Unflatten",
]  # fmt: skip
