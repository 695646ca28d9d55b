"""Layers with fused names against the plain layers that they are made of."""

from __future__ import annotations

import pytest

import weft as flow
from weft import nn
from weft.core.errors import OptionError


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_norm_with_an_addend(dims: int) -> None:
    x, addend = flow.randn(4, 3, *(2,) * dims), flow.randn(4, 3, *(2,) * dims)
    fused, plain = (getattr(nn, f"{kind}BatchNorm{dims}d")(3) for kind in ("Fused", ""))
    assert fused(x, addend).equal((plain(x) + addend).relu())
    assert fused.eval()(x).equal(plain.eval()(x).relu())


@pytest.mark.parametrize("skip", [False, True])
def test_a_perceptron(skip: bool) -> None:
    mlp = nn.FusedMLP(4, [6, 5], 3, skip_final_activation=skip)
    x = flow.randn(2, 4)
    y = x
    for i in range(3):
        y = y @ getattr(mlp, f"weight_{i}").T + getattr(mlp, f"bias_{i}")
        y = y if skip and i == 2 else y.relu()
    assert mlp(x).allclose(y, atol=1e-6)
    assert list(mlp.state_dict()) == [f"{what}_{i}" for i in range(3) for what in ("weight", "bias")]
    dropping = nn.FusedMLP(4, [6], 3, hidden_dropout_rate=[1.0], skip_final_activation=True)
    assert dropping(x).allclose(dropping.bias_1.expand(2, 3))
    with pytest.raises(OptionError, match="each of 2 hidden layers"):
        nn.FusedMLP(4, [6, 5], 3, hidden_dropout_rate=[0.5])


def test_a_norm_by_the_root_mean_square() -> None:
    x, norm = flow.randn(2, 8), nn.RMSLayerNorm(8)
    assert norm(x).allclose(x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt(), atol=1e-5)
    assert list(norm.state_dict()) == ["weight"]
