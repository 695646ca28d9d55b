"""The fast path of an update does what the general path does, for every op that it may be made for."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from weft.core.dispatch import intercept
from weft.core.errors import MissingKernelError
from weft.ops import OPS
from weft.optim.fast_call import fast_call
from weft.tensor.tensor import of_torch
from weft.testing.cases import Passing, cases, copied
from weft.testing.layouts import replaced, tensors

NAMES = [n for n, op in OPS.items() if op.lists and not op.keywords and not op.returns and op.vjp is None]


@pytest.mark.parametrize("name", NAMES)
def test_both_paths_leave_the_same(name: str) -> None:
    op = OPS[name]
    issue = fast_call(op)
    for row in cases(op):
        quick, general = ([of_torch(t) for t in tensors(op, copied(op, row))] for _ in range(2))
        issue(*replaced(op, row, quick))
        with intercept(Passing()):
            issue(*replaced(op, row, general))
        before = tensors(op, row)
        assert any(not torch.equal(t, y.to_torch()) for t, y in zip(before, quick, strict=True))
        for a, b in zip(quick, general, strict=True):
            torch.testing.assert_close(a.to_torch(), b.to_torch(), rtol=0, atol=0)


def test_an_error_of_a_kernel_is_told_though_the_call_left_out_defaults() -> None:
    w = flow.nn.Parameter(flow.ones(4, dtype=flow.float8_e4m3fn))
    w.grad = w.detach().clone()
    with pytest.raises(MissingKernelError, match="adam_update has no kernel for Float8_e4m3fn"):
        flow.optim.Adam([w]).step()
