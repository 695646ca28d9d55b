"""A small GPT, written once for one device, and trained eagerly or as a graph, alone or in parallel.

    python examples/gpt.py                                                    # eagerly, on one rank
    python examples/gpt.py --graph                                            # compiled
    python -m weft.launch --nproc_per_node 2 examples/gpt.py --parallel data
    python -m weft.launch --nproc_per_node 2 examples/gpt.py --parallel tensor --graph
    python -m weft.launch --nproc_per_node 4 examples/gpt.py --parallel pipeline+data --graph --micro-batches 4

(torchrun works as well as weft.launch; with `--threads` the ranks are threads of one process.) The model's code is the
same in all cases: only `Layout` differs, which says where the weights lie and how they are split.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pydoc_data import topics

import numpy as np

import weft as flow
from weft import nn
from weft.nn import functional as F

S, B = flow.sbp.split, flow.sbp.broadcast

# ---- the model: for one device -------------------------------------------------------------------------------


class Embed(nn.Module):
    """Token and position embeddings."""

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)

    def forward(self, ids: flow.Tensor) -> flow.Tensor:
        return self.token(ids) + self.position.weight[: ids.shape[1]]


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        b, t, width = x.shape
        # each head's query, key and value are adjacent, so that splitting the weight splits by heads
        qkv = self.qkv(x).reshape(b, t, self.heads, 3 * width // self.heads).transpose(1, 2)
        q, k, v = qkv.chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, width))


class MLP(nn.Module):
    """The feed-forward layers of a block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width), MLP(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class Head(nn.Module):
    """The logits of the next token."""

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.linear(self.norm(x))


class GPT(nn.Sequential):
    def __init__(
        self, vocabulary: int, context: int, width: int, heads: int, layers: int, dropout: float = 0.0
    ) -> None:
        blocks = [Block(width, heads, dropout) for _ in range(layers)]
        super().__init__(Embed(vocabulary, context, width), *blocks, Head(width, vocabulary))
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, 0.0, 0.02)


def loss_of(scores: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
    return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), targets.reshape(-1))


# ---- the layout: the only part that depends on ranks ----------------------------------------------------------

TENSOR = {  # how a "tensor" axis splits weights: by heads, columns, rows of the vocabulary; others are broadcast
    "token.weight": S(0), "qkv.weight": S(0), "qkv.bias": S(0), "out.weight": S(1), "up.weight": S(0), "up.bias": S(0),
    "down.weight": S(1), "linear.weight": S(0),
}  # fmt: skip


class Layout:
    """The ranks of each pipeline stage, as a grid whose axes split the batch ("data") or the weights ("tensor").

    "pipeline+data" on four ranks: stages [0, 1] and [2, 3]. "data+tensor": one stage, [[0, 1], [2, 3]].
    """

    def __init__(self, how: str, world: int) -> None:
        kinds = how.split("+")
        shape = [world] if len(kinds) == 1 else [2, world // 2]
        stages = shape[kinds.index("pipeline")] if "pipeline" in kinds else 1
        self.axes = [k for k in kinds if k != "pipeline"] or ["data"]
        grid = np.arange(world).reshape(stages, *([2, world // 2] if len(self.axes) == 2 else [-1]))
        self.stages = [flow.placement("cpu", ranks=ranks.tolist()) for ranks in grid]
        self.batch = [S(0) if axis == "data" else B for axis in self.axes]

    def weight(self, name: str) -> list[flow.sbp.sbp]:
        kind = ".".join(name.split(".")[-2:])
        return [TENSOR.get(kind, B) if axis == "tensor" else B for axis in self.axes]

    def parts(self, model: nn.Sequential) -> Iterator[tuple[int, nn.Module]]:
        """The model's parts, each with its stage."""
        for i, part in enumerate(model):
            yield i * len(self.stages) // len(model), part

    def spread(self, model: nn.Sequential) -> None:
        """Distribute the weights; each part moves its inputs to its own placement."""
        for stage, part in self.parts(model):
            place = self.stages[stage]
            part.to_global(placement=place, sbp=lambda name, p: self.weight(name))
            part.register_forward_pre_hook(
                lambda _, args, place=place: tuple(a.to_global(placement=place, sbp=self.batch) for a in args)
            )

    def feed(self, ids: np.ndarray, stage: int) -> flow.Tensor:
        """A batch that all ranks hold, as a global tensor on the stage that reads it."""
        return flow.tensor(ids, placement=self.stages[stage], sbp=self.batch)


# ---- training ----------------------------------------------------------------------------------------------------

Step = Callable[[flow.Tensor, flow.Tensor], flow.Tensor]
OPTIMIZERS = {"adamw": flow.optim.AdamW, "sgd": flow.optim.SGD}


def eager_step(model: GPT, optimizer: flow.optim.Optimizer, micro_batches: int) -> Step:
    def step(ids: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        optimizer.zero_grad()
        losses = []
        for x, y in zip(ids.chunk(micro_batches), targets.chunk(micro_batches), strict=True):
            loss = loss_of(model(x), y)
            (loss / micro_batches).backward()
            losses.append(loss.detach())
        optimizer.step()
        return flow.stack(losses)

    return step


class GraphStep(nn.Graph):
    """The same step, traced once and compiled; the compiler splits off micro-batches and averages gradients."""

    def __init__(
        self, model: GPT, optimizer: flow.optim.Optimizer, micro_batches: int, layout: Layout | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(micro_batches)
        if layout is not None:
            for stage, part in layout.parts(self.model):
                part.to(nn.graph.GraphModule).set_stage(stage, layout.stages[stage])

    def build(self, ids: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        loss = loss_of(self.model(ids), targets)
        loss.backward()
        return loss


def read(loss: flow.Tensor) -> float:
    """The loss (the mean of those of micro-batches) as a number on every rank."""
    loss = loss.mean()
    if loss.is_global:  # it lies on the last stage, and rank 0 prints it
        loss = loss.to_global(placement=flow.env.all_device_placement("cpu"), sbp=B)
    return loss.item()


class Training:
    """A model in its layout, with the optimizer and the step that the options ask for."""

    def __init__(self, options: argparse.Namespace, vocabulary: int) -> None:
        world = flow.env.get_world_size()
        flow.manual_seed(options.seed)
        self.model = GPT(vocabulary, options.context, options.width, options.heads, options.layers, options.dropout)
        self.start = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self.layout = None if options.parallel == "none" else Layout(options.parallel, world)
        if self.layout is not None:
            self.layout.spread(self.model)
        self.optimizer = OPTIMIZERS[options.optimizer](self.model.parameters(), lr=options.lr)
        self.step: Step = (
            GraphStep(self.model, self.optimizer, options.micro_batches, self.layout)
            if options.graph
            else eager_step(self.model, self.optimizer, options.micro_batches)
        )

    def __call__(self, ids: np.ndarray, targets: np.ndarray) -> flow.Tensor:
        if self.layout is None:
            return self.step(flow.tensor(ids), flow.tensor(targets))
        return self.step(self.layout.feed(ids, 0), self.layout.feed(targets, -1))


# ---- data: a text that comes with Python -------------------------------------------------------------------------


def text() -> str:
    return "\n".join(topics.topics[name] for name in sorted(topics.topics))


def encode(text: str) -> tuple[np.ndarray, str]:
    """The text's characters as indices, and the alphabet that they index."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    occurs = np.bincount(codes) > 0
    return np.cumsum(occurs)[codes] - 1, "".join(map(chr, np.flatnonzero(occurs)))


def batches(ids: np.ndarray, batch: int, context: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Random pieces of the text, and the same shifted by one token; equal on all ranks."""
    random = np.random.default_rng(seed)
    while True:
        starts = random.integers(0, len(ids) - context, batch)
        places = starts[:, None] + np.arange(context)
        yield ids[places], ids[places + 1]


# ---- the command line ----------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    it = argparse.ArgumentParser(description="Train a small GPT.")
    it.add_argument("--graph", action="store_true", help="compile the step")
    it.add_argument(
        "--parallel", default="none",
        choices=("none", "data", "tensor", "pipeline", "pipeline+data", "pipeline+tensor", "data+tensor"),
        help="what the ranks split; of two, each takes one axis of a grid of ranks",
    )  # fmt: skip
    it.add_argument("--micro-batches", type=int, default=1, metavar="K", help="cut each batch, update once")
    for name, default in (("steps", 50), ("layers", 2), ("width", 64), ("heads", 4), ("context", 32), ("batch", 8)):
        it.add_argument(f"--{name}", type=int, default=default)
    it.add_argument("--optimizer", choices=tuple(OPTIMIZERS), default="adamw")
    it.add_argument("--lr", type=float, default=1e-3)
    it.add_argument("--dropout", type=float, default=0.0)
    it.add_argument("--seed", type=int, default=1)
    it.add_argument("--every", type=int, default=10, help="steps between printed losses")
    it.add_argument("--check", action="store_true", help="train the same in plain torch, and compare")
    return it


def train(options: argparse.Namespace, say: Callable[[str], None] = lambda line: None) -> list[float]:
    """The losses of every step."""
    ids, alphabet = encode(text())
    training = Training(options, len(alphabet))
    losses: list[flow.Tensor] = []
    pieces = batches(ids, options.batch, options.context, options.seed)
    for i in range(options.steps):
        losses.append(training(*next(pieces)))
        if i % options.every == 0 or i == options.steps - 1:
            say(f"step {i:4}  loss {read(losses[-1]):.4f}")
    found = [read(loss) for loss in losses]
    if options.check:
        from gpt_in_torch import compare  # the same model in plain torch

        say(compare(options, training.start, found))
    return found


def main() -> None:
    options = parser().parse_args()
    world = flow.env.get_world_size()
    if options.parallel == "none" and world > 1:
        raise SystemExit(f"there are {world} ranks: say what they share out, with --parallel data, say")
    if "+" in options.parallel and world % 2:
        raise SystemExit(f"--parallel {options.parallel} takes an even number of ranks; there is {world}")
    train(options, say=print if flow.env.get_rank() == 0 else lambda line: None)


if __name__ == "__main__":
    main()
