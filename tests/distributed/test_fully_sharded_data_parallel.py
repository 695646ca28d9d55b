"""PyTorch's first way of sharding, by the options and the states of its programs."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import ArgumentError, OptionError
from weft.distributed.fsdp import (
    CPUOffload,
    FSDPModule,
    FullStateDictConfig,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
    wrap,
)
from weft.distributed.fsdp import FullyShardedDataParallel as FSDP
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast
DATA = torch.randn(8, 6, generator=torch.Generator().manual_seed(0))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 12), nn.Linear(12, 6)

    def forward(self, x: Any) -> Any:
        return x + self.down(flow.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks, self.norm, self.head = nn.Sequential(Block(), Block()), nn.BatchNorm1d(6), nn.Linear(6, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.blocks(x)))


def train(net: Any, data: Any, steps: int = 2) -> Any:
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        net(data).square().mean().backward()
        optimizer.step()
    return optimizer


POLICIES: dict[str, Any] = {
    "none": None,
    "transformer": functools.partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={Block}),
    "size": functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=100),
    "modules": wrap.ModuleWrapPolicy({Block}),
    "lambda": wrap.CustomPolicy(lambda m: isinstance(m, nn.Linear)),
}


@pytest.mark.parametrize(
    ("ranks", "strategy", "policy"),
    [
        (2, "FULL_SHARD", "none"), (2, "FULL_SHARD", "transformer"), (2, "SHARD_GRAD_OP", "size"),
        (2, "NO_SHARD", "modules"), (4, "HYBRID_SHARD", "lambda"),
    ],
)  # fmt: skip
def test_ranks_train_as_one(ranks: int, strategy: str, policy: str) -> None:
    def run(wrapped: bool) -> Any:
        flow.manual_seed(0 if not wrapped else flow.env.get_rank())
        net = Net()
        net.norm.eval()
        mine = DATA
        if wrapped:
            net = FSDP(
                net, None, getattr(ShardingStrategy, strategy), CPUOffload(True), POLICIES[policy],
                sync_module_states=True, device_mesh=grid(ranks) if "HYBRID" in strategy else None,
            )  # fmt: skip
            assert isinstance(net, FSDP) and isinstance(net, FSDPModule) and not isinstance(net.module, FSDP)
            assert net.module.norm is net.norm and not hasattr(net.module, "module")
            assert (len(FSDP.fsdp_modules(net)) > 1) is (policy != "none") and FSDP.fsdp_modules(net, True) == [net]
            mine = DATA.view(ranks, -1, 6)[flow.env.get_rank()]
        train(net, flow.tensor(mine.tolist()))
        return {n: t.tolist() for n, t in net.state_dict().items()}

    expected = spawn_threads(1, run, False)[0]
    for found in spawn_threads(ranks, run, True, deadline=60):
        assert [*found] == [*expected]
        for name, value in expected.items():
            torch.testing.assert_close(torch.tensor(found[name]), torch.tensor(value), rtol=1e-4, atol=1e-5, msg=name)


def grid(ranks: int) -> Any:
    return flow.distributed.init_device_mesh("cpu", (ranks // 2, 2))


@on(4)
def test_groups_say_where_the_replicas_are() -> None:
    rank = flow.env.get_rank()
    inside = flow.distributed.new_subgroups(2)[0]
    across = next(g for g in map(flow.distributed.new_group, ([0, 2], [1, 3])) if getattr(g, "rank", lambda: -1)() >= 0)
    net = FSDP(nn.Linear(4, 4), (inside, across), ShardingStrategy.HYBRID_SHARD)
    assert net.weight.placement.shape == (2, 2) and net.weight.sbp == (B, S(0)) and rank in inside
    with pytest.raises(ArgumentError, match="give device_mesh"):
        FSDP(nn.Linear(4, 4), (across, inside), ShardingStrategy.HYBRID_SHARD)


@on(2)
def test_batch_norms_stay_exact_in_half_precision() -> None:
    seen: list[Any] = []
    net = Net()
    half = MixedPrecision(param_dtype=flow.bfloat16, reduce_dtype=flow.float32, buffer_dtype=flow.float32)
    for m in (net.norm, net.head):
        m.register_forward_pre_hook(lambda m, args: seen.append((args[0].dtype, m.weight.dtype)))
    net = FSDP(net, auto_wrap_policy=wrap.ModuleWrapPolicy({Block}), mixed_precision=half)
    net(flow.tensor(DATA.tolist())).sum().backward()
    # the norm's own hook comes before that which casts what goes in
    assert [kind for _, kind in seen] == [flow.float32, flow.bfloat16] and seen[1][0] is flow.bfloat16
    assert net.head.weight.grad is not None and net.head.weight.grad.dtype is flow.float32


@on(2)
def test_states_are_whole_or_sharded_as_said() -> None:
    flow.manual_seed(0)
    net = FSDP(Net(), auto_wrap_policy=wrap.ModuleWrapPolicy({Block}))
    optimizer, rank = train(net, flow.tensor(DATA.tolist())), flow.env.get_rank()
    whole = net.state_dict()
    assert not any(t.is_global for t in whole.values())
    with FSDP.state_dict_type(net, StateDictType.FULL_STATE_DICT, FullStateDictConfig(True, True)):
        assert [*net.state_dict()] == ([*whole] if rank == 0 else [])
        states = FSDP.optim_state_dict(net, optimizer)
        assert states["state"]["head.weight"]["exp_avg"].shape == (2, 6)
    with FSDP.state_dict_type(net, StateDictType.SHARDED_STATE_DICT):
        assert net.state_dict()["head.weight"].sbp == (S(0),)
        assert FSDP.optim_state_dict(net, optimizer)["state"]["head.weight"]["exp_avg"].sbp == (S(0),)
    assert FSDP.get_state_dict_type(net).state_dict_type is StateDictType.FULL_STATE_DICT
    with pytest.raises(OptionError, match="SHARDED_STATE_DICT"):
        FSDP.set_state_dict_type(net, StateDictType.LOCAL_STATE_DICT)
    flow.manual_seed(1)
    other = FSDP(Net())
    other.load_state_dict(whole)
    fresh = flow.optim.AdamW(other.parameters(), lr=1.0)
    fresh.load_state_dict(FSDP.optim_state_dict_to_load(other, fresh, states))
    one = FSDP.full_optim_state_dict(net, optimizer)
    assert bool(one) is (rank == 0)
    late = flow.optim.AdamW(other.parameters(), lr=1.0)
    late.load_state_dict(FSDP.scatter_full_optim_state_dict(one or None, other, optim=late))
    for made in (fresh, late):
        assert made.param_groups[0]["lr"] == 0.05
        assert made.state[other.head.weight]["exp_avg"].numpy().tolist() == \
            optimizer.state[net.head.weight]["exp_avg"].numpy().tolist()  # fmt: skip


@on(2)
def test_whole_parameters_can_be_read_and_written() -> None:
    flow.manual_seed(0)
    net = FSDP(Net(), auto_wrap_policy=wrap.ModuleWrapPolicy({Block}))
    with FSDP.summon_full_params(net), flow.no_grad():
        assert net.blocks[0].up.weight.shape == (12, 6) and net.blocks[0].up.weight.is_local
        net.blocks[0].up.weight.fill_(0.5)
        net.head.bias.fill_(0.25)
    assert net.blocks[0].up.weight.to_local().tolist() == [[0.5] * 6] * 6
    with FSDP.summon_full_params(net, writeback=False), flow.no_grad():
        net.blocks[0].up.weight.fill_(1.0)
    assert net.state_dict()["blocks.0.up.weight"].tolist() == [[0.5] * 6] * 12
    assert net.state_dict()["head.bias"].tolist() == [0.25, 0.25]


@on(2)
def test_gradients_wait_and_are_clipped() -> None:
    flow.manual_seed(0)
    a, b = FSDP(Net()), FSDP(Net())
    b.load_state_dict(a.state_dict())
    x = flow.tensor(DATA.tolist())
    with a.no_sync():
        a(x).sum().backward()
        assert a.head.weight.grad is None
    a(x).sum().backward()
    for _ in range(2):
        b(x).sum().backward()
    norms = [m.clip_grad_norm_(1.0) for m in (a, b)]
    torch.testing.assert_close(norms[0].item(), norms[1].item())
    torch.testing.assert_close(a.head.weight.grad.numpy(), b.head.weight.grad.numpy())


@on(2)
def test_meta_parameters_and_ignored_ones() -> None:
    with flow.device("meta"):
        net = Net()
    flow.manual_seed(flow.env.get_rank())
    net = FSDP(net, ignored_modules=[net.norm], param_init_fn=None)
    assert net.norm.weight.is_local and net.head.weight.sbp == (S(0),) and not net.norm.weight.is_meta
    first = net.state_dict()["head.weight"]
    flow.distributed.broadcast(first, 0)
    assert first.tolist() == net.state_dict()["head.weight"].tolist()
    with pytest.raises(ArgumentError, match="takes a module"):
        FSDP(flow.ones(2))  # type: ignore[type-var]
