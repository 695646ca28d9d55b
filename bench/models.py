"""The models of the benchmarks, written once for torch and Weft, whose names are the same: `lib` is either."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

VOCABULARY = 128


def models(lib: Any) -> SimpleNamespace:
    """MLP and GPT over a library's modules."""
    nn, F = lib.nn, lib.nn.functional

    def mlp(width: int, layers: int) -> Any:
        return nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())])

    class Block(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            qkv = self.qkv(self.norm1(x)).reshape(b, t, self.heads, 3 * d // self.heads).transpose(1, 2)
            q, k, v = qkv.chunk(3, -1)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self, layers: int, width: int, context: int, heads: int = 4) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

        def forward(self, ids: Any, targets: Any) -> Any:
            x = self.token(ids) + self.position.weight[: ids.shape[1]]
            x = self.head(self.norm(self.blocks(x)))
            return F.cross_entropy(x.reshape(-1, VOCABULARY), targets.reshape(-1))

    class Recurrent(nn.Module):
        """Classifies tokens by the last output of a recurrent layer."""

        def __init__(self, kind: str) -> None:
            super().__init__()
            self.token, self.over_time = nn.Embedding(VOCABULARY, 32), getattr(nn, kind)(32, 64, 2, batch_first=True)
            self.head = nn.Linear(64, 10)

        def forward(self, ids: Any) -> Any:
            return self.head(self.over_time(self.token(ids))[0][:, -1])

    class Encoder(nn.Module):
        """Classifies tokens by the mean output of a transformer."""

        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
            self.token, self.layers = nn.Embedding(VOCABULARY, 64), nn.TransformerEncoder(layer, 2)
            self.head = nn.Linear(64, 10)

        def forward(self, ids: Any) -> Any:
            return self.head(self.layers(self.token(ids)).mean(1))

    class Residual(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
            self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

        def forward(self, x: Any) -> Any:
            return F.relu(x + self.norm2(self.second(F.relu(self.norm1(self.first(x))))))

    class Images(nn.Module):
        """Classifies images by residual convolutions."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.blocks = nn.Conv2d(3, 16, 3, padding=1), nn.Sequential(*[Residual(16) for _ in range(4)])
            self.head = nn.Linear(16, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.blocks(self.first(x)).mean((2, 3)))

    classifiers = {
        "LSTM, 2 layers, d 64, 8x20": lambda: Recurrent("LSTM"), "GRU, 2 layers, d 64, 8x20": lambda: Recurrent("GRU"),
        "TransformerEncoder, 2 layers, d 64, 8x20": Encoder, "residual convolutions, 8x3x32x32": Images,
        "residual convolutions, 8x3x32x32, channels_last": lambda: Images().to(memory_format=lib.channels_last),
        "sums of 1,000,000 sparse rows, d 64, 256x20": lambda: nn.Sequential(
            nn.EmbeddingBag(1_000_000, 64, mode="sum", sparse=True), nn.Linear(64, 10)
        ),
    }  # fmt: skip
    return SimpleNamespace(mlp=mlp, GPT=GPT, classifiers=classifiers)


GPTS = {  # layers, width, batch, tokens
    "2 layers, d 64, 2x32 tokens": (2, 64, 2, 32),
    "4 layers, d 256, 4x128": (4, 256, 4, 128),
}
MLPS = {"batch 8, width 16": (8, 16), "batch 64, width 256": (64, 256), "batch 256, width 1024": (256, 1024)}
LAYERS = 4
