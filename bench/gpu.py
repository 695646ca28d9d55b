"""The same ops and steps on a GPU, if torch finds one. Each step reads its loss, which synchronizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

import weft as flow
from bench.measure import Row, least
from bench.models import GPTS, MLPS, VOCABULARY
from bench.steps import Training, gpt_steps, mixed, mlp_steps, ours, step_of, theirs
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
        found += gpt_rows(size, [made[kind]() for kind in ("torch", "compile", "eager", "graph", "fused")], n)
    return found + gpt_rows("{} layers, d {}, {}x{}, bfloat16".format(*LARGE), large_steps(), 3 if quick else 10)


def gpt_rows(size: str, made: Sequence[Callable[[], Any]], n: int) -> list[Row]:
    t, c, eager, graph, fused = least(made, n)
    name = f"GPT step, {size}, AdamW"
    return [
        Row(f"{GPU}eager {name}", "torch", t, eager), Row(f"{GPU}graph {name}", "torch.compile", c, graph),
        Row(f"{GPU}graph {name}, enable_inductor()", "torch.compile", c, fused),
    ]  # fmt: skip


def large_steps() -> list[Callable[[], Any]]:
    """Steps in mixed precision of a GPT of the size of GPT-2: of torch, torch.compile, Weft, its graph without and with
    Inductor."""
    layers, width, batch, tokens = LARGE
    ids = torch.randint(0, VOCABULARY, (batch, tokens + 1))
    x, y = (t.contiguous().cuda() for t in (ids[:, :-1], ids[:, 1:]))

    def pair() -> tuple[Any, Any]:
        torch.manual_seed(0)
        a = theirs.GPT(layers, width, tokens, heads=12)
        b = load_torch(ours.GPT(layers, width, tokens, heads=12), a)
        return a.cuda(), b.cuda()

    def in_torch(compiled: bool) -> Callable[[], Any]:
        a, _ = pair()
        model = torch.compile(a) if compiled else a
        return step_of(lambda: mixed(torch, model, x, y), torch.optim.AdamW(a.parameters(), lr=1e-3, fused=compiled))

    given = from_torch(x), from_torch(y)
    _, eager = pair()

    def in_graph(inductor: bool) -> Callable[[], Any]:
        _, model = pair()
        graph = Training(model, partial(mixed, flow), flow.optim.AdamW(model.parameters(), lr=1e-3), inductor)
        return lambda: graph(*given).item()

    return [
        in_torch(False), in_torch(True),
        step_of(lambda: mixed(flow, eager, *given), flow.optim.AdamW(eager.parameters(), lr=1e-3)),
        in_graph(False), in_graph(True),
    ]  # fmt: skip
