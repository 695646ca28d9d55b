"""The layers of a transformer, and the whole of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from weft.core.errors import OptionError, ShapeError
from weft.nn import functional as F
from weft.nn import init
from weft.nn.attention import MultiheadAttention
from weft.nn.layers.container import ModuleList
from weft.nn.layers.dropout import Dropout
from weft.nn.layers.linear import Linear
from weft.nn.layers.normalization import LayerNorm
from weft.nn.module.making import filled
from weft.nn.module.module import Module
from weft.ops import ops
from weft.tensor.tensor import Tensor


def _activation(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given
    if given not in ("relu", "gelu"):
        raise OptionError(f"activation should be 'relu', 'gelu' or a function; got {given!r}")
    return getattr(F, given)


class _Layer(Module):
    """What encoder and decoder layers share: so many attentions, two linear layers, and norms before or after each."""

    attentions: tuple[str, ...]
    activation: Callable[[Tensor], Tensor]
    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        made_as = {"device": device, "dtype": dtype}
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made_as))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made_as)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made_as)
        self.norm_first = norm_first
        parts = range(1, len(self.attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made_as))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _feed_forward(self, x: Tensor, last: Module) -> Tensor:
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _around(self, x: Tensor, norm: Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        return ops.add(x, part(norm(x))) if self.norm_first else norm(ops.add(x, part(x)))


def hint(is_causal: bool | None, of: str = "") -> dict[str, bool]:
    """That a mask is the causal one, where that is said: attention refuses it without the mask."""
    return {f"{of}is_causal": True} if is_causal else {}


def _dropped(dropout: Module, y: Tensor, attention: MultiheadAttention) -> Tensor:
    """What attention gives, dropped in the order in which a local result lies in memory: with the batch second."""
    if y.is_local or not attention.batch_first or y.ndim != 3:
        return dropout(y)
    return ops.transpose(dropout(ops.transpose(y, 0, 1)), 0, 1)


class TransformerEncoderLayer(_Layer):
    """Attention to oneself, then two linear layers, each with a way around it."""

    attentions = ("self_attn",)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        def attend(x: Tensor) -> Tensor:
            found = self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, **hint(is_causal))[0]
            return _dropped(self.dropout1, found, self.self_attn)

        x = self._around(src, self.norm1, attend)
        return self._around(x, self.norm2, lambda x: self._feed_forward(x, self.dropout2))


class TransformerDecoderLayer(_Layer):
    """Attention to oneself, to what the encoder made, then two linear layers."""

    attentions = ("self_attn", "multihead_attn")
    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        def attend(x: Tensor) -> Tensor:
            own = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, **hint(tgt_is_causal))
            return _dropped(self.dropout1, own[0], self.self_attn)

        def look(x: Tensor) -> Tensor:
            masks = memory_key_padding_mask, False, memory_mask
            found = self.multihead_attn(x, memory, memory, *masks, **hint(memory_is_causal))[0]
            return _dropped(self.dropout2, found, self.multihead_attn)

        x = self._around(tgt, self.norm1, attend)
        x = self._around(x, self.norm2, look)
        return self._around(x, self.norm3, lambda x: self._feed_forward(x, self.dropout3))


class TransformerEncoder(Module):
    """Several encoder layers, each a copy of the one given."""

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:  # fmt: skip
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, **hint(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Several decoder layers, each a copy of the one given."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        hints = {**hint(tgt_is_causal, "tgt_"), **hint(memory_is_causal, "memory_")}
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, **hints)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder reads a sequence, a decoder writes another."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = "relu",
        custom_encoder: Module | None = None, custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        of_layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device,
            dtype,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*of_layer), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*of_layer), num_decoder_layers, norm()
        )
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"src and tgt have {self.d_model} features, d_model; got {list(src.shape)} and {list(tgt.shape)}"
            )
        hints = {**hint(tgt_is_causal, "tgt_"), **hint(memory_is_causal, "memory_")}
        memory = self.encoder(src, src_mask, src_key_padding_mask, **hint(src_is_causal))
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, **hints)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask that hides what comes later: minus infinity above the diagonal."""
        return ops.triu(filled((sz, sz), float("-inf"), device, dtype), 1)
