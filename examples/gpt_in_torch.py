"""The GPT of gpt.py in plain torch: the reference for every way of training it."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from typing import Any

import gpt
import torch
from torch import nn
from torch.nn import functional as F

OPTIMIZERS = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


class Embed(nn.Module):
    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.token(ids) + self.position.weight[: ids.shape[1]]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, width = x.shape
        qkv = self.qkv(x).reshape(b, t, self.heads, 3 * width // self.heads).transpose(1, 2)
        y = F.scaled_dot_product_attention(*qkv.chunk(3, -1), is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, width))


class MLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width), MLP(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Head(nn.Module):
    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(x))


def train(options: argparse.Namespace, start: Mapping[str, Any]) -> list[float]:
    """Train from these weights on the same batches; returns the loss of every step."""
    ids, alphabet = gpt.encode(gpt.text())
    blocks = [Block(options.width, options.heads) for _ in range(options.layers)]
    model = nn.Sequential(
        Embed(len(alphabet), options.context, options.width), *blocks, Head(options.width, len(alphabet))
    )
    model.load_state_dict({name: torch.from_numpy(p.numpy().copy()) for name, p in start.items()})
    optimizer = OPTIMIZERS[options.optimizer](model.parameters(), lr=options.lr)
    losses = []
    for x, y in itertools.islice(gpt.batches(ids, options.batch, options.context, options.seed), options.steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.from_numpy(x)).flatten(0, 1), torch.from_numpy(y).flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare(options: argparse.Namespace, start: Mapping[str, Any], losses: list[float]) -> str:
    """Fail unless the losses are torch's; say how close they are."""
    if options.dropout:
        raise SystemExit("--check compares with torch, which drops other elements; leave out --dropout")
    theirs = torch.tensor(train(options, start), dtype=torch.float64)
    ours = torch.tensor(losses, dtype=torch.float64)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    return f"the losses of {len(losses)} steps are those of plain torch, to {(ours - theirs).abs().max():.1e}"
