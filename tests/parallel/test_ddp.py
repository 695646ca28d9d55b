"""Data parallel on local tensors: as one rank would train on all of the data."""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed.nn.functional
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer

import weft as flow
from tests.graphs import Trains
from tests.ranks import on
from weft.core.errors import ArgumentError
from weft.distributed import init_device_mesh
from weft.interop import from_torch, load_torch
from weft.launch import spawn_threads
from weft.parallel.ddp import DistributedDataParallel, no_sync, replicate
from weft.transport.base import Group, UnderWay

DATA = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).tolist()


def model() -> flow.nn.Module:
    return flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.Tanh(), flow.nn.Linear(8, 1))


def train(net: Any, x: Any, steps: int = 3) -> list[Any]:
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()
    return [p.tolist() for p in net.parameters()]


@pytest.mark.parametrize("size", [{"use_bucket": False}, {"bucket_size": 3}, {"bucket_cap_mb": 1e-4}, {}])
def test_ranks_agree_and_train_on_all_of_the_data(size: dict[str, Any]) -> None:
    def run() -> Any:
        rank = flow.env.get_rank()
        flow.manual_seed(rank)
        net = model()
        start = [p.tolist() for p in net.parameters()]
        assert DistributedDataParallel(net, **size) is net
        return start, train(net, flow.tensor(DATA[rank::2]))

    (start, first), (_, second) = spawn_threads(2, run)
    assert first == second
    alone = model()
    alone.load_state_dict({k: flow.tensor(v) for k, v in zip(alone.state_dict(), start, strict=True)})
    for a, b in zip(train(alone, flow.tensor(DATA)), first, strict=True):
        torch.testing.assert_close(torch.tensor(b), torch.tensor(a), rtol=1e-4, atol=1e-5)


def test_gradients_that_stay_at_home_join_the_next_average() -> None:
    def run() -> Any:
        rank = flow.env.get_rank()
        net = DistributedDataParallel(flow.nn.Linear(1, 1, bias=False))
        with no_sync(net):
            net(flow.tensor([[1.0 + rank]])).sum().backward()
        alone = net.weight.grad.item()
        net(flow.tensor([[10.0 * rank]])).sum().backward()
        return alone, net.weight.grad.item()

    assert spawn_threads(2, run) == [(1.0, 6.5), (2.0, 6.5)]


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({}, [1.0, 1.0]), ({"broadcast_buffers": False}, [1.0, 3.0]), ({"forward_sync_buffers": False}, [1.0, 2.0]),
        ({"broadcast_buffers": False, "forward_sync_buffers": True}, [1.0, 1.0]), ({"init_sync": False}, [1.0, 1.0]),
    ],
)  # fmt: skip
def test_buffers_follow_the_first_rank(options: dict[str, bool], seen: list[float]) -> None:
    """As torch's do, and OneFlow's: without their broadcast each rank's keep their values from the start."""

    def run() -> float:
        net = flow.nn.Identity()
        net.weight = flow.nn.Parameter(flow.ones(1))
        net.register_buffer("seen", flow.tensor([float(flow.env.get_rank())]))
        net = DistributedDataParallel(net, **options)
        net.seen.add_(flow.env.get_rank() + 1)
        net(flow.ones(1))
        return net.seen.item()

    assert spawn_threads(2, run) == seen


@pytest.mark.parametrize("bucket_size", [1, 1 << 20])
def test_what_one_rank_leaves_out_counts_as_zero_there(bucket_size: int) -> None:
    """Without a flag, also where the last bucket is the one that lacks a gradient, and where all do on one rank."""

    def run() -> Any:
        flow.manual_seed(1)
        parts = {"used": flow.nn.Linear(1, 1), "idle": flow.nn.Linear(1, 1)}
        net = DistributedDataParallel(flow.nn.ModuleDict(parts), bucket_size=bucket_size)
        optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
        seen = []
        for step in range(4):
            optimizer.zero_grad()
            mine = "used" if (step + flow.env.get_rank()) % 2 else "idle"
            net[mine](flow.ones(1, 1)).sum().backward()
            seen.append([p.grad.tolist() for p in net.parameters()])
            optimizer.step()
        return seen, [p.tolist() for p in net.parameters()]

    first, second = spawn_threads(2, run)
    assert first == second and first[0][0] == [[[0.5]], [0.5], [[0.5]], [0.5]]


def test_a_backward_that_was_broken_off_leaves_no_way_on() -> None:
    def refuse(g: Any) -> None:
        raise KeyError("the user's")

    def run() -> None:
        net = DistributedDataParallel(flow.nn.Sequential(flow.nn.Linear(1, 1), flow.nn.Linear(1, 1)), bucket_size=1)
        middle = net[0](flow.ones(1, 1))
        middle.register_hook(refuse)
        with pytest.raises(KeyError):
            net[1](middle).sum().backward()
        with pytest.raises(flow.errors.AutogradError, match="broken off amid the average"):
            net(flow.ones(1, 1))

    spawn_threads(2, run)


def test_a_checkpoint_amid_backward_ends_no_average() -> None:
    checkpoint = flow.utils.checkpoint.checkpoint

    def run() -> Any:
        flow.manual_seed(1)
        layers = flow.nn.Sequential(*[flow.nn.Linear(2, 2) for _ in range(3)])
        net = DistributedDataParallel(layers, bucket_size=1)
        x = flow.full((1, 2), 1.0 + flow.env.get_rank())
        net[2](checkpoint(net[1], net[0](x))).sum().backward()
        found = [p.grad.tolist() for p in net.parameters()]
        net.zero_grad()
        net(x).sum().backward()
        assert found == [p.grad.tolist() for p in net.parameters()]
        with pytest.raises(flow.errors.AutogradError, match="twice in one backward"):
            net[2](checkpoint(net[2], net[1](net[0](x)))).sum().backward()
        return found

    first, second = spawn_threads(2, run)
    assert first == second


class Pair(flow.nn.Module):
    def __init__(self, order: str = "ab") -> None:
        super().__init__()
        for name in order:
            self.add_module(name, flow.nn.Linear(2, 2))

    def forward(self, x: Any) -> Any:
        return self.b(self.a(x).tanh())


@pytest.mark.parametrize("differ", ["order", "module"])
def test_modules_of_one_size_are_not_mixed_up(differ: str) -> None:
    def run() -> None:
        rank = flow.env.get_rank()
        with pytest.raises(
            flow.errors.RankError, match=r"differ in the module that is averaged: number \d, Pair\([ab]\."
        ):
            nets = [DistributedDataParallel(Pair("ba" if rank and differ == "order" else "ab")) for _ in range(2)]
            nets[rank](flow.ones(1, 2)).sum().backward()

    spawn_threads(2, run)


@pytest.mark.parametrize("late", ["trained", "replaced", "added"])
def test_what_comes_later_is_averaged_when_wrapped_again(late: str) -> None:
    def run() -> Any:
        flow.manual_seed(flow.env.get_rank())
        net = Pair()
        net.b.requires_grad_(late != "trained")
        DistributedDataParallel(net)
        if late == "trained":
            net.b.requires_grad_(True)
        elif late == "replaced":
            net.b.weight = flow.nn.Parameter(flow.randn(2, 2))
        else:
            net.b = flow.nn.Sequential(net.b, flow.nn.Linear(2, 2))
        x = flow.full((1, 2), 1.0 + flow.env.get_rank())
        with pytest.raises(flow.errors.AutogradError, match=r"b\..* after DistributedDataParallel\(module\).*Wrap"):
            net(x)
        return train(DistributedDataParallel(net), x)

    first, second = spawn_threads(2, run)
    assert first == second


def test_a_copy_averages_its_own() -> None:
    def run() -> Any:
        net = flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.BatchNorm1d(2))
        copied = copy.deepcopy(DistributedDataParallel(net))
        x = flow.full((2, 2), 1.0 + flow.env.get_rank()).cumsum(0)
        with copied.no_sync():
            copied(x).sum().backward()
        return train(copied, x), copied[1].running_mean.tolist() == net[1].running_mean.tolist()

    (first, untouched), (second, _) = spawn_threads(2, run)
    assert first == second and not untouched


class Branches(flow.nn.Module):
    """Rank r uses branch r, every rank the trunk, and nobody the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.rest = flow.nn.Linear(2, 2, bias=False), flow.nn.Linear(2, 2, bias=False)
        self.branches = flow.nn.ModuleList([flow.nn.Linear(2, 1, bias=False) for _ in range(2)])

    def forward(self, x: Any) -> Any:
        return {"out": [self.branches[flow.env.get_rank()](self.trunk(x))], "step": 1}


@pytest.mark.parametrize(("bucket_size", "flag"), [(1, True), (1 << 20, True), (1, False)])
def test_unused_parameters_count_as_zero_where_some_rank_uses_them(bucket_size: int, flag: bool) -> None:
    def run() -> Any:
        flow.manual_seed(1)
        net = DistributedDataParallel(Branches(), bucket_size=bucket_size, find_unused_parameters=flag)
        alone = Branches()
        alone.load_state_dict(net.state_dict())
        x = flow.full((1, 2), 1.0 + flow.env.get_rank())
        for _ in range(2):
            for n in (net, alone):
                n.zero_grad()
                n(x)["out"][0].sum().backward()
        assert net.rest.weight.grad is None
        return [[None if p.grad is None else p.grad.tolist() for p in n.parameters()] for n in (net, alone)]

    (first, mine), (second, other) = spawn_threads(2, run)
    assert first == second and len(first) == 4
    for averaged, *each in zip(first, mine, other, strict=True):
        if averaged is not None:
            zero = torch.zeros(torch.tensor(averaged).shape)
            whole = sum((zero if g is None else torch.tensor(g) for g in each), zero)
            torch.testing.assert_close(torch.tensor(averaged), whole / 2)


def test_unused_parameters_keep_gradients_of_before() -> None:
    def run() -> Any:
        net = DistributedDataParallel(Branches(), find_unused_parameters=True)
        net.rest.weight.grad = flow.full((2, 2), 7.0)
        with net.no_sync():
            net(flow.ones(1, 2))["out"][0].sum().backward()
        before = net.branches[flow.env.get_rank()].weight.grad.clone()
        net(flow.zeros(1, 2))["out"][0].sum().backward()
        after = net.branches[flow.env.get_rank()].weight.grad
        return net.rest.weight.grad.tolist(), (after * 2 - before).abs().max().item()

    assert spawn_threads(2, run) == [([[7.0, 7.0], [7.0, 7.0]], 0.0)] * 2


def test_sums_begin_while_backward_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[int, list[str]] = {0: [], 1: []}
    plain = Group.begin_all_reduce

    class Heard(UnderWay):
        def wait(self) -> None:
            said[flow.env.get_rank()].append("finish")

    def heard(group: Group, t: torch.Tensor) -> UnderWay:
        said[flow.env.get_rank()].append("sum")
        plain(group, t)
        return Heard()

    monkeypatch.setattr(Group, "begin_all_reduce", heard)

    def run() -> None:
        net = DistributedDataParallel(flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.Linear(2, 2)), bucket_size=2)
        middle = net[0](flow.ones(1, 2))
        middle.register_hook(lambda g: said[flow.env.get_rank()].append("backward of the first layer"))
        net[1](middle).sum().backward()

    spawn_threads(2, run)
    assert said[0] == said[1] == ["sum", "backward of the first layer", "sum", "finish", "finish"]


def uneven(lib: Any) -> Any:
    """A model with buffers, a tied weight, a branch that only some steps of some ranks use, and one that none does."""
    nn = lib.nn

    class Uneven(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.first, self.last = nn.BatchNorm1d(4), nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
            self.tied = nn.Linear(4, 4)
            self.tied.weight = self.first.weight
            self.branch, self.never = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Any, branch: bool) -> Any:
            x = self.tied(lib.relu(self.first(self.norm(x))))
            return self.last(self.branch(x) if branch else x)

    return Uneven()


def everything(net: Any, core: Any, optimizer: Any, xs: list[Any], rank: int) -> list[list[float]]:
    """Some steps, every third one accumulated without an average; all values of gradients, parameters and buffers."""
    seen: list[list[float]] = []
    for step, x in enumerate(xs):
        with net.no_sync() if step % 3 == 0 else contextlib.nullcontext():
            (net(x, branch=(step + rank) % 4 == 0) ** 2).sum().backward()
        seen += [p.grad.reshape(-1).tolist() if p.grad is not None else [] for p in core.parameters()]
        if step % 3:
            optimizer.step()
            optimizer.zero_grad(set_to_none=step % 2 == 0)
    return [*seen, *(v.reshape(-1).tolist() for v in core.state_dict().values())]


HOOKS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "fp16": lambda: (None, default_hooks.fp16_compress_hook),
    "power": lambda: (powerSGD_hook.PowerSGDState(None, 1, 2, 0.1), powerSGD_hook.powerSGD_hook),
    "local": lambda: (PostLocalSGDState(None, torch.distributed.new_subgroups(1)[0], 1), post_localSGD_hook),
    "wrapped": lambda: (None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)),
}


def with_torchs_hooks() -> None:
    """Gradients compressed by torch's hooks, under torch's class and under Weft's, which torch's name gives;
    torch's optimizers average parameters, and split their state over the ranks."""
    rank = flow.env.get_rank()
    for hook in HOOKS.values():
        results = []
        for wrap in (lambda m: m, from_torch):
            torch.manual_seed(0)
            m = wrap(torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)))
            wrapped = torch.nn.parallel.DistributedDataParallel(m)
            assert wrap is not from_torch or wrapped is m
            wrapped.register_comm_hook(*hook())
            inner = ZeroRedundancyOptimizer(m.parameters(), torch.optim.AdamW, lr=0.05)
            averager = PeriodicModelAverager(period=2, process_group=torch.distributed.group.WORLD)
            optimizer = PostLocalSGDOptimizer(inner, averager)
            for step in range(4):
                x = torch.arange(16.0).reshape(2, 8).sin() + rank + step
                optimizer.zero_grad()
                wrapped(x).square().mean().backward()
                optimizer.step()
            total = sum(p.detach().abs().sum() for p in m.parameters())
            torch.distributed.all_reduce(total)
            results.append(total.item())
        assert abs(results[0] - results[1]) < 1e-5, (hook()[1], results)
    share = from_torch(torch.ones(2, requires_grad=True)).requires_grad_()
    torch.distributed.nn.functional.all_reduce(share * (rank + 1)).sum().backward()
    assert share.grad.tolist() == [2.0 * (rank + 1)] * 2


def beside_torch() -> None:
    """In a process of its own: the same training under torch's DistributedDataParallel and under Weft's."""
    rank = flow.env.get_rank()
    flow.comm.barrier()
    net: Any = DistributedDataParallel(flow.nn.Linear(2, 1))
    with pytest.raises(flow.errors.ArgumentError, match=r"fp16_compress_hook.*init_process_group"):
        net.register_comm_hook(*HOOKS["fp16"]())
    torch.distributed.init_process_group("gloo")
    with_torchs_hooks()
    torch.manual_seed(rank)
    theirs = uneven(torch)
    ours = load_torch(uneven(flow), theirs)
    xs = [torch.randn(8, 4) for _ in range(7)]
    wrapped = torch.nn.parallel.DistributedDataParallel(theirs, find_unused_parameters=True)
    expected = everything(wrapped, theirs, torch.optim.SGD(theirs.parameters(), lr=0.01), xs, rank)
    net = DistributedDataParallel(ours, find_unused_parameters=True, bucket_size=3)
    optimizer = flow.optim.SGD(ours.parameters(), lr=0.01)
    found = everything(net, ours, optimizer, [from_torch(x) for x in xs], rank)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-5)
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_beside_torchs_own(world: Any, transport: str) -> None:
    world("beside_torch", 2, transport).well()


@on(2)
def test_replicas_may_be_initialized_before_their_first_call() -> None:
    flow.manual_seed(0)
    rank, whole = flow.env.get_rank(), flow.nn.Linear(3, 2)
    with flow.device("meta"):
        net = flow.nn.Linear(3, 2)
    assert replicate(net, device_mesh=init_device_mesh("cpu", (2,)), bucket_cap_mb=100) is net
    net.to_empty(device="cpu")
    with flow.no_grad():
        net.weight.copy_(whole.weight * (1 + rank)), net.bias.copy_(whole.bias)  # the first rank's counts
    data = flow.arange(12.0).reshape(4, 3)
    for _ in range(2):
        net(data[rank::2]).square().mean().backward()
        whole(data).square().mean().backward()
    for p, q in zip(net.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(p.grad.to_torch(), q.grad.to_torch())


def test_what_cannot_be_averaged() -> None:
    with pytest.raises(flow.errors.ArgumentError, match="takes a module"):
        DistributedDataParallel(3)  # type: ignore[type-var]
    assert DistributedDataParallel(flow.nn.ReLU())(flow.ones(1)).tolist() == [1.0]  # nothing to average
    net = flow.nn.Linear(1, 1).to_global(flow.placement("cpu", [0]), flow.sbp.broadcast)
    with pytest.raises(flow.errors.ArgumentError, match="these are global"):
        DistributedDataParallel(net)


@pytest.mark.parametrize("buffers", [True, False])
def test_in_a_graph_it_says_what_to_do(buffers: bool) -> None:
    def run() -> None:
        net = DistributedDataParallel(flow.nn.BatchNorm1d(2) if buffers else flow.nn.Linear(2, 2))

        with pytest.raises(flow.errors.TraceError, match="Instead of wrapping the module make it global"):
            Trains(net, flow.optim.SGD(net.parameters(), lr=0.1), lambda y: y.square().sum())(flow.ones(3, 2))

    spawn_threads(2, run)


def test_pytorchs_way_of_calling_it() -> None:
    net = flow.nn.Linear(2, 1)
    ddp = DistributedDataParallel(
        net, [0], output_device=0, bucket_cap_mb=1, gradient_as_bucket_view=True, static_graph=True
    )
    inner = ddp.module
    assert ddp is net and type(inner).__name__ == "Linear" and inner.weight is net.weight
    assert not isinstance(inner, DistributedDataParallel) and not hasattr(inner, "module")  # where a loop ends
    inner.added = 3
    inner.eval()
    assert ddp.added == 3 and not ddp.training and DistributedDataParallel(inner) is ddp
    assert list(inner.state_dict()) == list(ddp.state_dict()) and pickle.loads(pickle.dumps(inner)).added == 3
    assert isinstance(ddp, (flow.nn.DataParallel, DistributedDataParallel))
    assert not isinstance(flow.nn.Linear(2, 1), DistributedDataParallel)
    assert list(ddp.state_dict()) == ["weight", "bias"] == [n for n, _ in ddp.named_parameters()]
    twin = copy.deepcopy(ddp)
    twin.module.added = 4
    assert twin is not ddp and twin.added == 4 and ddp.added == 3 and twin.module.weight is twin.weight

    class Holder(flow.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = flow.nn.Linear(1, 1)

    holder = Holder()
    assert DistributedDataParallel(holder).module is not holder

    def in_part() -> None:
        with pytest.raises(ArgumentError, match="averages over all 2 ranks"):
            DistributedDataParallel(flow.nn.Linear(1, 1), process_group=flow.distributed.ProcessGroup([0]))

    spawn_threads(2, in_part)


class WithSlots(flow.nn.Module):
    """Also with a member and a method of the wrapper's names."""

    __slots__ = ("factor",)

    def __init__(self) -> None:
        super().__init__()
        self.join, self.factor = flow.nn.Linear(1, 1), 2

    def register_comm_hook(self) -> str:
        return "own"

    def forward(self, x: Any) -> Any:
        return self.join(x) * self.factor


def test_a_module_keeps_its_own_attributes() -> None:
    net: Any = WithSlots()
    ddp = DistributedDataParallel(net)
    inner = ddp.module
    assert inner.register_comm_hook() == "own" and inner.join is net.join and isinstance(inner, WithSlots)
    inner.factor = 3
    assert net.factor == 3 and flow.equal(inner(flow.ones(1, 1)), net.join(flow.ones(1, 1)) * 3)
    inner.join_hook = "set"
    assert ddp.module is inner and inner.join_hook == ddp.join_hook == "set"


def test_a_copy_of_what_is_inside_is_trained_by_one_rank_alone() -> None:
    def run() -> None:
        ddp: Any = DistributedDataParallel(flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.BatchNorm1d(2)))
        if flow.env.get_rank() == 0:
            alone = copy.deepcopy(ddp.module)
            assert type(alone) is type(ddp) and not hasattr(alone, "no_sync")
            alone(flow.tensor([[1.0, 2.0], [4.0, 3.0]])).sum().backward()
        read: Any = pickle.loads(pickle.dumps(ddp))
        assert read.module[0] is read[0]
        read(flow.ones(4, 2) * flow.env.get_rank()).square().sum().backward()
        assert isinstance(read, DistributedDataParallel)

    spawn_threads(2, run, deadline=30)


class Later:
    def __init__(self, value: Any) -> None:
        self.value_of = value

    def wait(self) -> None: ...

    def value(self) -> list[Any]:
        return [self.value_of]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("bucket_size", [1, 1 << 20])
def test_a_hook_says_what_becomes_of_gradients(later: bool, bucket_size: int) -> None:
    """As it may send them in a shorter dtype; its own product shows that nothing else is done to them."""

    def halved(state: dict[str, Any], bucket: Any) -> Any:
        state["seen"].append((bucket.index(), bucket.is_last(), [tuple(g.shape) for g in bucket.gradients()]))
        sent = bucket.buffer().half()
        flow.comm.all_reduce(sent)
        y = sent.float() / 2 * 10
        return Later(y) if later else y

    def run() -> None:
        flow.manual_seed(0)
        model = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.Linear(4, 2))
        plain = copy.deepcopy(model)
        state: dict[str, Any] = {"seen": []}
        hooked: Any = DistributedDataParallel(model, bucket_size=bucket_size)
        hooked.register_comm_hook(state, halved)
        with pytest.raises(ArgumentError, match="one already"):
            hooked.register_comm_hook(state, halved)
        averaged = DistributedDataParallel(plain, bucket_size=bucket_size)
        for step in range(2):
            x = flow.arange(6.0).reshape(2, 3) + flow.env.get_rank() + step
            for m in (hooked, averaged):
                m.zero_grad()
                m(x).sum().backward()
            for p, q in zip(model.parameters(), plain.parameters(), strict=True):
                assert p.grad is not None and q.grad is not None
                torch.testing.assert_close(p.grad.to_torch(), q.grad.to_torch() * 10, rtol=1e-2, atol=1e-2)
        last = len(state["seen"]) // 2 - 1
        assert [i for i, *_ in state["seen"]] == [*range(last + 1)] * 2
        assert [is_last for _, is_last, _ in state["seen"]] == ([False] * last + [True]) * 2

    spawn_threads(2, run)


def test_a_state_of_torchs_wrapper_is_loaded() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    state = {f"module.{name}": t for name, t in theirs.state_dict().items()}
    wrapped = DistributedDataParallel(model())
    wrapped.load_state_dict(state)
    assert [*wrapped.state_dict()] == [*theirs.state_dict()] and wrapped[0].weight.tolist() == theirs[0].weight.tolist()
    outer = flow.nn.ModuleDict({"net": wrapped, "other": flow.nn.Linear(1, 1)})
    outer.load_state_dict({**{f"net.{name}": t * 2 for name, t in state.items()}, **_named("other", outer["other"])})
    assert wrapped[0].weight.tolist() == (theirs[0].weight * 2).tolist()
    wrapped.load_state_dict(theirs.state_dict())
    with pytest.raises(flow.errors.CheckpointError, match=r"module\.0\.bias"):
        wrapped.load_state_dict({**theirs.state_dict(), "module.0.bias": theirs[0].bias})
    with pytest.raises(flow.errors.CheckpointError, match=r"module\.0\.weight"):
        model().load_state_dict(state)


def _named(prefix: str, module: flow.nn.Module) -> dict[str, Any]:
    return {f"{prefix}.{name}": t for name, t in module.state_dict().items()}
