"""Launches that run at once in the caller: where they may, and that nothing else can tell them from the others."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.graphs import Calls, Trains
from weft import nn
from weft.core.errors import GraphError
from weft.core.rank import current, enter
from weft.launch import spawn_threads
from weft.vm import vm_of


def descend(model: nn.Module) -> Trains:
    return Trains(model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), lambda y: y.pow(2).mean())


def launches(graph: nn.Graph) -> int:
    """How many instructions they were so far."""
    return vm_of().statistics()["streams"]["graph:" + graph.running.lowered.plan.name]["issued"]


def ready(graph: nn.Graph, x: flow.Tensor) -> nn.Graph:
    """The graph, known to be brief."""
    graph(x).numpy()
    graph.running.brief = True
    return graph


def test_a_brief_launch_is_no_instruction_and_a_long_one_is() -> None:
    x = flow.ones(2, 4)
    graph = ready(Calls(nn.Linear(4, 3)), x)
    before = launches(graph)
    graph(x).numpy()
    assert launches(graph) == before
    graph.running.brief = False
    graph(x).numpy()
    assert launches(graph) == before + 1
    with flow.vm.trace() as t:
        graph.running.brief = True
        graph(x).numpy()
    assert [e.kind for e in t.events if e.stream.startswith("graph:")] == ["launch"]


@pytest.mark.parametrize("brief", [(True,), (False,), (True, False), (False, False, True)])
def test_training_is_the_same_however_launches_run(brief: tuple[bool, ...]) -> None:
    def trained(pattern: tuple[bool, ...]) -> list[Any]:
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        for i, p in enumerate(model.parameters()):
            p.data.copy_(flow.tensor(np.random.default_rng(i).normal(size=tuple(p.shape)).astype(np.float32)))
        step, look = descend(model), Calls(model)
        kept = []
        for i in range(12):
            x = flow.tensor(np.random.default_rng(100 + i).normal(size=(3, 4)).astype(np.float32))
            if step.is_compiled:
                step.running.brief = pattern[i % len(pattern)]
            loss = step(x)
            if look.is_compiled:
                look.running.brief = pattern[i % len(pattern)]
            kept.append((loss, look(x)))
            if i % 3 == 0:
                model[0].bias.data.add_(0.1)  # eagerly, between launches
            x.zero_()
        return [(loss.item(), y.tolist()) for loss, y in kept]

    assert trained(brief) == trained((False,))


def test_what_is_pending_comes_first() -> None:
    def rank() -> None:
        x, gate = flow.ones(2, 4), threading.Event()
        model = nn.Linear(4, 3)
        graph = ready(Calls(model), x)
        before = launches(graph)

        def late() -> None:
            assert gate.wait(60)
            x.blob.data.fill_(2.0)

        vm_of().submit("op", vm_of().stream("late", "worker"), late, (), (x.blob,))
        y = graph(x)
        assert launches(graph) == before + 1
        gate.set()
        np.testing.assert_allclose(y.numpy(), model(flow.full((2, 4), 2.0)).detach().numpy(), rtol=1e-6)

    spawn_threads(1, rank)


def test_an_error_comes_where_the_result_is_read_and_what_was_to_be_written_is_lost() -> None:
    model = nn.Embedding(3, 2)
    graph = ready(Calls(model), flow.tensor([1, 2]))
    y = graph(flow.tensor([0, 9]))
    for _ in range(2):
        with pytest.raises(Exception, match="range") as e:
            y.numpy()
        assert any("in actor" in note for note in e.value.__notes__)
    with pytest.raises(GraphError, match="broken"):
        graph(flow.tensor([0, 1])).numpy()
    assert model.weight.detach().numpy().shape == (3, 2)  # a launch that only reads it takes nothing away


def test_one_copy_where_one_thread_takes_turns_and_two_where_somebody_runs_ahead() -> None:
    alone = Calls(nn.Linear(4, 3))
    alone(flow.ones(2, 4))
    assert {r.copies for r in alone.plan.registers} == {1}

    several = descend(nn.Linear(4, 3))
    several.config.set_gradient_accumulation_steps(2)
    several(flow.ones(2, 4)).numpy()
    assert max(r.copies for r in several.plan.registers) == 2


def test_threads_of_a_rank_may_launch_the_same_graph() -> None:
    graph = ready(Calls(nn.Linear(4, 3)), flow.ones(2, 4))
    rank, failed = current(), []

    def many(start: int) -> None:
        with enter(rank):
            for i in range(start, start + 200):
                x = flow.full((2, 4), float(i))
                got, expected = graph(x).numpy(), graph.model.to(nn.Module)(x).detach().numpy()
                if not np.allclose(got, expected, rtol=1e-4):
                    failed.append((i, got, expected))

    threads = [threading.Thread(target=many, args=(1000 * n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failed and not any(t.is_alive() for t in threads)
