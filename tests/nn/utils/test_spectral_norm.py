"""Spectral normalisation against torch's: values, gradients, states."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError
from weft.interop import load_torch
from weft.tensor.tensor import of_torch


@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "ConvTranspose2d"])
def test_a_layer_trains_as_torchs_does(kind: str) -> None:
    args, shape = ((4, 3), (5, 4)) if kind == "Linear" else ((4, 3, 2), (2, 4, 5, 5))
    torch.manual_seed(0)
    flow.manual_seed(0)
    theirs = torch.nn.utils.spectral_norm(getattr(torch.nn, kind)(*args), n_power_iterations=2)
    ours = flow.nn.utils.spectral_norm(getattr(flow.nn, kind)(*args), n_power_iterations=2)
    torch.testing.assert_close(ours.weight_u.to_torch(), theirs.weight_u)
    ours = load_torch(ours, theirs)
    x = torch.randn(shape)
    for _ in range(2):
        y, z = theirs(x), ours(of_torch(x))
        torch.testing.assert_close(z.detach().to_torch(), y.detach())
        y.pow(2).sum().backward()
        z.pow(2).sum().backward()
    torch.testing.assert_close(ours.weight_orig.grad.to_torch(), theirs.weight_orig.grad, rtol=1e-4, atol=1e-4)
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    torch.testing.assert_close(ours.eval()(of_torch(x)).detach().to_torch(), theirs.eval()(x).detach())
    flow.nn.utils.remove_spectral_norm(ours)
    torch.testing.assert_close(ours(of_torch(x)).detach().to_torch(), theirs(x).detach())
    assert sorted(n for n, _ in ours.named_parameters()) == ["bias", "weight"]


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(KeyError, match="it has: weight, bias"):
        flow.nn.utils.spectral_norm(flow.nn.Linear(2, 2), "w")
    with pytest.raises(OptionError, match="not found"):
        flow.nn.utils.remove_spectral_norm(flow.nn.Linear(2, 2))


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name: str, periodic: bool) -> None:
    expected = getattr(torch, f"{name}_window")(7, periodic)
    torch.testing.assert_close(getattr(flow, f"{name}_window")(7, periodic).to_torch(), expected, rtol=1e-5, atol=1e-6)
    assert getattr(flow, f"{name}_window")(1).tolist() == [1.0]
