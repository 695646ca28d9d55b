"""Layers that multiply by a weight: Linear, Embedding."""

from __future__ import annotations

import math
from typing import Any

from weft.autograd import no_grad
from weft.core.errors import OptionError
from weft.core.idle import idle
from weft.functional.older import embedding_renorm_
from weft.nn import functional as F
from weft.nn import init
from weft.nn.making import made
from weft.nn.module import Module
from weft.ops import OPS
from weft.ops.embedding import embedding
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor


class Linear(Module):
    """y = x W^T + b.

    >>> flow.nn.Linear(2, 3)(flow.ones(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = made((out_features, in_features), device, dtype)
        self.register_parameter("bias", made((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """A table of vectors, looked up by number. The row `padding_idx` begins at zero and isn't trained."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        device: Any = None, dtype: Any = None,
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

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """An embedding over a table that is there already."""
        if embeddings.ndim != 2:
            raise OptionError(f"a table of embeddings has 2 dimensions; got {list(embeddings.shape)}")
        count, width = embeddings.shape
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        made_of = cls(count, width, *options, _weight=embeddings)
        made_of.weight.requires_grad = not freeze
        return made_of

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                init.zeros_(OPS["select"](self.weight.detach(), 0, self.padding_idx))

    def forward(self, x: Tensor) -> Tensor:
        if self.max_norm is not None:
            embedding_renorm_(self.weight, x, self.max_norm, self.norm_type)
        return embedding(self.weight, x, self.padding_idx, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
