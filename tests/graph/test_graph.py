"""What a user of nn.Graph relies on, held against the same program run eagerly."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.graphs import Calls
from weft import nn
from weft.core.errors import GraphError, IndexingError, OpError, ShapeError, TraceError, WeftError
from weft.plan import parse


class Made(nn.Graph):
    """A graph of a function, with modules."""

    def __init__(self, f: Callable[..., Any], optimizer: Any = None, micro: int = 1, **modules: nn.Module) -> None:
        super().__init__()
        self.f = f
        for name, m in modules.items():
            setattr(self, name, m)
        if micro > 1:
            self.config.set_gradient_accumulation_steps(micro)
        if optimizer is not None:
            self.add_optimizer(optimizer)

    def build(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)


def rand(*shape: int, seed: int = 0) -> flow.Tensor:
    return flow.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)


def twin(make: Callable[[], nn.Module]) -> tuple[nn.Module, nn.Module]:
    a, b = make(), make()
    b.load_state_dict(a.state_dict())
    return a, b


# ---- values ----------------------------------------------------------------------------------------------


def test_nested_arguments_and_outputs() -> None:
    def f(pair: Any, *, named: Any) -> Any:
        a, (b, n) = pair
        return {"sum": a + b * n, "parts": (a, [named["x"] * 2, None, "label", 3])}

    graph = Made(f)
    for seed in range(2):
        a, b, x = rand(2, 3, seed=seed), rand(2, 3, seed=seed + 5), rand(4, seed=seed)
        out = graph((a, (b, 2)), named={"x": x})
        close(out["sum"], a + b * 2)
        close(out["parts"][0], a)
        close(out["parts"][1][0], x * 2)
        assert out["parts"][1][1:] == [None, "label", 3]


def test_the_same_tensor_twice_and_an_output_that_is_an_input() -> None:
    x = rand(3)
    a, b, c = Made(lambda x, y: (x, x + y, y))(x, x)
    close(a, x)
    close(b, x + x)
    close(c, x)


def test_a_parameter_as_output_and_a_constant_beside() -> None:
    m, constant = nn.Linear(2, 2), rand(2)
    graph = Made(lambda x: (m.weight, x + constant), m=m)
    close(graph(rand(2))[0], m.weight)
    close(graph(rand(2, seed=1))[1], rand(2, seed=1) + constant)


def test_several_calls_in_flight_give_results_in_order() -> None:
    graph = Made(lambda x: (x @ x).tanh())
    inputs = [rand(8, 8, seed=s) for s in range(20)]
    outs = [graph(x) for x in inputs]
    for x, y in reversed(list(zip(inputs, outs, strict=True))):
        close(y, (x @ x).tanh())


def test_overwriting_an_input_after_the_call_changes_nothing() -> None:
    graph = Made(lambda x: x * 2)
    x = rand(64, 64)
    before = x.numpy().copy()
    outs = []
    for _ in range(5):
        outs.append(graph(x))
        x.add_(1.0)
    for n, y in enumerate(outs):
        np.testing.assert_allclose(y.numpy(), (before + n) * 2, rtol=1e-5, atol=1e-5)


def test_an_output_keeps_its_value() -> None:
    graph = Made(lambda x: x * 2)
    first = graph(rand(3))
    for s in range(1, 6):
        graph(rand(3, seed=s)).numpy()
    close(first, rand(3) * 2)


def test_an_output_goes_on_eagerly() -> None:
    graph = Made(lambda x: x * 2)
    close(graph(graph(rand(3))) + 1, rand(3) * 4 + 1)


def test_a_graph_inside_a_graph() -> None:
    inner = Made(lambda x: x * 2)
    close(Made(lambda x: inner(x) + 1)(rand(3)), rand(3) * 2 + 1)


def test_inside_no_grad_and_training_inside_it() -> None:
    m = nn.Linear(3, 1)
    graph = Made(lambda x: m(x), m=m)
    with flow.no_grad():
        y = graph(rand(2, 3))
    close(y, m(rand(2, 3)))


def test_random_draws_are_new_at_each_launch_and_repeat_under_a_seed() -> None:
    drop = nn.Dropout(0.5)
    graph = Made(lambda x: drop(x), drop=drop)
    x = flow.ones(64)
    flow.manual_seed(3)
    first = [graph(x).tolist() for _ in range(3)]
    assert len({tuple(v) for v in first}) == 3
    flow.manual_seed(3)
    assert [graph(x).tolist() for _ in range(3)] == first
    assert set(first[0]) == {0.0, 2.0}


# ---- state -----------------------------------------------------------------------------------------------


def test_buffers_are_written_as_eagerly() -> None:
    a, b = twin(lambda: nn.BatchNorm1d(4))
    graph = Made(lambda x: a(x), a=a)
    for s in range(3):
        close(graph(rand(8, 4, seed=s)), b(rand(8, 4, seed=s)))
    close(a.running_mean, b.running_mean)
    close(a.running_var, b.running_var)
    assert a.num_batches_tracked.item() == b.num_batches_tracked.item() == 3


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", flow.zeros((), dtype=flow.int64))
        self.register_buffer("rows", flow.zeros(3, 2))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        self.seen.add_(1)
        self.rows[1] = x
        self.rows[2].add_(x)
        return self.rows.sum() + self.seen


def test_writing_a_buffer_in_place_inside_build() -> None:
    a, b = twin(Counting)
    graph = Made(lambda x: a(x), a=a)
    for s in range(3):
        close(graph(rand(2, seed=s)), b(rand(2, seed=s)))
    assert a.seen.item() == 3
    close(a.rows, b.rows)
    close(a(rand(2)), b(rand(2)))  # and eagerly afterwards


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def test_train_in_one_and_evaluate_in_the_other_at_any_moment() -> None:
    a, b = twin(net)
    oa, ob = (flow.optim.AdamW(m.parameters(), lr=0.05) for m in (a, b))

    def step(m: nn.Module, x: flow.Tensor) -> flow.Tensor:
        loss = (m(x) ** 2).mean()
        loss.backward()
        return loss

    train, evaluate = Made(lambda x: step(a, x), oa, a=a), Made(lambda x: a(x), a=a)
    for s in range(6):
        x = rand(5, 4, seed=s)
        if s % 3 == 2:  # eagerly, with the same optimizer's state
            oa.zero_grad()
            loss = step(a, x)
            oa.step()
        else:
            loss = train(x)
        ob.zero_grad()
        close(loss, step(b, x))
        ob.step()
        close(a(x), b(x))
        close(evaluate(x), b(x))


class Falling(flow.optim.lr_scheduler.LRScheduler):
    """A schedule written for OneFlow."""

    def get_lr(self, base_lr: float, step: int) -> float:  # type: ignore[override]
        return base_lr / (1 + step)


@pytest.mark.parametrize("make", [lambda o: flow.optim.lr_scheduler.StepLR(o, 2, 0.1), Falling])
def test_learning_rate_and_schedule(make: Any) -> None:
    a, b = twin(net)
    oa, ob = (flow.optim.SGD(m.parameters(), lr=0.1) for m in (a, b))
    sa, sb = (make(o) for o in (oa, ob))
    graph = nn.Graph.__new__(type("Scheduled", (Made,), {}))
    nn.Graph.__init__(graph)
    graph.f, graph.a = lambda x: graph_step(a, x), a
    graph.add_optimizer(oa, lr_sch=sa)
    for s in range(5):
        graph(rand(5, 4, seed=s))
        ob.zero_grad()
        graph_step(b, rand(5, 4, seed=s))
        ob.step()
        sb.step()
    close(a[0].weight, b[0].weight)


def graph_step(m: nn.Module, x: flow.Tensor) -> flow.Tensor:
    loss = (m(x) ** 2).mean()
    loss.backward()
    return loss


def test_load_state_dict_between_launches() -> None:
    a, b = twin(net)
    graph = Made(lambda x: a(x), a=a)
    graph(rand(2, 4))
    for p in b.parameters():
        p.data.mul_(2.0)
    a.load_state_dict(b.state_dict())
    close(graph(rand(2, 4)), b(rand(2, 4)))


def test_other_memory_for_a_parameter() -> None:
    a, _ = twin(net)
    graph = Made(lambda x: a(x), a=a)
    graph(rand(2, 4))
    a[0].weight.data = a[0].weight.detach() * 3
    close(graph(rand(2, 4)), a(rand(2, 4)))


LAID: dict[str, Callable[[flow.Tensor], flow.Tensor]] = {
    "in one piece": lambda w: w.detach() * 1.0,
    "transposed": lambda w: flow.tensor(w.detach().numpy().T.copy()).t(),
    "with gaps": lambda w: flow.stack([w.detach(), w.detach()], 2)[:, :, 0],
}


@pytest.mark.parametrize("first", LAID)
@pytest.mark.parametrize("then", LAID)
def test_a_parameter_may_come_to_lie_otherwise(first: str, then: str) -> None:
    """What was a view has to copy, or need not any more: the plan is that of how its memory lies now."""
    a, b = twin(lambda: nn.Linear(4, 4))
    for m in (a, b):
        m.weight.data = LAID[first](m.weight)
    oa, ob = (flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (a, b))

    def step(m: nn.Module, x: flow.Tensor) -> flow.Tensor:
        w = m.weight
        y = m(x) @ w.reshape(16).reshape(4, 4) + x @ w.t().reshape(2, 8).reshape(4, 4)
        loss = y.tanh().pow(2).mean()
        loss.backward()
        return loss

    graph = Made(lambda x: step(a, x), oa, a=a)
    for s in range(4):
        if s == 2:
            for m in (a, b):
                m.weight.data = LAID[then](m.weight)
        x = rand(3, 4, seed=s)
        loss = step(b, x)
        ob.step()
        ob.zero_grad()
        close(graph(x), loss)
        close(a.weight, b.weight)
    assert parse(str(graph.plan)) == graph.plan


def test_state_dict_of_a_graph() -> None:
    a, b = twin(net)
    graph, other = Made(lambda x: a(x), a=a), Made(lambda x: b(x), a=b)
    for p in b.parameters():
        p.data.add_(1.0)
    graph.load_state_dict(other.state_dict())
    close(graph(rand(2, 4)), b(rand(2, 4)))


@pytest.mark.parametrize("micro", [2, 4])
def test_micro_batches_update_once_with_the_mean(micro: int) -> None:
    a, b = twin(net)
    oa, ob = (flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (a, b))
    graph = Made(lambda x: graph_step(a, x), oa, micro, a=a)
    for s in range(3):
        x = rand(8, 4, seed=s)
        losses = graph(x)
        ob.zero_grad()
        whole = graph_step(b, x)
        ob.step()
        assert losses.shape == (micro,)
        close(losses.mean(), whole)
    close(a[0].weight, b[0].weight)


# ---- what can't be ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda g: g(rand(3, 4)), r"shape=\(2, 4\).*shape=\(3, 4\)"),
        (lambda g: g(flow.ones(2, 4, dtype=flow.float64)), "float64"),
        (lambda g: g(), "Expected"),
        (lambda g: g(rand(2, 4), rand(2, 4)), "nothing|Expected"),
        (lambda g: g(rand(2, 4), 1), "nothing|Expected"),
        (lambda g: g([rand(2, 4)]), "Expected"),
        (lambda g: g(x=rand(2, 4)), "Expected"),
        (lambda g: g(None), "Expected"),
    ],
)
def test_other_arguments_than_it_was_compiled_for(call: Callable[[Any], Any], says: str) -> None:
    graph = Made(lambda x: x * 2)
    graph(rand(2, 4))
    with pytest.raises(GraphError, match=says):
        call(graph)
    close(graph(rand(2, 4)), rand(2, 4) * 2)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * x.sum().item(),
        lambda x: flow.tensor(x.numpy()),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: x * float(x[0]),
        lambda x: x.tolist(),
        lambda x: [y for y in range(int(x[0]))],
        lambda x: np.asarray(x),
    ],
)
def test_what_depends_on_values_can_not_be_traced(f: Callable[[Any], Any]) -> None:
    with pytest.raises(TraceError, match=r"build|outside"):
        Made(f)(rand(4))


def test_the_thread_is_itself_again_after_a_failed_trace() -> None:
    a = Counting()

    def f(x: flow.Tensor) -> flow.Tensor:
        a(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Made(f, a=a)(rand(2))
    assert a.seen.item() == 0 and not a.seen.is_lazy
    close(rand(2) + 1, rand(2) + flow.ones(2))


def test_backward_without_optimizer_and_optimizer_without_backward() -> None:
    m = net()
    with pytest.raises(TraceError, match="add_optimizer"):
        Made(lambda x: graph_step(m, x), m=m)(rand(2, 4))
    with pytest.raises(TraceError, match="backward"):
        Made(lambda x: m(x).mean(), flow.optim.SGD(m.parameters(), lr=0.1), m=m)(rand(2, 4))


def test_a_parameter_that_no_module_of_the_graph_holds() -> None:
    m, other = net(), nn.Linear(4, 1)
    optimizer = flow.optim.SGD([*m.parameters(), *other.parameters()], lr=0.1)
    with pytest.raises(GraphError, match=r"not in the graph|no module"):
        Made(lambda x: graph_step(m, x), optimizer, m=m)(rand(2, 4))


@pytest.mark.parametrize("steps", [0, -1, 1.5, True, "2"])
def test_wrong_numbers_of_micro_batches(steps: Any) -> None:
    with pytest.raises(GraphError, match="at least 1"):
        Made(lambda x: x).config.set_gradient_accumulation_steps(steps)


def test_a_batch_that_does_not_divide() -> None:
    m = net()
    with pytest.raises(ShapeError, match=r"3 micro-batches.*divide by 3"):
        Made(lambda x: graph_step(m, x), flow.optim.SGD(m.parameters(), lr=0.1), 3, m=m)(rand(8, 4))


def test_attributes_a_graph_refuses() -> None:
    class Early(nn.Graph):
        def __init__(self) -> None:
            self.m = nn.Linear(2, 2)

    graph = Made(lambda x: x)
    with pytest.raises(AttributeError, match="not allowed to set Tensor attribute named 'foo'"):
        graph.foo = rand(2)
    with pytest.raises(AttributeError, match="no attribute 'bar'"):
        _ = graph.bar
    with pytest.raises(GraphError, match=r"super\(\).__init__\(\)"):
        Early()
    graph(rand(2))
    with pytest.raises(GraphError, match="compiled already"):
        graph.m = nn.Linear(2, 2)
    with pytest.raises(GraphError, match="compiled already"):
        graph.config.set_gradient_accumulation_steps(2)
    with pytest.raises(GraphError, match=r"flow.optim"):
        graph.add_optimizer(3)


def test_a_graph_without_build() -> None:
    with pytest.raises(GraphError, match="needs a method build"):
        nn.Graph()(rand(2))


def test_a_closed_graph() -> None:
    graph = Made(lambda x: x * 2)
    y = graph(rand(2))
    graph.close()
    close(y, rand(2) * 2)
    with pytest.raises(GraphError, match="closed"):
        graph(rand(2))


def test_looking_before_compiling() -> None:
    with pytest.raises(GraphError, match="isn't compiled yet"):
        _ = Made(lambda x: x).job


def test_an_error_inside_an_act_comes_out_where_the_result_is_read() -> None:
    m = nn.Embedding(3, 2)
    graph = Made(lambda i: m(i), m=m)
    close(graph(flow.tensor([2, 1])), m(flow.tensor([2, 1])))
    y = graph(flow.tensor([0, 9]))
    with pytest.raises(IndexingError, match=r"9|range") as e:
        y.numpy()
    assert any("in actor" in note for note in e.value.__notes__)
    with pytest.raises(GraphError, match="broken"):  # at once: nobody may read it
        graph(flow.tensor([0, 1]))


TWO, FOUR = [0, 1], [[float(i == j) + 0.1 for j in range(4)] for i in range(4)]
FAILING: list[tuple[Callable[..., Any], type[WeftError], str, Any, Any]] = [  # a function, its error and op; bad data
    (lambda x, i: x.index_select(0, i), IndexingError, "index_select", FOUR, [0, 9]),
    (lambda x, i: x[i], IndexingError, "index", FOUR, [0, 9]),
    (lambda x, i: x.gather(0, i[None]), IndexingError, "gather", FOUR, [0, 9]),
    (lambda x, i: nn.functional.cross_entropy(x[:2], i), IndexingError, "cross_entropy", FOUR, [0, 9]),
    (lambda x, i: x.index_add(0, i, x[:2]), IndexingError, "index_add", FOUR, [0, 9]),
    (lambda x, i: x.index_put((i,), x[0]), IndexingError, "index_put", FOUR, [0, 9]),
    (lambda x, i: flow.linalg.inv(x), OpError, "inv", [[0.0] * 4] * 4, TWO),
    (lambda x, i: flow.linalg.svd(x)[1], OpError, "svd", [[float("nan")] * 4] * 4, TWO),
    (lambda x, i: flow.multinomial(x.abs(), 2), OpError, "multinomial", [[0.0] * 4] * 4, TWO),
    (lambda x, i: flow.div(i, i - 2, rounding_mode="floor"), OpError, "floor_divide", FOUR, [2, 2]),
]


@pytest.mark.parametrize("row", FAILING, ids=[row[2] for row in FAILING])
def test_a_kernels_error_names_the_op_and_the_programs_line(row: Any) -> None:
    f, kind, op, x, i = row
    graph = Made(f)
    graph(flow.tensor(FOUR), flow.tensor(TWO)).numpy()
    y = graph(flow.tensor(x), flow.tensor(i))
    with pytest.raises(kind) as e:
        y.numpy()
    assert any(note.startswith(f"in {op}, of test_graph.py:") for note in e.value.__notes__)


def test_parameters_are_joined_once_nobody_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the wait for what is pending and the joining, another thread may have launched something."""
    model = nn.Linear(2, 2)

    graph = Calls(model)
    graph(flow.ones(1, 2)).numpy()
    running = graph.running
    vm, blobs, go, drained = running.vm, [p.blob for p in model.parameters()], threading.Event(), []
    drain = vm.drain
    vm.submit("op", vm.stream("other", "worker"), lambda: go.wait(60), const=blobs[:1], name="late")

    def late(deadline: float | None = None) -> None:
        drained.append(deadline)
        if len(drained) > 1:  # the first time, it comes just after
            go.set()
            drain(deadline)

    monkeypatch.setattr(vm, "drain", late)
    assert running.together(blobs) == blobs[:1] and len(drained) == 2
    assert blobs[0].access is blobs[1].access
    monkeypatch.undo()
    graph.close()


def test_what_others_must_say_of_collectives_is_taken() -> None:
    nccl: Any = flow.boxing.nccl  # type: ignore[attr-defined]
    assert nccl.set_fusion_threshold_mbytes(16) is None and nccl.enable_use_compute_stream(True) is None
    with pytest.raises(AttributeError):
        nccl.go_faster()


def test_a_hundred_graphs_leave_no_thread_and_no_memory() -> None:
    def live() -> int:
        gc.collect()
        return sum(isinstance(o, flow.Tensor) for o in gc.get_objects())

    def once(n: int) -> None:
        m = nn.Linear(4, 4)
        graph = Made(lambda x: m(x) + n, m=m)
        graph(rand(2, 4)).numpy()
        if n % 2:
            graph.close()  # otherwise it ends with its last reference

    for n in range(4):
        once(n)
    threads, tensors = threading.active_count(), live()
    for n in range(100):
        once(n)
    assert live() <= tensors + 2
    assert threading.active_count() <= threads


def test_a_graph_that_is_collected_where_its_machine_is_locked_ends_with_the_next_compile() -> None:
    graph: Any = Made(lambda x: x + 1)
    graph(rand(2)).numpy()
    graph.itself = graph  # only a collection frees it, and that may begin anywhere
    running = graph._compiled.running
    with running.vm.lock:
        del graph
        gc.collect()
    assert running.dropped and not running.executor.closing
    Made(lambda x: x + 2)(rand(2))
    assert running.executor.closing


def test_text_of_a_graph() -> None:
    m = net()
    graph = Made(lambda x: m(x), m=m)
    assert "(PARAMETER:m.0.weight:tensor(..., size=(8, 4)" in repr(graph)
    graph(rand(2, 4)).numpy()
    assert ("OPERATOR" in repr(graph) and "matmul" in graph.source()) or "linear" in graph.source()
    assert "launches have finished" in graph.report()


def test_parameters_of_another_form_than_it_was_compiled_with() -> None:
    model = nn.Linear(3, 2)
    graph = Made(lambda x: model(x), m=model)
    x = rand(4, 3)
    graph(x)
    kept = model.weight.data, model.bias.data
    model.double()
    with pytest.raises(GraphError, match=r"compiled with m.weight as float32\[2,3\] .* it is float64\[2,3\]"):
        graph(x)
    model.weight.data, model.bias.data = flow.ones(5, 3), flow.ones(5)
    with pytest.raises(GraphError, match=r"it is float32\[5,3\]"):
        graph(x)
    model.weight.data, model.bias.data = kept
    close(graph(x), model(x))


def test_a_symbol_is_of_one_graph() -> None:
    kept: list[Any] = []
    Made(lambda x: kept.append(x * 2))(rand(2))
    with pytest.raises(TraceError, match="symbol of another graph"):
        Made(lambda x: x + kept[0])(rand(2))


def test_running_statistics_move_once_where_values_are_computed_again() -> None:
    def make() -> nn.Module:
        flow.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))

    eager, ours = twin(make)
    step = flow.optim.SGD(eager.parameters(), lr=0.1)

    def train(x: Any) -> Any:
        loss = ours(x).square().mean()
        loss.backward()
        return loss

    graph = Made(train, flow.optim.SGD(ours.parameters(), lr=0.1), m=ours)
    graph.m.to(nn.graph.GraphModule).activation_checkpointing = True
    for seed in range(3):
        x = rand(8, 4, seed=seed)
        step.zero_grad()
        loss = eager(x).square().mean()
        loss.backward()
        step.step()
        close(graph(x), loss)
    for a, b in zip(eager.state_dict().values(), ours.state_dict().values(), strict=True):
        close(a, b)


def test_what_is_contiguous_stands_on_its_own() -> None:
    def f(x: Any) -> Any:
        x = x.clone()
        turned = x.t().contiguous()
        x.mul_(2)
        own = x.t().contiguous()
        own.add_(1)
        x[x > 0] = 7
        return turned, x, own

    for a, b in zip(Made(f)(rand(3, 4)), f(rand(3, 4)), strict=True):
        close(a, b)


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_build_that_runs_later_is_refused() -> None:
    class Yields(nn.Graph):
        def build(self, x: Any) -> Any:
            yield x

    class Awaits(nn.Graph):
        async def build(self, x: Any) -> Any:
            return x

    for graph in (Yields(), Awaits()):
        with pytest.raises(GraphError, match=r"hasn't run.*without yield, async and await"):
            graph(flow.ones(2))


@pytest.mark.parametrize("draws", [False, True])
def test_a_kernel_that_fails_in_a_launch_is_told_with_its_line(draws: bool) -> None:
    class Looks(nn.Graph):
        def build(self, x: Any) -> Any:
            return flow.bernoulli(x) if draws else flow.ones(2)[x.to(flow.int64)]

    with pytest.raises(WeftError) as found:
        Looks()(flow.tensor([7.0])).numpy()
    assert any(note.startswith("in ") and "test_graph.py:" in note for note in found.value.__notes__)
