"""Fractional pooling against torch's, by given samples and by drawn ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError
from weft.tensor.tensor import of_torch


@pytest.mark.parametrize(("dims", "size"), [(2, (4, 3)), (3, (4, 3, 2))])
def test_samples_place_the_windows_as_torchs(dims: int, size: Any) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, *(9, 7, 5)[:dims], requires_grad=True)
    samples = torch.rand(2, 3, dims)
    name = f"FractionalMaxPool{dims}d"
    theirs = getattr(torch.nn, name)(2, output_size=size, return_indices=True, _random_samples=samples)
    ours = getattr(flow.nn, name)(2, output_size=size, return_indices=True, _random_samples=of_torch(samples))
    mine = of_torch(x.detach().clone()).requires_grad_()
    (y, at), (z, here) = theirs(x), ours(mine)
    y.square().sum().backward()
    z.square().sum().backward()
    assert torch.equal(z.detach().to_torch(), y.detach()) and torch.equal(here.to_torch(), at)
    assert mine.grad is not None and torch.equal(mine.grad.to_torch(), x.grad)


@pytest.mark.parametrize("shape", [(3, 8, 6), (2, 3, 8, 6)])
def test_drawn_windows_are_torchs(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)
    expected = torch.nn.functional.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.4))
    torch.manual_seed(0)
    mine = of_torch(torch.randn(shape))
    got: Any = flow.nn.functional.fractional_max_pool2d(mine, 2, output_ratio=(0.5, 0.4))
    assert torch.equal(got.to_torch(), expected)


def test_what_sizes_it_takes() -> None:
    for options in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 2.0}, {"output_size": (1, 2, 3)}):
        with pytest.raises(OptionError, match="output_"):
            flow.nn.FractionalMaxPool2d(2, **options)  # type: ignore[arg-type]
