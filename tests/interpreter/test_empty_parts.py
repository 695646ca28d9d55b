"""Fewer elements than ranks: the ranks that hold nothing give their empty part of the values and of the gradients, and
nobody waits for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft import autograd, nn
from weft.core.placement import Placement
from weft.core.spec import Spec
from weft.launch import spawn_threads
from weft.ops import OPS
from weft.tensor.tensor import Tensor, of_shard, of_torch
from weft.testing import registry
from weft.testing.gradients import differentiable
from weft.testing.layouts import close, dtypes, possible, replaced, rules_of, run_kernel, shards, tensors

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
F = nn.functional
EIGHT = Placement("cpu", list(range(8)))  # samples have up to seven elements along a dimension
NAMES = [
    "add", "mul", "div", "linear", "matmul", "bmm", "sum", "mean", "amax", "softmax", "log_softmax", "embedding",
    "layer_norm", "group_norm", "batch_norm", "conv2d", "max_pool2d", "index_select", "gather", "cat", "stack",
    "permute", "slice", "sum_to", "logsumexp", "variance", "hermite_polynomial_h",
]  # fmt: skip


def whole(t: Tensor) -> torch.Tensor:
    return (t.to_global(EIGHT, [B]).to_local() if t.is_global else t).detach().to_torch()


def through(op: Any, args: Any, leaves: list[Tensor], which: list[int]) -> Any:
    """An op's outputs, and the gradients of its operands, whole."""
    for i in which:
        leaves[i].requires_grad_()
    full = replaced(op, args, leaves)
    n = len(full) - len(op.keywords)
    result = op(*full[:n], **dict(zip(op.keywords, full[n:], strict=True)))
    outputs = [result] if isinstance(result, Tensor) else list(result)
    ys = [y for y in outputs if y.requires_grad]
    found = autograd.grad([(y * y).sum() for y in ys], [leaves[i] for i in which], allow_unused=True) if ys else ()
    return [whole(y) for y in outputs], [None if g is None else whole(g) for g in found]


@pytest.mark.parametrize("name", [n for n in NAMES if n in OPS])
def test_gradients_over_more_ranks_than_elements(name: str) -> None:
    op = OPS[name]
    args = registry.cases(op)[-1 if name == "hermite_polynomial_h" else 0]
    given = tensors(op, args)
    which = differentiable(op, args)
    truth = through(op, args, [of_torch(t.detach().clone()) for t in given], which)
    rules = rules_of(op, args, run_kernel(op, registry.copied(op, args)))
    rules = [r for r in rules if any(s.is_split for s in r.inputs) and possible([r], EIGHT)]
    assert rules

    def each() -> None:
        rank = flow.env.get_rank()
        for rule in rules:
            leaves = []
            for t, s in zip(given, rule.inputs, strict=True):
                spec = Spec(tuple(t.shape), dtypes.of_torch(t.dtype), EIGHT, (s,))
                leaves.append(of_shard(shards(t, (s,), EIGHT)[(rank,)], spec))
            got = through(op, args, leaves, which)
            for ours, theirs in zip([*got[0], *got[1]], [*truth[0], *truth[1]], strict=True):
                assert ours is theirs is None or close(ours, theirs), f"{rule}: {ours} instead of {theirs}"

    spawn_threads(8, each, deadline=60)


def waves(*shape: int) -> Callable[[], Tensor]:
    return lambda: flow.arange(float(torch.Size(shape).numel())).reshape(shape).sin()


class Square(nn.Bilinear):
    def forward(self, x: Any) -> Any:
        return super().forward(x, x)


# a layer, its input, and how both are laid out
LAYERS: dict[str, tuple[Callable[[], Any], Callable[[], Any], Any, Any]] = {
    "embedding": (lambda: nn.Embedding(5, 2), lambda: flow.tensor([[0, 4], [1, 1]]), S(1), B),
    "embedding, few rows": (lambda: nn.Embedding(2, 5, padding_idx=0), lambda: flow.tensor([[0, 1], [1, 1]]), S(0), B),
    "batch norm": (lambda: nn.BatchNorm1d(2), waves(6, 2), S(0), S(1)),
    "batch norm of images": (lambda: nn.BatchNorm2d(3), waves(2, 3, 3, 3), S(0), S(1)),
    "batch norm of few": (lambda: nn.BatchNorm1d(2), waves(3, 2), B, S(0)),
    "layer norm": (lambda: nn.LayerNorm(4), waves(3, 4), B, S(0)),
    "linear": (lambda: nn.Linear(3, 2), waves(3, 3), S(0), B),
    "linear, few rows": (lambda: nn.Linear(3, 2), waves(3, 3), B, S(0)),
    "convolution": (lambda: nn.Conv1d(2, 3, 2), waves(2, 2, 3), S(0), B),
    "batch norm of one": (lambda: nn.BatchNorm1d(1), waves(3, 1), S(0), B),
    "bilinear": (lambda: Square(2, 2, 3), waves(2, 2), S(0), B),
    "a recurrent layer": (lambda: nn.GRU(2, 3), waves(2, 2, 2), B, S(1)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_over_four_ranks(name: str) -> None:
    make, given, of_layer, of_input = LAYERS[name]

    def run(place: Any) -> Any:
        flow.manual_seed(0)
        layer, x = make(), given()
        if place is not None:
            layer.to_global(place, lambda path, t: of_layer if of_layer.dim < t.ndim else B)
            x = flow.from_numpy(x.numpy()).to_global(place, B).to_global(sbp=of_input)
        y = layer(x)
        y = y[0] if isinstance(y, tuple) else y
        (y * y * y).mean().backward()
        tensors = [y.detach(), *(p.grad for p in layer.parameters()), *(b for b in layer.buffers())]
        return [(t if place is None else t.to_global(sbp=B).to_local()).numpy() for t in tensors]

    alone = run(None)
    for rank in spawn_threads(4, lambda: run(flow.placement("cpu", [0, 1, 2, 3])), deadline=60):
        for got, wanted in zip(rank, alone, strict=True):
            assert got == pytest.approx(wanted, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("shape", [(1,), (1, 3), (3, 1), (1, 1)])
def test_dimensions_of_one_element_are_split_where_values_are_written(shape: tuple[int, ...]) -> None:
    """A layer with one output, say, split along its outputs: all optimizers, and values drawn in place."""

    def run(make: Any, sbp: Any) -> Any:
        p = waves(*shape)()
        p = nn.Parameter(p if sbp is None else p.to_global(place, B).to_global(place, sbp))
        optimizer = make([p])
        for _ in range(2):
            optimizer.zero_grad()
            (p * p + p).sum().backward()
            flow.nn.utils.clip_grad_norm_([p], 1.0)
            optimizer.step()
        assert sbp is None or p.sbp == (sbp,)
        return p

    place = flow.placement("cpu", [0, 1, 2])
    optim = flow.optim
    kinds = (optim.Adam, optim.AdamW, optim.Adagrad, optim.LAMB, optim.Adadelta, optim.NAdam, optim.ASGD, optim.Rprop)
    makes = [*kinds, lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9), lambda ps: optim.RMSprop(ps, momentum=0.9)]

    def each() -> None:
        for dim in range(len(shape)):
            for make in makes:
                assert whole3(run(make, S(dim))).numpy() == pytest.approx(run(make, None).detach().numpy(), rel=1e-5)
            flow.manual_seed(5)
            drawn = flow.empty(*shape, placement=place, sbp=S(dim)).normal_()
            flow.manual_seed(5)
            assert drawn.sbp == (S(dim),) and whole3(drawn).tolist() == flow.empty(*shape).normal_().tolist()

    def whole3(t: Tensor) -> torch.Tensor:
        return t.to_global(place, [B]).to_local().detach().to_torch()

    spawn_threads(3, each, deadline=60)
