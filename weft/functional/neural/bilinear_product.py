"""bilinear: a product of two inputs with a weight."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.functional.linalg.einsum import einsum


@public("neural flow")
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """input1 @ weight[k] @ input2 for every k, plus the bias."""
    half = einsum("...i,kij->...kj", input1, weight)
    y = einsum("...kj,...j->...k", half, input2)
    return y if bias is None else y + bias
