"""One layer that gives what two gave: torch's weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError


def program(lib: Any) -> list[Any]:
    lib.manual_seed(1)
    utils, results = lib.nn.utils.fusion if lib is torch else lib.nn.utils, []
    for layer, norm, x in [
        (lib.nn.Conv2d(2, 3, 3, bias=False), lib.nn.BatchNorm2d(3), lib.randn(4, 2, 5, 5)),
        (lib.nn.ConvTranspose2d(2, 3, 3), lib.nn.BatchNorm2d(3, affine=False), lib.randn(4, 2, 5, 5)),
        (lib.nn.Linear(4, 3), lib.nn.BatchNorm1d(3), lib.randn(6, 4)),
    ]:
        norm(layer(x))
        layer.eval(), norm.eval()
        turned = {"transpose": True} if isinstance(layer, lib.nn.ConvTranspose2d) else {}
        fuse = utils.fuse_linear_bn_eval if isinstance(layer, lib.nn.Linear) else utils.fuse_conv_bn_eval
        made = fuse(layer, norm, **turned)
        assert lib.allclose(made(x), norm(layer(x)), atol=1e-5)
        results += [made.weight.tolist(), made.bias.tolist(), repr(made)]
    return results


def flat(tree: Any) -> list[Any]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


def test_the_same_as_torchs() -> None:
    for ours, theirs in zip(flat(program(flow)), flat(program(torch)), strict=True):
        assert ours == (theirs if isinstance(theirs, str) else pytest.approx(theirs, rel=1e-4, abs=1e-6))
    with pytest.raises(OptionError, match="only for eval"):
        flow.nn.utils.fuse_conv_bn_eval(flow.nn.Conv2d(1, 2, 3), flow.nn.BatchNorm2d(2))
