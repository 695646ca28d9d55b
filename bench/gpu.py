"""The same ops and steps on a GPU, if torch finds one. Each step reads its loss, which synchronizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import weft as flow
from bench.measure import Row, least
from bench.models import GPTS, MLPS, VOCABULARY
from bench.steps import Training, gpt_steps, mlp_steps, ours, theirs, torch_step, weft_step
from weft.interop import from_torch, load_torch

GPU = "GPU: "
LARGE = (12, 768, 8, 1024)  # layers, width, batch, tokens


def rows(quick: bool) -> list[Row]:
    if not torch.cuda.is_available():
        return []
    return [*ops(quick), *steps(quick)]


def ops(quick: bool) -> list[Row]:
    """The cost of issuing kernels that are tiny."""
    a, b = torch.randn(8, 8, device="cuda"), torch.randn(8, 8, device="cuda")
    x, y = from_torch(a), from_torch(b)
    found = []
    for case, in_torch, in_weft in (
        ("eager relu 8x8", lambda: torch.relu(a), lambda: flow.relu(x)),
        ("eager matmul 8x8", lambda: torch.matmul(a, b), lambda: flow.matmul(x, y)),
    ):
        t, o = least([in_torch, in_weft], 1_000 if quick else 10_000, before=torch.cuda.synchronize)
        found.append(Row(f"{GPU}{case}", "torch", t, o))
    return found


def steps(quick: bool) -> list[Row]:
    found = []
    n = 5 if quick else 50
    for size in MLPS:
        made = mlp_steps(size, "cuda")
        t, o = least([made["torch"](), made["eager"]()], n)
        found.append(Row(f"{GPU}eager MLP step, {size}, 4 layers, SGD momentum", "torch", t, o))
    for size in GPTS:
        made = gpt_steps(size, "cuda")
        t, c, o, g = least([made[kind]() for kind in ("torch", "compile", "eager", "graph")], n)
        found.append(Row(f"{GPU}eager GPT step, {size}, AdamW", "torch", t, o))
        found.append(Row(f"{GPU}graph GPT step, {size}, AdamW", "torch.compile", c, g))
    t, c, o, g = least(large_steps(), 3 if quick else 10)
    size = "{} layers, d {}, {}x{}, bfloat16".format(*LARGE)
    found.append(Row(f"{GPU}eager GPT step, {size}, AdamW", "torch", t, o))
    found.append(Row(f"{GPU}graph GPT step, {size}, AdamW", "torch.compile", c, g))
    return found


def large_steps() -> list[Callable[[], Any]]:
    """Steps in mixed precision of a GPT of the size of GPT-2: torch's, torch.compile's, Weft's eager and graph ones."""
    layers, width, batch, tokens = LARGE
    ids = torch.randint(0, VOCABULARY, (batch, tokens + 1))
    x, y = (t.contiguous().cuda() for t in (ids[:, :-1], ids[:, 1:]))

    def pair() -> tuple[Any, Any]:
        torch.manual_seed(0)
        a = theirs.GPT(layers, width, tokens, heads=12)
        b = load_torch(ours.GPT(layers, width, tokens, heads=12), a)
        return a.cuda(), b.cuda()

    def mixed(lib: Any, model: Any, *batch: Any) -> Any:
        with lib.autocast("cuda", dtype=lib.bfloat16):
            return model(*batch)

    def in_torch(compiled: bool) -> Callable[[], Any]:
        a, _ = pair()
        model = torch.compile(a) if compiled else a
        return torch_step(lambda: mixed(torch, model, x, y), torch.optim.AdamW(a.parameters(), lr=1e-3, fused=compiled))

    given = from_torch(x), from_torch(y)
    _, eager = pair()
    _, in_graph = pair()
    graph = Training(in_graph, partial(mixed, flow), flow.optim.AdamW(in_graph.parameters(), lr=1e-3))
    return [
        in_torch(False), in_torch(True),
        weft_step(lambda: mixed(flow, eager, *given), flow.optim.AdamW(eager.parameters(), lr=1e-3)),
        lambda: graph(*given).item(),
    ]  # fmt: skip
