"""Draws of graphs beside eager ones: in the order of the calls, over stages, micro-batches, threads and failures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.core import random
from weft.core.errors import CompileError, EndOfData, TraceError
from weft.core.rank import current, enter
from weft.launch import spawn_threads
from weft.transport.hosts import HOSTS

B = flow.sbp.broadcast
ROWS = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)


class Calls(nn.Graph):
    def __init__(self, f: Callable[..., Any], micro_batches: int = 1) -> None:
        super().__init__()
        self.f = f
        self.config.set_gradient_accumulation_steps(micro_batches)

    def build(self, *args: Any) -> Any:
        return self.f(*args)


def dropped(lib: Any) -> Callable[[Any], Any]:
    return lambda x: lib.nn.functional.dropout(x, 0.5)


# ---- what build() does to the sequence -----------------------------------------------------------------------------


def seeds(lib: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        a = lib.rand(2)
        lib.manual_seed(4)
        b = lib.rand(2)
        with lib.random.fork_rng():
            c = lib.rand(3)
            lib.manual_seed(9)
        return a + x, b, c, lib.rand(2)

    return f


def only_seeds(lib: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        lib.manual_seed(7)
        return x * 2

    return f


def seeds_at_last(lib: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = dropped(lib)(x)
        lib.manual_seed(11)
        return y

    return f


def seeds_a_generator(lib: Any) -> Callable[[Any], Any]:
    g = lib.Generator()

    def f(x: Any) -> Any:
        g.manual_seed(3)
        return lib.rand(2, generator=g) + x, lib.rand(2), lib.rand(2, generator=g)

    return f


def the_same_for_each(lib: Any) -> Callable[[Any], Any]:
    return lambda x: lib.vmap(lambda row: row + lib.rand(2), randomness="same")(x[None].expand(3, 2))


PROGRAMS = [seeds, only_seeds, seeds_at_last, seeds_a_generator]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_what_build_does_to_the_sequence_each_launch_does(program: Any, micro_batches: int) -> None:
    def launches(lib: Any, call: Any) -> list[Any]:
        lib.manual_seed(1)
        return [(call(), lib.rand(3).tolist(), lib.initial_seed()) for _ in range(4)]  # the later ones run at once

    eager, graph = program(torch), Calls(program(flow), micro_batches)
    theirs = launches(torch, lambda: [eager(torch.ones(2)) for _ in range(micro_batches)])
    ours = launches(flow, lambda: graph(flow.ones(2 * micro_batches)))
    for (expected, *after), (found, *also) in zip(theirs, ours, strict=True):
        for i, y in enumerate(found if isinstance(found, tuple) else (found,)):
            parts = [e[i] if isinstance(e, tuple) else e for e in expected]
            assert torch.equal(y.to_torch(), torch.cat(parts))
        assert also == after


def test_slices_that_draw_the_same_do_so_in_each_launch() -> None:
    flow.manual_seed(1)
    eager, x = the_same_for_each(flow), flow.ones(2)
    expected = [eager(x).tolist() for _ in range(2)]
    after = flow.rand(1).item()
    flow.manual_seed(1)
    graph = Calls(the_same_for_each(flow))
    found = [graph(x).tolist() for _ in range(2)]
    assert found == expected and flow.rand(1).item() == after
    assert found[0][0] == found[0][1] == found[0][2] != found[1][0]


@pytest.mark.parametrize("reads", ["get_rng_state", "seed", "set_rng_state"])
def test_states_are_not_known_while_build_is_traced(reads: str) -> None:
    state = flow.get_rng_state()
    call = {"set_rng_state": lambda: flow.set_rng_state(state)}.get(reads, getattr(flow, reads))
    with pytest.raises(TraceError, match=rf"{reads}\(\) inside build\(\).*fork_rng"):
        Calls(lambda x: (call(), x)[1])(flow.ones(2))


def test_a_draw_that_nobody_uses_is_made() -> None:
    def program(lib: Any) -> Callable[[Any], Any]:
        return lambda x: (dropped(lib)(x), lib.rand(3), dropped(lib)(x + 1))[2]

    torch.manual_seed(1)
    flow.manual_seed(1)
    graph = Calls(program(flow))
    for _ in range(3):
        assert torch.equal(graph(flow.ones(4)).to_torch(), program(torch)(torch.ones(4)))


# ---- beside other calls --------------------------------------------------------------------------------------------


def test_launches_that_nobody_reads_keep_the_order_of_the_calls() -> None:
    graphs = [Calls(dropped(flow)) for _ in range(3)]
    eager, x, y = dropped(torch), flow.ones(500), torch.ones(500)
    flow.manual_seed(1)
    torch.manual_seed(1)
    for step in range(20):
        for graph in graphs:
            last, expected = graph(x), eager(y)
        if step % 3 == 0:
            assert flow.rand(2).tolist() == torch.rand(2).tolist()
        if step % 5 == 0:
            graphs[0](x)
            flow.manual_seed(step)  # the launch drew from the seed before
            torch.manual_seed(step)
        if step % 7 == 0:
            with flow.random.fork_rng(), torch.random.fork_rng():
                graphs[1](x)
                flow.rand(1)
        if step == 10:
            state, theirs = flow.get_rng_state(), torch.get_rng_state()
    assert torch.equal(last.to_torch(), expected)
    flow.set_rng_state(state)
    torch.set_rng_state(theirs)
    assert torch.equal(graphs[2](x).to_torch(), eager(y))


def test_threads_share_one_sequence() -> None:
    flow.manual_seed(1)
    torch.manual_seed(1)
    graphs = [Calls(lambda x: x + flow.rand(3)) for _ in range(3)]
    zeros = flow.zeros(3)
    found = [graph(zeros).tolist() for graph in graphs]
    rank = current()

    def work(graph: Any) -> None:
        with enter(rank):
            mine = [graph(zeros) for _ in range(10)]
            mine.append(flow.rand(3))
        found.extend(y.tolist() for y in mine)

    threads = [threading.Thread(target=work, args=(graph,)) for graph in graphs]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    expected = [torch.rand(3).tolist() for _ in range(3 + 33)]
    assert sorted(found) == sorted(expected)  # each draws whole; which comes first is the threads' affair


def test_a_failed_launch_leaves_the_sequence_where_it_broke_off() -> None:
    table = flow.zeros(4)

    def program(x: Any, at: Any) -> Any:
        y = flow.rand(2)
        return y + table[at].sum() + dropped(flow)(x)

    graph = Calls(program)
    flow.manual_seed(1)
    torch.manual_seed(1)
    graph(flow.ones(2), flow.tensor([0])).tolist()
    torch.rand(2)
    dropped(torch)(torch.ones(2))
    lost = graph(flow.ones(2), flow.tensor([9]))
    torch.rand(2)
    assert flow.rand(2).tolist() == torch.rand(2).tolist()
    with pytest.raises(Exception, match="out of"):
        lost.tolist()
    assert flow.rand(2).tolist() == torch.rand(2).tolist()


# ---- computed twice ------------------------------------------------------------------------------------------------


def test_what_is_computed_again_draws_once() -> None:
    def program(lib: Any) -> Callable[[Any], Any]:
        return lambda x: dropped(lib)(x * 2).exp()

    def trained(x: Any) -> Any:
        y = flow.utils.checkpoint.checkpoint(program(flow), x, use_reentrant=False).sum()
        y.backward()
        return y

    weight = nn.Parameter(flow.ones(6))

    class Train(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.add_optimizer(flow.optim.SGD([weight], lr=0.1))

        def build(self, x: Any) -> Any:
            return trained(weight * x)

    flow.manual_seed(1)
    torch.manual_seed(1)
    theirs = torch.ones(6, requires_grad=True)
    train = Train()
    for _ in range(3):
        y = program(torch)(theirs * 1).sum()
        y.backward()
        with torch.no_grad():
            theirs -= 0.1 * theirs.grad
        theirs.grad = None
        assert train(flow.ones(6)).item() == pytest.approx(y.item())
        assert flow.rand(1).item() == torch.rand(1).item()
    assert torch.allclose(weight.detach().to_torch(), theirs.detach())


# ---- stages --------------------------------------------------------------------------------------------------------


def expected_losses(micro_batches: int) -> tuple[list[list[float]], float]:
    torch.manual_seed(3)
    model = [torch.nn.Linear(6, 6) for _ in range(2)]
    torch.manual_seed(4)
    losses = []
    for _ in range(3):
        losses.append([])
        for x in torch.tensor(ROWS).chunk(micro_batches):
            y = torch.nn.functional.dropout(model[1](torch.nn.functional.dropout(model[0](x), 0.3)), 0.5)
            loss = (y * y).mean()
            (loss / micro_batches).backward()
            losses[-1].append(loss.item())
        with torch.no_grad():
            for p in (p for m in model for p in m.parameters()):
                p -= 0.1 * p.grad
                p.grad = None
    return losses, torch.rand(1).item()


def stages(micro_batches: int) -> tuple[list[list[float]], float, bool]:
    last = flow.env.get_world_size() - 1
    first, second = flow.placement("cpu", ranks=[0]), flow.placement("cpu", ranks=[last])
    flow.manual_seed(3)
    a = nn.Linear(6, 6).to_global(placement=first, sbp=B)
    b = nn.Linear(6, 6).to_global(placement=second, sbp=B)

    class Pipeline(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = a, b
            self.add_optimizer(flow.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1))
            self.config.set_gradient_accumulation_steps(micro_batches)

        def build(self, x: Any) -> Any:
            h = nn.functional.dropout(self.a(x), 0.3).to_global(placement=second, sbp=B)
            y = nn.functional.dropout(self.b(h), 0.5)
            loss = (y * y).mean()
            loss.backward()
            return loss

    graph = Pipeline()
    flow.manual_seed(4)
    x = flow.tensor(ROWS, placement=first, sbp=B)
    losses = [graph(x) for _ in range(3)]
    return [np.atleast_1d(y.numpy()).tolist() for y in losses], flow.rand(1).item(), graph.running.draws.ahead


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("micro_batches", [1, 4])
def test_stages_draw_as_an_eager_loop_over_micro_batches(ranks: int, micro_batches: int) -> None:
    expected, after = expected_losses(micro_batches)
    for rank, (losses, then, ahead) in enumerate(spawn_threads(ranks, stages, micro_batches, deadline=60)):
        assert then == after and ahead == (ranks > 1)
        if rank == ranks - 1:
            np.testing.assert_allclose(losses, expected, rtol=1e-5)


def refused() -> list[str]:
    here, both = flow.placement("cpu", ranks=[1]), flow.placement("cpu", ranks=[0, 1])
    found = []
    for placement in (here, both):
        graph = Calls(lambda x: flow.poisson(x))
        try:
            graph(flow.ones(4, placement=placement, sbp=B)).numpy()
            found.append("")
        except CompileError as error:
            found.append(str(error))
    return found


def test_a_draw_that_only_data_bounds_is_refused_where_a_rank_does_not_see_it() -> None:
    for alone, together in spawn_threads(2, refused, deadline=60):
        assert "poisson takes as many random numbers as its data asks for" in alone and together == ""


def around_a_collective() -> list[bool | str]:
    """Draws on both sides of a sum over ranks, and before it: whether a graph gives what eager calls give, or why it
    is refused."""
    both = flow.placement("cpu", ranks=[0, 1])
    x = flow.full((4,), 3.0, placement=both, sbp=B)

    def summed(y: Any) -> Any:
        return y.to_global(placement=both, sbp=flow.sbp.split(0)).sum(0).to_global(placement=both, sbp=B)

    def sides(x: Any) -> Any:
        return summed(flow.poisson(x)) * flow.poisson(x)

    def before(x: Any) -> Any:
        return summed(flow.poisson(x) * flow.poisson(x))

    found: list[bool | str] = []
    for program in (sides, before):
        try:
            flow.manual_seed(1)
            mine = Calls(program)(x).numpy()
            flow.manual_seed(1)
            found.append(np.allclose(mine, program(x).numpy()))
        except CompileError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("hosts", ["1", "2"])
def test_a_draw_that_only_data_bounds_is_refused_with_a_collective_between_hosts_among_the_draws(
    hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOSTS, hosts)
    for sides, before in spawn_threads(2, around_a_collective, deadline=60):
        assert before is True
        assert sides is True if hosts == "1" else "among the draws of the graph lies a collective" in str(sides)


# ---- the fingerprint -----------------------------------------------------------------------------------------------


def fingerprints() -> list[int]:
    P = flow.placement("cpu", ranks=[0, 1])
    flow.manual_seed(1)
    found = [random.fingerprint()]
    flow.rand(2, placement=P, sbp=B)
    found.append(random.fingerprint())
    graph = Calls(dropped(flow))
    graph(flow.ones(4, placement=P, sbp=flow.sbp.split(0)))
    found.append(random.fingerprint())
    if flow.env.get_rank():
        flow.rand(1)  # of this rank's own
    found.append(random.fingerprint())
    flow.rand(2, placement=P, sbp=B)
    found.append(random.fingerprint())
    return found


def test_ranks_whose_own_draws_differ_have_other_fingerprints_at_the_next_global_draw() -> None:
    a, b = spawn_threads(2, fingerprints, deadline=60)
    assert a[0] == 0 and a[:4] == b[:4] and len({*a[1:3], a[4]}) == 3
    assert a[4] != b[4]


# ---- loaders -------------------------------------------------------------------------------------------------------


class Noisy(torch.utils.data.Dataset[Any]):
    """Samples with noise that the rank's own source would give."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Any:
        return torch.rand(2, generator=flow.default_generator.torch) + i


def epochs() -> tuple[list[Any], list[float]]:
    flow.manual_seed(2)
    loader = flow.utils.data.GraphLoader(flow.utils.data.DataLoader(Noisy(), batch_size=2, shuffle=True))
    graph = Calls(lambda: dropped(flow)(loader()))
    seen, between = [], []
    for _ in range(3):
        try:
            while True:
                seen.append(graph())
                between.append(flow.rand(1).item())
        except EndOfData:
            pass
    found = [y.tolist() for y in seen]
    graph.close()
    return found, between


def test_a_loader_that_reads_ahead_leaves_the_programs_sequence_alone() -> None:
    first, again = epochs(), epochs()
    assert first == again and len(first[0]) == 9
