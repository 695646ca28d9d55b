"""The fast path of an update does what the general path does, for every op that it may be made for."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.dispatch import intercept
from weft.core.errors import MissingKernelError
from weft.ops import OPS
from weft.ops.update.optimizer import SHARED
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


SIZES = {"both": (3, SHARED, 2 * SHARED + 5, 1), "small": (3, 1, 7), "large": (SHARED, SHARED + 1)}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", ["sgd_update", "adamw_update"])
def test_one_thread_updates_what_is_small_as_several_do(name: str, sizes: str) -> None:
    op, threads = OPS[name], torch.get_num_threads()
    lists = 5 if name == "adamw_update" else 3
    given = [[torch.rand(n, generator=torch.Generator().manual_seed(i)) for n in SIZES[sizes]] for i in range(lists)]
    options: list[Any] = [torch.zeros(()), 0.1, 0.9, 0.99, 1e-8, 0.1, False, True, False] if lists == 5 else []
    options = options or [0.1, 0.9, 0.0, 0.1, True, False]
    found = []
    try:
        for n, bound in ((1, False), (2, False), (2, True)):
            torch.set_num_threads(n)
            args = [*([t.clone() for t in ts] for ts in given), *deepcopy(options)]
            if bound:
                assert op.prepare is not None
                function, args, _ = op.prepare(*args)
                function(*args)
                args = [*args[0][0]]
            else:
                op.kernel(*args)
            found.append([t for i in (0, 2) for t in args[i]])
    finally:
        torch.set_num_threads(threads)
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(found[0], given[0], strict=False))
