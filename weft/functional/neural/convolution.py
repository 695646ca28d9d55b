"""Convolutions as functions: the ops, plus inputs without a batch and padding by name."""

from __future__ import annotations

from typing import Any

from weft.api.table import named, public
from weft.core.errors import OptionError
from weft.functional.neural.image_padding import pad
from weft.functional.neural.sizes import several
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor


def _forward(dims: int) -> None:
    run = OPS[f"conv{dims}d"]

    @public("neural flow")
    @named(
        f"conv{dims}d", (run.__doc__ or "").partition("\n")[0] + ' Padding may be "same"; the batch may be left out.'
    )
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        x = ops.unsqueeze(input, 0) if input.ndim == dims + 1 else input
        if isinstance(padding, str):
            x, padding = _named(x, weight, stride, padding, several(dilation, dims, "dilation"))
        y = run(x, weight, bias, stride, padding, dilation, groups)
        return y if x.ndim == input.ndim else ops.squeeze(y, 0)


def _named(x: Tensor, weight: Tensor, stride: Any, padding: str, dilation: tuple[int, ...]) -> tuple[Tensor, Any]:
    """The input and the padding in numbers; uneven padding is applied to the input."""
    dims = len(dilation)
    if padding == "valid":
        return x, 0
    if padding != "same" or any(s != 1 for s in several(stride, dims, "stride")):
        raise OptionError(f'padding is "valid", "same" for a stride of 1, or numbers; got {padding!r}, {stride}')
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if all(t % 2 == 0 for t in totals):
        return x, tuple(t // 2 for t in totals)
    return pad(x, [n for t in reversed(totals) for n in (t // 2, t - t // 2)]), 0


def _transposed(dims: int) -> None:
    run = OPS[f"conv_transpose{dims}d"]

    @public("neural flow")
    @named(f"conv_transpose{dims}d", (run.__doc__ or "").partition("\n")[0] + " The batch may be left out.")
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Tensor:  # fmt: skip
        x = ops.unsqueeze(input, 0) if input.ndim == dims + 1 else input
        y = run(x, weight, bias, stride, padding, output_padding, groups, dilation)
        return y if x.ndim == input.ndim else ops.squeeze(y, 0)


for _dims in (1, 2, 3):
    _forward(_dims)
    _transposed(_dims)
