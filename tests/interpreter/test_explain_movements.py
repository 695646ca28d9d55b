"""`flow.explain()` tells of every eager movement, and refuses those that nobody asked for."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from weft.core.errors import SbpError
from weft.distributed.fsdp import fully_shard
from weft.launch import spawn_threads
from weft.transport import transport_of
from weft.transport.hosts import HOSTS
from weft.vm import vm_of

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum


def moves() -> Any:
    where = flow.placement("cpu", ranks=[0, 1])
    x = flow.ones(4, 6, placement=where, sbp=B)
    w = flow.ones(6, 2, placement=where, sbp=S(0))
    partial = x @ w.to_global(sbp=S(0))
    with flow.explain() as moved:
        flow.relu(partial)
        w.to_global(sbp=B)
    kept = moved.movements
    with flow.explain(strict=True) as strict:
        w.to_global(sbp=B)
        with pytest.raises(SbpError, match="nothing in the program asks for that") as refused:
            flow.relu(partial)
    flow.relu(partial)  # outside of the block it may
    return str(moved), [(m.what, m.planned, m.moved) for m in kept], str(refused.value), len(strict.movements)


def test_movements_are_told_with_line_layouts_bytes_and_reason() -> None:
    for text, found, refusal, planned in spawn_threads(2, moves):
        assert found == [("relu", False, 16), ("to_global", True, 24)] and planned == 1
        total, relu, gathered = text.splitlines()
        assert total == "     40 B  moved by each rank, at most"
        assert "float32[4,2] cpu:[0,1] (P) -> (S(0)): reduce_scatter(axis=0, dim=0, reduce=sum), for relu" in relu
        assert "which runs as (S(0)) -> (S(0))" in relu and "the next best, (" in relu
        assert (
            "# test_explain_movements.py:" in relu
            and "# test_explain_movements.py:" in gathered
            and "all_gather" in gathered
        )
        assert "relu: an operand float32[4,2] cpu:[0,1] (P) would be moved to (S(0))" in refusal
        assert "x.to_global(placement=" in refusal


class Relu(flow.nn.Graph):
    def __init__(self, asked: bool) -> None:
        super().__init__()
        self.asked = asked

    def build(self, x: flow.Tensor) -> flow.Tensor:
        return flow.relu(x.to_global(sbp=B) if self.asked else x)


def traced() -> str:
    x = flow.ones(4, 2, placement=flow.placement("cpu", ranks=[0, 1]), sbp=P)
    with flow.explain(strict=True):
        Relu(True)(x)
        with pytest.raises(SbpError) as refused:
            Relu(False)(x)
    Relu(False)(x)
    return str(refused.value)


def test_graphs_are_refused_what_they_move_unasked() -> None:
    for refusal in spawn_threads(2, traced):
        assert refusal.startswith("relu: an operand float32[4,2] cpu:[0,1] (P) would be moved to (S(0))")


class Staged(flow.nn.Graph):
    """A sum over ranks 0 and 1, then a message to rank 2."""

    def build(self, x: flow.Tensor) -> flow.Tensor:
        y = flow.relu(x.to_global(sbp=B))
        return y.to_global(placement=flow.placement("cpu", ranks=[2]), sbp=B) * 2


def launched() -> Any:
    graph = Staged()
    x = flow.ones(4, 2, placement=flow.placement("cpu", ranks=[0, 1]), sbp=P)
    graph(x)
    vm_of().sync()
    with flow.explain() as moved:
        for _ in range(2):
            graph(x)
    flow.comm.barrier()
    return [(m.what, m.moved, m.peers, m.line.brief.partition(":")[0], m.why) for m in moved.movements]


@pytest.mark.parametrize("hosts", ["1", "3"])
def test_what_launches_of_graphs_move_is_told(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inline in their chains, and between hosts by tasks on streams."""
    monkeypatch.setenv(HOSTS, hosts)
    total = ("all_reduce", 32, (0, 1), "test_explain_movements.py", "Staged_0.input.0.boxed1 of graph Staged_0")
    message = ("copy", 32, (0, 2), "test_explain_movements.py", "relu.boxed1.to.2 of graph Staged_0")
    assert [sorted(each) for each in spawn_threads(3, launched)] == [sorted([total, message] * 2), [total] * 2, []]


def test_one_rank_moves_nothing() -> None:
    with flow.explain(strict=True) as moved:
        flow.relu(flow.ones(2))
    assert moved.movements == [] and str(moved) == "      0 B  moved by each rank, at most"


def trains() -> list[float]:
    where = flow.placement("cpu", ranks=[0, 1])
    outer, inner = flow.nn.Linear(6, 8).to_global(where, S(0)), flow.nn.Linear(8, 2).to_global(where, B)
    inner.weight = flow.nn.Parameter(inner.weight.detach().to_global(sbp=S(1)))
    losses = []
    for model, layout in ((flow.nn.Linear(6, 2).to_global(where, B), S(0)), (flow.nn.Sequential(outer, inner), B)):
        x = flow.ones(4, 6, placement=where, sbp=layout)
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
        with flow.explain(strict=True) as moved:
            y = model(x)
            y = y if layout == S(0) else y.to_global(sbp=B)
            loss = y.square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
        assert all(m.planned or not m.moved for m in moved.movements) and moved.movements
    return losses


def test_what_each_rank_does_alone_is_not_refused() -> None:
    first, second = spawn_threads(2, trains)
    assert first == second


def trains_local_copies() -> None:
    averaged = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(4, 4))
    parted = fully_shard(flow.nn.Linear(4, 4))
    given = flow.ones(4, placement=flow.placement("cpu", ranks=[0, 1]), sbp=P)
    with flow.explain(strict=True) as moved, flow.vm.trace() as trace:
        averaged(flow.ones(2, 4)).sum().backward()
        parted(flow.ones(2, 4)).sum().backward()
        assert parted.weight.grad.to_local().tolist()  # over a network this waits for it
        flow.comm.all_reduce(flow.ones(3))
        given.to_global(sbp=B)
    why = [line.partition("for ")[2].partition("    #")[0] for line in str(moved).splitlines()[1:]]
    *wrapped, (boxing, planned, size) = [(m.what, m.planned, m.moved) for m in moved.movements]
    assert wrapped == [
        (FIRST[transport_of().backend], True, 88),  # 20 gradients, and two counts of ranks
        ("all_gather", True, 40), ("reduce_scatter", True, 40), ("all_reduce", True, 12),
    ]  # fmt: skip
    assert (boxing, planned, size, why[-1]) == ("to_global", True, 16, "to_global")
    assert why[:-1] == [
        "DistributedDataParallel: the average of gradients", *["fully_shard: weight, bias of Linear"] * 2,
        "comm.all_reduce",
    ]  # fmt: skip
    assert all(m.peers == (0, 1) and m.line and m.line.function == "trains_local_copies" for m in moved.movements)
    events = [(e.name, e.moved, e.peers) for e in trace.events if e.kind == "collective"]
    given = 88, 40, 80, 12  # by this rank, of whole gradients
    assert events == [(name, size, (0, 1)) for (name, *_), size in zip(wrapped, given, strict=True)]


FIRST = {"local": "all_reduce", "c10d": "begin_all_reduce"}


@pytest.mark.parametrize("transport", ["local", "c10d"])
def test_collectives_of_local_tensors_are_told(transport: str, world: Any) -> None:
    if transport == "local":
        spawn_threads(2, trains_local_copies)
    else:
        world("trains_local_copies", 2, transport).well()
