"""Derived code (distributions, layers): torch's Python on Weft's tensors against the same on torch's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch

import weft as flow
from bench.measure import Row, least
from weft.interop import from_torch


def rows(quick: bool) -> list[Row]:
    """For comparison, without bounds."""
    pairs = zip(cases(torch, lambda t: t), cases(flow, from_torch), strict=True)
    found = []
    for (case, theirs), (_, ours) in pairs:
        t, o = least([theirs, ours], 200 if quick else 2_000)
        found.append(Row(f"derived: {case}", "torch", t, o))
    return found


def cases(lib: Any, given: Callable[[torch.Tensor], Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    torch.manual_seed(0)
    x, y, logits = given(torch.randn(8)), given(torch.rand(8) + 0.5), given(torch.randn(8, 4))
    batch, images = given(torch.randn(4, 2, 8)), given(torch.randn(1, 2, 8, 8))
    d, nn = lib.distributions, lib.nn
    normal, other, categorical = d.Normal(x, y), d.Normal(y, y), d.Categorical(logits=logits)
    ten = nn.Sequential(*(nn.Identity() for _ in range(10)))
    members, encoder = nn.ModuleList(copy.copy(ten)), nn.TransformerEncoderLayer(8, 2, 16)
    pool, pad, flatten = nn.MaxPool2d(2), nn.ZeroPad2d(1), nn.Flatten()
    yield "Normal(x, y)", lambda: d.Normal(x, y)
    yield "Normal.log_prob", lambda: normal.log_prob(x)
    yield "Normal.rsample", normal.rsample
    yield "Categorical(logits=x)", lambda: d.Categorical(logits=logits)
    yield "Categorical.sample", categorical.sample
    yield "Categorical.entropy", categorical.entropy
    yield "kl_divergence(Normal, Normal)", lambda: d.kl_divergence(normal, other)
    yield "Sequential of ten Identity", lambda: ten(x)
    yield "ModuleList[3]", lambda: members[3]
    yield "TransformerEncoderLayer(8, 2, 16)", lambda: encoder(batch)
    yield "MaxPool2d(2)", lambda: pool(images)
    yield "ZeroPad2d(1)", lambda: pad(images)
    yield "Flatten()", lambda: flatten(images)
