"""What laws of one's own are written with, by PyTorch's names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.core.errors import ShapeError
from weft.functional.distributions.base import lazy, together
from weft.functional.distributions.continuous import EULER
from weft.functional.distributions.discrete import inside
from weft.functional.distributions.vectors import numbers_below, triangle
from weft.functional.table import calling

_log_softmax = calling("log_softmax")
euler_constant = EULER


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape.

    >>> [t.shape for t in flow.distributions.utils.broadcast_all(flow.zeros(2), 1.0)]
    [torch.Size([2]), torch.Size([2])]
    """
    return tuple(together(*values))


def clamp_probs(probs: Any) -> Any:
    """Probabilities away from 0 and 1, so that their logarithms are finite."""
    return inside(probs)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """The logarithms of probabilities; of chances for something or its opposite, the logarithm of their ratio."""
    sure = inside(probs)
    return sure.log() - (-sure).log1p() if is_binary else sure.log()


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities by scores: by softmax over the last dimension, or each by sigmoid."""
    return logits.sigmoid() if is_binary else _log_softmax(logits, -1).exp()


class lazy_property(lazy):
    """A property that is worked out when it is first asked for, and then an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        super().__init__(wrapped)
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """The matrix with these numbers on and below a diagonal, row by row.

    >>> flow.distributions.utils.vec_to_tril_matrix(flow.tensor([1.0, 2.0, 3.0])).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    count = vec.shape[-1]
    n = next((n for n in range(1, count + 2) if _held(n, diag) >= count), 0)
    if _held(n, diag) != count:
        raise ShapeError(f"vec_to_tril_matrix(): {count} numbers fill no triangle below diagonal {diag}")
    return triangle(vec, n, -diag)


def _held(n: int, diag: int) -> int:
    """How many numbers lie on and below a diagonal of an n by n matrix."""
    return sum(min(max(row + diag + 1, 0), n) for row in range(n))


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The numbers on and below a diagonal, row by row."""
    return numbers_below(mat, -diag)


__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip
