"""What ranks tell each other of a tensor: every dtype, also those that are only kept."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft.core import dtype as dtypes
from weft.core.dtype import DType
from weft.core.errors import RankError
from weft.tensor import header

S, B = flow.sbp.split, flow.sbp.broadcast


@pytest.mark.parametrize("dtype", [*dtypes.every, *dtypes.kept], ids=str)
def test_what_is_told_is_read(dtype: DType) -> None:
    assert header.read(header.encoded((2, 0, 7), dtype), 0) == ((2, 0, 7), dtype)


def test_no_other_number_is_a_dtype() -> None:
    encoded = header.encoded((2,), dtypes.float32)
    encoded[1] = len(dtypes.every) + len(dtypes.kept)
    with pytest.raises(RankError, match="rank 3 sent an invalid"):
        header.read(encoded, 3)


@on(2)
def test_what_is_only_kept_is_global_too() -> None:
    P, last = flow.placement("cpu", ranks=[0, 1]), flow.placement("cpu", ranks=[1])
    for dtype in dtypes.kept:
        whole = torch.arange(8).reshape(4, 2).to(dtype.torch)
        for how in (B, S(0), S(1)):
            x = flow.from_torch(whole).to_global(P, B).to_global(P, how)
            for where in (P, last):
                assert torch.equal(
                    x.to_global(where, S(0)).to_global(P, B).to_local().to_torch().float(), whole.float()
                )
