"""What ranks hold in common, compared by its data: under WEFT_CHECK=full, and where parameters are kept alike."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.core.rank import current
from weft.transport.base import Transport

KEPT = "kept alike"  # a rank's resource: local parameters that somebody keeps alike on all ranks, by id


def keep_alike(params: Iterable[Any]) -> None:
    """Say that local parameters are trained alike on all ranks of the world."""
    kept = current().resource(KEPT, lambda _: {})
    for p in params:
        kept[id(p)] = weakref.ref(p, lambda _, key=id(p): kept.pop(key, None))


def kept_alike(p: Any) -> bool:
    found = current().resources.get(KEPT, {}).get(id(p))
    return found is not None and found() is p


def digest(t: Tensor) -> int:
    """A number of the tensor's bits."""
    data = t.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
    return int.from_bytes(hashlib.blake2b(data.numpy().tobytes(), digest_size=8).digest(), "little", signed=True)


def compare_data(
    transport: Transport, ranks: tuple[int, ...], tensors: Mapping[str, Tensor], what: str,
    twin: Mapping[str, Mapping[int, int]] | None = None,
) -> None:  # fmt: skip
    """Raise on all of these ranks if a tensor differs where it should be the same: on all of them, or, of those in
    `twin`, on a rank and the one that it names."""
    mine = torch.tensor([digest(t) for t in tensors.values()], dtype=torch.int64)
    rows = [torch.empty_like(mine) for _ in ranks]
    transport.group(ranks).all_gather(rows, mine)
    for i, name in enumerate(tensors):
        for at, rank in enumerate(ranks):
            other = ranks[0] if twin is None else twin[name][rank]
            if rows[at][i] != rows[ranks.index(other)][i]:
                raise RankError(
                    f"the ranks diverged: {what} should be alike, and {name} differs between rank {other} and rank "
                    f"{rank}. Did they begin with other values, or a rank write its own?"
                )
