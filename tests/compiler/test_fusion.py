"""Runs of calls as one kernel: what is joined, that it computes the same, and that it is saved and loaded."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from bench.memory import peak
from tests.graph.training import test_random_training as training
from weft import nn
from weft.compiler import faster, fusion, inductor
from weft.compiler.passes import early_updates
from weft.core.rank import current
from weft.ops.linalg import onednn
from weft.plan import parse
from weft.plan.calls import Call
from weft.plan.usage import usage


class Step(nn.Graph):
    def __init__(self, model: nn.Module, inductor: bool) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
        self.config.enable_inductor(inductor)

    def build(self, x: Any) -> Any:
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


class Blank(nn.Graph):
    """What a process has that never saw the model."""


def model() -> Any:
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 8), nn.ReLU())


@pytest.fixture
def fusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is fused, and no compiler is needed: what a kernel stands for is run in its place."""
    monkeypatch.setattr(inductor, "missing", lambda kind="cpu": "")
    monkeypatch.setattr(inductor, "kernels", {})
    monkeypatch.setattr(inductor, "compiled", overwriting)
    monkeypatch.setattr(faster, "measured", {})
    monkeypatch.setattr(faster, "least", lambda functions, end=None: [0.0, 1.0])
    monkeypatch.setattr(faster, "peak", lambda run: 12_345)


def overwriting(call: Call, tensors: Any) -> Any:
    """A kernel that writes before it reads: that may do no harm."""
    function = inductor.one_by_one(call)

    def run(tensors: list[torch.Tensor]) -> None:
        for out in tensors[len(call.args) :]:
            out.fill_(True if out.dtype is torch.bool else 77)
        function(tensors)

    return run


def fused(graph: Any) -> list[Call]:
    return [c for t in graph.plan.tasks for c in t.step.calls if c.op == "fused"]


class Loop(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.config.enable_inductor()

    def build(self, x: Any) -> Any:
        return nn.functional.gelu(x * 2).sum(0)


def test_what_inductor_compiles_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one test that compiles, and measures."""
    if inductor.missing():
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(faster, "GAIN", float("inf"))
    x, graph = flow.randn(16, 32), Loop()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = graph(x)
    assert [[c.op for c in run.calls] for run in fused(graph)] == [["mul", "gelu", "sum"]]
    np.testing.assert_allclose(found.numpy(), nn.functional.gelu(x * 2).sum(0).numpy(), rtol=1e-5, atol=1e-5)
    assert "fused(Loop_0_input_0, sum)" in graph.source().replace(graph.name, "Loop_0")  # and nothing is allocated


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        return self.head((x + self.norm(x)).relu())


@pytest.mark.parametrize("size", [8, 96])  # smaller results are copied into planned memory
def test_fused_runs_of_images_keep_channels_innermost(fusing: None, size: int) -> None:
    """A kernel that read and wrote them in another order than the convolutions around it was slower than its calls."""
    models = [Residual().to(memory_format=flow.channels_last) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    x, steps = (
        flow.randn(2, 3, size, size),
        [Step(m, inductor) for m, inductor in zip(models, (True, False), strict=True)],
    )
    for _ in range(2):
        assert steps[0](x).item() == pytest.approx(steps[1](x).item(), rel=1e-6)  # sums begin at other addresses
    run = fused(steps[0])[0]
    assert [c.op for c in run.calls] == ["add", "relu"] and run.results[0].strides == (4 * size**2, 1, 4 * size, 4)
    assert run.option("channels_last") == ((0, 1) if size == 96 else None)
    assert parse(str(steps[0].plan)) == steps[0].plan


def test_a_run_in_which_a_reshape_copies_is_measured(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Turned(Loop):
        def build(self, x: Any) -> Any:
            return (x * 2).view(4, 4, 32).transpose(0, 1).reshape(4, 128).exp().sum(0)

    monkeypatch.setattr(faster, "GAIN", float("inf"))
    monkeypatch.setattr(faster, "measured", {})
    x, graph = flow.randn(16, 32), Turned()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = graph(x)
    assert [len(run.calls) for run in fused(graph)] == [6]
    expected = (x.numpy() * 2).reshape(4, 4, 32).swapaxes(0, 1).reshape(4, 128)
    np.testing.assert_allclose(found.numpy(), np.exp(expected).sum(0), rtol=1e-5)


def empty_strided_cpu(shape: Any, strides: Any, dtype: torch.dtype) -> torch.Tensor:
    raise AssertionError("replaced")


def cpp_fused_0(x: torch.Tensor, between: torch.Tensor, y: torch.Tensor) -> None:
    y.copy_(between.copy_(x).exp())


class Written:
    """Stands for what Inductor writes."""

    def loops(self, args: list[torch.Tensor]) -> Any:
        (x,) = args
        args.clear()
        buf0 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
        buf1 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
        cpp_fused_0(x, buf0, buf1)
        return (buf1, buf0)

    def one_of_them(self, args: list[torch.Tensor]) -> Any:
        return Written.loops(self, args)[:1]  # and a call that is no loop

    def twice(self, args: list[torch.Tensor]) -> Any:
        (x,) = args
        args.clear()
        buf0 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
        buf1 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
        cpp_fused_0(x, buf0, buf1)
        return (buf1, buf1)

    def seen_otherwise(self, args: list[torch.Tensor]) -> Any:
        (x,) = args
        args.clear()
        buf0 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
        buf1 = empty_strided_cpu((2, 2), (1, 2), torch.float32)
        cpp_fused_0(x, buf0, buf1)
        return (buf1, buf0)

    def large(self, args: list[torch.Tensor]) -> Any:
        (x,) = args
        args.clear()
        buf0 = empty_strided_cpu((1 << 16,), (1,), torch.float32)
        buf1 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
        cpp_fused_0(x, buf0, buf1)
        return (buf1,)


@pytest.mark.parametrize(
    "function", [Written().one_of_them, Written().twice, Written().seen_otherwise, Written().large]
)
def test_other_python_of_inductors_is_run_each_time(function: Any) -> None:
    x, outs = (
        torch.ones(2, 2),
        [torch.empty(2, 2) for _ in range(1 + (function.__name__ in ("twice", "seen_otherwise")))],
    )
    kernel = inductor.Copying(function, 1)
    assert inductor.loops(kernel, [x], outs) == [(kernel, [[x, *outs]])]


def test_loops_are_called_over_the_memory_of_results() -> None:
    x, outs = torch.ones(2, 2), [torch.empty(2, 2) for _ in range(2)]
    ((loop, args),) = inductor.loops(inductor.Copying(Written().loops, 1), [x], outs)
    assert [id(a) for a in args] == [id(x), id(outs[1]), id(outs[0])]
    loop(*args)
    assert torch.equal(outs[0], x.exp())
    assert peak(lambda: inductor.loops(inductor.Copying(Written().loops, 1), [x], outs), 1) == 0
    strided = [torch.empty(2, 2).t(), outs[1]]
    kernel = inductor.Copying(Written().loops, 1)
    assert inductor.loops(kernel, [x], strided)[0][0] is kernel


def test_only_what_is_faster_is_fused(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for ratio, count in ((0.5, 1), (2.0, 0)):
        monkeypatch.setattr(faster, "least", lambda functions, end=None, ratio=ratio: [ratio, 1.0])
        monkeypatch.setattr(faster, "measured", {})
        graph = Loop()
        graph.compile(flow.randn(16, 32))
        assert len(fused(graph)) == count


def test_what_cannot_be_compiled_runs_call_by_call(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a plan is loaded on a machine without a compiler."""
    x, graph = flow.randn(16, 32), Loop()
    graph.compile(x)
    assert fused(graph)

    def refuse(call: Call, tensors: Any) -> None:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(inductor, "compiled", refuse)
    monkeypatch.setattr(inductor, "kernels", {})
    with pytest.warns(UserWarning, match="calls run one by one, mul, gelu, sum: no such kernel"):
        found = graph(x).numpy()
    np.testing.assert_allclose(found, nn.functional.gelu(x * 2).sum(0).numpy(), rtol=1e-5, atol=1e-5)


def test_runs_grow_across_products(fusing: None) -> None:
    graph = Step(model(), True)
    graph.compile(flow.ones(4, 8))
    assert [[c.op for c in run.calls] for run in fused(graph)] == [
        ["add", "gelu", "layer_norm"], ["add", "relu", "square", "mean"],
        ["mul", "expand", "mul", "mul", "relu_grad", "sum_to"], ["layer_norm_grad", "gelu_grad", "sum_to"],
    ]  # fmt: skip


class Biased(nn.Graph):
    """Layers that are read by a run, by a view first, by a product first, by two runs, and at the end."""

    def __init__(self) -> None:
        super().__init__()
        flow.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(5)])

    def build(self, x: Any) -> Any:
        a, b, c, d, e = self.layers
        x = a(x).sin().cos()
        y = b(x)
        x = y.view(2, 2, 8).sin().cos().view(4, 8)
        y = c(x)
        x = y @ y.t() @ y.sin().cos()
        y = d(x)
        x = y.sin().cos() @ y.t() + y.exp().square() @ y.t()
        return e(flow.cat([x, x], 1))


@pytest.mark.parametrize("parts", [None, "broadcast", "rows"])
def test_a_bias_is_added_where_the_product_is_read_first(fusing: None, parts: str | None) -> None:
    graphs, x = [Biased(), Biased()], flow.ones(4, 8)
    graphs[1].config.enable_inductor()
    if parts is not None:
        placement = flow.placement("cpu", [0])
        for g in graphs:
            g.layers.to_global(placement, flow.sbp.broadcast)
        x = x.to_global(placement, flow.sbp.split(0) if parts == "rows" else flow.sbp.broadcast)
    found, expected = (g(x).to_torch() for g in reversed(graphs))
    assert torch.allclose(found, expected, atol=1e-6)
    biased = {c.name: c.args[2] is not None for t in graphs[1].plan.tasks for c in t.step.calls if c.op == "linear"}
    assert list(biased.values()) == [False, True, True, False, True]
    assert [[c.op for c in run.calls] for run in fused(graphs[1])] == [
        ["add", "sin", "cos"], ["sin", "cos"], ["sin", "cos"], ["add", "sin", "cos"], ["exp", "square"],
    ]  # fmt: skip
    assert parse(str(graphs[1].plan)) == graphs[1].plan


def test_a_bias_that_is_updated_before_the_product_is_read_stays_in_it(
    fusing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MOST", "PIECE", "FAST", "ALL"):  # as of large layers: each is updated as soon as it can be
        monkeypatch.setattr(early_updates, name, 1)

    class Late(Step):
        def build(self, x: Any) -> Any:
            first, second = self.model
            h = first(x)
            y = second(h * 2)
            second(h).square().mean().backward()
            return y.detach().square().sin()

    x, results = flow.ones(2, 8), []
    for asked in (True, False):
        flow.manual_seed(0)
        graph = Late(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8)), asked)
        results.append(graph(x).to_torch())
    assert torch.allclose(*results, atol=1e-6)


def test_a_bias_stays_in_a_kernel_that_adds_it_meanwhile(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "AVX512", True)
    monkeypatch.setattr(onednn, "writes", lambda x, weight, bias, roomy: tuple(bias.shape) == (8,))
    graph = Step(model(), True)
    graph.compile(flow.ones(4, 8))
    assert [[c.op for c in run.calls] for run in fused(graph)][:2] == [
        ["add", "gelu", "layer_norm"], ["relu", "square", "mean"]
    ]  # fmt: skip


class Late(nn.Graph):
    """Reads early values late."""

    def __init__(self) -> None:
        super().__init__()
        self.config.enable_inductor()

    def build(self, x: Any, w: Any) -> Any:
        early = []
        for _ in range(8):
            x = x @ w
            early.append(x.sin().cos())
        for e in early:
            x = (x + e) @ w + (e.exp() @ w) @ w
        return x


def test_nothing_large_is_made_long_before_it_is_read(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take up memory until then."""
    arenas = []
    for far in (fusion.FAR, 1000):
        monkeypatch.setattr(fusion, "FAR", far)
        graph = Late()
        graph.compile(flow.ones(128, 256), flow.ones(256, 256))
        arenas.append(next(t.step.arena for t in graph.plan.tasks if t.kind == "compute"))
    assert arenas[0] < 0.8 * arenas[1]


def test_without_a_compiler_nothing_changes(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inductor, "missing", lambda kind="cpu": "no g++ here")
    faster.warn_once.cache_clear()
    with pytest.warns(UserWarning, match="it needs a C.. compiler .*no g.. here"):
        graph = Loop()
        graph.compile(flow.ones(2, 2))
    assert not fused(graph)


def test_a_run_is_fused_on_all_ranks_or_on_none(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ranks compute alike would differ in the last bits otherwise, and parameters drift apart."""
    graph = Step(model(), True)
    graph.compile(flow.ones(4, 8))
    found, agreed = fused(graph), faster.votes()
    assert found and any(agreed.values()) and not faster.outvoted([agreed, {}])
    for again in (Step(model(), True), Step(model(), True)):  # first a bias is left to the product
        assert faster.outvoted([faster.votes(), dict.fromkeys(faster.votes(), False)])
        again.compile(flow.ones(4, 8))
    assert not fused(again) and not any(faster.votes().values())


def test_ranks_vote_while_another_thread_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faster, "measured", {"known": True})

    class Others(dict[str, bool]):
        def items(self) -> Any:
            faster.measured["meanwhile"] = True
            return super().items()

    assert faster.outvoted([faster.votes(), Others(dict.fromkeys(faster.votes(), False))])
    assert faster.measured == {"known": False, "meanwhile": True}


def program(slow: str) -> None:
    """On two ranks, of which one finds that nothing is faster."""
    rank = current().index
    placement = flow.placement("cpu", [0, 1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inductor, "missing", lambda kind="cpu": "")
        patch.setattr(inductor, "compiled", overwriting)
        patch.setattr(faster, "_wins", lambda *a: (rank != int(slow), 0))
        graph = Step(model().to_global(placement, flow.sbp.broadcast), True)
        graph.compile(flow.ones(4, 8, placement=placement, sbp=flow.sbp.split(0)))
        assert not fused(graph)


def test_ranks_agree(world: Any) -> None:
    world("program", 2, "shm", "1").well()


def test_random_models_train_over_two_ranks_as_on_one(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Micro-batches, pipelines, ZeRO, recomputation, in-place ops, views."""
    drawn = training.drawn
    monkeypatch.setattr(training, "drawn", lambda seed: drawn(seed) | {"inductor": True})
    for seed in range(6):
        training.test_ranks_train_as_the_eager_program(seed, monkeypatch)


def test_saved_and_loaded(fusing: None, tmp_path: Path) -> None:
    x = flow.ones(4, 8)
    graph = Step(model(), True)
    graph(x)
    flow.save(graph.runtime_state_dict(), tmp_path / "state")
    state = flow.load(tmp_path / "state")
    loaded = Blank()
    loaded.load_runtime_state_dict(state)
    assert fused(loaded) == fused(graph) != []
    assert [loaded(x).item() for _ in range(3)] == [graph(x).item() for _ in range(3)]


class Drawn(nn.Graph):
    """Reads what lies as it was drawn, in no known place."""

    def __init__(self) -> None:
        super().__init__()
        self.config.enable_inductor()

    def build(self, x: Any) -> Any:
        return (nn.functional.dropout(x.t(), 0.5) * 2).sin()


def test_a_kernel_meets_the_strides_that_it_was_compiled_for(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    met = []

    def strict(call: Call, tensors: Any) -> Any:
        function, strides = inductor.one_by_one(call), [t.stride() for t in tensors]

        def run(tensors: list[torch.Tensor]) -> None:
            met.append(([t.stride() for t in tensors], strides))
            function(tensors)

        return run

    monkeypatch.setattr(inductor, "compiled", strict)
    x = flow.randn(128, 256)
    Drawn()(x).numpy()
    ((found, wanted),) = met
    assert found == wanted


def test_what_a_kernel_allocates_is_told(fusing: None) -> None:
    graph = Loop()
    graph.compile(flow.randn(16, 32))
    assert fused(graph)[0].option("scratch") == 12_345 == usage(graph.plan).allocated
    assert "12.3 KB  that an act of step0 allocates, most in fused" in graph.memory()


class Products(nn.Graph):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation
        self.config.enable_inductor()

    def build(self, x: Any, w: Any) -> Any:
        return nn.functional.gelu(flow.einsum(self.equation, x, w) * 2).sum(0)


@pytest.mark.parametrize("equation", ["bi,eij->ebj", "bi,eij->bej"])
def test_what_is_turned_for_a_kernel_is_told(fusing: None, equation: str) -> None:
    graph, x, w = Products(equation), flow.randn(256, 8), flow.randn(3, 8, 64)
    graph.compile(x, w)
    made = flow.einsum(equation, x, w).to_torch()
    assert usage(graph.plan).allocated == made.nbytes * (1 if made.is_contiguous() else 2) + 12_345


class Unread(nn.Graph):
    """Backward computes more of a module again than it reads: nobody reads what the statistics gave."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.add_optimizer(flow.optim.SGD(inner.parameters(), lr=0.1))
        self.inner.to(nn.graph.GraphModule).activation_checkpointing = True
        self.config.enable_inductor()

    def build(self, x: Any) -> Any:
        loss = self.inner(x).square().mean()
        loss.backward()
        return loss


def test_what_nobody_reads_stays_as_it_is(fusing: None) -> None:
    inner = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6))
    graph = Unread(inner)
    assert [graph(flow.randn(8, 6)).item() for _ in range(2)] and fused(graph)


def test_a_kernel_that_fails_names_its_calls(fusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(call: Call, tensors: Any) -> Any:
        def run(tensors: list[torch.Tensor]) -> None:
            raise RuntimeError("no memory")

        return run

    monkeypatch.setattr(inductor, "compiled", failing)
    with pytest.raises(RuntimeError, match="no memory") as found:
        Loop()(flow.randn(16, 32)).numpy()
    assert any("in one kernel for mul, gelu, sum, of test_fusion.py:" in note for note in found.value.__notes__)
