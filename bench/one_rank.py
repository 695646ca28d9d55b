"""One rank: eager ops and training steps beside torch, graphs beside torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as torch_f

import weft as flow
import weft.nn.functional as f
from bench.measure import Row, least
from bench.models import GPTS, MLPS
from bench.steps import classifier_steps, gpt_steps, mlp_steps, optimizer_of, ours
from weft.interop import from_torch


def ops(quick: bool) -> list[Row]:
    a, b, w = torch.randn(8, 8), torch.randn(8, 8), torch.randn(8, 8, requires_grad=True)
    x, y, v = from_torch(a), from_torch(b), from_torch(w)
    v.requires_grad = True
    c, rows, row, i = torch.randn(8, 8), torch.randn(100_000, 8), torch.randn(1, 8), torch.tensor([3])
    z, table, one, j = map(from_torch, (c, rows, row, i))
    pairs: list[tuple[str, Callable[[], Any], Callable[[], Any], float]] = [
        ("eager relu 8x8", lambda: torch.relu(a), lambda: flow.relu(x), 2.2),
        ("eager add 8x8", lambda: torch.add(a, b), lambda: flow.add(x, y), 2.2),
        ("eager matmul 8x8", lambda: torch.matmul(a, b), lambda: flow.matmul(x, y), 2.2),
        ("eager add 8x8, with tape", lambda: torch.add(a, w), lambda: flow.add(x, v), 2.5),
        ("eager x.sum().item()", lambda: a.sum().item(), lambda: x.sum().item(), 2.5),
        ("eager view", lambda: a.view(4, 16), lambda: x.view(4, 16), 2.0),
        ("eager x[:, 2:6]", lambda: a[:, 2:6], lambda: x[:, 2:6], 2.0),
        ("eager x[1]", lambda: a[1], lambda: x[1], 2.0),
        ("eager chunk, 2 parts", lambda: a.chunk(2), lambda: x.chunk(2), 2.0),
        ("eager unbind, 8 parts", lambda: a.unbind(), lambda: x.unbind(), 2.0),
        ("eager zeros 8x8", lambda: torch.zeros(8, 8), lambda: flow.zeros(8, 8), 2.0),
        ("eager empty 8x8", lambda: torch.empty(8, 8), lambda: flow.empty(8, 8), 2.0),
        ("eager arange", lambda: torch.arange(8), lambda: flow.arange(8), 2.0),
        ("eager rand 8x8", lambda: torch.rand(8, 8), lambda: flow.rand(8, 8), 2.0),
        ("eager smooth_l1_loss 8x8", lambda: torch_f.smooth_l1_loss(a, b), lambda: f.smooth_l1_loss(x, y), 1.5),
        (
            "eager relu(x, inplace=True) 8x8",
            lambda: torch_f.relu(c, inplace=True),
            lambda: f.relu(z, inplace=True),
            2.0,
        ),
        (
            "eager index_copy_, 1 of 100,000 rows",
            lambda: rows.index_copy_(0, i, row),
            lambda: table.index_copy_(0, j, one),
            3.0,
        ),
    ]
    found = []
    for case, torchs, wefts, limit in pairs:
        # short samples: on a busy machine some of them run undisturbed
        t, o = least([torchs, wefts], 2_000, 9 if quick else 90)
        found.append(Row(case, "torch", t, o, limit))
    return found


MLP_LIMITS = {"batch 8, width 16": 0.8, "batch 64, width 256": 1.05, "batch 256, width 1024": 1.05}
GPT_LIMITS = dict(zip(GPTS, (1.1, 1.03), strict=True))


def eager(quick: bool) -> list[Row]:
    found = []
    for size, n in zip(MLPS, (300, 50, 5), strict=True):
        steps = mlp_steps(size)
        t, o = least([steps["torch"](), steps["eager"]()], max(n // (5 if quick else 1), 2))
        found.append(Row(f"eager MLP step, {size}, 4 layers, SGD momentum", "torch", t, o, MLP_LIMITS[size]))
    for size, n in zip(GPTS, (50, 3), strict=True):
        steps = gpt_steps(size)
        n = max(n // (5 if quick else 1), 2)
        t, o = least([steps["torch"](), steps["eager"]()], n)
        found.append(Row(f"eager GPT step, {size}, AdamW", "torch", t, o, GPT_LIMITS[size]))
        t, o = least([steps["mixed torch"](), steps["mixed"]()], n)
        found.append(Row(f"eager GPT step, {size}, AdamW, autocast in bfloat16", "torch", t, o))
    return found


def written(x: Any) -> Any:
    y = x * 1.0
    for i in range(8):
        y[i] = x[i + 1] * 2.0
    return y


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {  # of torch or Weft, and a tensor of 128 x 128
    "relu6": lambda lib, x: lib.nn.functional.relu6(x),
    "hardswish": lambda lib, x: lib.nn.functional.hardswish(x),
    "elu": lambda lib, x: lib.nn.functional.elu(x),
    "glu": lambda lib, x: lib.nn.functional.glu(x),
    "norm of rows": lambda lib, x: x.norm(dim=1),
    "max of rows": lambda lib, x: x.max(1)[0],
    "logsumexp of rows": lambda lib, x: x.logsumexp(1),
    "distances of rows": lambda lib, x: lib.cdist(x, x.detach() + 1),
    "nll_loss": lambda lib, x: lib.nn.functional.nll_loss(x, lib.arange(128)),
    "binary_cross_entropy_with_logits": lambda lib, x: lib.nn.functional.binary_cross_entropy_with_logits(
        x, lib.ones(128, 128)
    ),
    "logcumsumexp of rows": lambda lib, x: x.logcumsumexp(1),
    "svdvals": lambda lib, x: lib.linalg.svdvals(x[:32, :32]),
    "smooth_l1_loss of each element": lambda lib, x: lib.nn.functional.smooth_l1_loss(
        x, lib.ones(128, 128), reduction="none"
    ),
    "embedding_bag": lambda lib, x: lib.nn.functional.embedding_bag(lib.arange(512).reshape(128, 4) % 128, x),
    "pdist": lambda lib, x: lib.nn.functional.pdist(x),
    "irfft of rows": lambda lib, x: lib.fft.irfft(lib.complex(x, x)),
    "8 rows written one by one": lambda lib, x: written(x),
    "three ops in place": lambda lib, x: (x * 2.0).add_(x).mul_(0.5).relu_(),
}  # fmt: skip


def gradients(quick: bool) -> list[Row]:
    """Functions and their gradients."""
    found = []

    def step(lib: Any, function: Callable[[Any, Any], Any], x: Any) -> Callable[[], None]:
        def run() -> None:
            function(lib, x).sum().backward()
            x.grad = None

        return run

    for name, function in FUNCTIONS.items():
        a = torch.randn(128, 128, requires_grad=True)
        x = from_torch(a.detach().clone()).requires_grad_()
        t, o = least([step(torch, function, a), step(flow, function, x)], 30, 9 if quick else 60)
        found.append(Row(f"gradient of {name}, 128x128", "torch", t, o, 2.0))
    return found


LAYER_LIMITS = {
    "LSTM, 2 layers, d 64, 8x20": 1.5, "residual convolutions, 8x3x32x32, channels_last": 1.1,
    "sums of 1,000,000 sparse rows, d 64, 256x20": 1.5,
}  # fmt: skip


def layers(quick: bool) -> list[Row]:
    """Other kinds of models, most for comparison, without bounds."""
    found = []
    for name in ours.classifiers:
        t, o, g = least(classifier_steps(name), 4 if quick else 20)
        case = f"step, {name}, {optimizer_of(name)}"
        found.append(Row(f"eager {case}", "torch", t, o, LAYER_LIMITS.get(name)))
        found.append(Row(f"graph {case}", "torch, eager", t, g, LAYER_LIMITS.get(name)))
    return found


FUSED_LIMITS = {1: (0.25, 0.55, 0.95), 2: (0.25, 0.5, 0.97)}  # bounds by the number of torch's threads


def graphs(quick: bool) -> list[Row]:
    """Graphs with default options and with `enable_inductor()`, beside torch.compile."""
    found = []
    rows: list[tuple[str, dict[str, Callable[[], Any]], int, float]] = [
        ("graph MLP step, batch 8, width 16, 4 layers", mlp_steps("batch 8, width 16"), 300, 0.35)
    ]
    for size, n, limit in zip(GPTS, (50, 20), (0.75, 1.0), strict=True):
        rows.append((f"graph GPT step, {size}, AdamW", gpt_steps(size), n, limit))
    fused = FUSED_LIMITS[min(torch.get_num_threads(), 2)]
    for (case, steps, n, limit), fused_limit in zip(rows, fused, strict=True):
        n = max(n // (5 if quick else 1), 2)
        try:
            compiled = steps["compile"]()
            compiled()
        except Exception as why:  # no C++ compiler, as torch.compile needs: shown in the row
            (o,) = least([steps["graph"]()], n)
            found.append(Row(case, f"torch.compile fails ({type(why).__name__})", None, o))
            continue
        t, o, f = least([compiled, steps["graph"](), steps["fused"]()], n)
        found.append(Row(case, "torch.compile", t, o, limit))
        found.append(Row(f"{case}, enable_inductor()", "torch.compile", t, f, fused_limit))
    return found


def threads(quick: bool) -> list[Row]:
    """Graphs with two of torch's threads, on both sides."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        return [row._replace(case=f"{row.case}, 2 threads") for row in graphs(quick)]
    finally:
        torch.set_num_threads(before)
