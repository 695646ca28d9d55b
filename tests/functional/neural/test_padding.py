"""Functions on images against torch's, where no layer's test reaches them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError, ShapeError
from weft.nn import functional as F
from weft.tensor.tensor import of_torch


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"kernel_size": 3, "stride": 2, "padding": 1}])
def test_unpooling_undoes_pooling(dims: int, options: dict[str, Any]) -> None:
    how = {"kernel_size": 2, **options}
    x = torch.randn(2, 3, *(5 if options else 4,) * dims)
    y, where = getattr(torch.nn, f"MaxPool{dims}d")(**how, return_indices=True)(x)
    ours_y, ours_where = getattr(flow.nn, f"MaxPool{dims}d")(**how, return_indices=True)(of_torch(x))
    assert ours_where.to_torch().equal(where)
    theirs, ours = (getattr(m, f"MaxUnpool{dims}d")(**how) for m in (torch.nn, flow.nn))
    assert repr(ours) == repr(theirs)
    for size in (None, x.shape):
        ours_y = ours_y.detach().requires_grad_()
        got = ours(ours_y, ours_where, size)
        assert got.detach().to_torch().equal(theirs(y, where, output_size=size))
        got.sum().backward()
    with pytest.raises(ShapeError, match="need indices of this shape"):
        ours(ours_y, ours_where[:1])


def test_borders_that_wrap_around() -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    got = F.pad(of_torch(x), (1, 2, 3, 0), mode="circular").to_torch()
    assert got.equal(torch.nn.functional.pad(x, (1, 2, 3, 0), mode="circular"))
    with pytest.raises(ShapeError, match="circular padding is at most the size"):
        F.pad(of_torch(x), (5, 0), mode="circular")
    with pytest.raises(ShapeError, match="two numbers per dimension"):
        F.pad(of_torch(x), (5,))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_whole_channels_are_dropped(dims: int) -> None:
    x = flow.ones(8, 16, *(3,) * dims)
    drop = getattr(flow.nn, f"Dropout{dims}d")(0.25)
    y = drop(x).to_torch().flatten(2)
    assert (y == y[..., :1]).all(), "a channel is dropped as a whole"
    assert y.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert drop.eval()(x) is x
    with pytest.raises(ShapeError, match=f"dropout{dims}d takes"):
        getattr(F, f"dropout{dims}d")(flow.ones(3))


def test_what_cannot_be_is_said() -> None:
    x = flow.ones(1, 3, 4, 4)
    with pytest.raises(OptionError, match="either size or scale_factor"):
        F.interpolate(x)
    with pytest.raises(OptionError, match="align_corners is for blending"):
        F.interpolate(x, 2, align_corners=True)
    with pytest.raises(ShapeError, match="don't divide"):
        F.pixel_shuffle(x, 2)
    with pytest.raises(ShapeError, match="has no variance"):
        F.instance_norm(flow.ones(2, 3, 1))


def test_a_factor_goes_every_road() -> None:
    x = flow.randn(1, 2, 3, 3)
    expected = F.interpolate(x, scale_factor=1.5, mode="bilinear")
    with flow.autocast("cpu"):
        assert F.interpolate(x, scale_factor=1.5, mode="bilinear").equal(expected)
    spread = x.to_global(placement=flow.placement("cpu", [0]), sbp=flow.sbp.split(1))
    assert F.interpolate(spread, scale_factor=1.5, mode="bilinear").to_local().equal(expected)

    class Grow(flow.nn.Graph):
        def build(self, x: flow.Tensor) -> flow.Tensor:
            return F.interpolate(x, scale_factor=1.5, mode="bilinear")

    assert Grow()(x).equal(expected)


def test_pixels_of_other_proportions() -> None:
    x = torch.arange(24.0).reshape(1, 6, 2, 2)
    wide = flow.nn.PixelShuffle(h_upscale_factor=1, w_upscale_factor=3)(of_torch(x))
    assert wide.tolist() == x.reshape(1, 2, 3, 2, 2).permute(0, 1, 3, 4, 2).reshape(1, 2, 2, 6).tolist()
    for options in ({}, {"h_upscale_factor": 2}, {"upscale_factor": 2, "w_upscale_factor": 2}):
        with pytest.raises(OptionError, match="one for the height"):
            flow.nn.PixelShuffle(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"scale_factor": (2, 1.5), "mode": "nearest-exact"},
        {"size": (5, 3), "mode": "nearest-exact"},
        {"size": (3, 9), "mode": "bilinear", "antialias": True, "align_corners": True},
        {"size": (3, 9), "mode": "bilinear", "antialias": True},
        {"size": (3, 5), "mode": "bicubic", "antialias": True, "align_corners": True},
        {"scale_factor": 0.4, "mode": "bicubic", "antialias": True},
    ],
)
def test_sizes_by_all_that_an_element_covers(options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 3, 7, 8, requires_grad=True)
    mine = of_torch(x.detach().clone()).requires_grad_()
    expected, got = torch.nn.functional.interpolate(x, **options), F.interpolate(mine, **options)
    torch.testing.assert_close(got.detach().to_torch(), expected.detach(), rtol=1e-4, atol=1e-5)
    expected.square().sum().backward()
    got.square().sum().backward()
    torch.testing.assert_close(mine.grad.to_torch(), x.grad, rtol=1e-4, atol=1e-5)  # type: ignore[union-attr]
    with pytest.raises(OptionError, match="antialias is for images"):
        F.interpolate(mine, size=3, mode="nearest", antialias=True)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_pictures_in_bytes_are_averaged_as_torchs(mode: str) -> None:
    x = torch.randint(0, 256, (1, 3, 9, 8), dtype=torch.uint8)
    how: dict[str, Any] = {"size": (4, 5), "mode": mode, "antialias": True}
    assert torch.equal(F.interpolate(of_torch(x), **how).to_torch(), torch.nn.functional.interpolate(x, **how))
