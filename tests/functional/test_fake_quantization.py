"""Fake quantization with a learned scale and zero point has torch's values and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow

X = torch.tensor([[-20.0, -1.2, 0.3, 0.6, 1.4, 2.7, 30.0]] * 2)


@pytest.mark.parametrize("zero", [1.0, 0.6, -100.0])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_learned_scales_and_zero_points(axis: int | None, zero: float) -> None:
    n = 1 if axis is None else X.shape[axis]
    name = f"_fake_quantize_learnable_per_{'tensor' if axis is None else 'channel'}_affine"

    def found(m: Any) -> list[Any]:
        leaves = [m.tensor(v.tolist(), requires_grad=True) for v in (X, torch.full((n,), 0.37), torch.full((n,), zero))]
        y = getattr(m, name)(*leaves, *(() if axis is None else (axis,)), -8, 7, 0.3)
        (y * m.arange(7.0)).sum().backward()
        return [torch.tensor(t.tolist()) for t in (y, *(leaf.grad for leaf in leaves))]

    for mine, theirs in zip(found(flow), found(torch), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
