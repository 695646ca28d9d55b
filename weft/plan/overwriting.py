"""Which operands a result may overwrite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ops import OPS


def overwrites(op: str, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands whose memory an op's result may take, if it has their form."""
    known = OPS.get(op)
    if known is None or known.random or len(known.returns) != 1 or known.out_kernel is None:
        return ()
    if known.adds:
        return operands[:1] if operands[0] not in operands[1:] else ()
    return operands if known.elementwise else ()
