"""What is pruned, and what is trained and saved then, is what torch prunes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.utils.prune

import weft as flow
from weft.core.errors import OptionError


def program(lib: Any) -> Iterator[Any]:
    lib.manual_seed(1)
    prune = lib.nn.utils.prune
    layer, other, image = lib.nn.Linear(4, 3), lib.nn.Linear(4, 3), lib.nn.Conv2d(2, 3, 3)
    for amount in (0.5, 2):
        prune.l1_unstructured(layer, "weight", amount=amount)
        yield layer.weight.tolist(), list(layer.state_dict()), prune.is_pruned(layer)
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    yield layer.weight.tolist(), layer.weight_mask.tolist(), layer(lib.ones(1, 4)).tolist()
    prune.remove(layer, "weight")
    yield layer.weight.tolist(), list(layer.state_dict()), prune.is_pruned(layer)
    prune.ln_structured(layer, "weight", amount=0.5, n=math.inf, dim=1)
    prune.l1_unstructured(layer, "bias", amount=1, importance_scores=lib.tensor([3.0, 1.0, 2.0]))
    yield layer.weight.tolist(), layer.bias.tolist()
    everyone = [(other, "weight"), (image, "weight")]
    prune.global_unstructured(everyone, pruning_method=prune.L1Unstructured, amount=0.3)
    prune.custom_from_mask(other, "bias", lib.tensor([0, 1, 0]))
    yield other.weight.tolist(), image.weight.tolist(), other.bias.tolist()
    prune.random_unstructured(prune.identity(image, "bias"), "bias", amount=2)
    yield image.bias.count_nonzero().item()

    class Every(prune.BasePruningMethod):
        def compute_mask(self, t: Any, default_mask: Any) -> Any:
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    third = lib.nn.Linear(4, 3)
    Every.apply(third, "weight")
    optimizer = lib.optim.SGD(third.parameters(), lr=0.1)
    for _ in range(2):
        loss = third(lib.ones(2, 4)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item(), third.weight_orig.tolist()


def flat(tree: Any) -> list[Any]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


def test_the_same_as_torchs() -> None:
    for ours, theirs in zip(flat(list(program(flow))), flat(list(program(torch))), strict=True):
        assert ours == (theirs if isinstance(theirs, (str, bool)) else pytest.approx(theirs, rel=1e-5, abs=1e-6))


def test_what_cannot_be_is_said() -> None:
    prune, layer = flow.nn.utils.prune, flow.nn.Linear(2, 2)
    with pytest.raises(AttributeError, match=r"Linear.*wait"):
        prune.l1_unstructured(layer, "wait", 1)
    with pytest.raises(OptionError, match="amount=5 should be smaller than the number of parameters to prune=4"):
        prune.l1_unstructured(layer, "weight", 5)
    with pytest.raises(OptionError, match="has to be pruned"):
        prune.remove(flow.nn.Linear(2, 2), "weight")
