"""The same ops and steps on a GPU, if torch finds one. Each step reads its loss, which synchronizes."""

from __future__ import annotations

import torch

import weft as flow
from bench.measure import Row, least
from bench.models import GPTS, MLPS
from bench.steps import gpt_steps, mlp_steps
from weft.interop import from_torch


def rows(quick: bool) -> list[Row]:
    if not torch.cuda.is_available():
        return []
    return [*ops(quick), *steps(quick)]


def ops(quick: bool) -> list[Row]:
    """The cost of issuing kernels that are tiny."""
    a, b = torch.randn(8, 8, device="cuda"), torch.randn(8, 8, device="cuda")
    x, y = from_torch(a), from_torch(b)
    found = []
    for case, theirs, ours in (
        ("eager relu 8x8", lambda: torch.relu(a), lambda: flow.relu(x)),
        ("eager matmul 8x8", lambda: torch.matmul(a, b), lambda: flow.matmul(x, y)),
    ):
        t, o = least([theirs, ours], 1_000 if quick else 10_000, before=torch.cuda.synchronize)
        found.append(Row(f"GPU: {case}", "torch", t, o))
    return found


def steps(quick: bool) -> list[Row]:
    found = []
    n = 5 if quick else 50
    for size in MLPS:
        made = mlp_steps(size, "cuda")
        t, o = least([made["torch"](), made["eager"]()], n)
        found.append(Row(f"GPU: eager MLP step, {size}, 4 layers, SGD momentum", "torch", t, o))
    for size in GPTS:
        made = gpt_steps(size, "cuda")
        t, o, g = least([made["torch"](), made["eager"](), made["graph"]()], n)
        found.append(Row(f"GPU: eager GPT step, {size}, AdamW", "torch", t, o))
        found.append(Row(f"GPU: graph GPT step, {size}, AdamW", "torch", t, g))
    return found
