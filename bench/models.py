"""The models of the bench, written once: `lib` is torch or weft, whose names are the same."""

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

    return SimpleNamespace(mlp=mlp, GPT=GPT)


GPTS = {  # layers, width, batch, tokens
    "2 layers, d 64, 2x32 tokens": (2, 64, 2, 32),
    "4 layers, d 256, 4x128": (4, 256, 4, 128),
}
MLPS = {"batch 8, width 16": (8, 16), "batch 64, width 256": (64, 256), "batch 256, width 1024": (256, 1024)}
LAYERS = 4
