"""Table lookups: Embedding, EmbeddingBag."""

from __future__ import annotations

from typing import Any

from weft.autograd import no_grad
from weft.core.errors import OptionError
from weft.core.idle import idle
from weft.functional.neural import embeddings
from weft.functional.neural.embeddings import embedding_renorm_
from weft.nn import init
from weft.nn.module.making import made
from weft.nn.module.module import Module
from weft.ops import ops
from weft.ops.neural.embedding import embedding
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor


class EmbeddingBag(Module):
    """The sums, means or maxima of bags of rows of a table."""

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
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, *options: Any, **named: Any) -> EmbeddingBag:
        """Bags of the rows of a given table; further options are those of the layer."""
        if embeddings.ndim != 2:
            raise OptionError(f"a table of embeddings must have 2 dimensions; got {list(embeddings.shape)}")
        number, width = embeddings.shape
        made = cls(number, width, *options, _weight=embeddings, **named)
        made.weight.requires_grad = not freeze
        return made

    def reset_parameters(self) -> None:
        init.normal_(self.weight)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return embeddings.embedding_bag(
            input, self.weight, offsets, *self.options, per_sample_weights, self.include_last_offset, self.padding_idx
        )

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


class Embedding(Module):
    """A table of vectors, looked up by index. The row `padding_idx` is initialized to zero and not trained."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        idle("Embedding(sparse)", sparse)
        self.sparse = sparse
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise OptionError(f"padding_idx {padding_idx} must be within num_embeddings, {num_embeddings}")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        if _weight is None:
            self.weight = made((num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise OptionError(
                    f"Shape of weight, {list(_weight.shape)}, does not match num_embeddings and embedding_dim, "
                    f"[{num_embeddings}, {embedding_dim}]"
                )
            self.weight = Parameter(_weight)
        self.weight.requires_grad = not _freeze

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """An embedding with a given table."""
        if embeddings.ndim != 2:
            raise OptionError(f"a table of embeddings must have 2 dimensions; got {list(embeddings.shape)}")
        count, width = embeddings.shape
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        return cls(count, width, *options, _weight=embeddings, _freeze=freeze)

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                init.zeros_(ops.select(self.weight.detach(), 0, self.padding_idx))

    def forward(self, x: Tensor) -> Tensor:
        if self.max_norm is not None:
            embedding_renorm_(self.weight, x, self.max_norm, self.norm_type)
        return embedding(self.weight, x, self.padding_idx, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
