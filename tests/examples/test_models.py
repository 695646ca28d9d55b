"""Models as people write them for PyTorch, trained in Weft: eagerly, as a graph, and data parallel on two ranks.

Each is written once, against a `lib` that is torch or weft; torch's losses are the oracle.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft.interop import from_torch
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast
STEPS = 3


def models(lib: Any) -> dict[str, Any]:  # noqa: C901  (a case per kind)
    nn, F = lib.nn, lib.nn.functional

    class Residual(nn.Module):
        def __init__(self, ins, outs, stride=1):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False), nn.BatchNorm2d(outs)
            self.conv2, self.bn2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs)
            self.short = nn.Sequential()
            if stride != 1 or ins != outs:
                self.short = nn.Sequential(nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(y)) + self.short(x))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
            self.layers = nn.Sequential(nn.MaxPool2d(2), Residual(8, 8), Residual(8, 16, 2))
            self.pool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, 10)

        def forward(self, x):
            return self.fc(lib.flatten(self.pool(self.layers(self.stem(x))), 1))

    class VisionTransformer(nn.Module):
        def __init__(self, d=32):
            super().__init__()
            self.patch = nn.Conv2d(3, d, 4, 4)
            self.token, self.place = nn.Parameter(lib.zeros(1, 1, d)), nn.Parameter(lib.zeros(1, 17, d))
            layer = nn.TransformerEncoderLayer(d, 4, 64, 0.0, activation="gelu", batch_first=True)
            self.encoder, self.norm, self.head = nn.TransformerEncoder(layer, 2), nn.LayerNorm(d), nn.Linear(d, 10)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = lib.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.place
            return self.head(self.norm(self.encoder(x))[:, 0])

    class LanguageLSTM(nn.Module):
        def __init__(self, words=20, d=16):
            super().__init__()
            self.embedding, self.rnn = nn.Embedding(words, d), nn.LSTM(d, d, num_layers=2, batch_first=True)
            self.out = nn.Linear(d, words)
            self.out.weight = self.embedding.weight  # tied

        def forward(self, x):
            return self.out(self.rnn(self.embedding(x))[0])

    class VAE(nn.Module):
        def __init__(self, d=24, z=4):
            super().__init__()
            self.encoder, self.mean, self.log_var = (
                nn.Sequential(nn.Linear(d, 16), nn.Tanh()),
                *(nn.Linear(16, z) for _ in range(2)),
            )
            self.decoder = nn.Sequential(nn.Linear(z, 16), nn.LeakyReLU(0.1), nn.Linear(16, d), nn.Sigmoid())

        def forward(self, x, noise):
            h = self.encoder(x)
            mean, log_var = self.mean(h), self.log_var(h)
            seen = self.decoder(mean + (0.5 * log_var).exp() * noise)
            far = -0.5 * lib.sum(1 + log_var - mean.pow(2) - log_var.exp())
            return (F.binary_cross_entropy(seen, x, reduction="sum") + far) / x.shape[0]

    class Llama(nn.Module):
        def __init__(self, words=32, d=32, heads=4, tokens=8):
            super().__init__()
            self.heads, self.embedding = heads, nn.Embedding(words, d)
            self.q, self.k, self.v = (nn.Linear(d, n, bias=False) for n in (d, d // 2, d // 2))
            self.o, self.head = nn.Linear(d, d, bias=False), nn.Linear(d, words, bias=False)
            self.norm1, self.norm2 = nn.Parameter(lib.ones(d)), nn.Parameter(lib.ones(d))
            self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((d, 64), (d, 64), (64, d)))
            turns = 1.0 / (10000 ** (lib.arange(0, d // heads, 2).float() / (d // heads)))
            angles = lib.outer(lib.arange(tokens).float(), turns)
            angles = lib.cat([angles, angles], -1)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())
            self.register_buffer("mask", lib.tril(lib.ones(tokens, tokens)).bool())

        def norm(self, x, weight):
            return x * lib.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

        def turned(self, x):
            a, b = x.chunk(2, -1)
            return x * self.cos[: x.shape[2]] + lib.cat([-b, a], -1) * self.sin[: x.shape[2]]

        def forward(self, ids):
            batch, tokens = ids.shape
            x = self.embedding(ids)
            y, width = self.norm(x, self.norm1), x.shape[-1] // self.heads
            q = self.q(y).view(batch, tokens, self.heads, width).transpose(1, 2)
            k, v = (f(y).view(batch, tokens, self.heads // 2, width).transpose(1, 2) for f in (self.k, self.v))
            q, k = self.turned(q), self.turned(k)
            k, v = k.repeat_interleave(2, dim=1), v.repeat_interleave(2, dim=1)
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(width)
            scores = scores.masked_fill(~self.mask[:tokens, :tokens], float("-inf"))
            y = (lib.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(batch, tokens, -1)
            x = x + self.o(y)
            y = self.norm(x, self.norm2)
            return self.head(x + self.down(F.silu(self.gate(y)) * self.up(y)))

    class Experts(nn.Module):
        def __init__(self, d=16, n=4):
            super().__init__()
            self.gate, self.out = nn.Linear(d, n), nn.Linear(d, 4)
            self.experts = nn.ModuleList(
                [nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, d)) for _ in range(n)]
            )

        def forward(self, x):
            share, chosen = lib.topk(F.softmax(self.gate(x), -1), 2, dim=-1)
            share, y = share / share.sum(-1, keepdim=True), lib.zeros_like(x)
            for i, expert in enumerate(self.experts):
                y = y + ((chosen == i).float() * share).sum(-1, keepdim=True) * expert(x)
            return self.out(y)

    class Attentive(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.rnn = nn.GRU(d, d, bidirectional=True, batch_first=True)
            self.attention, self.out = nn.MultiheadAttention(2 * d, 2, batch_first=True), nn.Linear(2 * d, 3)

        def forward(self, x):
            y, _ = self.rnn(x)
            return self.out(self.attention(y, y, y)[0].max(dim=1)[0])

    class Mobile(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(3, 6, 1), nn.Hardswish(), nn.Conv2d(6, 6, 3, padding=1, groups=6), nn.BatchNorm2d(6),
                nn.ReLU6(), nn.AvgPool2d(2),
            )  # fmt: skip
            self.squeeze = nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(6, 2, 1), nn.ReLU(), nn.Conv2d(2, 6, 1), nn.Hardsigmoid()
            )
            self.fc = nn.Linear(6 * 8 * 8, 5)

        def forward(self, x):
            y = self.features(x)
            return self.fc((y * self.squeeze(y)).reshape(y.size(0), -1))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
            self.down, self.up = nn.Conv2d(8, 16, 3, 2, 1), nn.ConvTranspose2d(16, 8, 4, 2, 1)
            self.middle = nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1))
            self.time, self.out = nn.Linear(4, 16), nn.Conv2d(16, 3, 1)

        def forward(self, x, time):
            first = self.first(x)
            h = self.down(first) + self.time(lib.cat([lib.sin(time), lib.cos(time)], -1))[:, :, None, None]
            h = h + self.middle(h)
            up = self.up(h) + F.interpolate(h[:, :8], scale_factor=2, mode="nearest")
            return self.out(lib.cat([up, first], 1))

    return {k: v for k, v in locals().items() if isinstance(v, type)}


MODELS = {torch: models(torch), flow: models(flow)}


def labelled(lib: Any, model: Any, x: Any, y: Any) -> Any:
    scores = model(x)
    return lib.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1), label_smoothing=0.1)


def near(lib: Any, model: Any, x: Any, time: Any, y: Any) -> Any:
    return lib.nn.functional.mse_loss(model(x, time), y)


def itself(lib: Any, model: Any, *inputs: Any) -> Any:
    return model(*inputs)


def data(kind: str, rand: np.random.Generator) -> list[np.ndarray]:
    def real(*shape: int) -> np.ndarray:
        return rand.normal(size=shape).astype(np.float32)

    return {
        "image": lambda: [real(4, 3, 16, 16), rand.integers(0, 5, size=(4,))],
        "text": lambda: [rand.integers(0, 20, size=(4, 8)), rand.integers(0, 20, size=(4, 8))],
        "row": lambda: [real(8, 16), rand.integers(0, 4, size=(8,))],
        "series": lambda: [real(4, 5, 12), rand.integers(0, 3, size=(4,))],
        "shade": lambda: [rand.random(size=(4, 24)).astype(np.float32), real(4, 4)],
        "noise": lambda: [real(4, 3, 8, 8), real(4, 2), real(4, 3, 8, 8)],
    }[kind]()


SGD = ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4, "nesterov": True})
ADAMW = ("AdamW", {"lr": 3e-3, "betas": (0.9, 0.98), "weight_decay": 0.05})
CASES = {
    "ResNet": (labelled, "image", SGD), "VisionTransformer": (labelled, "image", ADAMW),
    "LanguageLSTM": (labelled, "text", SGD), "VAE": (itself, "shade", ADAMW), "Llama": (labelled, "text", ADAMW),
    "Experts": (labelled, "row", SGD), "Attentive": (labelled, "series", ADAMW), "Mobile": (labelled, "image", SGD),
    "UNet": (near, "noise", ADAMW),
}  # fmt: skip
CLIP = 1.0


def optimizer_of(lib: Any, model: Any, which: tuple[str, dict[str, Any]], **group: Any) -> Any:
    return getattr(lib.optim, which[0])([{"params": list(model.parameters()), **group}], **which[1])


def stepped(lib: Any, model: Any, loss: Any, optimizer: Any) -> float:
    optimizer.zero_grad()
    loss.backward()
    lib.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    return loss.item()


def in_torch(name: str) -> tuple[dict[str, Any], list[list[np.ndarray]], list[float]]:
    loss_of, kind, which = CASES[name]
    torch.manual_seed(0)
    model, rand = MODELS[torch][name](), np.random.default_rng(0)
    start = {k: v.clone() for k, v in model.state_dict().items()}
    batches = [data(kind, rand) for _ in range(STEPS)]
    optimizer = optimizer_of(torch, model, which)
    losses = [stepped(torch, model, loss_of(torch, model, *map(torch.from_numpy, b)), optimizer) for b in batches]
    return start, batches, losses


def in_weft(name: str, start: dict[str, Any], batches: list[list[np.ndarray]], graph: bool, place: Any) -> list[float]:
    loss_of, _, which = CASES[name]
    model = MODELS[flow][name]()
    model.load_state_dict({k: from_torch(v.clone()) for k, v in start.items()})
    if place is not None:
        model.to_global(placement=place, sbp=B)

    def laid(a: np.ndarray) -> Any:
        t = flow.tensor(a)
        return t if place is None else t.to_global(placement=place, sbp=B).to_global(sbp=S(0))

    if not graph:
        optimizer = optimizer_of(flow, model, which)
        return [stepped(flow, model, loss_of(flow, model, *map(laid, b)), optimizer) for b in batches]

    class Train(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer_of(flow, model, which, clip_grad_max_norm=CLIP, clip_grad_norm_type=2.0))

        def build(self, *inputs: Any) -> Any:
            loss = loss_of(flow, self.model, *inputs)
            loss.backward()
            return loss

    train = Train()
    losses = [train(*map(laid, b)).item() for b in batches]
    train.close()
    return losses


@pytest.mark.parametrize("name", CASES)
def test_a_model_trains_as_in_torch(name: str) -> None:
    start, batches, losses = in_torch(name)
    for graph in (False, True):
        np.testing.assert_allclose(in_weft(name, start, batches, graph, None), losses, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["ResNet", "VisionTransformer", "Llama", "Experts", "VAE"])
def test_a_model_trains_data_parallel_as_in_torch_alone(name: str) -> None:
    start, batches, losses = in_torch(name)

    def run() -> list[float]:
        return in_weft(name, start, batches, True, flow.placement("cpu", ranks=[0, 1]))

    for found in spawn_threads(2, run):
        np.testing.assert_allclose(found, losses, rtol=2e-4, atol=2e-5)
