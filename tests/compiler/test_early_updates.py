"""Updates that don't wait for other gradients train as those do that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.compiler import passes
from weft.compiler.options import Options
from weft.compiler.passes import early_updates
from weft.job.text import parse, show
from weft.job.value import Node, Value
from weft.plan.usage import usage

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: flow.optim.SGD(p, lr=0.01, momentum=0.9),
    "Adam": lambda p: flow.optim.Adam(p, lr=0.01, amsgrad=True),
    "Adam, uncorrected": lambda p: flow.optim.Adam(p, lr=0.01, do_bias_correction=False),
    "AdamW": lambda p: flow.optim.AdamW(p, lr=0.01),
    "AdamW, clipped": lambda p: flow.optim.AdamW([{"params": p, "lr": 0.01, "clip_grad_max_norm": 0.1,
                                                   "clip_grad_norm_type": 2.0}]),
    "Adagrad": lambda p: flow.optim.Adagrad(p, lr=0.01, lr_decay=0.1),
    "RMSprop": lambda p: flow.optim.RMSprop(p, lr=0.01),
    "Adadelta": lambda p: flow.optim.Adadelta(p, lr=0.01),
}  # fmt: skip


class Tied(nn.Module):
    """The first weight is read again where the last is."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(384, 384) for _ in range(4)])

    def forward(self, x: Any) -> Any:
        for layer in (*self.layers, self.layers[0]):
            x = x + layer(x).tanh()
        return x @ self.layers[1].weight.t()


def trained(make: Callable[[Any], Any]) -> tuple[Trains, list[Any]]:
    flow.manual_seed(0)
    model = Tied()
    graph = Trains(model, make([*model.parameters()]))
    x = flow.randn(16, 384)
    losses = [graph(x).item() for _ in range(3)]
    return graph, [*losses, *(p.detach().numpy().copy() for p in model.parameters())]


def updates(graph: Trains) -> list[int]:
    """At which calls parameters are updated."""
    (step,) = (t.step for t in graph.plan.tasks if t.kind == "compute")
    return [i for i, call in enumerate(step.calls) if call.op.endswith("_update")]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    early, found = trained(OPTIMIZERS[name])
    monkeypatch.setattr(passes, "PASSES", [p for p in passes.PASSES if p[0] != "early_updates"])
    late, expected = trained(OPTIMIZERS[name])
    assert len(updates(late)) == 1 < len(updates(early))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    if "clipped" not in name:  # that has all gradients wait
        assert usage(early.plan).arenas < usage(late.plan).arenas - 384 * 384 * 4


def test_several_threads_update_more_at_once_without_a_budget() -> None:
    threads = torch.get_num_threads()
    try:
        found = []
        for n in (1, 2):
            torch.set_num_threads(n)
            found.append(len(updates(trained(OPTIMIZERS["SGD"])[0])))
        weights = Value("w", (512, 512), flow.float32, None, flow.device("cpu"))
        update = Node("up", "sgd_update", ((weights,),), ())
        assert early_updates._least(update, Options()) > early_updates._least(update, Options(memory_budget=1))
    finally:
        torch.set_num_threads(threads)
    assert found[1] < found[0]


def test_it_waits_for_readers_and_counts_a_step_once() -> None:
    big = "float32[512,512] cpu:0"
    job = parse(f"""job a
%x = input() : {big}
%v = variable() : {big}
%w = variable() : {big}
%step = variable() : float32[] cpu:0
%gv = tanh(%x) : {big}
%look = transpose(%v, 0, 1) : {big}
%gw = matmul(%gv, %look) : {big}
%r = sin(%gw) : {big}
%mv = variable() : {big}
%mw = variable() : {big}
%lr = host('lr') : float64[] cpu:0
up: adamw_update((%w, %v), (%r, %gv), (%mw, %mv), (%mw, %mv), (), %step, %lr, 0.9, 0.9, 0.1, 0.1, False, True, False)
y: output(%r)
""")
    early_updates.run(job, Options())
    job.verify()
    lines = show(job).splitlines()
    of = {
        name: next(i for i, line in enumerate(lines) if line.startswith(name)) for name in ("%gw", "%r", "up.0", "up.1")
    }
    assert of["%gw"] < of["up.0"] < of["%r"], "the view of v is read by gw"
    assert of["up.0"] < of["up.1"]
    assert [lines[of[name]].endswith(last) for name, last in (("up.0", "False)"), ("up.1", "True)"))] == [True, True]
