"""What a module keeps from launch to launch by setting it anew in forward: as the eager program, or a refusal."""

from __future__ import annotations

import copy
import functools
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.graphs import Calls
from weft import nn
from weft.core.errors import TraceError
from weft.launch import spawn_threads
from weft.transport.hosts import HOSTS


class Keeper(nn.Module):
    steps = 0

    def __init__(self, forward: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.mean = nn.Buffer(flow.ones(2))
        self.other = nn.Buffer(flow.ones(2) * 3)
        self.codes = nn.Parameter(flow.ones(2))
        self.plain = flow.ones(2)
        self.norm = nn.BatchNorm1d(2, momentum=None)
        flow.manual_seed(0)
        self.linear = nn.Linear(2, 2)
        self.old_style = nn.utils.spectral_norm(nn.Linear(2, 2))
        self.calls = forward

    def forward(self, x: Any) -> Any:
        return self.calls(self, x)


def averaged(m: Any, x: Any) -> Any:
    before = m.mean
    m.mean = 0.5 * m.mean + 0.5 * x.mean(0)
    return before.sum(), m.mean.sum()


def exchanged(m: Any, x: Any) -> Any:
    m.mean, m.other = m.other + x[0], m.mean
    return m.mean - m.other


def between_writes(m: Any, x: Any) -> Any:
    m.mean.add_(1)
    m.mean = m.mean * 2
    m.mean[0] += x[0, 0]
    return m.mean.sum()


def made_a_parameter(m: Any, x: Any) -> Any:
    m.codes = nn.Parameter(m.codes * 0.5 + x.mean(0))
    return m.codes.detach() * 2


def shown_only(m: Any, x: Any) -> Any:
    m.plain = x.sum(0)
    m.other = x.clone()
    m.seen.append(x)
    return x.sum()


def counted(m: Any, x: Any) -> Any:
    return m.norm(x)


def registered_again(m: Any, x: Any) -> Any:
    m.register_buffer("mean", m.mean + x[0])
    m._buffers["other"] = m.other * 0.5
    return m.mean + m.other


def called_with_others(m: Any, x: Any) -> Any:
    def of(weights: Any) -> Any:
        return flow.func.functional_call(m.linear, weights, (x,)).pow(2).sum()

    return flow.func.grad(of)(dict(m.linear.named_parameters()))["weight"]


def normed(m: Any, x: Any) -> Any:
    return m.old_style(x)


KEEPING = [called_with_others, normed, averaged, exchanged, between_writes, made_a_parameter, counted, registered_again]


def results(found: Any) -> list[Any]:
    return [t.tolist() for t in (found if isinstance(found, tuple) else (found,))]


def both(forward: Callable[[Any, Any], Any], place: Any = None) -> tuple[list[Any], list[Any]]:
    eager, traced = Keeper(forward), Keeper(forward)
    if place is not None:
        for m in (eager, traced):
            m.to_global(placement=place, sbp=flow.sbp.broadcast)
    graph, seen = Calls(traced), ([], [])
    before = dict(traced.named_buffers()) | dict(traced.named_parameters())
    for i in range(3):
        x = flow.arange(6.0).reshape(3, 2) * (i + 1)
        if place is not None:
            x = x.to_global(placement=place, sbp=flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
        seen[0].extend(results(eager(x)))
        seen[1].extend(results(graph(x)))
    graph.close()
    after = dict(traced.named_buffers()) | dict(traced.named_parameters())
    assert all(after[name] is t for name, t in before.items())
    for found, m in zip(seen, (eager, traced), strict=True):
        found.extend(t.tolist() for t in m.state_dict().values())
    return seen


def agree(seen: tuple[list[Any], list[Any]]) -> None:
    for eager, graph in zip(*seen, strict=True):
        np.testing.assert_allclose(graph, eager, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("forward", KEEPING, ids=lambda f: f.__name__)
def test_a_buffer_that_build_replaces_is_kept(forward: Callable[[Any, Any], Any]) -> None:
    agree(both(forward))


@pytest.mark.parametrize("hosts", ["1", "2"])
def test_so_it_is_on_two_ranks(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between hosts collectives are tasks, with chains before and after them."""
    monkeypatch.setenv(HOSTS, hosts)

    def run() -> list[Any]:
        return [both(forward, flow.placement("cpu", ranks=[0, 1])) for forward in KEEPING]

    for seen in spawn_threads(2, run)[0]:
        agree(seen)


def test_what_is_only_shown_is_left_alone() -> None:
    model = Keeper(shown_only)
    model.seen = [flow.zeros(1)]
    assert Calls(model)(flow.ones(3, 2)).item() == 6.0
    assert model.other.tolist() == [3.0, 3.0] and model.plain.tolist() == [1.0, 1.0]
    assert [t.tolist() for t in model.seen] == [[0.0]]


def test_modules_that_build_makes_for_itself_are_its_own_affair() -> None:
    def normalised(m: Any, x: Any) -> Any:
        return nn.Sequential(nn.BatchNorm1d(2, affine=False), nn.Tanh())(x)

    def kept(m: Any, x: Any) -> Any:
        m.late = nn.Linear(2, 2)
        return m.late(x)

    x = flow.arange(6.0).reshape(3, 2)
    assert flow.allclose(Calls(Keeper(normalised))(x), normalised(None, x))
    with pytest.raises(TraceError, match=r"build\(\) makes Keeper.late"):
        Calls(Keeper(kept))(x)


@pytest.mark.parametrize(
    "add",
    [
        lambda m: m.those.__setitem__("late", nn.Linear(2, 2)), lambda m: m.those.add_module("late", nn.Linear(2, 2)),
        lambda m: m.chain.append(nn.Linear(2, 2)), lambda m: m._modules.__setitem__("late", nn.Linear(2, 2)),
        lambda m: m.weights.append(nn.Parameter(flow.ones(2))),
    ],
)  # fmt: skip
def test_what_build_adds_to_containers_is_refused_and_taken_out(add: Callable[[Any], None]) -> None:
    """Weights would be drawn in each launch, and no eager call could use them."""

    def adds(m: Any, x: Any) -> Any:
        add(m)
        return m.linear(x)

    model = Keeper(adds)
    model.those, model.chain, model.weights = nn.ModuleDict(), nn.Sequential(nn.Tanh()), nn.ParameterList()
    names = list(model.state_dict())
    with pytest.raises(TraceError, match=r"build\(\) makes \w+\.(late|0|1), which the next launch would make again"):
        Calls(model)(flow.ones(3, 2))
    assert list(model.state_dict()) == names and not model.those and len(model.chain) == 1


class Box:
    def __init__(self) -> None:
        self.inside = {"step": 0}


class Slots:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Odd(dict[Any, Any]):
    """Whose items and attributes can't be read, nor its keys be shown."""

    def __init__(self) -> None:
        super().__init__({self.key(): 1})

    def key(self) -> Any:
        return type("Key", (), {"__repr__": self.items})()

    def items(self) -> Any:
        raise RuntimeError

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError


class Sized:
    def __init__(self) -> None:
        self.size: Any = 2

    @functools.cached_property
    def sizes(self) -> list[int]:
        return [self.size, 2 * self.size]


def counted_up(m: Any) -> None:
    m.state += 1


def swapped(m: Any) -> None:
    m.linear, m.norm = m.norm, m.linear


KEPT: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "a number": (0, counted_up),
    "an array": (np.zeros(2), counted_up),
    "a text": ("a", lambda m: setattr(m, "state", "b")),
    "a number to none": (1, lambda m: setattr(m, "state", None)),
    "a function": (abs, lambda m: setattr(m, "state", swapped)),
    "a list": ([1], lambda m: m.state.append(1)),
    "a list in a list": ([[0]], lambda m: m.state[0].append(1)),
    "a dict": ({"a": 1}, lambda m: m.state.update(a=2)),
    "a set": ({1}, lambda m: m.state.add("b")),
    "a class' number": (..., lambda m: setattr(m, "steps", m.steps + 1)),
    "an object": (Box(), lambda m: m.state.inside.update(step=1)),
    "a slot": (Slots(), lambda m: setattr(m.state, "count", 1)),
    "modules": (..., swapped),
}


@pytest.mark.parametrize("kind", KEPT)
def test_what_build_changes_in_python_is_warned_of(kind: str) -> None:
    state, change = KEPT[kind]

    def changes(m: Any, x: Any) -> Any:
        change(m)
        return x * 2

    model = Keeper(changes)
    model.state = copy.deepcopy(state)
    name = {"modules": "linear", "a class' number": "steps"}.get(kind, "state")
    with pytest.warns(UserWarning, match=rf"build\(\) changes Keeper\.{name}\b.* in Python\. Launches don't"):
        Calls(model)(flow.ones(3, 2))


def test_what_stays_in_python_is_not_warned_of() -> None:
    def reads(m: Any, x: Any) -> Any:
        m.state = copy.deepcopy(m.state)
        m.tables[len(x)] = flow.arange(len(x))
        m.kind = ["mean"] if m.kind is None else m.kind
        m.logger.debug(f"{m.sized.sizes} of {m.path}")
        return x * m.state[0].inside["step"]

    model = Keeper(reads)
    model.state, model.tables = [Box(), (1, float("nan")), {1, "b"}, np.ones(2)], {}
    model.kind, model.odd = None, Odd()
    model.logger, model.sized, model.path = logging.getLogger("weft.tests"), Sized(), Path("a", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Calls(model)(flow.ones(3, 2))


def test_what_build_changes_of_the_graph_is_warned_of() -> None:
    class Steps(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.step = 0

        def build(self, x: Any) -> Any:
            self.step += 1
            return x * self.step

    with pytest.warns(UserWarning, match=r"build\(\) changes Steps.step from 0 to 1 in Python"):
        Steps()(flow.ones(2))


def test_a_flag_that_forward_sets_is_warned_of() -> None:
    def first(m: Any, x: Any) -> Any:
        m.begun, before = True, m.begun
        return x if before else x * 2

    def restored(m: Any, x: Any) -> Any:
        y, m.begun = first(m, x), False
        return y

    for forward in (first, restored):
        model = Keeper(forward)
        model.begun = False
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            Calls(model)(flow.ones(3, 2))
        assert ["Keeper.begun from False to True" in str(w.message) for w in said] == [True] * (forward is first)


def test_a_tensor_left_where_there_was_none_is_warned_of() -> None:
    def remembers(m: Any, x: Any) -> Any:
        before, m.last = m.last, x.sum(0)
        return x if before is None else x + before

    def fresh(m: Any, x: Any) -> Any:
        before, m.last = getattr(m, "last", 0), x.sum(0)
        return x + before

    def cached(m: Any, x: Any) -> Any:
        m.last["x"] = x.sum(0) + m.last.get("x", 0)
        return m.last["x"]

    for forward, there in ((remembers, None), (fresh, ...), (cached, {})):
        model = Keeper(forward)
        if there is not ...:
            model.last = there
        with pytest.warns(UserWarning, match=r"found no tensor in Keeper.last and left one there\. Launches don't"):
            Calls(model)(flow.ones(3, 2))


VIEWS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "of all": ((1, 2), lambda base: base.view(2)),
    "of a part": ((2, 2), lambda base: base[1]),
    "of a view": ((2, 2), lambda base: base.t()[1]),
}


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("place", [False, True])
def test_a_buffer_that_is_a_view_keeps_what_it_is_set_to(kind: str, place: bool) -> None:
    shape, view = VIEWS[kind]

    def rank() -> list[list[Any]]:
        where: dict[str, Any] = {"placement": flow.placement("cpu", [0]), "sbp": flow.sbp.broadcast} if place else {}
        found: list[list[Any]] = []
        for graph in (False, True):
            model, base = Keeper(averaged), flow.zeros(*shape, **where)
            model.register_buffer("mean", view(base))
            call = Calls(model) if graph else model
            found.append([results(call(flow.full((3, 2), i + 1.0, **where))) for i in range(3)])
            found[-1].append(model.mean.tolist())
        return found

    ((eager, compiled),) = spawn_threads(1, rank)
    assert compiled == eager


def test_what_lies_in_one_memory_is_not_set_apart() -> None:
    def one(m: Any, x: Any) -> Any:
        m.mean = m.mean + x[0]
        return m.mean - m.other

    def both(m: Any, x: Any) -> Any:
        m.mean, m.other = m.mean + x[0], m.other * 2
        return m.mean - m.other

    def alike(m: Any, x: Any) -> Any:
        m.mean = m.other = m.mean + x[0]
        return m.mean + m.other

    for forward in (one, both, alike):
        for of in (lambda t: t, lambda t: t.detach(), lambda t: t[:]):
            model = Keeper(forward)
            model.register_buffer("other", of(model.mean))
            graph = Calls(model)
            if forward is alike:
                assert [graph(flow.ones(3, 2)).sum().item() for _ in range(2)] == [8.0, 12.0]
                continue
            with pytest.raises(TraceError, match=r"sets Keeper\.mean anew, and Keeper\.other lies in the same memory"):
                graph(flow.ones(3, 2))
            assert model.mean.tolist() == model.other.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kept", [lambda t: t, lambda t: t[1:], lambda t: [t]])
def test_a_second_hold_of_a_buffer_that_is_set_anew_is_warned_of(kept: Callable[[Any], Any]) -> None:
    model = Keeper(averaged)
    model.register_buffer("mean", flow.ones(2))
    model.plain = kept(model.mean)
    with pytest.warns(UserWarning, match=r"sets Keeper\.mean anew, and Keeper\.plain holds the tensor"):
        Calls(model)(flow.ones(3, 2))

    def apart(m: Any, x: Any) -> Any:
        m.plain = m.plain + x[0]
        return m.plain * 2

    model = Keeper(apart)
    model.register_buffer("mean", flow.ones(2))
    model.plain = model.mean
    with pytest.warns(UserWarning, match=r"sets Keeper\.plain anew, where a parameter or a buffer was"):
        Calls(model)(flow.ones(3, 2))


def test_state_that_the_next_launch_would_not_see_is_refused() -> None:
    def hidden(m: Any, x: Any) -> Any:
        m.plain = m.plain + x.sum(0)
        return m.plain

    def grows(m: Any, x: Any) -> Any:
        m.mean = flow.cat([m.mean, x.sum(0)])
        return m.mean

    def both_in_one(m: Any, x: Any) -> Any:
        m.pair = (m.pair[0] + x.sum(0), m.pair[1])
        return m.pair[0]

    def in_its_place(m: Any, x: Any) -> Any:
        m.memory["last"] = m.memory["last"] + x.sum(0)
        return m.memory["last"]

    def made_there(m: Any, x: Any) -> Any:
        m.register_buffer("late", x.sum(0))
        return m.late

    with pytest.raises(TraceError, match=r"build\(\) makes Keeper.late.*let __init__ make it"):
        Calls(Keeper(made_there))(flow.ones(3, 2))
    for forward, name in ((hidden, "plain"), (grows, "mean"), (both_in_one, "pair"), (in_its_place, "memory")):
        model = Keeper(forward)
        model.pair, model.memory = (flow.ones(2), flow.ones(2)), {"last": flow.ones(2)}
        with pytest.raises(TraceError, match=rf"reads .*Keeper\.{name}.*register_buffer"):
            Calls(model)(flow.ones(3, 2))
        assert model.mean.tolist() == model.plain.tolist() == [1.0, 1.0]


MADE: list[Any] = [
    lambda: flow.tensor([1.0, 2.0]), lambda: flow.eye(2)[0], lambda: flow.linspace(0, 1, 2),
    lambda: flow.Tensor([3.0, 4.0]), lambda: flow.logspace(0, 1, 2),
    lambda: flow.as_tensor([1.0, 2.0]), lambda: flow.FloatTensor([1.0, 2.0]),
    lambda: copy.deepcopy(flow.tensor([1.0, 2.0])),
    lambda: flow.ones(1).new_tensor([1.0, 2.0]), lambda: flow.zeros(2), lambda: flow.fft.fftfreq(2).detach(),
]  # fmt: skip
WRITTEN: list[Any] = [
    lambda t, x: t.add_(x), lambda t, x: t.__setitem__(0, x[0]), lambda t, x: t.view(2, 1).mul_(2),
    lambda t, x: t.data.add_(1), lambda t, x: t.copy_(t + x),
]  # fmt: skip


@pytest.mark.parametrize("write", WRITTEN)
def test_what_build_makes_and_writes_into_begins_anew_in_each_launch(write: Any) -> None:
    def made(x: Any) -> list[Any]:
        found = [make() for make in MADE]
        for t in found:
            write(t, x)
        return [t * x for t in found]

    class Makes(nn.Graph):
        def build(self, x: Any) -> Any:
            return made(x)

    graph = Makes()
    for k in range(3):
        x = flow.tensor([k + 1.0, k + 2.0])
        assert [t.tolist() for t in graph(x)] == [t.tolist() for t in made(x)]


def test_a_copy_of_what_a_launch_changes_is_refused() -> None:
    """It would be of the weights as they were when the graph was traced."""

    class Copies(nn.Graph):
        def __init__(self, copied: Any) -> None:
            super().__init__()
            self.m, self.copied = nn.Linear(2, 1), copied

        def build(self, x: Any) -> Any:
            return self.copied(self.m)(x)

    def weight(m: Any) -> Any:
        w = copy.deepcopy(m.weight)
        return lambda x: x @ w.T

    for copied in (copy.deepcopy, weight):
        with pytest.raises(TraceError, match=r"deepcopy.*detach\(\).clone\(\)"):
            Copies(copied)(flow.ones(3, 2))


def test_the_first_value_of_what_is_written_into_may_be_read() -> None:
    class Reads(nn.Graph):
        def build(self, x: Any) -> Any:
            t = flow.tensor([1.0, 2.0])
            twice = t * 2
            if t.sum().item() == 3:
                t.add_(1)
            return x * t * (twice.sum().item() + t.sum().item())

    graph = Reads()
    assert [graph(flow.ones(2)).tolist() for _ in range(2)] == [[22.0, 33.0]] * 2


def test_a_made_total_over_micro_batches_and_ranks() -> None:
    class Sums(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.config.set_gradient_accumulation_steps(2)

        def build(self, x: Any) -> Any:
            total = flow.tensor(0.0) if x.is_local else flow.tensor(0.0, placement=x.placement, sbp=flow.sbp.broadcast)
            total += x.sum()
            return total

    def run() -> list[Any]:
        place = flow.placement("cpu", ranks=[0, 1])
        graph, x = Sums(), flow.arange(4.0).to_global(placement=place, sbp=flow.sbp.broadcast)
        return [graph(x).numpy().tolist() for _ in range(2)]

    graph = Sums()
    assert [graph(flow.arange(4.0)).tolist() for _ in range(2)] == [[1.0, 5.0]] * 2
    assert spawn_threads(2, run) == [[[1.0, 5.0]] * 2] * 2


def test_a_made_tensor_that_is_left_in_an_attribute_is_told() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count: Any = None

        def forward(self, x: Any) -> Any:
            self.count = flow.tensor(0.0)
            self.count += 1
            return x * self.count

    class Calls(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.m = Counts()

        def build(self, x: Any) -> Any:
            return self.m(x)

    graph = Calls()
    with pytest.warns(UserWarning, match=r"no tensor in Counts\.count and left one there"):
        assert graph(flow.ones(1)).tolist() == [1.0]
    assert graph(flow.ones(1)).tolist() == [1.0]


def test_a_count_of_calls_is_no_constant() -> None:
    class Counts(nn.Module):
        count: Any = None

        def forward(self, x: Any) -> Any:
            self.count = flow.zeros(1) if self.count is None else self.count
            self.count = self.count + 1
            return x + self.count

    counts = Counts()
    with pytest.warns(UserWarning, match=r"no tensor in Counts\.count and left one there"):
        assert Calls(counts)(flow.ones(1)).tolist() == [2.0]
    assert counts.count is None


class Table(nn.Module):
    """A table that the first call registers, one that grows with a count, and one by length."""

    def __init__(self, **where: Any) -> None:
        super().__init__()
        self.where = where
        self.register_buffer("rates", 1 / flow.arange(1, 4, **where).float(), persistent=False)
        self.register_buffer("slopes", flow.zeros(1, **where), persistent=False)
        self.cos, self.length, self.by_length = None, 0, {}

    def forward(self, x: Any) -> Any:
        n = x.shape[1]
        if not hasattr(self, "mask"):
            self.register_buffer("mask", flow.tril(flow.ones(8, 8, **self.where)), persistent=False)
        if n > self.length:
            self.length, self.cos = n, flow.outer(flow.arange(n, **self.where).float(), self.rates).cos()
            self.register_buffer("slopes", -flow.arange(n, **self.where).float(), persistent=False)
        if n not in self.by_length:
            self.by_length[n] = flow.arange(n, **self.where).float()
        return x * self.mask[:n, :n] + self.cos[:n, 0] * self.slopes[:n] + self.by_length[n], self.cos


@pytest.mark.filterwarnings("ignore:build.. changes")
@pytest.mark.parametrize("ranks", [1, 2])
def test_tables_that_the_first_call_makes_stay(ranks: int) -> None:
    def program() -> None:
        where = {"placement": flow.placement("cpu", [0, 1]), "sbp": flow.sbp.broadcast} if ranks > 1 else {}
        table, plain = Table(**where), Table()
        for n in (3, 3, 5, 2):
            x, given = flow.full((n, n), 2.0), flow.full((n, n), 2.0, **where)
            for run in (Calls(table), table):
                for mine, other in zip(run(given), plain(x), strict=True):
                    np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-6)
        assert table.cos.is_eager and set(table.by_length) == {2, 3, 5}

    spawn_threads(ranks, program)


@pytest.mark.parametrize("before", [(), (None,)])
def test_a_new_buffer_that_follows_from_constants_is_kept_as_eagerly(before: tuple[None, ...]) -> None:
    """Such as a mask or a table of angles, which models make when they first need it."""

    def masked(m: Any, x: Any) -> Any:
        if getattr(m, "mask", None) is None or len(m.mask) < len(x):
            m.register_buffer("mask", (1 - flow.ones(len(x), len(x)).triu(1)) * m.scale, persistent=False)
        return m.mask[: len(x), : len(x)] @ x

    model = Keeper(masked)
    model.register_buffer("scale", flow.tensor(2.0))
    for none in before:
        model.register_buffer("mask", none, persistent=False)
    x, graph = flow.arange(6.0).reshape(3, 2), Calls(model)
    y = graph(x)
    assert model.mask.tolist() == [[2, 0, 0], [2, 2, 0], [2, 2, 2]] and "mask" not in model.state_dict()
    assert y.tolist() == graph(x).tolist() == model(x).tolist() == Calls(model)(x).tolist()

    def plain(m: Any, x: Any) -> Any:
        m.mask = getattr(m, "mask", flow.ones(3, 3).tril())
        return m.mask @ x

    model = Keeper(plain)
    assert Calls(model)(x).tolist() == model(x).tolist() and model.mask.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]

    def remembers(m: Any, x: Any) -> Any:
        m.register_buffer("last", x * 2)
        return x

    model = Keeper(remembers)
    with pytest.raises(TraceError, match=r"build\(\) makes Keeper.last"):
        Calls(model)(x)
    assert not hasattr(model, "last")


class Mean(nn.Module):
    """A running mean in a buffer, which may be a view of a tensor that isn't the module's."""

    def __init__(self, view: bool, anew: bool) -> None:
        super().__init__()
        self.anew = anew
        self.register_buffer("mean", flow.zeros(1, 3).view(3) if view else flow.zeros(3))

    def forward(self, x: Any) -> Any:
        if self.anew:
            self.mean = self.mean * 0.5 + x.mean(0)
        else:
            self.mean.mul_(0.5).add_(x.mean(0))
        return x + self.mean


class MicroBatches(nn.Graph):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.config.set_gradient_accumulation_steps(2)

    def build(self, x: Any) -> Any:
        return self.model(x)


@pytest.mark.parametrize("anew", [False, True])
def test_a_buffer_that_is_a_view_goes_from_micro_batch_to_micro_batch(anew: bool) -> None:
    found = []
    for view in (False, True):
        model = Mean(view, anew)
        graph = MicroBatches(model)
        found.append([*(graph(flow.arange(12.0).view(4, 3) * i).tolist() for i in range(3)), model.mean.tolist()])
    assert found[0] == found[1]
    one = Mean(False, anew)
    for i in range(3):
        for rows in (flow.arange(12.0).view(4, 3) * i).chunk(2):
            one(rows)
    assert one.mean.tolist() == found[1][-1]
