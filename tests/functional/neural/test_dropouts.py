"""What is dropped, by the same seed, is what torch drops; so are its gradient and what is written in place."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError, ShapeError
from weft.tensor.tensor import of_torch

SHAPES = [(3, 4), (3, 4, 5), (3, 4, 5, 2), (2, 3, 4, 2, 2)]


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "name", ["dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout"]
)
def test_the_same_is_dropped(name: str, p: float, inplace: bool) -> None:
    for shape in SHAPES[: 2 if name == "dropout1d" else None]:
        results = []
        for library in (torch, flow):
            function: Any = getattr(library if name == "feature_dropout" else library.nn.functional, name)
            library.manual_seed(5)
            leaf = library.linspace(-2, 2, 480)[: torch.Size(shape).numel()].reshape(shape).requires_grad_()
            x = leaf * 1
            with warnings.catch_warnings():  # torch's, of shapes it would rather not see
                warnings.simplefilter("ignore")
                options = {} if name == "feature_dropout" else {"inplace": inplace}
                y = function(x, p, True, **options)
            assert (y is x) == (bool(options.get("inplace")) or (y is x and p == 0))
            y.square().sum().backward()
            results.append([t.detach().tolist() for t in (y, leaf.grad)])
        torch.testing.assert_close(torch.tensor(results[1][0]), torch.tensor(results[0][0]))
        torch.testing.assert_close(torch.tensor(results[1][1]), torch.tensor(results[0][1]))


@pytest.mark.parametrize("name", ["dropout", "dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_what_is_dropped_lies_as_it_did_and_nan_stays(name: str) -> None:
    given = torch.randn(2, 3, 4, 5).permute(2, 0, 3, 1)
    given[1] = torch.nan
    results = []
    for library, x in ((torch, given), (flow, of_torch(given))):
        library.manual_seed(5)
        results.append(getattr(library.nn.functional, name)(x, 0.3, True))
    torch.testing.assert_close(results[1].to_torch(), results[0], equal_nan=True, check_stride=True)


@pytest.mark.parametrize("name", ["AlphaDropout", "FeatureAlphaDropout", "Dropout2d"])
def test_layers_drop_while_training_only(name: str) -> None:
    torch.manual_seed(1)
    flow.manual_seed(1)
    x, layer = torch.ones(3, 4, 2, 2), getattr(flow.nn, name)(0.4)
    assert torch.equal(layer(of_torch(x)).to_torch(), getattr(torch.nn, name)(0.4)(x))
    assert torch.equal(layer.eval()(of_torch(x)).to_torch(), x)


def test_between_recurrent_layers_only_what_is_there_is_drawn_for() -> None:
    results = []
    for library in (torch, flow):
        library.manual_seed(3)
        layer = library.nn.GRU(4, 5, 2, dropout=0.5, bidirectional=True)
        packed = library.nn.utils.rnn.pack_padded_sequence(
            library.randn(6, 3, 4), library.tensor([3, 6, 4]), enforce_sorted=False
        )
        y, h = layer(packed)
        results.append([y.data.tolist(), h.tolist(), library.rand(2).tolist()])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(OptionError, match="from 0 to 1; got 2"):
        flow.nn.functional.alpha_dropout(flow.ones(2), 2, True)
    with pytest.raises(ShapeError, match=r"batch, channels.*got \[2\]"):
        flow.nn.functional.feature_alpha_dropout(flow.ones(2), 0.5, True)
