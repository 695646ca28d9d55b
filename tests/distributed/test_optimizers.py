"""`flow.distributed.optim`: torch's optimizers over several ranks, on Weft's tensors."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.distributed import optim
from weft.distributed.algorithms.join import Join
from weft.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from weft.launch import spawn_threads

dist = flow.distributed


def model() -> Any:
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def trained(wrapped: Any, optimizer: Any, steps: range, schedule: Any = None) -> list[Any]:
    for step in steps:
        flow.manual_seed(10 * step + dist.get_rank())
        optimizer.zero_grad()
        wrapped(flow.randn(4, 6)).square().mean().backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
    return [p.detach().clone() for p in wrapped.parameters()]


def same(a: list[Any], b: list[Any]) -> bool:
    return all(x.equal(y) for x, y in zip(a, b, strict=True))


def with_sharded_states(kind: str, as_view: bool) -> tuple[int, bool]:
    dist.init_process_group("gloo")
    make, options = getattr(flow.optim, kind), {"lr": 0.05}
    whole, parts = nn.parallel.DistributedDataParallel(model()), nn.parallel.DistributedDataParallel(model())
    plain = make(whole.parameters(), **options)
    sharded = optim.ZeroRedundancyOptimizer(parts.parameters(), make, parameters_as_bucket_view=as_view, **options)
    schedules = [flow.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (plain, sharded)]
    assert same(trained(whole, plain, range(4), schedules[0]), trained(parts, sharded, range(4), schedules[1]))
    sharded.consolidate_state_dict(to=0)
    held = len(sharded.optim.param_groups[0]["params"])
    if dist.get_rank() == 0:
        assert len(sharded.state_dict()["state"]) == (4 if plain.state_dict()["state"] else 0)
        kept = [sharded.state_dict()]
    else:
        with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
            sharded.state_dict()
        kept = [None]
    dist.broadcast_object_list(kept, 0)
    again = nn.parallel.DistributedDataParallel(model())
    again.load_state_dict(parts.state_dict())
    resumed = optim.ZeroRedundancyOptimizer(again.parameters(), make, **options)
    resumed.load_state_dict(kept[0])
    return held, same(trained(whole, plain, range(4, 7)), trained(again, resumed, range(4, 7)))


@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize("kind", ["AdamW", "Adagrad", "SGD"])
def test_each_rank_holds_its_share_of_the_states(kind: str, as_view: bool) -> None:
    for ranks in (2, 3):
        held, resumed = zip(*spawn_threads(ranks, with_sharded_states, kind, as_view), strict=True)
        assert sum(held) == 4 and min(held) > 0 and all(resumed)


def averaging_now_and_then() -> list[bool]:
    dist.init_process_group("gloo")
    net = model()
    averager = PeriodicModelAverager(period=2, warmup_steps=2)
    optimizer = optim.PostLocalSGDOptimizer(optim=flow.optim.SGD(net.parameters(), lr=0.1), averager=averager)
    found = []
    for step in range(6):
        weight = trained(net, optimizer, range(step, step + 1))[0]
        others = [flow.zeros_like(weight) for _ in range(2)]
        dist.all_gather(others, weight)
        found.append(bool(others[0].allclose(others[1])))
    return found


def test_models_are_averaged_at_periods() -> None:
    assert spawn_threads(2, averaging_now_and_then) == [[False, False, True, False, True, False]] * 2


def with_unequal_batches() -> list[Any]:
    dist.init_process_group("gloo")
    wrapped = nn.parallel.DistributedDataParallel(model())
    optimizer = optim.ZeroRedundancyOptimizer(wrapped.parameters(), flow.optim.SGD, lr=0.1)
    with Join([wrapped, optimizer]):
        trained(wrapped, optimizer, range(2 + dist.get_rank()))
    return [p.detach().numpy().tolist() for p in wrapped.parameters()]


def test_a_rank_may_have_more_batches() -> None:
    first, second = spawn_threads(2, with_unequal_batches)
    assert first == second
