"""What is told where to write writes there, however its operands lie: for float32, too, of which oneDNN has kernels."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from weft.ops import OPS
from weft.testing import registry

NAMES = [name for name, op in OPS.items() if op.out_kernel is not None and not op.random]


def lying(a: Any, turned: bool) -> Any:
    """The same numbers, in float32, in order of memory or in the order of their transpose."""
    if isinstance(a, torch.Tensor):
        a = a.float() if a.dtype is torch.float64 else a
        return a.transpose(0, -1).contiguous().transpose(0, -1) if turned and a.dim() > 1 else a
    return type(a)(lying(v, turned) for v in a) if isinstance(a, (list, tuple)) else a


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_kernel(name: str, turned: bool) -> None:
    op: Any = OPS[name]
    for case in registry.cases(op):
        args = lying(case, turned)
        cut = len(args) - len(op.keywords)
        want = op.kernel(*args[:cut], **dict(zip(op.keywords, args[cut:], strict=True)))
        if not isinstance(want, torch.Tensor):
            continue
        for prepared in (False, True):
            out = torch.ones(want.shape, dtype=want.dtype)
            found = op.prepare(out, *args) if prepared and op.prepare is not None else None
            for function, positional, keywords in found if isinstance(found, list) else [found] if found else []:
                function(*positional, **keywords)
            if not found:
                op.out_kernel(out, *args)
            torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-5, equal_nan=True)
