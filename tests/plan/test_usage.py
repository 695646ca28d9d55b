"""The memory that a plan tells of is the memory that its launches take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import weft as flow
from bench.memory import peak, peak_of
from tests.graphs import Calls, Trains
from weft import nn
from weft.ops import OPS
from weft.ops.declaration import op
from weft.plan import scratch
from weft.plan.calls import Call, Place, Ref, Result
from weft.plan.overwriting import overwrites
from weft.plan.plan import parse
from weft.plan.scratch import Watch, _measured, meanwhile
from weft.plan.usage import usage
from weft.testing import registry
from weft.testing.cases import copied
from weft.testing.layouts import tensors
from weft.transport import ALLOCATES, transport_of
from weft.transport.hosts import HOSTS

F = nn.functional


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        b, t, w = x.shape
        q, k, v = (z.view(b, t, 4, -1).transpose(1, 2) for z in self.qkv(self.norm(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w)
        x = x + self.out(a)
        return x + self.down(F.gelu(self.up(x)))


def convolutions() -> tuple[nn.Module, Any]:
    layers = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.Dropout(0.1)
    )
    return layers, flow.randn(64, 3, 32, 32)


class Skips(nn.Module):
    """Convolutions that narrow and widen again, with batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.down, self.up = nn.Conv2d(16, 32, 3, padding=1), nn.ConvTranspose2d(32, 16, 2, 2)
        self.last = nn.Conv2d(32, 16, 3, padding=1)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm(self.first(x)))
        return self.last(flow.cat([x, self.up(F.relu(self.down(F.max_pool2d(x, 2))))], 1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.over_time = nn.LSTM(32, 64, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.over_time(x)[0]


class Experts(nn.Module):
    """Each row goes to two of four."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(32, 4)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(4)])

    def forward(self, x: Any) -> Any:
        shares, chosen = self.gate(x).softmax(-1).topk(2, -1)
        return sum(expert(x) * ((chosen == i) * shares).sum(-1, keepdim=True) for i, expert in enumerate(self.experts))


class Mixer(nn.Module):
    """Products of transposed rows, which are copied first."""

    def __init__(self) -> None:
        super().__init__()
        self.over_rows, self.norm = nn.Linear(49, 99), nn.LayerNorm(33)

    def forward(self, x: Any) -> Any:
        return F.smooth_l1_loss(self.over_rows(self.norm(x).transpose(1, 2)), flow.ones(37, 33, 99))


class Gated(nn.Module):
    """With zeros that are the same in every micro-batch."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(flow.ones(64))

    def forward(self, x: Any) -> Any:
        return flow.where(x > 0, x, flow.zeros_like(x)) * self.weight


class Matrices(nn.Module):
    """Inverted and factorized, and products of more than two dimensions: results in columns, or in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.mix = nn.Parameter(flow.ones(32)), nn.Parameter(flow.randn(4, 32, 32))

    def forward(self, x: Any) -> Any:
        x = (x * self.weight) @ x.mT + 3 * flow.eye(32)
        y = F.gelu(flow.linalg.cholesky(x)) + F.gelu(flow.linalg.inv(x))
        return F.gelu(flow.einsum("bij,ejk->bike", y, self.mix))


class Images(nn.Module):
    """In 16 bits, of which kernels make wider copies, and resized."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12)
        self.bfloat16()

    def forward(self, x: Any) -> Any:
        x = F.interpolate(self.norm(self.first(x.bfloat16())), scale_factor=2, mode="bilinear")
        return F.max_pool2d(x, 2).float().sum((0, 2, 3))


MODELS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "attention": lambda: (nn.Sequential(Block(64), Block(64)), flow.randn(64, 64, 64)),
    "perceptron": lambda: (nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)), flow.randn(256, 256)),
    "convolutions": convolutions,
    "skips": lambda: (Skips(), flow.randn(16, 3, 32, 32)),
    "recurrent": lambda: (Recurrent(), flow.randn(32, 16, 32)),
    "experts": lambda: (Experts(), flow.randn(2048, 32)),
    "transposed": lambda: (Mixer(), flow.randn(37, 49, 33)),
    "gated": lambda: (Gated(), flow.randn(512, 64)),
    "matrices": lambda: (Matrices(), flow.randn(32, 32, 32)),
    "images": lambda: (Images(), flow.randn(8, 3, 32, 32)),
    "one layer four times": lambda: (nn.Sequential(*[Block(64)] * 4), flow.randn(16, 64, 64)),
}


def train(model: nn.Module, steps: int, optimizer: Any = flow.optim.SGD) -> Trains:
    return Trains(model, optimizer(model.parameters(), lr=0.01), steps=steps)


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_told_before_the_first_step_is_used(name: str, steps: int) -> None:
    told_and_used(name, 1 if name == "transposed" else steps, flow.optim.SGD)


@pytest.mark.parametrize("optimizer", [flow.optim.Adagrad, flow.optim.RMSprop, flow.optim.Adadelta, flow.optim.LAMB])
def test_what_updates_allocate_is_told(optimizer: Any) -> None:
    told_and_used("perceptron", 1, optimizer)


def told_and_used(name: str, steps: int, optimizer: Any) -> None:
    made: list[Any] = []

    def make() -> Callable[[], Any]:
        model, x = MODELS[name]()
        graph = train(model, steps, optimizer)
        made[:] = [x.numel() * 4, graph]
        graph.compile(x)
        graph.running.brief = True  # so that it runs on this thread, the one that is watched
        return lambda: graph(x).numpy()

    measured = peak_of(make, steps=2)
    given, graph = made
    measured -= given
    used = usage(graph.plan)
    assert measured == pytest.approx(used.total + used.variables, rel=0.05, abs=20_000), graph.memory()
    assert f"{used.arenas / 1e6:.1f} MB" in graph.memory() or used.arenas < 1e6


@pytest.mark.parametrize("name", [name for name in OPS if overwrites(name, [0])])
def test_results_may_lie_where_an_operand_does(name: str) -> None:
    op = OPS[name]
    assert op.out_kernel is not None
    tried = 0
    for args in registry.cases(op):
        cut = len(args) - len(op.keywords)
        want = op.kernel(*args[:cut], **dict(zip(op.keywords, args[cut:], strict=True)))
        for i, t in overwrites(name, list(enumerate(tensors(op, args)))):
            if t.shape != want.shape or t.dtype != want.dtype:
                continue
            for prepared in (False, True):
                given = copied(op, args)
                out = list(tensors(op, given))[i]
                found = op.prepare(out, *given) if prepared and op.prepare is not None else None
                if found:
                    for function, positional, keywords in found if isinstance(found, list) else [found]:
                        function(*positional, **keywords)
                else:
                    op.out_kernel(out, *given)
                assert out.allclose(want, equal_nan=True) if want.dtype.is_floating_point else out.equal(want)
                tried += 1
    assert tried or name in ("eq", "ne", "lt", "le", "gt", "ge", "gcd", "lcm")  # of another dtype; of scalars


def test_what_calls_make_meanwhile_counts_while_somebody_holds_it() -> None:
    x = torch.empty(100, device="meta")
    with Watch() as watch:
        y = x + 1
        z = y * 2
        del y
        z.view(10, 10).add_(1)
    assert (watch.most, watch.held) == (800, 400)
    del z
    assert watch.held == 0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "heads, queries, keys, rows", [(4, 128, 128, True), (2, 300, 100, False), (2, 1024, 600, True)]
)
def test_what_attention_takes_within_its_kernels_is_told(
    heads: int, queries: int, keys: int, rows: bool, threads: int
) -> None:
    """Kernels that allocate by themselves can't be watched without data; what they take follows from the shapes."""
    was = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        q, k, v = (torch.randn(1, n, heads, 32).transpose(1, 2) for n in (queries, keys, keys))
        dy = torch.randn(q.shape) if rows else torch.randn(1, queries, heads, 32).transpose(1, 2)
        attention, grad = OPS["scaled_dot_product_attention"], OPS["attention_grad"]
        y, logsumexp = attention.kernel(q, k, v)
        for op, args in (
            (attention, (q, k, v, None, False, None)),
            (grad, (dy, q, k, v, y, logsumexp, None, False, None, False)),
        ):
            measured = peak(lambda op=op, args=args: op.kernel(*args), steps=1)
            given = [a for a in args if isinstance(a, torch.Tensor)]
            forms = {
                f"x{i}": Result(f"x{i}", "float32", tuple(t.shape), Place("made"), t.stride())
                for i, t in enumerate(given)
            }
            made = tuple(
                Result(f"y{i}", "float32", tuple(t.shape), Place("made")) for i, t in enumerate(op.kernel(*args))
            )
            refs = tuple(map(Ref, forms))
            assert meanwhile(Call(op.name, (*refs, *args[len(refs) :]), made), forms) == measured
    finally:
        torch.set_num_threads(was)


def test_blocks_of_attention_gradients_share_one_space() -> None:
    """All are computed in that of the first, as `works_in` says."""
    op: Any = OPS["attention_grad"]
    q, k, v, dy = torch.randn(4, 1, 4, 320, 64)
    with torch.no_grad():
        y, logsumexp = OPS["scaled_dot_product_attention"].kernel(q, k, v, None, True)
        args, into = (dy, q, k, v, y, logsumexp, None, True, None, False), torch.empty(3, *q.shape).unbind()
        op.out_kernel(into, *args)  # what hides later keys is kept
        assert peak(lambda: op.out_kernel(into, *args), steps=2) == op.workspace(*args)


class Draws(nn.Graph):
    def build(self, x: Any) -> Any:
        noisy = flow.normal(flow.zeros_like(x), 1.0) + flow.rand(64, 64) + flow.randn(64, 64) + flow.bernoulli(x)
        return F.dropout(noisy) * flow.randperm(64) + flow.randint(0, 9, (64, 64))


def test_to_ask_draws_nothing() -> None:
    """Ranks that asked, or were the first to, would go on from other places in the sequence than those that didn't."""
    x, graph = flow.full((64, 64), 0.5), Draws()
    flow.manual_seed(1)
    expected = graph.build(x)
    flow.manual_seed(1)
    graph.compile(x)
    _measured.cache_clear()
    graph.memory()
    assert graph(x).equal(expected)


def test_a_profiler_changes_nothing_of_what_is_told() -> None:
    x, told = flow.randn(4, 3, 16, 16), []
    for recording in (contextlib.nullcontext(), torch.profiler.profile(), torch.profiler.profile(profile_memory=True)):
        _measured.cache_clear()
        with recording:
            graph = train(Skips(), 1)
            graph.compile(x)
            told.append(usage(graph.plan))
    assert told[1:] == told[:1] * 2 and told[0].allocated > 20_000
    with pytest.raises(ValueError, match="its own"), torch.profiler.profile():
        scratch.peak(lambda: torch.ones(4, 4) @ int("its own"))


def test_what_the_program_declared_is_not_run_to_measure_it() -> None:
    called = []

    @op("... -> ...")
    def noted(x: Tensor) -> Tensor:
        called.append(x.device.type)
        return x + 1

    class Noted(nn.Graph):
        def build(self, x: Any) -> Any:
            return noted(noted(x) * 2)

    graph = Noted()
    graph.compile(flow.ones(3))
    called.clear()
    graph.memory()
    assert "cpu" not in called
    assert graph(flow.ones(3)).tolist() == [5.0] * 3 and called.count("cpu") == 2
    del OPS["noted"]


def allocates_what_plans_tell() -> None:
    transport, n = transport_of(), transport_of().world_size
    group, size = transport.everyone(), 1_200_000  # more than one round over shared memory
    *parts, out = torch.ones((n + 1) * size).split(size)  # of one storage, as in an arena
    own, apart = parts[group.index], list(torch.empty(size // 100, n * 100).split(100, 1))
    every: list[tuple[str, tuple[Any, ...]]] = [
        ("reduce_scatter", (out, parts, "sum")),
        ("reduce_scatter", (own, parts, "sum")),
        ("all_gather", (parts, out)),
        ("all_gather", (apart, out.view(-1, 100))),
        ("all_reduce", (out, "sum")),
        ("all_reduce", (out.to(torch.int16), "sum")),
    ]
    for method, args in every:
        told = ALLOCATES[transport.backend](method, n, args, False)
        measured = peak(lambda method=method, args=args: getattr(group, method)(*args), 1)
        assert abs(measured - told) < 20_000, (method, measured, told)
        if method == "reduce_scatter":
            assert args[0].tolist() == [n] * size
            own.fill_(1)


@pytest.mark.parametrize("n, transport", [(2, "c10d"), (4, "c10d"), (2, "shm")])
def test_what_collectives_allocate_is_told(n: int, transport: str, world: Any) -> None:
    world("allocates_what_plans_tell", n, transport).well()


def holds_what_plans_tell() -> None:
    """Sums of micro-batches under ZeRO run inline in their chain, over whatever transport."""
    place, made = flow.placement("cpu", ranks=list(range(transport_of().world_size))), list[Any]()

    def make() -> Callable[[], Any]:
        layers = [nn.Linear(640, 640, bias=False) for _ in range(3)]
        model = nn.Sequential(*layers).to_global(placement=place, sbp=flow.sbp.broadcast)
        x = flow.ones(16, 640, placement=place, sbp=flow.sbp.split(0))
        graph = train(model, 2)
        graph.config.enable_zero(stage=2, shard_min_size=1)
        graph.compile(x)
        made[:] = [x.to_local().nbytes, graph]
        return lambda: graph(x).numpy()

    measured = peak_of(make, steps=2)
    given, graph = made
    used, calls = usage(graph.plan), [c for t in graph.plan.tasks if t.kind == "compute" for c in t.step.calls]
    sums = [c for c in calls if c.op == "box.reduce_scatter"]
    # on two hosts each sum has two levels of two ranks: what is packed for them lies in the arena
    assert sums and all(c.option("allocates", 0) > 100_000 or c.option("hosts") for c in sums)
    told = used.total + used.variables
    assert abs(measured - given - told) < 0.05 * told, (measured - given, told, str(used))


def draws_what_plans_tell() -> None:
    """A rank draws the whole of a mask that is split, and keeps its part until backward."""
    place, made = flow.placement("cpu", ranks=[0, 1]), list[Any]()

    def make() -> Callable[[], Any]:
        layers = [layer for _ in range(3) for layer in (nn.Linear(128, 128), nn.Dropout(0.5))]
        model = nn.Sequential(*layers).to_global(placement=place, sbp=flow.sbp.broadcast)
        x = flow.ones(1024, 128, placement=place, sbp=flow.sbp.split(0))
        graph = train(model, 1)
        graph.compile(x)
        made[:] = [x.to_local().nbytes, graph]
        return lambda: graph(x).numpy()

    measured = peak_of(make, steps=2)
    given, graph = made
    used = usage(graph.plan)
    told = used.total + used.variables
    assert abs(measured - given - told) < 0.05 * told, (measured - given, told, str(used))


def test_what_split_draws_hold_is_told(world: Any) -> None:
    world("draws_what_plans_tell", 2, "shm").well()


def test_the_outputs_of_a_launch_are_told() -> None:
    class Gives(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 1000)

        def build(self, x: Any) -> Any:
            y = self.layer(x)
            return y, {"sum": y.sum(), "weight": self.layer.weight}, y[:2]

    graph, x = Gives(), flow.ones(64, 8)
    graph.compile(x)
    given = graph(x)
    used = usage(graph.plan)
    assert used.outputs == given[0].nbytes + given[1]["sum"].nbytes + given[1]["weight"].nbytes + given[2].nbytes
    assert "296.0 KB  outputs of a launch" in graph.memory()


@pytest.mark.parametrize("hosts", ["1", "2"])
def test_what_inline_collectives_allocate_is_told(hosts: str, world: Any) -> None:
    world("holds_what_plans_tell", 4, "c10d", env={HOSTS: hosts}).well()


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_global_values_are_measured_where_they_lie(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a plan for CUDA, which may be large, don't run on the CPU to measure what they allocate."""
    layer, place = nn.Linear(4, 4), flow.placement("cpu", [0])
    graph = Calls(layer.to_global(place, flow.sbp.broadcast))
    graph.compile(flow.ones(2, 4, placement=place, sbp=flow.sbp.broadcast))
    plan = parse(str(graph.plan).replace("cpu", kind))
    assert plan.placement is not None and plan.placement.type == kind
    ran = []
    monkeypatch.setattr("weft.plan.usage.meanwhile", lambda call, forms, on_cpu, roomy: ran.append(on_cpu) or 0)
    usage(plan)
    assert set(ran) == {kind == "cpu"}
