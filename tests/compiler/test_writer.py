"""A chain's text: what a call needs beforehand is made when the chain is written, and not at every launch."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.compiler.calls.bind import Binder
from weft.compiler.calls.source import Source
from weft.compiler.local_node import SMALL
from weft.ops import OPS
from weft.plan.calls import Step, parse


def test_calls_are_prepared_once_for_all_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []
    for name in ("gelu", "layer_norm"):
        op = OPS[name]
        assert op.prepare is not None

        def watched(*args: Any, name: str = name, plain: Any = op.prepare) -> Any:
            prepared.append(name)
            return plain(*args)

        monkeypatch.setitem(vars(op), "prepare", watched)  # a declared op refuses an assignment

    class Net(nn.Graph):
        def build(self, x: flow.Tensor) -> flow.Tensor:
            return nn.functional.gelu(nn.functional.layer_norm(x, (4,)))

    net, x = Net(), flow.arange(8).float().view(2, 4)
    expected = nn.functional.gelu(nn.functional.layer_norm(x, (4,)))
    assert net(x).allclose(expected, atol=1e-6)
    once = list(prepared)
    assert {*once} == {"gelu", "layer_norm"}
    for factor in (2.0, 3.0, 4.0):
        assert net(x * factor).allclose(expected, atol=1e-3)  # layer_norm undoes the factor
    assert prepared == once
    net.close()


@pytest.fixture
def rewritten(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops of the calls that are written again."""
    found: list[str] = []
    plain = Source.rewrite

    def watched(self: Source, was: Any, write: Any) -> bool:
        found.append(was.call.op)
        return plain(self, was, write)

    monkeypatch.setattr(Source, "rewrite", watched)
    return found


def test_a_call_is_rewritten_once_for_each_copy_of_what_it_touches(rewritten: list[str]) -> None:
    """And not for each combination of the copies of all registers, of which a pipeline has hundreds."""
    step = parse([
        "arena 64", "%x = read() : float32[4] register 1+0+16 each", "%y = read() : float32[4] register 2+0",
        "%u = relu(%x) : float32[4] arena+0", "%v = relu(%y) : float32[4] register 3+0",
        "%w = add(%u, %v) : float32[4] register 4+0",
    ])  # fmt: skip
    copies = {1: 1, 2: 2, 3: 3, 4: 5}
    memory = {r: [torch.zeros(8).view(torch.uint8) for _ in range(n)] for r, n in copies.items()}
    draws: Any = None
    binder = Binder("step", step, 0, torch.zeros(64, dtype=torch.uint8), {}, None, draws)
    for act in range(120):
        slots = {r: memory[r][act % n] for r, n in copies.items()}
        x, y = (slots[r].view(torch.float32) for r in (1, 2))
        x[:], y[:4] = torch.randn(8), torch.randn(4)
        function = binder.bind(slots, act % 2)
        slots[4].zero_()
        function()
        given = x[4:] if act % 2 else x[:4]
        assert torch.equal(slots[4].view(torch.float32)[:4], given.relu() + y[:4].relu())
    each = {op: rewritten.count(op) for op in {*rewritten}}
    assert each == {"read": 2 + 2 - 2, "relu": 2 + 6 - 2, "add": 15 - 1}  # each was written once for the first


@pytest.mark.parametrize("width", [8, 1 << 15])
def test_a_micro_batchs_small_inputs_are_read_at_one_place(width: int, rewritten: list[str]) -> None:
    """So that what reads them isn't bound to memory for each micro-batch."""

    class Net(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.config.set_gradient_accumulation_steps(4)

        def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
            return (x.relu() + y).tanh().mean(dim=1, keepdim=True)

    net, x, y = Net(), flow.randn(4, width), flow.randn(4, width)
    small = width * 4 <= SMALL
    for _ in range(3):
        assert net(x, y).allclose((x.relu() + y).tanh().mean(dim=1, keepdim=True), atol=1e-6)
    text = str(net.plan)
    assert text.count("box.copy(") == 2 * small
    assert {*rewritten} == {"read", "pack", *(["box.copy"] if small else ["relu", "add"])}
    net.close()


def test_many_calls_that_read_one_register_are_prepared_in_linear_time() -> None:
    read = "%x = read() : float32[4] register 1+0"
    reads, call = parse(["arena 64", read, "%y = relu(%x) : float32[4] arena+0"]).calls
    draws: Any = None
    began = time.process_time()
    step = Step((reads, *[call] * 100_000), 64)
    binder = Binder("many", step, 0, torch.zeros(64, dtype=torch.uint8), {}, None, draws)
    assert binder.depends[-1] == [1]
    assert time.process_time() - began < 5  # looking for each call among all of them took 20 s
