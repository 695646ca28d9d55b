"""Torch's names for global tensors: placements on a mesh, and tensor parallelism by a plan."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.distributed.tensor

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import ArgumentError, PlacementError
from weft.distributed import init_device_mesh
from weft.distributed.mesh import DeviceMesh
from weft.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    full,
    randn,
    zeros,
)
from weft.distributed.tensor.experimental import implicit_replication, local_map
from weft.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

S, B = flow.sbp.split, flow.sbp.broadcast


@on(2)
def test_a_dtensor_is_a_global_tensor() -> None:
    mesh, rank = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",)), flow.env.get_rank()
    whole = flow.arange(12.0).reshape(4, 3).requires_grad_()
    t = distribute_tensor(whole * (1 + rank), mesh, [Shard(0)])  # the first rank's counts
    assert isinstance(t, DTensor) and not isinstance(whole, DTensor) and t.sbp == (S(0),)
    assert t.placements == (Shard(0),) and t.device_mesh == mesh and t.is_leaf and t.requires_grad
    columns = t.redistribute(placements=[Shard(-1)])
    assert columns.placements == (Shard(1),) and columns.full_tensor().tolist() == whole.tolist()
    with mesh:
        p = DTensor.from_local(flow.ones(2) * (rank + 1), placements=[Partial()])
        assert p.placements == (Partial(),) and p.full_tensor().tolist() == [3.0, 3.0]
        assert DTensor.from_local(flow.ones(3), mesh, [Shard(0)], shape=(6,), stride=(1,)).shape == (6,)
        assert zeros(4, 2, placements=[Shard(1)]).to_local().shape == (4, 1)
        assert full((4,), 2.0, placements=[Shard(0)]).to_local().tolist() == [2.0, 2.0]
        assert randn((2, 2)).placements == (Replicate(),)
    with pytest.raises(ArgumentError, match="has 1 axes and takes as many"):
        t.redistribute(placements=[Shard(0), Shard(1)])
    with pytest.raises(ArgumentError, match="give a device_mesh"):
        zeros(2)
    empty = distribute_tensor(flow.empty(4, 2, device="meta"), mesh, [Shard(0)])
    assert empty.to_local().shape == (2, 2) and not empty.is_meta
    part = DTensor.from_local(flow.empty(4, 2, device="meta"), mesh, [Shard(0)])
    assert part.shape == (8, 2) and part.to_local().shape == (4, 2) and not part.is_meta and part.sbp == (S(0),)
    assert DTensor.from_local(flow.empty(4, 2, device="meta"), mesh, [Replicate()]).shape == (4, 2)


@on(4)
def test_a_mesh_s_rows_work_apart() -> None:
    mesh, rank = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp")), flow.env.get_rank()
    both = distribute_tensor(flow.ones(4, 4), mesh, [Replicate(), Shard(1)])
    assert both.to_local().shape == (4, 2) and both.device_mesh.shape == (2, 2)
    row = distribute_tensor(flow.full((4,), float(rank)), mesh["tp"], [Shard(0)])
    assert row.full_tensor().tolist() == [float(rank // 2 * 2)] * 4  # its own row's first rank


def net_of(nn: Any) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(8, 6), nn.LayerNorm(6)
            self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6)) for _ in range(2)])
            self.head = nn.Linear(6, 8, bias=False)

        def forward(self, ids: Any) -> Any:
            h = self.embed(ids)
            for block in self.blocks:
                h = h + block(self.norm(h))
            return self.head(h)

    return Net()


IDS = [[1, 2, 3, 4], [5, 6, 7, 0]]


def trained(net: Any) -> list[float]:
    opt, ids, found = flow.optim.AdamW(net.parameters(), lr=0.1), flow.tensor(IDS), []
    for _ in range(3):
        opt.zero_grad()
        with loss_parallel():
            loss = nn.functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten(0, 1))
            loss.backward()
        opt.step()
        found.append((loss.full_tensor() if isinstance(loss, DTensor) else loss).item())
    return found


@pytest.mark.parametrize("library", [nn, torch.nn])
@pytest.mark.parametrize("whole", [True, False])
def test_a_plan_trains_as_one_device(whole: bool, library: Any) -> None:
    given = net_of(library)

    @on(2)
    def run() -> None:
        alone, net = (flow.from_torch(copy.deepcopy(given)) for _ in range(2))
        mesh = init_device_mesh("cpu", (2,))
        plan = {
            "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "blocks.*": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "blocks.*.0": ColwiseParallel(),
            "blocks.*.2": RowwiseParallel(output_layouts=Shard(1)),
            "head": ColwiseParallel(
                input_layouts=Shard(1), output_layouts=Replicate() if whole else Shard(-1), use_local_output=whole
            ),
        }
        with mesh:
            assert parallelize_module(net, parallelize_plan=plan) is net
        assert net.blocks[0][0].weight.placements == (Shard(0),) and net.blocks[1][2].weight.placements == (Shard(1),)
        torch.testing.assert_close(trained(net), trained(alone), rtol=1e-4, atol=1e-5)
        for p, q in zip(net.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(p.grad.numpy(), q.grad.numpy(), rtol=1e-3, atol=1e-5)

    run()


@pytest.mark.parametrize("library", [nn, torch.nn])
def test_styles_prepare_what_goes_in_and_out(library: Any) -> None:
    class Scaled(library.Module):
        def forward(self, x: Any, scale: Any = None) -> Any:
            return x * scale

    @on(2)
    def run() -> None:
        rank, style = flow.env.get_rank(), PrepareModuleInputOutput(
            input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),), input_kwarg_layouts={"scale": Replicate()},
            desired_input_kwarg_layouts={"scale": Replicate()}, output_layouts=Replicate(),
            desired_output_layouts=Shard(0),
        )  # fmt: skip
        net, mesh = flow.from_torch(Scaled()), init_device_mesh("cpu", (2,))
        parallelize_module(net, mesh, style)
        assert net(flow.full((2,), rank + 1.0), scale=flow.tensor(3.0)).tolist() == [3.0 * (rank + 1)] * 2

    run()


@on(2)
def test_distribute_module_and_what_stays_local() -> None:
    mesh = init_device_mesh("cpu", (2,))
    net = distribute_module(
        nn.BatchNorm1d(4), mesh, None,
        lambda m, inputs, mesh: DTensor.from_local(inputs[0], mesh, [Shard(0)]),
        lambda m, y, mesh: y.to_local(),
    )  # fmt: skip
    assert net.weight.placements == net.running_mean.placements == (Replicate(),)
    assert isinstance(net.weight, nn.Parameter) and net(flow.randn(3, 4)).is_local
    x = distribute_tensor(flow.ones(4), mesh, [Shard(0)])
    with pytest.raises(PlacementError, match="global"):
        x + flow.ones(4)
    with implicit_replication():
        assert flow.cat([x, flow.zeros(1)]).full_tensor().tolist() == [1.0] * 4 + [0.0]
        assert (x + flow.ones(4)).full_tensor().tolist() == [2.0] * 4
    assert DeviceMesh("cpu", [0, 1]) == mesh
    with pytest.raises(ArgumentError, match=r"got Linear. It is torch's: flow.from_torch\(module\)"):
        parallelize_module(torch.nn.Linear(2, 2), mesh, ColwiseParallel())


def test_placements_print_as_torchs() -> None:
    ours = Shard(1), Replicate(), Partial(), Partial("max")
    for mine, theirs in zip(ours, map(_theirs, ours), strict=True):
        assert (str(mine), repr(mine)) == (str(theirs), repr(theirs))


def _theirs(mine: Any) -> Any:
    return getattr(torch.distributed.tensor, type(mine).__name__)(*vars(mine).values())


@on(2)
def test_a_dimension_that_is_not_there_and_one_shorter_than_the_mesh() -> None:
    mesh = init_device_mesh("cpu", (2,))
    for wrong, shape in ((2, (1, 2)), (-3, (1, 2)), (0, ())):
        with pytest.raises(ArgumentError, match="has none of this number"):
            distribute_tensor(flow.ones(shape), mesh, [Shard(wrong)])
    with pytest.raises(ArgumentError, match=r"placements are Shard\(dim\)"):
        distribute_tensor(flow.ones(2), mesh, ["S(0)"])
    short = distribute_tensor(flow.ones(1, 2), mesh, [Shard(0)])
    assert short.placements == (Shard(0),) and short.to_local().shape == (1 - flow.env.get_rank(), 2)


@on(2)
def test_gradients_of_parts_make_up_a_whole_as_they_are_given() -> None:
    mesh, rank = init_device_mesh("cpu", (2,)), flow.env.get_rank()
    for how, mine, expected in (([Partial()], rank + 1, 3.0), (None, 2, 2.0), ([Replicate()], 2, 2.0)):
        x = distribute_tensor(flow.ones(2), mesh, [Replicate()]).requires_grad_()
        y = distribute_tensor(flow.ones(2), mesh, [Shard(0)]).requires_grad_()
        (x.to_local(grad_placements=how) * mine).sum().backward()
        (y.full_tensor(grad_placements=how) * mine).sum().backward()
        for t in (x, y):
            assert t.grad is not None and t.grad.sbp == t.sbp and t.grad.numpy().tolist() == [expected] * 2


@on(2)
def test_parts_get_the_gradient_in_the_layout_that_is_asked_for() -> None:
    mesh, rank = init_device_mesh("cpu", (2,)), flow.env.get_rank()
    factor = distribute_tensor(flow.tensor([1.0, 2.0]), mesh, [Shard(0)])
    for how, back, expected in (
        ([Replicate()], [Partial()], [[1.0, 0.0], [0.0, 2.0]][rank]),  # the ranks' gradients add up to the whole
        ([Replicate()], [Replicate()], [1.0, 2.0]),
        ([Shard(0)], [Shard(0)], [rank + 1.0]),
    ):
        x = flow.ones(1 if how == [Shard(0)] else 2, requires_grad=True)
        (DTensor.from_local(x, mesh, how, grad_placements=back) * factor).sum().backward()
        assert x.grad is not None and x.grad.is_local and x.grad.tolist() == expected


@on(2)
def test_a_function_of_parts() -> None:
    mesh, whole = init_device_mesh("cpu", (2,)), flow.arange(16.0).reshape(4, 4)
    rows, copies = (distribute_tensor(whole, mesh, [how]).requires_grad_() for how in (Shard(0), Replicate()))

    @local_map(
        out_placements=([Shard(0)], None), in_placements=([Shard(0)], [Replicate()]),
        in_grad_placements=([Shard(0)], [Partial()]), device_mesh=mesh,
    )  # fmt: skip
    def product(a: flow.Tensor, b: flow.Tensor) -> tuple[flow.Tensor, None]:
        assert a.is_local and a.shape == (2, 4)
        return a @ b, None

    y, nothing = product(rows, copies)
    (y * y).sum().backward()
    a, b = (torch.arange(16.0).reshape(4, 4).requires_grad_() for _ in range(2))
    (a @ b).square().sum().backward()
    assert nothing is None and y.placements == (Shard(0),)
    for mine, theirs in ((rows, a), (copies, b)):
        assert mine.grad is not None and theirs.grad is not None
        torch.testing.assert_close(torch.from_numpy(mine.grad.numpy()), theirs.grad)
    with pytest.raises(ValueError, match="mismatched placements"):
        product(copies, copies)
