"""What compiling takes grows as the job does."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import weft as flow
from bench.pipelines import RANKS, Stages
from weft import nn
from weft.core.rank import current
from weft.launch import spawn_threads
from weft.ops.notation import products


class Train(nn.Graph):
    def __init__(self, layers: int, norm: Any, micro: int) -> None:
        super().__init__()
        self.model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), norm(4), nn.ReLU()) for _ in range(layers)])
        self.config.set_gradient_accumulation_steps(micro)
        self.add_optimizer(flow.optim.AdamW(self.model.parameters(), lr=0.1))

    def build(self, x: Any) -> Any:
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


@contextlib.contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count the events of this thread; cProfile's, since Python 3.12, are those of all threads."""
    counted: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, arg: counted.update((event,)))
    try:
        yield counted
    finally:
        sys.setprofile(None)


class Drops(nn.Graph):
    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def build(self, x: Any) -> Any:
        for _ in range(self.times):
            x = nn.functional.dropout(x, 0.1)
        return x


def calls(layers: int, norm: Any, micro: int) -> int:
    return calls_of(Train(layers, norm, micro), flow.ones(2 * micro, 4))


def calls_of(graph: nn.Graph, x: Any) -> int:
    """How many calls Python makes for a graph's first step: counted, as a clock would be off."""
    with counting() as counted:
        graph.compile(x)
        graph.running.brief = True  # on this thread, the one that is watched
        graph(x).numpy()
    graph.close()
    return counted["call"] + counted["c_call"]


@pytest.mark.parametrize("norm, micro", [(nn.LayerNorm, 1), (nn.BatchNorm1d, 1), (nn.BatchNorm1d, 2)])
def test_calls_are_linear_in_the_nodes(norm: Any, micro: int) -> None:
    """Also where each layer writes buffers, of each micro-batch."""
    calls(2, norm, micro)  # what is done once
    few, some, many = (calls(layers, norm, micro) for layers in (10, 20, 60))
    assert many - some < 1.02 * 4 * (some - few)


def test_calls_are_linear_in_the_draws() -> None:
    few, some, many = (calls_of(Drops(times), flow.ones(4)) for times in (50, 100, 300))
    assert many - some < 1.02 * 4 * (some - few)


def test_a_call_of_many_operands_is_costed_in_linear_time() -> None:
    began = time.process_time()
    assert products("a b -> a b", ((4, 8),) * 30_000, ((4, 8),)) == 32
    assert time.process_time() - began < 5  # by pairs of operands it was minutes


def calls_of_a_pipeline() -> int:
    """The same for rank 0 of a pipeline, which proves the plans of all."""
    world = current().world_size
    each = world // RANKS
    places = [flow.placement("cpu", ranks=[*range(s * each, (s + 1) * each)]) for s in range(RANKS)]
    x = flow.zeros(4 * world, 8, placement=places[0], sbp=flow.sbp.split(0))
    Stages(places, True, 4).compile(x)  # what is done once
    graph = Stages(places, True, 4)
    if current().index:
        graph.compile(x)
        return 0
    with counting() as counted:
        graph.compile(x)
    return counted["call"] + counted["c_call"]


def test_calls_are_flat_in_the_ranks() -> None:
    few, many = (spawn_threads(world, calls_of_a_pipeline)[0] for world in (4, 32))
    assert many < 1.1 * few
