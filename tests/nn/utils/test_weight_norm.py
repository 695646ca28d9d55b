"""Weight normalisation against torch's."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError
from weft.nn.utils import remove_weight_norm, weight_norm
from weft.tensor.tensor import of_torch


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("dim", [0, 1, -1, -2, None])
def test_length_and_direction_are_torchs(dim: int | None) -> None:
    theirs = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2), dim=dim)  # type: ignore[arg-type]
    ours = weight_norm(flow.nn.Linear(3, 2), dim=dim)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: of_torch(v.clone() + 0.1) for k, v in theirs.state_dict().items()})
    theirs.load_state_dict({k: v + 0.1 for k, v in theirs.state_dict().items()})
    x = torch.randn(4, 3)
    expected, got = theirs(x), ours(of_torch(x))
    torch.testing.assert_close(got.detach().to_torch(), expected.detach())
    expected.square().sum().backward()
    got.square().sum().backward()
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(q.grad.to_torch(), p.grad, rtol=1e-4, atol=1e-5)  # type: ignore[union-attr]


def test_it_can_be_taken_off_again() -> None:
    layer = flow.nn.Linear(3, 2)
    before, x = layer.weight.detach().clone(), flow.randn(4, 3)
    y = layer(x)
    weight_norm(layer)
    assert layer(x).allclose(y, atol=1e-6)
    with pytest.raises(OptionError, match="two weight_norm hooks on the same parameter"):
        weight_norm(layer)
    remove_weight_norm(layer)
    assert isinstance(layer.weight, flow.Parameter) and layer.weight.allclose(before, atol=1e-6)
    assert sorted(layer.state_dict()) == ["bias", "weight"] and layer(x).allclose(y, atol=1e-6)
    with pytest.raises(OptionError, match="not found in Linear"):
        remove_weight_norm(layer)
    with pytest.raises(AttributeError, match=r"Linear.*wight"):
        weight_norm(layer, "wight")
