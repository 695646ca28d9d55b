"""ZeRO: parameters, gradients and states in parts, and the losses of those who hold them whole."""

from __future__ import annotations

import functools
import gc
import time
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.graphs import Calls, Trains
from weft import nn
from weft.core.errors import CompileError, GraphError, ShapeError
from weft.core.rank import current
from weft.graph import zero as sharding
from weft.job.value import Value
from weft.launch import spawn_threads
from weft.plan import parse
from weft.plan.usage import usage
from weft.simulator import simulate
from weft.transport.hosts import HOSTS

S, B = flow.sbp.split, flow.sbp.broadcast


class Train(nn.Graph):
    def __init__(self, model: nn.Module, optimizer: Any, zero: Any, micro_batches: int = 1) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        if zero is not None:
            self.config.enable_zero(**zero)
        self.config.set_gradient_accumulation_steps(micro_batches)

    def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        return loss


def data(place: flow.placement, sbp: Any, step: int) -> tuple[flow.Tensor, flow.Tensor]:
    rng = np.random.default_rng(step)
    x = flow.tensor(rng.normal(size=(8, 6)).astype(np.float32), placement=place, sbp=sbp)
    return x, flow.tensor(rng.integers(0, 3, 8), placement=place, sbp=sbp)


def model_on(place: flow.placement) -> nn.Module:
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 10), nn.GELU(), nn.LayerNorm(10), nn.Linear(10, 3))
    return model.to_global(placement=place, sbp=[B] * place.ndim)


OPTIMIZERS: dict[str, Any] = {
    "AdamW": lambda ps: flow.optim.AdamW(ps, lr=0.05),
    "momentum": lambda ps: flow.optim.SGD(ps, lr=0.1, momentum=0.9),
    "LAMB": lambda ps: flow.optim.LAMB(ps, lr=0.05),
    "clipped": lambda ps: flow.optim.Adam([{"params": ps, "clip_grad_max_norm": 0.1}], lr=0.05),
}


def train(zero: Any, optimizer: str, ranks: Any, x_sbp: Any, micro_batches: int, kind: str = "cpu") -> Any:
    place = flow.placement(kind, ranks)
    model = model_on(place)
    opt = OPTIMIZERS[optimizer](list(model.parameters()))
    graph = Train(model, opt, zero, micro_batches)
    losses = [graph(*data(place, x_sbp, i)).numpy() for i in range(3)]
    held = sum(
        t.to_local().numel() for s in opt.state.values() for t in s.values() if isinstance(t, flow.Tensor) and t.ndim
    )
    found = losses, [p.detach().numpy() for p in model.parameters()], held, str(graph.job)
    graph.close()
    return found


LAYOUTS = {
    "data": ([0, 1], S(0), 1), "batches": ([0, 1], S(0), 2), "uneven": ([0, 1, 2], S(0), 1),
    "grid": ([[0, 1], [2, 3]], [S(0), B], 2), "both": ([[0, 1], [2, 3]], [S(0), S(0)], 1),
}  # fmt: skip


@functools.cache
def whole(optimizer: str, layout: str) -> Any:
    ranks, x_sbp, micro_batches = LAYOUTS[layout]
    return spawn_threads(int(np.max(ranks)) + 1, train, None, optimizer, ranks, x_sbp, micro_batches, deadline=60)


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize(
    ("optimizer", "layout"),
    [*(("AdamW", layout) for layout in LAYOUTS), ("momentum", "data"), ("LAMB", "uneven"), ("clipped", "grid")],
)
def test_parts_train_as_the_whole(optimizer: str, layout: str, stage: int) -> None:
    ranks, x_sbp, micro_batches = LAYOUTS[layout]
    n = int(np.max(ranks)) + 1
    asked = {"stage": stage, "shard_min_size": 4}
    parts = spawn_threads(n, train, asked, optimizer, ranks, x_sbp, micro_batches, deadline=60)
    for a, b in zip(whole(optimizer, layout), parts, strict=True):
        np.testing.assert_allclose(a[0], b[0], atol=1e-5)
        for p, q in zip(a[1], b[1], strict=True):
            np.testing.assert_allclose(p, q, atol=1e-5)
    split = len(ranks)  # along the first axis; a bias of three elements stays whole
    before = whole(optimizer, layout)
    assert sum(p[2] for p in parts) * split <= sum(w[2] for w in before) * (1 + 0.1 * split)
    gathers, scatters = (parts[0][3].count(f"'{kind}(axis=0, dim=0") for kind in ("all_gather", "reduce_scatter"))
    assert (gathers, scatters) == (1, 1)  # all of this model go together
    assert "all_gather" not in before[0][3] and "reduce_scatter" not in before[0][3]


class Tied(nn.Module):
    """Three ways to read a weight: at both ends, never in backward, and frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(9, 6)
        self.frozen, self.half, self.norm = nn.Linear(6, 6), nn.Linear(6, 6), nn.LayerNorm(6)
        self.frozen.requires_grad_(False)

    def forward(self, ids: flow.Tensor) -> flow.Tensor:
        x = self.token(ids)
        x = self.norm(x + self.half(self.frozen(flow.gelu(self.half(x)))))
        return flow.matmul(x, self.token.weight.transpose(0, 1))


def train_tied(stage: int, scaled: bool) -> Any:
    place = flow.placement("cpu", [0, 1])
    flow.manual_seed(0)
    model = Tied().to_global(placement=place, sbp=B)
    groups = [{"params": [model.token.weight], "weight_decay": 0.1}, {"params": list(model.half.parameters())}]
    opt = flow.optim.AdamW(groups, lr=0.05)
    other = flow.optim.SGD(model.norm.parameters(), lr=0.1)
    graph = Train(model, opt, {"stage": stage, "shard_min_size": 1} if stage else None, 2)
    graph.add_optimizer(other)
    if scaled:
        graph.set_grad_scaler(flow.amp.GradScaler(init_scale=64.0))
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(3):
        ids, wanted = (flow.tensor(rng.integers(0, 9, 8), placement=place, sbp=S(0)) for _ in range(2))
        losses.append(graph(ids, wanted).numpy())
    state = opt.state_dict()["state"][0]["exp_avg"].numpy()
    found = losses, [p.detach().numpy() for p in model.parameters()], state
    frozen = model.frozen.weight.sbp
    graph.close()
    assert frozen == (B,)  # no optimizer's
    return found


@pytest.mark.parametrize(("scaled", "stages"), [(False, (1, 2, 3)), (True, (3,))])
def test_shared_and_frozen_weights_groups_and_scaled_losses(scaled: bool, stages: tuple[int, ...]) -> None:
    expected = spawn_threads(2, train_tied, 0, scaled, deadline=60)[0]
    for stage in stages:
        found = spawn_threads(2, train_tied, stage, scaled, deadline=60)[0]
        np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
        np.testing.assert_allclose(found[2], expected[2], atol=1e-5)
        for p, q in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(p, q, atol=1e-5)


class Staged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 6)) for _ in range(2))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.second(self.first(x))


def train_otherwise(how: str, stage: int) -> Any:
    """A pipeline of two stages, each of two ranks; activations that are computed again; products in bfloat16."""
    places = [flow.placement("cpu", ranks) for ranks in ([0, 1], [2, 3] if how == "stages" else [0, 1])]
    flow.manual_seed(0)
    model = Staged()
    model.first.to_global(placement=places[0], sbp=B)
    model.second.to_global(placement=places[1], sbp=B)
    opt = flow.optim.AdamW(model.parameters(), lr=0.05)
    graph = Train(model, opt, {"stage": stage, "shard_min_size": 1} if stage else None, 2 if how == "stages" else 1)
    for i, block in enumerate((graph.model.first, graph.model.second)):
        if how == "stages":
            block.to(nn.graph.GraphModule).set_stage(i, places[i])
        block.to(nn.graph.GraphModule).activation_checkpointing = how == "again"
    graph.config.enable_amp(how == "amp")
    if how == "chosen":
        graph.config.enable_auto_parallel()
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(3):
        x = flow.tensor(rng.normal(size=(8, 6)).astype(np.float32), placement=places[0], sbp=S(0))
        y = flow.tensor(rng.integers(0, 6, 8), placement=places[1], sbp=S(0))
        losses.append(graph(x, y).numpy())
    found = losses, [p.detach().numpy() for p in model.parameters()]
    graph.close()
    return found


@pytest.mark.parametrize("how", ["stages", "again", "amp", "chosen"])
def test_stages_recomputation_short_products_and_chosen_layouts(how: str) -> None:
    n = 4 if how == "stages" else 2
    whole = spawn_threads(n, train_otherwise, how, 0, deadline=60)
    for stage in (1, 2, 3):
        for a, b in zip(whole, spawn_threads(n, train_otherwise, how, stage, deadline=60), strict=True):
            for p, q in zip([*a[0], *a[1]], [*b[0], *b[1]], strict=True):
                np.testing.assert_allclose(p, q, atol=1e-2 if how == "amp" else 1e-5)


DEPTH, WIDTH = 8, 256  # weights of 256 KB, which travel alone; biases travel together


def train_deep(stage: int, micro_batches: int = 1) -> Any:
    place = flow.placement("cpu", [0, 1])
    flow.manual_seed(0)
    model = nn.Sequential(*(m for _ in range(DEPTH) for m in (nn.Linear(WIDTH, WIDTH), nn.Tanh())))
    model.to_global(placement=place, sbp=B)
    opt = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    graph = Train(model, opt, {"stage": stage, "shard_min_size": 1} if stage else None, micro_batches)
    x = flow.ones(4 * micro_batches, WIDTH, placement=place, sbp=S(0))
    loss = graph(x, flow.zeros(4 * micro_batches, dtype=flow.int64, placement=place, sbp=S(0))).numpy()
    rest = sum(t.to_local().nbytes for p in model.parameters() for t in (p, opt.state[p]["momentum_buffer"]))
    plan = graph.plan
    used = usage(plan)
    planned = used.registers + used.arenas
    assert parse(str(plan)) == plan
    graph.close()
    return loss, rest, planned, graph.job, plan


def places(job: Any, step: str) -> list[int]:
    return [i for i, n in enumerate(job.nodes) if n.op == "boxing" and n.args[1].startswith(step)]


def wholes_alive(job: Any) -> int:
    """The most weights that are whole at once."""
    readers = job.readers()
    place = {n: i for i, n in enumerate(job.nodes)}
    spans = [
        (i, max(place[r] for r in readers[v])) for i in places(job, "all_gather") for v in job.nodes[i].outputs
        if len(v.shape) == 2
    ]  # fmt: skip
    return max(sum(a <= i <= b for a, b in spans) for i in range(len(job.nodes)))


def test_each_stage_holds_less_than_the_one_before() -> None:
    (loss, rest, planned, *_), *stages = (spawn_threads(2, train_deep, stage, deadline=60)[0] for stage in range(4))
    for found in stages:
        np.testing.assert_allclose(found[0], loss, atol=1e-5)
        assert found[1] == rest / 2
    zero, *sizes = [planned + rest, *(r + p for _, r, p, *_ in stages)]
    # gradients take the places of weights that backward is done with
    assert zero > sizes[0] and sizes[1] < 1.01 * sizes[0] and sizes[1] > sizes[2]
    one, two, three = (job for *_, job, _ in stages)

    # gradients: where they are needed, or where they are made
    made = {v: i for i, n in enumerate(one.nodes) if n.op == "linear_weight_grad" for v in n.outputs}
    update = next(i for i, n in enumerate(one.nodes) if n.op == "sgd_update")
    assert min(places(one, "reduce_scatter")) > max(made.values())
    assert places(one, "reduce_scatter") == list(range(update - DEPTH - 1, update))
    behind = [two.nodes[i - 1] for i in places(two, "reduce_scatter") if isinstance(two.nodes[i].args[0], Value)]
    assert len(behind) == DEPTH and {n.op for n in behind} == {"linear_weight_grad"}

    # parameters: once a launch, or for each way
    assert len(places(one, "all_gather")) == len(places(two, "all_gather")) == DEPTH + 1
    assert len(places(three, "all_gather")) == DEPTH + 1 + DEPTH - 2  # the last stays, the first has no backward
    assert [wholes_alive(job) for job in (one, two, three)] == [DEPTH - 1, DEPTH - 1, 2]


def test_between_hosts_parameters_are_fetched_ahead_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    near = [spawn_threads(2, train_deep, stage, deadline=30)[0] for stage in range(4)]
    monkeypatch.setenv(HOSTS, "2")
    *others, found = [spawn_threads(2, train_deep, stage, deadline=30) for stage in range(4)]
    far = [*(each[0] for each in others), found[0]]
    for a, b in zip(near, far, strict=True):
        np.testing.assert_allclose(a[0], b[0], atol=1e-5)
    zero, one, two, three = (planned + rest for _, rest, planned, *_ in far)
    assert zero > one >= two > three
    weight = 4 * WIDTH * WIDTH
    assert far[3][2] <= near[3][2] + 4 * weight  # on each of two streams a weight and a gradient are under way

    plan = found[0][-1]
    chains = [t for t in plan.tasks if t.kind == "compute"]
    timeline = simulate([each[-1] for each in found], dict.fromkeys((t.name for t in chains), 2.0), launches=1)
    when = {a.task: a for a in timeline.acts if a.rank == 0}
    spans: list[tuple[float, float]] = []
    for t in plan.tasks:
        if any(c.op == "box.all_gather" and len(c.results) == 1 for c in t.step.calls):
            made = {p.register for p in t.produces}
            readers = [when[c.name] for c in chains if made & {p.register for p in c.consumes}]
            spans.append((when[t.name].start, max(a.end for a in readers)))
            beside = [c for c in chains if when[c.name].start < when[t.name].end and when[c.name].end > spans[-1][0]]
            assert beside or len(spans) == 1, t.name  # it is fetched while something is computed
    assert len(spans) == DEPTH + DEPTH - 2 - 1  # the first two begin the launch together
    assert max(sum(a <= begin < b for a, b in spans) for begin, _ in spans) == 2  # one is used, and one is fetched


def test_micro_batches_gather_anew_and_add_parts() -> None:
    whole_loss, *held, _, _ = spawn_threads(2, train_deep, 0, 2, deadline=60)[0]
    sizes = [sum(held)]
    for stage in (1, 2, 3):
        loss, *held, job, _ = spawn_threads(2, train_deep, stage, 2, deadline=60)[0]
        sizes.append(sum(held))
        np.testing.assert_allclose(loss, whole_loss, atol=1e-5)
        assert {job.nodes[i].micro for i in places(job, "all_gather")} == {stage == 3}
        assert {job.nodes[i].micro for i in places(job, "reduce_scatter")} == {stage > 1}
        sums = [n.outputs[0].spec.nd_sbp for n in job.nodes if n.op == "accumulate"]
        assert set(sums) == {(S(0),) if stage > 1 else (flow.sbp.partial_sum,)}
    zero, one, two, three = sizes
    assert zero >= one > two > three  # without stages the update's memory is that of a chain that is over


def test_a_split_model_predicts_saves_and_goes_on() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        model, twin = model_on(place), model_on(place)
        graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.1), {"stage": 1, "shard_min_size": 1})
        other = Train(twin, flow.optim.SGD(twin.parameters(), lr=0.1), None)
        for i in range(2):
            x, y = data(place, S(0), i)
            np.testing.assert_allclose(graph(x, y).numpy(), other(x, y).numpy(), atol=1e-6)
        assert all(p.sbp == (S(0),) for p in model.parameters())
        x, y = data(place, S(0), 5)
        expected = twin(x).detach().numpy()
        np.testing.assert_allclose(model(x).detach().numpy(), expected, atol=1e-6)  # eagerly
        np.testing.assert_allclose(Calls(model)(x).numpy(), expected, atol=1e-6)
        again = model_on(place)
        again.load_state_dict(model.state_dict())
        np.testing.assert_allclose(again(x).detach().numpy(), expected, atol=1e-6)
        second = Train(model, flow.optim.SGD(model.parameters(), lr=0.1), {"shard_min_size": 1})
        np.testing.assert_allclose(second(x, y).numpy(), other(x, y).numpy(), atol=1e-6)
        assert str(second.job).count("all_gather") == 1

    spawn_threads(2, run, deadline=60)


def test_what_is_small_or_split_already_stays() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        model = model_on(place)
        graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.1), {"shard_min_size": 31})
        graph(*data(place, S(0), 0)).numpy()
        assert [p.sbp for p in model.parameters()] == [(S(0),), *[(B,)] * 5]
        columns = nn.Linear(6, 3).to_global(placement=place, sbp=S(0))
        Train(columns, flow.optim.SGD(columns.parameters(), lr=0.1), {})(*data(place, B, 0)).numpy()
        assert all(p.sbp == (S(0),) for p in columns.parameters())

    spawn_threads(2, run, deadline=60)


@pytest.mark.parametrize("how, count", [("local", 2), ("small", 2), ("global", 0)])
def test_parameters_that_cannot_be_split_are_warned_of(how: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    place, said = flow.placement("cpu", ranks=[0, 1]), list[str]()

    def rank() -> None:
        model, x = nn.Linear(6, 3), (flow.ones(8, 6), flow.zeros(8, dtype=flow.int64))
        if how != "local":
            model, x = model.to_global(place, B), tuple(t.to_global(place, B) for t in x)
        option = {"shard_min_size": 10**6 if how == "small" else 4}
        Train(model, flow.optim.SGD(model.parameters(), lr=0.1), option)(*x).numpy()
        flow.comm.barrier()

    monkeypatch.setattr(sharding, "warn", said.append)
    spawn_threads(2, rank, deadline=60)
    assert len(said) == count and all("the optimizers have no parameter to split" in text for text in said)


def test_a_dimension_of_one_stays_on_its_rank() -> None:
    def run() -> None:
        place = flow.placement("cpu", [[0, 1], [2, 3]])
        narrow = nn.Linear(1, 6, bias=False).to_global(placement=place, sbp=[B, S(1)])
        graph = Train(narrow, flow.optim.AdamW(narrow.parameters(), lr=0.1), {"shard_min_size": 1})
        graph(
            flow.ones(4, 1, placement=place, sbp=[S(0), B]), flow.zeros(4, dtype=flow.long, placement=place, sbp=[B, B])
        )
        assert narrow.weight.sbp == (S(0), S(1)) == narrow.weight.detach().clone().sbp

    spawn_threads(4, run, deadline=60)


def test_what_fails_to_compile_leaves_everything_whole() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        model = model_on(place)
        optimizer = flow.optim.AdamW(model.parameters(), lr=0.1)
        x, y = data(place, S(0), 0)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        graph, tight = (Train(model, optimizer, {"shard_min_size": 1}) for _ in range(2))
        tight.config.set_memory_budget(1)
        for failing, error, rows in ((graph, ShapeError, y[:3]), (tight, CompileError, y)):
            with pytest.raises(error):
                failing(x, rows)
            assert all(p.sbp == (B,) for p in model.parameters())
            assert all(t.sbp == (B,) for s in optimizer.state.values() for t in s.values())
        graph(x, y).numpy()
        assert all(p.sbp == (S(0),) for p in model.parameters())

    spawn_threads(2, run, deadline=60)


def test_options_of_zero() -> None:
    model = nn.Linear(2, 2)
    graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.1), None)
    with pytest.raises(GraphError, match="stages are 1, 2 and 3"):
        graph.config.enable_zero(stage=4)
    with pytest.raises(GraphError, match="distributed_split or"):
        graph.config.set_zero_redundancy_optimizer_mode("half")
    graph.config.set_zero_redundancy_optimizer_mode()
    assert "zero=True, stage=1" in repr(graph.config)
    graph.config.enable_zero(False)
    assert "zero" not in repr(graph.config)
    graph.config.enable_zero()
    graph(flow.ones(2, 2), flow.tensor([0, 1])).item()  # of one rank there are no parts
    with pytest.raises(GraphError, match="compiled already"):
        graph.config.enable_zero()


class Following(flow.nn.Graph):
    def build(self, x: Any) -> Any:
        return x + 1


def test_a_model_that_is_gone_is_forgotten() -> None:
    def rank() -> Any:
        place = flow.placement("cpu", [0, 1])
        model = model_on(place)
        opt = flow.optim.SGD(list(model.parameters()), lr=0.1)
        graph = Train(model, opt, {"shard_min_size": 1})
        graph(*data(place, S(0), 0)).numpy()
        wholes = current().resources["read whole"]
        found = len(wholes)
        del model, opt, graph
        gc.collect()
        Following().compile(flow.ones(1))  # where ranks may wait for each other, a dropped graph ends with the next
        until = time.monotonic() + 60  # the thread that ran the last launch lets go of it when it next wakes up
        while wholes and time.monotonic() < until:
            gc.collect()
        return found, len(wholes)

    assert spawn_threads(2, rank) == [(6, 0)] * 2


LAYERS = [  # of weights and biases, each on an axis of ranks of one host, and on one of hosts
    ([S(0), S(1)], [S(0), S(0)]),
    ([B, B], [B, S(0)]),
    ([S(1), S(0)], [B, S(0)]),
    ([S(1), S(1)], [B, S(0)]),
]


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in LAYERS])

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        for layer in self.layers[1:]:
            x = layer(x)
        return x + self.layers[0](x).sum(-1, keepdim=True)


def train_rows(ranks: Any) -> Any:
    place = flow.placement("cpu", ranks)
    flow.manual_seed(0)
    model = Rows()
    for layer, layouts in zip(model.layers, LAYERS, strict=True):
        for name, sbp in zip(("weight", "bias"), layouts, strict=True):
            there = flow.tensor(getattr(layer, name).detach().numpy(), placement=place, sbp=sbp[: place.ndim])
            setattr(layer, name, nn.Parameter(there))
    graph = Trains(model, flow.optim.SGD(model.parameters(), lr=0.1), steps=4)
    graph.config.enable_zero(stage=2, shard_min_size=1)
    values = np.random.default_rng(0).normal(size=(8, 5, 8)).astype(np.float32)
    x = flow.tensor(values, placement=place, sbp=[S(0), B][: place.ndim])
    losses = [graph(x).numpy().mean() for _ in range(2)]
    graph.close()
    return losses


def test_what_is_gathered_for_backward_waits_for_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else micro-batches would wait for the last one, which waits for them."""
    (alone,) = spawn_threads(1, train_rows, [0])
    monkeypatch.setenv(HOSTS, "0,1,0,1")
    for found in spawn_threads(4, train_rows, [[0, 1], [2, 3]], deadline=60):
        assert found == pytest.approx(alone, rel=1e-4)
