"""Collectives on a stream of their own: the values of lines of the chain, one order on all ranks, and overlap."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import weft as flow
from weft import nn
from weft.compiler.passes import fuse_collectives
from weft.compiler.passes.fuse_collectives import Reduction
from weft.compiler.streams import WAYS
from weft.core.errors import CompileError
from weft.launch import spawn_threads
from weft.plan import parse, verify
from weft.plan.ids import encode, rank_of
from weft.plan.plan import Plan, Port
from weft.runtime import Message
from weft.simulator import simulate
from weft.transport.hosts import HOSTS, LINK

S, B = flow.sbp.split, flow.sbp.broadcast
LAYERS, WIDTH = 4, 8
Found = tuple[list[Any], list[Any], str, str]


class Train(nn.Graph):
    def __init__(self, model: nn.Module, micro_batches: int, zero: int) -> None:
        super().__init__()
        self.model = model
        self.config.set_gradient_accumulation_steps(micro_batches)
        self.config.enable_zero(bool(zero), stage=max(zero, 1), shard_min_size=8)
        self.add_optimizer(flow.optim.AdamW(model.parameters(), lr=0.05))

    def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        return loss


def layers() -> nn.Sequential:
    flow.manual_seed(0)
    return nn.Sequential(*[m for _ in range(LAYERS) for m in (nn.Linear(WIDTH, WIDTH), nn.Tanh())])


def batch(step: int) -> tuple[flow.Tensor, flow.Tensor]:
    rng = np.random.default_rng(step)
    x, y = (flow.tensor(rng.normal(size=(16, WIDTH)).astype(np.float32)) for _ in range(2))
    return x, y


def run(graph: Train, model: nn.Module, before: Any, after: Any) -> Found:
    """Three steps: losses and parameters, the plan, and the job."""
    losses = []
    for step in range(3):
        x, y = batch(step)
        losses.append(graph(x.to_global(**before), y.to_global(**after)).numpy())
    found = losses, [p.detach().numpy() for p in model.parameters()], str(graph.plan), str(graph.job)
    graph.close()
    return found


def replicas(ranks: Any = (0, 1, 2, 3), micro_batches: int = 1, zero: int = 0) -> Found:
    place = flow.placement("cpu", list(ranks))
    model = layers().to_global(placement=place, sbp=B)
    split = {"placement": place, "sbp": S(0)}
    return run(Train(model, micro_batches, zero), model, split, split)


def divided(model: nn.Sequential, place: flow.placement, before: tuple[Any, ...] = ()) -> None:
    """Divide each pair of layers over the last axis of ranks: the first's outputs, the second's inputs."""
    model.to_global(placement=place, sbp=(*before, B))
    for i in range(0, len(model), 4):
        for layer, dim in ((model[i], 0), (model[i + 2], 1)):
            layer.weight = nn.Parameter(layer.weight.to_global(placement=place, sbp=(*before, S(dim))))
        model[i].bias = nn.Parameter(model[i].bias.to_global(placement=place, sbp=(*before, S(0))))


def tensor_parallel(ranks: Any = ((0, 1), (2, 3)), micro_batches: int = 1, zero: int = 0) -> Found:
    """Rows of the grid are hosts: sums of products within them, sums of gradients between them."""
    place, model = flow.placement("cpu", [list(row) for row in ranks]), layers()
    divided(model, place, (B,))
    split = {"placement": place, "sbp": (S(0), B)}
    return run(Train(model, micro_batches, zero), model, split, split)


def tensor_parallel_micro_batches() -> Found:
    """Columns are hosts: sums of products between them, for each micro-batch."""
    return tensor_parallel(((0, 2), (1, 3)), 4)


class Stages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        whole = layers()
        self.first, self.second = whole[:4], whole[4:]

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.second(self.first(x))


def pipeline(in_stages: bool = False) -> Found:
    """Two stages, each of them on both hosts: data-parallel, or tensor-parallel in its stages."""
    places = [flow.placement("cpu", [0, 2]), flow.placement("cpu", [1, 3])]
    model = Stages()
    for stage, place in zip((model.first, model.second), places, strict=True):
        stage.to_global(placement=place, sbp=B)
        if in_stages:
            assert isinstance(stage, nn.Sequential)
            divided(stage, place)
    graph = Train(model, 4, 0)
    graph.model.first.to(nn.graph.GraphModule).set_stage(0, places[0])
    graph.model.second.to(nn.graph.GraphModule).set_stage(1, places[1])
    return run(graph, model, *({"placement": place, "sbp": B if in_stages else S(0)} for place in places))


def tensor_parallel_stages() -> Found:
    return pipeline(in_stages=True)


def zero() -> Found:
    return replicas(zero=1)


def accumulated() -> Found:
    return replicas(micro_batches=4)


def one_each() -> Found:
    return replicas((1, 2))


def accumulated_in_parts() -> Found:
    return replicas(micro_batches=4, zero=1)


class Apart(nn.Module):
    """Draws, and writes a buffer that it also reads, between divided layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = layers()
        self.norm, self.dropout = nn.BatchNorm1d(WIDTH), nn.Dropout(0.3)
        self.register_buffer("mean", flow.zeros(WIDTH))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i % 4 == 3:
                x = self.dropout(self.norm(x + self.mean))
                self.mean = 0.5 * self.mean + 0.1 * x.detach().mean(0)
        return x


def draws_and_buffers() -> Found:
    place, model = flow.placement("cpu", [0, 2]), Apart()
    model.to_global(placement=place, sbp=B)
    divided(model.layers, place)
    whole = {"placement": place, "sbp": B}
    found = run(Train(model, 4, 0), model, whole, whole)
    return found[0], [*found[1], *(b.numpy() for b in model.buffers()), flow.rand(2).numpy()], *found[2:]


APART = [tensor_parallel_micro_batches, tensor_parallel_stages]  # with collectives of micro-batches between hosts
CASES = [
    replicas,
    one_each,
    accumulated,
    zero,
    accumulated_in_parts,
    tensor_parallel,
    pipeline,
    *APART,
    draws_and_buffers,
]


def in_pairs(members: list[Reduction], options: Any) -> list[list[Reduction]]:
    found: list[list[Reduction]] = []
    for m in members:
        if found and len(found[-1]) == 1 and m.ready < found[-1][0].read:
            found[-1].append(m)
        else:
            found.append([m])
    return found


@pytest.fixture
def two_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS, "2")
    monkeypatch.setattr(fuse_collectives, "_timely", in_pairs)


def on_both_ways(case: Callable[[], Found], monkeypatch: pytest.MonkeyPatch) -> tuple[list[Found], list[Found]]:
    streamed = spawn_threads(4, case, deadline=60)
    monkeypatch.setitem(WAYS, ("c10d", "cpu"), "inline")
    return streamed, spawn_threads(4, case, deadline=60)


def plans_of(found: list[Found]) -> list[Plan]:
    return [parse(plan) for _, _, plan, _ in found if plan]


@pytest.mark.parametrize("case", CASES)
def test_a_stream_gives_what_lines_of_the_chain_give(
    case: Callable[[], Found], two_hosts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed, inline = on_both_ways(case, monkeypatch)
    for (losses, parameters, _, _), (others, its, _, _) in zip(streamed, inline, strict=True):
        for a, b in zip([*losses, *parameters], [*others, *its], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert any(t.kind == "collective" for p in plans_of(streamed) for t in p.tasks)
    assert not any(t.kind == "collective" for p in plans_of(inline) for t in p.tasks)
    verify(plans_of(streamed))


def one_axis_after_the_other() -> Found:
    """Rows and columns of the grid reach from one host to the other, so that sums go along one and then the other."""
    place = flow.placement("cpu", [[0, 1], [2, 3]])
    model = nn.Sequential(*layers(), nn.BatchNorm1d(WIDTH)).to_global(placement=place, sbp=(B, B))
    split = {"placement": place, "sbp": (S(0), S(0))}
    return run(Train(model, 1, 0), model, split, split)


def other_ranks_in_each_stage() -> Found:
    places = [flow.placement("cpu", list(ranks)) for ranks in ((1, 3), (1,), (0, 2, 3), (1,))]
    model = nn.Sequential(*(nn.Sequential(*layers()[:4]).to_global(placement=p, sbp=B) for p in places))
    graph = Train(model, 1, 3)
    for block, place in zip(graph.model, places, strict=True):
        block.to(nn.graph.GraphModule).set_stage(0, place)
    graph.model[0].to(nn.graph.GraphModule).activation_checkpointing = True
    return run(graph, model, {"placement": places[0], "sbp": B}, {"placement": places[3], "sbp": B})


@pytest.mark.parametrize("case", [one_axis_after_the_other, other_ranks_in_each_stage])
def test_hosts_of_unequal_ranks(case: Callable[[], Found], monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for hosts in ("1,1,0,1", "1,0,1,1", ""):
        monkeypatch.setenv(HOSTS, hosts)
        found.append(spawn_threads(4, case, deadline=60))
    for losses, parameters, _, _ in (rank for each in found[:2] for rank in each):
        for a, b in zip([*losses, *parameters], [*found[2][0][0], *found[2][0][1]], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_bucket_closes_at_its_last_producer_and_goes_beside_backward(
    two_hosts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed, inline = on_both_ways(replicas, monkeypatch)
    plans = plans_of(streamed)
    calls = [t.name for t in plans[0].tasks if t.kind == "collective"]
    assert len(calls) == LAYERS  # a layer's gradients each
    streams = [t.stream for t in plans[0].tasks if t.kind == "collective"]
    assert len(set(streams)) == 2 and all(a != b for a, b in itertools.pairwise(streams))  # in turn
    chains = [t.name for t in plans[0].tasks if t.kind == "compute"]
    instant = {"source": 0.0, "sink": 0.0}
    timeline = simulate(plans, instant, launches=1)
    for call in calls[:-1]:
        (one,) = [a for a in timeline.of(call) if a.rank == 0]
        beside = [
            a for name in chains for a in timeline.of(name) if a.rank == 0 and a.start < one.end and a.end > one.start
        ]
        assert beside, f"nothing was computed beside {call}"
    slow = simulate(plans, {**instant, **dict.fromkeys(chains, 0.0)}, launches=1)
    begun = [a.start for call in calls for a in slow.of(call) if a.rank == 0]
    assert begun == [begun[0] + i // 2 for i in range(LAYERS)]  # two at a time
    updates = [t.name for t in plans[0].tasks if any(c.op == "adamw_update" for c in t.step.calls)]
    instant |= dict.fromkeys(updates, 0.0)
    alone = {**instant, **dict.fromkeys(calls, 0.0)}
    waited = simulate(plans, instant, launches=1)
    assert waited.span == simulate(plans, alone).span + 1  # only the last, of the first layer, is waited for
    ends = [[a.end for a in waited.of(name) if a.rank == 0] for name in (*calls, *updates)]
    computed = max(a.end for name in set(chains) - {*updates} for a in waited.of(name) if a.rank == 0)
    assert ends[LAYERS:] == [[max(computed, *end)] for end in ends[:LAYERS]]  # each with its bucket, after backward
    assert len(plans_of(inline)[0].tasks) == 3


@pytest.mark.parametrize("case", APART)
def test_the_next_micro_batch_is_computed_beside_collectives_of_this_one(
    case: Callable[[], Found], two_hosts: None
) -> None:
    plans = plans_of(spawn_threads(4, case, deadline=60))
    instant = {t.name: 0.0 for p in plans for t in p.tasks if t.acts == 1}
    ids = {t.id: encode(p.rank, "cpu", 0, 0, n) for p in plans for n, t in enumerate(p.tasks, 1)}
    in_a_row = [
        replace(
            p,
            tasks=tuple(replace(t, id=ids[t.id]) for t in p.tasks),
            registers=tuple(
                replace(r, producer=ids[r.producer], consumers=tuple(ids[c] for c in r.consumers)) for r in p.registers
            ),
        )
        for p in plans
    ]  # of each rank
    assert simulate(plans, instant).span < 0.85 * simulate(in_a_row, instant).span
    acts = {t.id: t.acts for p in plans for t in p.tasks}
    within = [r for r in plans[1].registers if {acts[e] for e in (r.producer, *r.consumers)} == {4} and r.bytes]
    assert {r.copies for r in within if rank_of(r.producer) == 1} == {2}  # one micro-batch more


def test_a_cut_stage_holds_each_value_once_and_sums_gradients_where_they_are_made(two_hosts: None) -> None:
    plan = plans_of(spawn_threads(4, tensor_parallel_micro_batches, deadline=60))[0]
    chains = [t for t in plan.tasks if t.kind == "compute" and t.acts == 4]
    micro = {t.id for t in plan.tasks if t.acts == 4}
    inner = {r.id for r in plan.registers if {r.producer, *r.consumers} <= micro}
    held = [
        next(iter(c.operands())) if c.op == "box.copy" else r.name
        for t in chains for c in t.step.calls if c.op != "read"
        for r in c.results if r.place.register in inner
    ]  # fmt: skip
    assert held and len(held) == len(set(held))
    assert sum(any(c.op == "linear_weight_grad" for c in t.step.calls) for t in chains) >= LAYERS - 1


def only_divided() -> Found:
    place, model = flow.placement("cpu", [0, 1]), layers()
    divided(model, place)
    whole = {"placement": place, "sbp": B}
    return run(Train(model, 4, 0), model, whole, whole)


def test_updates_are_split_by_what_comes_once_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the collectives of micro-batches, one or more for each layer."""
    monkeypatch.setenv(HOSTS, "2")
    monkeypatch.setattr(sys.modules[__name__], "LAYERS", 8)
    plan = plans_of(spawn_threads(2, only_divided, deadline=60))[0]
    once = [c.op for t in plan.tasks if t.kind == "collective" and t.acts == 1 for c in t.step.calls]
    buckets = sum(op in ("box.all_reduce", "box.reduce_scatter") for op in once)
    assert sum(c.op == "adamw_update" for t in plan.tasks for c in t.step.calls) <= buckets + 1


@pytest.mark.parametrize("stage, apart", [(0, True), (1, True), (2, False), (3, False)])
def test_zeros_later_stages_keep_collectives_of_micro_batches_inline(stage: int, apart: bool, two_hosts: None) -> None:
    plans = plans_of(spawn_threads(4, tensor_parallel, ((0, 2), (1, 3)), 4, stage, deadline=60))
    assert any(t.kind == "collective" and t.acts == 4 for t in plans[0].tasks) == apart


class Placed(nn.Module):
    """Adds what once a launch is cut out of a parameter."""

    def __init__(self) -> None:
        super().__init__()
        flow.manual_seed(0)
        self.position, self.layers = nn.Parameter(flow.ones(16, 512)), nn.Sequential()
        for n in range(6):
            self.layers.append(nn.Linear(512, 512, bias=False) if n % 2 == 0 else nn.Tanh())

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.layers(x.repeat(1, 512 // WIDTH) + self.position[:1])[:, :WIDTH]


def placed(stage: int) -> Found:
    place = flow.placement("cpu", [0, 1])
    model = Placed().to_global(placement=place, sbp=B)
    split = {"placement": place, "sbp": S(0)}
    return run(Train(model, 4, stage), model, split, split)


def test_zeros_last_stage_gathers_parameters_of_micro_batches_where_they_are_read(two_hosts: None) -> None:
    """Also where something that is computed once a launch cuts micro-batches into chains: not in the first of these."""
    (first, *_), (third, *_) = (spawn_threads(2, placed, stage, deadline=60) for stage in (1, 3))
    for expected, found in zip((*first[0], *first[1]), (*third[0], *third[1]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    plan = plans_of([third])[0]
    often = {t.id for t in plan.tasks if t.acts == 4}
    between = [r.bytes for r in plan.registers if often >= {r.producer, *r.consumers}]
    assert between and sum(between) < 512 * 512 * 4  # less than one layer's parameters


def test_gradients_are_reduced_where_they_lie(two_hosts: None) -> None:
    plan = plans_of(spawn_threads(4, replicas, deadline=60))[0]
    at = {r.id: r.offsets for r in plan.registers}
    reduced = [[p.register for p in ps if at[p.register]]
               for t in plan.tasks if t.kind == "collective" for ps in (t.consumes, t.produces)]  # fmt: skip
    assert len(reduced) == 2 * LAYERS
    for (given,), (made,) in zip(reduced[::2], reduced[1::2], strict=True):
        assert at[given] == at[made]
    # nobody else may read what is overwritten: as the second collective's gradients
    (given,), _ = reduced[2:4]
    last = next(t for t in reversed(plan.tasks) if t.kind == "compute")
    other = replace(plan, tasks=tuple(
        replace(t, consumes=(*t.consumes, Port(given))) if t is last else t for t in plan.tasks
    ), registers=tuple(
        replace(r, consumers=(*r.consumers, last.id)) if r.id == given else r for r in plan.registers
    ))  # fmt: skip
    with pytest.raises(CompileError, match="share memory, and nothing keeps one from being written"):
        verify(other)


def test_the_next_launch_waits_for_the_update_of_this_one(two_hosts: None) -> None:
    plans = plans_of(spawn_threads(4, replicas, deadline=60))
    timeline = simulate(plans, launches=3)
    chains = [t.name for t in plans[0].tasks if t.kind == "compute"]
    for rank in range(4):
        first = [a.start for a in timeline.of(chains[0]) if a.rank == rank]
        last = [a.end for a in timeline.of(chains[-1]) if a.rank == rank]
        assert all(a >= b for a, b in zip(first[1:], last, strict=False))


def test_a_stage_goes_on_while_what_it_sent_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOSTS, raising=False)
    plans = plans_of(spawn_threads(4, pipeline, deadline=60))

    def latency(message: Message) -> float:
        """A message to another rank takes as long as an act, as over a link between hosts."""
        ends = registers.get(message.register, (0, 0))
        return float(ends[0] != ends[1])

    registers = {r.id: (rank_of(r.producer), rank_of(r.consumers[0])) for p in plans for r in p.registers}
    instant = {t.name: 0.0 for p in plans for t in p.tasks if t.acts == 1}
    timeline = simulate(plans, instant, latency=latency)
    forward = [a for a in timeline.of("chain0") if a.rank == 0]
    assert forward[1].start == forward[0].end  # two copies: one under way, one to write


def told() -> None:
    """In a process: what training gives on two ranks, and whether collectives had a stream."""
    losses, parameters, plan, _ = replicas((0, 1))
    print(json.dumps([[a.tolist() for a in [*losses, *parameters]], "collective " in plan]))


def test_every_transport_gives_the_same(world: Any) -> None:
    ways = {"shm": {}, "c10d": {HOSTS: "2"}, "auto": {HOSTS: "0,1", LINK: "1e9,0.001"}}
    found = {name: json.loads(world("told", 2, name, env=env).well()[0]) for name, env in ways.items()}
    assert [streamed for _, streamed in found.values()] == [False, True, True]
    for values, _ in found.values():
        for a, b in zip(values, found["shm"][0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
