"""Fractional max pooling: random windows, to a fraction of the size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api.table import named, public
from weft.core.errors import OptionError, ShapeError
from weft.functional.create.likeness import device_of
from weft.functional.neural.sizes import several
from weft.functional.random import random_tensors
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor


def check_sizes(dims: int, output_size: Any, output_ratio: Any) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The output's sizes, or their ratios to the input's; one of the two is empty."""
    if (output_size is None) == (output_ratio is None):
        raise OptionError(
            "fractional pooling takes either output_size or output_ratio; got "
            f"output_size={output_size!r}, output_ratio={output_ratio!r}"
        )
    if output_size is not None:
        return several(output_size, dims, "output_size"), ()
    ratios = tuple(output_ratio) if isinstance(output_ratio, Sequence) else (output_ratio,) * dims
    if len(ratios) != dims or not all(isinstance(r, float) and 0 < r < 1 for r in ratios):
        raise OptionError(f"output_ratio is one number between 0 and 1, or {dims}; got {output_ratio!r}")
    return (), ratios


def _pooled(
    dims: int, x: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    alone = x.ndim == dims + 1
    if not alone and x.ndim != dims + 2:
        raise ShapeError(
            f"fractional_max_pool{dims}d: the input is ([batch,] channels, {dims} sizes); got {list(x.shape)}"
        )
    sizes, ratios = check_sizes(dims, output_size, output_ratio)
    sizes = sizes or tuple(int(n * r) for n, r in zip(x.shape[-dims:], ratios, strict=True))
    whole = ops.unsqueeze(x, 0) if alone else x
    if samples is None:
        samples = random_tensors.rand(*whole.shape[:2], dims, dtype=x.dtype, **device_of(x))
    y, places = OPS[f"fractional_max_pool{dims}d_at"](whole, samples, several(kernel_size, dims, "kernel_size"), sizes)
    return (ops.squeeze(y, 0), ops.squeeze(places, 0)) if alone else (y, places)


def _function(dims: int, both: bool) -> None:
    @public("neural")
    @named(
        f"fractional_max_pool{dims}d{'_with_indices' * both}",
        "Max pooling by random windows to the given size, or fraction of the size"
        f"{', and the flat indices' if both else ''}.",
    )
    def pool(
        input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> Any:  # fmt: skip
        found = _pooled(dims, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if both or return_indices else found[0]


for _dims in (2, 3):
    _function(_dims, False)
    _function(_dims, True)
