"""Sampling of images at given positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.core.errors import AutogradError, OptionError, ShapeError
from weft.ops.declaration import op
from weft.ops.kernels import aten

MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def once(name: str) -> None:
    if here.grad:
        raise AutogradError(f"{name} has no second derivative: leave create_graph=True out")


def _kernel(x: Tensor, grid: Tensor, mode: str, padding_mode: str) -> tuple[int, int, bool]:
    """The mode and the padding as numbers, and whether the image has three dimensions."""
    if mode not in MODES or padding_mode not in PADDINGS:
        raise OptionError(
            f"grid_sample: mode is one of {', '.join(MODES)} and padding_mode one of {', '.join(PADDINGS)}; "
            f"got {mode!r} and {padding_mode!r}"
        )
    if x.dim() not in (4, 5) or grid.dim() != x.dim() or grid.shape[-1] != x.dim() - 2:
        raise ShapeError(
            f"grid_sample takes (n, c, h, w) with a grid (n, i, j, 2), or (n, c, d, h, w) with (n, i, j, k, 3); "
            f"got {list(x.shape)} and {list(grid.shape)}"
        )
    return MODES.index(mode), PADDINGS.index(padding_mode), x.dim() == 5


def _terms(ndim: int) -> tuple[str, str, str]:
    before = " ".join(f"s{i}!" for i in range(ndim - 2))
    after = " ".join(f"o{i}" for i in range(ndim - 2))
    return f"n c {before}", f"n {after} k!", f"n c {after}"


@op(linear="x")
def grid_sample(
    x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Tensor:
    """x sampled at the positions of a grid, from -1 to 1, the last dimension's coordinate first.

    >>> flow._C.grid_sample(flow.tensor([[[[1., 3.]]]]), flow.zeros(1, 1, 1, 2)).item()
    2.0
    """
    way, padding, deep = _kernel(x, grid, mode, padding_mode)
    return (torch.grid_sampler_3d if deep else torch.grid_sampler_2d)(x, grid, way, padding, align_corners)


@grid_sample.layout
def _(x, grid, mode, padding_mode, align_corners):
    image, places, out = _terms(len(x))
    return f"{image}, {places} -> {out}"


@grid_sample.grad
def _(dy, x, grid, mode, padding_mode, align_corners):
    once("grid_sample")
    return grid_sample_grad(dy, x, grid, mode, padding_mode, align_corners)


@grid_sample.samples
def _(rand):
    yield rand(2, 3, 4, 5), torch.tanh(rand(2, 3, 2, 2))
    yield rand(2, 2, 4, 5), rand(2, 3, 2, 2), "bilinear", "border", True
    yield rand(2, 2, 3, 4, 5), torch.tanh(rand(2, 2, 3, 2, 3))


@op(linear="dy", returns="dx dgrid")
def grid_sample_grad(dy: Tensor, x: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Any:
    """The gradients of grid_sample's image and grid."""
    way, padding, deep = _kernel(x, grid, mode, padding_mode)
    kernel = aten.grid_sampler_3d_backward if deep else aten.grid_sampler_2d_backward
    return kernel(dy, x, grid, way, padding, align_corners, (True, True))


@grid_sample_grad.layout
def _(dy, x, grid, mode, padding_mode, align_corners):
    image, places, out = (t.replace("c", "c!") for t in _terms(len(x)))
    held = " ".join(f"{a}!" if a[0] == "o" else a for a in out.split())
    places = " ".join(f"{a}!" if a[0] == "o" else a for a in places.split())
    return f"{held}, {image}, {places} -> {image}, {places}"


@grid_sample_grad.samples
def _(rand):
    yield rand(2, 3, 3, 2), rand(2, 3, 4, 5), torch.tanh(rand(2, 3, 2, 2)), "bilinear", "zeros", False
