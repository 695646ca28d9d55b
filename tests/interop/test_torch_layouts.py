"""Graphs of torch's modules over two ranks: ZeRO, stages, micro-batches, mixed precision, and tensors that modules keep
as plain attributes. Torch on one device is the oracle."""

from __future__ import annotations

import collections
import copy
import dataclasses
from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import TraceError
from weft.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from weft.distributed.tensor import Shard, distribute_module, distribute_tensor, init_device_mesh

S, B = flow.sbp.split, flow.sbp.broadcast
STEPS = 3
NOBODYS = torch.full((8,), 0.5)  # a tensor of no module


class Deep(torch.nn.Module):
    """Layers with tensors that are no buffers: a table in an attribute, one in a list, one of the file's."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)) for _ in range(4)
        )
        self.head = torch.nn.Linear(8, 3)
        self.inverse, self.tables = torch.linspace(1.0, 0.1, 8), [torch.linspace(0.0, 1.0, 8)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.inverse[None].float() * self.tables[0].cos()
        for layer in self.layers:
            x = x + layer(x) * scale + NOBODYS
        return self.head(x)


class Train(nn.Graph):
    def __init__(self, model: Any, stages: Any = None, zero: int = 0, amp: bool = False, scaler: Any = None) -> None:
        super().__init__()
        self.m = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
        self.config.enable_zero(bool(zero), stage=zero or 1)
        self.config.enable_amp(amp, dtype=flow.bfloat16)
        if scaler is not None:
            self.set_grad_scaler(scaler)
        if stages is not None:
            self.config.set_gradient_accumulation_steps(2)
            for i in range(4):
                self.m.layers[i].to(nn.graph.GraphModule).set_stage(i // 2, stages[i // 2])
            self.m.head.to(nn.graph.GraphModule).set_stage(1, stages[1])

    def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
        loss = nn.functional.cross_entropy(self.m(x), y)
        loss.backward()
        return loss


def data() -> tuple[Deep, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return Deep(), torch.randn(8, 8), torch.randint(0, 3, (8,))


def in_torch(model: Deep, x: torch.Tensor, y: torch.Tensor, amp: bool = False) -> tuple[list[float], dict[str, Any]]:
    model = copy.deepcopy(model)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {k: v.numpy() for k, v in model.state_dict().items()}


@pytest.mark.parametrize(
    ("zero", "stages", "amp", "scaled"),
    [(1, False, False, False), (2, False, False, False), (3, False, False, False), (0, True, False, False),
     (0, False, False, True), (0, False, True, True), (1, False, True, True), (0, True, True, True)],
)  # fmt: skip
def test_a_graph_in_parts_trains_as_torch_does_alone(zero: int, stages: bool, amp: bool, scaled: bool):
    model, x, y = data()
    expected, state = in_torch(model, x, y, amp)

    @on(2)
    def run() -> None:
        P, ends = flow.placement("cpu", [0, 1]), [flow.placement("cpu", [i]) for i in (0, 1)]
        ours = flow.from_torch(copy.deepcopy(model))
        if stages:
            for i, part in enumerate([*ours.layers, ours.head]):
                part.to_global(ends[min(i // 2, 1)], B)
        else:
            ours.to_global(P, B)
        first, last = ends if stages else (P, P)
        scaler = flow.amp.GradScaler(init_scale=2.0**8) if scaled else None
        graph = Train(ours, ends if stages else None, zero, amp, scaler)
        how = B if stages else S(0)
        given = [flow.from_torch(t).to_global(p, B).to_global(p, how) for t, p in ((x, first), (y, last))]
        losses = [float(graph(*given).numpy().mean()) for _ in range(STEPS)]
        found = {k: v.detach().numpy() for k, v in ours.state_dict().items()}
        graph.close()
        # torch's short numbers round in other places
        assert losses == pytest.approx(expected, abs=2e-2 if amp else 1e-5)
        for name, value in state.items():
            assert found[name] == pytest.approx(value, abs=6e-2 if amp else 1e-5), name
        assert scaler is None or scaler.get_scale() == 2.0**8

    run()


@pytest.mark.parametrize("everywhere", [False, True])
def test_it_trains_in_mixed_precision_eagerly(everywhere: bool):
    model, x, y = data()
    expected, _ = in_torch(model, x, y, amp=True)

    @on(2)
    def run() -> None:
        P = flow.placement("cpu", [0, 1])
        ours, given = flow.from_torch(copy.deepcopy(model)), [flow.from_torch(x), flow.from_torch(y)]
        if everywhere:
            ours, given = ours.to_global(P, B), [t.to_global(P, B).to_global(P, S(0)) for t in given]
        optimizer, losses = flow.optim.SGD(ours.parameters(), lr=0.1, momentum=0.9), []
        scaler = flow.amp.GradScaler(init_scale=2.0**8)
        for _ in range(STEPS):
            optimizer.zero_grad()
            with flow.autocast("cpu", dtype=flow.bfloat16):
                loss = nn.functional.cross_entropy(ours(given[0]), given[1])
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        assert losses == pytest.approx(expected, abs=2e-2)

    run()


class Counting(torch.nn.Module):
    """Keeps an average of what it saw, beside its buffers."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.seen, self.all = how, torch.zeros(2), [torch.zeros(2)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        now = x.mean(0)
        if self.how == "set":
            self.seen = self.seen * 0.5 + now
        elif self.how == "set in a list":
            self.all[0] = self.all[0] * 0.5 + now
        elif self.how == "moved to where it is":  # as CLIP's blocks do with their mask
            self.seen = self.seen.to(dtype=x.dtype, device=x.device)
        elif self.how == "written":
            self.seen.mul_(0.5).add_(now)
        else:
            self.all[0].mul_(0.5).add_(now)
        return x + self.seen + self.all[0]


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("how", ["set", "set in a list", "moved to where it is", "written", "written in a list"])
def test_what_a_module_keeps_in_an_attribute_is_kept_or_refused(how: str, everywhere: bool):
    """A launch writes what is written in place; it can't set attributes, and says so."""
    x, theirs = torch.ones(3, 2), Counting(how)
    expected = [copied(x).sum().item() for copied in [copy.deepcopy(theirs)] for _ in range(3)]

    class Run(nn.Graph):
        def __init__(self, m: Any) -> None:
            super().__init__()
            self.m = m

        def build(self, x: flow.Tensor) -> flow.Tensor:
            return self.m(x)

    P = flow.placement("cpu", [0])
    ours, given = flow.from_torch(copy.deepcopy(theirs)), flow.from_torch(x)
    assert isinstance(ours.seen, flow.Tensor)
    if everywhere:
        given = given.to_global(P, B)
    graph = Run(copy.deepcopy(ours))
    assert [ours(given).sum().item() for _ in range(3)] == expected
    back = flow.to_torch(ours) if not everywhere else theirs
    assert type(back.seen) is torch.Tensor
    if how.startswith("set"):
        with pytest.raises(TraceError, match="the next launch would not see"):
            graph(given)
    else:
        assert [graph(given).sum().item() for _ in range(3)] == expected


class SetByData(torch.nn.Module):
    """Flows set scales by the first batch, and shifts to a tensor that every rank makes."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
        self.ready = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.ready:
            self.scale.data, self.ready = x.mean(0), True
            self.shift.data = torch.arange(2.0)
        return x * self.scale + self.shift


@pytest.mark.parametrize("how", [S(0), B])
def test_a_parameter_that_is_set_by_data_keeps_its_layout(how: Any):
    def trained(model: Any, optimizer: Any, x: Any) -> Any:
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
        return model

    theirs, x = SetByData(), torch.arange(8.0).reshape(4, 2)
    ours = flow.from_torch(theirs)
    trained(theirs, torch.optim.SGD(theirs.parameters(), lr=1e-2), x)

    @on(2)
    def run() -> None:
        P = flow.placement("cpu", [0, 1])
        mine = copy.deepcopy(ours).to_global(P, how)
        given = flow.from_torch(x).to_global(P, B).to_global(P, S(0))
        trained(mine, flow.optim.SGD(mine.parameters(), lr=1e-2), given)
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            assert a.sbp == (how,)
            torch.testing.assert_close(torch.from_numpy(a.numpy()), b.detach())

    run()


@dataclasses.dataclass
class Scored:
    y: Any


class Scoring(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head, self.given = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3), []

    def forward(self, x: Any) -> Any:
        self.given.append(x.dtype)
        return Scored(self.head(torch.tanh(self.inner(x))))


@pytest.mark.parametrize("kind", [None, flow.bfloat16])
def test_fully_shard(kind: Any):
    """A module of torch's sees facades, and what `fully_shard` hooks there tensors: parameters were freed unnoticed."""
    torch.manual_seed(0)
    theirs, x = Scoring(), torch.randn(4, 8)
    starts = [copy.deepcopy(theirs) for _ in range(2)]
    theirs(x).y.square().mean().backward()
    policies = [MixedPrecisionPolicy(param_dtype=kind, output_dtype=out) for out in (None, flow.float32)]

    @on(2)
    def run() -> None:
        rank = flow.env.get_rank()
        mine = flow.from_torch(starts[rank])
        for part, policy in zip((mine.inner, mine), policies, strict=True):
            fully_shard(part, mp_policy=policy)
        y = mine(flow.from_torch(x[2 * rank :][:2])).y
        assert type(y) is flow.Tensor and y.dtype is flow.float32
        y.square().mean().backward()
        assert mine.given == [torch.float32 if kind is None else torch.bfloat16]
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(
                torch.from_numpy(a.grad.numpy()), b.grad, atol=1e-6 if kind is None else 0.02, rtol=0
            )

    run()


def test_distribute_module():
    torch.manual_seed(0)
    theirs, x = [Scoring() for _ in range(2)], torch.randn(4, 8)
    theirs[1].load_state_dict(theirs[0].state_dict())

    @on(2)
    def run() -> None:
        mesh = init_device_mesh("cpu", (2,))
        mine = distribute_module(
            flow.from_torch(theirs[flow.env.get_rank()]),
            mesh,
            input_fn=lambda m, given, mesh: (distribute_tensor(given[0], mesh, [Shard(0)]),),
            output_fn=lambda m, found, mesh: Scored(found.y.full_tensor()),
        )
        y = mine(flow.from_torch(x)).y
        assert y.is_local
        torch.testing.assert_close(y.detach().to_torch(), theirs[0](x).y.detach())

    run()


class Record(collections.OrderedDict[str, Any]):
    """What libraries give in the place of a tuple."""


@dataclasses.dataclass
class Named:
    inner: Any
    others: list[Any]


class Inner(torch.nn.Module):
    def forward(self, given: Any) -> Any:
        assert isinstance(given.inner["x"], torch.Tensor)
        return Named(Record(x=given.inner["x"] * 2), [(given.inner["x"],)])


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, given: Any) -> Any:
        found = self.inner(given)
        assert isinstance(found.inner["x"], torch.Tensor) and isinstance(found.others[0][0], torch.Tensor)
        return dataclasses.replace(found, inner=Record(x=found.inner["x"][:, :1, :]))


def test_records_of_tensors_are_torchs_between_modules_of_torchs():
    """Where they weren't, Weft's own work was traced, and ranks that are threads traced different graphs."""

    class Run(nn.Graph):
        def __init__(self, m: Any) -> None:
            super().__init__()
            self.m = m

        def build(self, x: flow.Tensor) -> Any:
            found = self.m(Named(Record(x=x), []))
            assert isinstance(found.others[0][0], flow.Tensor)
            return found.inner["x"]

    ours = flow.from_torch(Outer())
    for call in (Run(ours), lambda x: ours(Named(Record(x=x), [])).inner["x"]):
        y = call(flow.ones(2, 3, 2))
        assert isinstance(y, flow.Tensor) and y.tolist() == [[[2.0, 2.0]]] * 2
