"""Muon: momentum, orthogonalized before each step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from weft.core import dtype as dtypes
from weft.core.errors import DtypeError, OptionError
from weft.ops import ops
from weft.optim.composed import Composed
from weft.optim.ranges import at_least_zero, options

LR_BY_SHAPE = (None, "original", "match_rms_adamw")


class Muon(Composed):
    """For the matrices of hidden layers; other parameters go to another optimizer.

    The momentum is orthogonalized by `ns_steps` Newton-Schulz steps, rounded to bfloat16 as in PyTorch. `adjust_lr_fn`
    scales the rate by a matrix's sides: "original", or "match_rms_adamw" for Adam's rates.
    """

    first_values = {"momentum_buffer": 0.0}
    by_element = False

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()) | {"decoupled_weight_decay": True, "maximize": False})

    def check_options(self, options: Mapping[str, Any]) -> None:
        at_least_zero(options, "lr", "weight_decay", "momentum", "eps")
        if options["adjust_lr_fn"] not in LR_BY_SHAPE:
            raise OptionError(f"adjust_lr_fn must be 'original' or 'match_rms_adamw'; got {options['adjust_lr_fn']!r}")
        for p in options.get("params", ()):
            if p.dtype.is_complex:
                raise DtypeError("Muon doesn't support complex numbers; give such parameters to Adam")
            if p.ndim != 2:
                raise OptionError(
                    f"Muon is for matrices; a parameter has shape {list(p.shape)}. Give vectors, embeddings and "
                    "convolutions to another optimizer, such as AdamW"
                )

    def counts_steps(self, group: Mapping[str, Any]) -> bool:
        return False

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        keep = group["momentum"]
        mean = ops.lerp(states["momentum_buffer"], grad, 1 - keep)
        ahead = ops.lerp(grad, mean, keep) if group["nesterov"] else mean
        rows, cols = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            lr = lr * 0.2 * math.sqrt(max(rows, cols))
        else:
            lr = lr * math.sqrt(max(1, rows / cols))
        return p - ops.cast(_orthogonal(ahead, group), p.dtype) * lr, mean


def _orthogonal(x: Any, group: Mapping[str, Any]) -> Any:
    """A nearly orthogonal matrix with x's singular vectors."""
    tall, (a, b, c) = x.shape[0] > x.shape[1], group["ns_coefficients"]
    x = _rounded(ops.transpose(x, 0, 1) if tall else x)
    x = _rounded(x / ops.clamp(_rounded(ops.sqrt(ops.sum(x * x))), group["eps"]))
    for _ in range(group["ns_steps"]):
        square = _rounded(ops.matmul(x, ops.transpose(x, 0, 1)))
        x = _rounded(x * a + ops.matmul(_rounded(square * b + ops.matmul(square, square) * c), x))
    return ops.transpose(x, 0, 1) if tall else x


def _rounded(x: Any) -> Any:
    """Rounded to bfloat16; computation stays in float32."""
    return ops.cast(ops.cast(x, dtypes.bfloat16), dtypes.float32)
