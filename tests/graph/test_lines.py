"""What graphs open to other ranks is taken over by later ones, on every rank, whatever an earlier one left there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import weft as flow
from bench import soak
from tests.graphs import Trains
from tests.worlds import Start
from weft import nn
from weft.core.errors import OpError, RankError
from weft.core.rank import current
from weft.graph import run
from weft.graph.lines import Lent, Lines, lines, roomy
from weft.launch import spawn_threads
from weft.utils.data import GraphLoader
from weft.vm import vm_of

S, B = flow.sbp.split, flow.sbp.broadcast
PATIENCE = 60.0


def numbers(start: int) -> Iterator[Any]:
    for i in range(start, start + 20):
        yield flow.full((4,), float(i))


class Pipe(nn.Graph):
    """Rank 0 reads ahead, and what it reads goes to rank 1; rank 0 tells rank 1 which launches have a batch."""

    def __init__(self, start: int) -> None:
        super().__init__()
        first = flow.placement("cpu", [0])
        self.loader = GraphLoader(numbers(start), first, S(0))

    def build(self) -> Any:
        return self.loader().to_global(placement=flow.placement("cpu", [1]), sbp=B) * 2


class Meet(nn.Graph):
    def build(self, x: Any) -> Any:
        return x.to_global(sbp=B) + 1


def pipes() -> list[Any]:
    """Several, one after the other, none to the end of its data."""
    found, kept = [], []
    for n in range(6):
        graph = Pipe(100 * n)
        for _ in range(n):
            found.append(graph().numpy().tolist()[:1])
        if n % 3 == 0:
            graph.close()
        elif n % 3 == 1 and current().index == 0:  # this rank forgets it one graph later
            kept = [graph]
        else:
            kept.clear()
        del graph
    return [found, len(lines().made), sum(len(r) for line in lines().made for r in line.rings.values())]


EXPECTED = [[2.0 * (100 * n + i)] for n in range(6) for i in range(n)]


def check_pipes(found: list[Any]) -> None:
    values, made, rings = found
    assert values == EXPECTED
    assert made <= 3 and rings <= 2 * made


def test_ranks_as_threads() -> None:
    def each() -> int:
        check_pipes(pipes())
        return 1

    assert spawn_threads(2, each, deadline=PATIENCE) == [1, 1]


def process() -> None:
    check_pipes(pipes())
    grown = []
    for rows in zip(*[soak.measured("processes", 8, 60) for _ in range(2)], strict=True):  # a leak grows in both
        least = [min(counts) for counts in zip(*[row.grown() for row in rows], strict=True)]
        threads, descriptors, mappings, blocks, _ = least
        grown.append((threads > 0, descriptors > 0, mappings > 4, blocks > 20 * rows[0].times + 400))
    print("grown", grown)


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_ranks_as_processes_hold_no_more_after_many_graphs_and_launches(world: Start, transport: str) -> None:
    for said in world("process", 2, transport).well():
        assert said.splitlines()[-1] == f"grown {[(False,) * 4] * 4}"


def test_ranks_forget_graphs_at_moments_of_their_own() -> None:
    def each() -> list[int]:
        x = flow.ones(4, placement=flow.placement("cpu", [0, 1]), sbp=S(0))
        seen, kept = [], []
        for n in range(8):
            graph = Meet()
            assert graph(x).numpy().tolist() == [2.0] * 4
            if current().index == n % 2:
                kept.append(graph)  # two graphs long
                kept[:-2] = []
            del graph
            seen.append(len(lines().made))
        return seen

    first, second = spawn_threads(2, each, deadline=PATIENCE)
    assert first == second and first[-1] <= 5


def test_a_graph_that_was_dropped_on_another_ranks_thread_ends_at_the_next() -> None:
    box: list[Any] = []

    def each() -> tuple[int, int]:
        x = flow.ones(4, placement=flow.placement("cpu", [0, 1]), sbp=S(0))
        if current().index == 0:
            box.append(Meet())
            box[0](x).numpy()
        else:
            Meet()(x).numpy()
        flow.comm.barrier()
        if current().index == 1:
            box.clear()
            gc.collect()
        flow.comm.barrier()
        held = [k for k in current().resources if k.startswith("graph Meet")]
        graph = Meet()
        graph(x).numpy()
        assert [k for k in current().resources if k.startswith("graph Meet")] == ["graph Meet_1"]
        return len(held), len(lines().made)

    assert spawn_threads(2, each, deadline=PATIENCE) == [(1, 1), (1, 1)]


def test_the_line_of_a_graph_that_failed_is_given_to_nobody() -> None:
    class Fails(nn.Graph):
        def build(self, x: Any, i: Any) -> Any:
            return x[i]

    graph = Fails()
    graph(flow.ones(3), flow.tensor([1]))
    with pytest.raises((OpError, RankError, IndexError)):
        graph(flow.ones(3), flow.tensor([7])).numpy()
    mine = graph.running.lent
    graph.close()
    assert not mine.free


def test_sizes_are_rounded_to_few_forms() -> None:
    forms = {roomy(n) for n in range(1 << 14)}
    assert all(n <= roomy(n) <= max(n * 1.25, n + 128) for n in range(1 << 14)) and len(forms) < 60


def test_lines_are_taken_in_order() -> None:
    def each() -> list[str]:
        ours = Lines(current())
        first, second = ours.take(0), ours.take(0)
        first.release([])
        second.release([])
        found = [ours.free(), ours.take(2) is second, ours.free(), ours.take(0).line.name, ours.take(1) is first]
        return [str(f) for f in found]

    assert spawn_threads(2, each, deadline=PATIENCE) == [["3", "True", "1", "graph2", "True"]] * 2


def test_a_channel_begins_anew_where_the_last_graph_left_it() -> None:
    def each() -> list[Any]:
        line = lines().take(0)
        seen: list[Any] = []
        for posts, read in ((3, 1), (1, 1), (2, 0), (2, 2)):
            channel = line.channel(0, 1, 8, 4)
            produces = current().index == 0
            if produces:
                for i in range(posts):
                    channel.buffer(i).fill_(10 * posts + i)
                    channel.post()
            flow.comm.barrier()
            if not produces:
                line.transport.wait_until(lambda c=channel, n=posts: c.arrived() == n, "posts")
                for i in range(read):
                    seen.append(int(channel.buffer(i)[0]))
                    channel.acknowledge()
            flow.comm.barrier()
            if produces:
                line.transport.wait_until(lambda c=channel, n=read: c.acknowledged() == n, "reads")
            line.release([posts if produces else read])
            flow.comm.barrier()
            line.renew()
        assert isinstance(line.channel(0, 1, 8, 4), Lent) and len(line.rings[0, 1]) == 1
        return seen

    assert spawn_threads(2, each, deadline=PATIENCE) == [[], [30, 10, 20, 21]]


@pytest.mark.parametrize("brief", [True, False])
def test_launches_leave_nothing_behind_read_or_not(brief: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not brief:
        monkeypatch.setattr(run, "BRIEF", -1)  # each is an instruction, as where there are other ranks
    graph, x = soak.Alone(), flow.ones(4, 8)

    def launches(n: int) -> int:
        for i in range(n):
            y = graph(x)
            if i % 4 == 0:
                y.numpy()
        vm_of().sync()
        gc.collect()
        return sys.getallocatedblocks()

    before = launches(300)
    assert launches(1000) - before < 300
    graph.close()


def fit(layer: nn.Module) -> Trains:
    optimizer = flow.optim.Adam(layer.parameters(), lr=0.1)
    return Trains(layer, optimizer, lambda y: flow.nn.functional.dropout(y, 0.5).square().mean())


def by_itself() -> list[float]:
    """Rank 0 trains alone, and compiles more graphs than rank 1; between them both take part in one."""
    losses = []
    x = flow.ones(4, placement=flow.placement("cpu", [0, 1]), sbp=S(0))
    flow.manual_seed(0)
    for n in range(3):
        if current().index == 0:
            graph = fit(nn.Linear(4, 4))
            losses += [graph(flow.ones(2, 4)).item() for _ in range(3)]
            if n % 2:
                graph.close()
        assert Meet()(x).tolist() == [2.0] * 4
    return losses


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_a_rank_compiles_graphs_of_local_tensors_by_itself(world: Start, transport: str) -> None:
    said = world("told_by_itself", 2, transport, env={"WEFT_DEADLINE": "60", "WEFT_CHECK": "full"}).well()
    flow.manual_seed(0)
    assert [float(n) for n in said[0].split()] == spawn_threads(1, by_itself_alone, deadline=60)[0]
    assert said[1].split() == []


def told_by_itself() -> None:
    print(*by_itself())


def by_itself_alone() -> list[float]:
    flow.manual_seed(0)
    graphs = (fit(nn.Linear(4, 4)) for _ in range(3))
    return [graph(flow.ones(2, 4)).item() for graph in graphs for _ in range(3)]
