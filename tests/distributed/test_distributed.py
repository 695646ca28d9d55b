"""flow.distributed on ranks that are threads: torch.distributed's arguments and meanings."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import weft as flow
import weft.distributed as dist
from tests.ranks import on
from weft.core.errors import ArgumentError, DeadlineError, RankError
from weft.launch import spawn_threads
from weft.system.comm import all_reduce_later
from weft.transport import transport_of

EVERYONE = dist.group.WORLD  # as a function's default may be, which is read before there are ranks


@on(2)
def test_everyone_may_be_named_before_there_are_ranks() -> None:
    x = flow.ones(1)
    dist.all_reduce(x, group=EVERYONE)
    assert x.item() == 2 and EVERYONE is dist.GroupMember.WORLD
    assert (dist.get_world_size(EVERYONE), dist.get_rank(EVERYONE)) == (2, dist.get_rank())


@on(3)
def test_collectives_in_the_world_and_in_groups() -> None:
    rank = dist.get_rank()
    x = flow.tensor([rank + 1.0])
    assert dist.all_reduce(x) is None and x.item() == 6
    work = dist.all_reduce(x, op=dist.ReduceOp.AVG, async_op=True)
    assert work is not None and work.wait() and work.is_completed() and x.item() == 6
    later = work.get_future().then(lambda f: f.value()[0] + 1)
    assert work.result()[0] is x and later.done() and later.wait().item() == later.value().item() == 7
    x = flow.tensor([rank + 1.0])
    dist.all_reduce(x, dist.ReduceOp.PRODUCT, group=dist.group.WORLD)
    assert x.item() == 6
    some = dist.new_group([2, 0])
    assert (some is dist.GroupMember.NON_GROUP_MEMBER) == (rank == 1)
    if rank == 1:
        with pytest.raises(RankError, match="not a member"):
            dist.barrier(some)
    else:
        assert dist.get_rank(some) == rank // 2 and dist.get_world_size(some) == 2
        assert dist.get_process_group_ranks(some) == [0, 2] and dist.get_global_rank(some, 1) == 2
        x = flow.tensor([float(rank)])
        dist.broadcast(x, src=2, group=some)
        assert x.item() == 2
        dist.broadcast(x, group_src=0, group=some)
        found = [flow.zeros(1) for _ in range(2)]
        dist.all_gather(found, flow.tensor([rank + 10.0]), group=some)
        assert [t.item() for t in found] == [10, 12]
        with pytest.raises(RankError, match="not one of the group's ranks"):
            dist.broadcast(x, src=1, group=some)
    out = flow.zeros(3)
    dist.all_to_all_single(out, flow.arange(3.0) + 10 * rank)
    assert out.tolist() == [rank, 10 + rank, 20 + rank]
    out = flow.zeros(3 * (rank + 1))
    dist.all_to_all_single(out, flow.full((6,), float(rank)), [rank + 1] * 3, [1, 2, 3])
    assert out.tolist() == [float(r) for r in range(3) for _ in range(rank + 1)]
    with pytest.raises(ArgumentError, match="evenly"):
        dist.all_to_all_single(flow.zeros(4), flow.zeros(4))


@on(2)
def test_messages_to_each_other_dont_wait_for_each_other() -> None:
    rank, other = dist.get_rank(), 1 - dist.get_rank()
    got = flow.zeros(2)
    sent = dist.isend(flow.full((2,), float(rank)), other)
    received = dist.irecv(got, other)
    assert not received.is_completed()
    assert received.wait() and sent.is_completed() and got.tolist() == [float(other)] * 2
    number = dist.isend(flow.tensor(float(rank)), other)  # as the first messages of torch's pipelines
    dist.irecv(one := flow.zeros(1), other).wait()
    assert number.wait() and one.tolist() == [float(other)]
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, flow.ones(1) * rank, other), dist.P2POp(dist.irecv, got[:1], other)]
    )
    assert all(w.wait() for w in works) and got.tolist() == [float(other)] * 2
    if rank == 0:
        dist.isend(flow.ones(2), 1)  # nobody waits for it; it is gone before the barrier
        dist.barrier()
        dist.send(flow.zeros(2), 1)
    else:
        assert dist.recv(got, 0) == 0 and got.tolist() == [1.0, 1.0]
        dist.barrier()
        dist.recv(got, src=0)
        assert got.tolist() == [0.0, 0.0]


@on(3)
def test_objects_travel_as_plain_data() -> None:
    rank = dist.get_rank()
    found: list[Any] = [None] * 3
    dist.all_gather_object(found, {"rank": rank, "losses": [0.5] * rank, "name": "é", "raw": b"\0", "none": None})
    assert [f["rank"] for f in found] == [0, 1, 2] and found[2]["losses"] == [0.5, 0.5]
    said = [{"lr": 0.1}, "go"] if rank == 1 else [None, None]
    dist.broadcast_object_list(said, src=1)
    assert said == [{"lr": 0.1}, "go"]
    gathered = [None] * 3 if rank == 2 else None
    dist.gather_object((rank, "x"), gathered, dst=2)
    assert gathered == ([(0, "x"), (1, "x"), (2, "x")] if rank == 2 else None)
    mine = [None]
    dist.scatter_object_list(mine, [10, 20, 30] if rank == 0 else None, src=0)
    assert mine == [10 * (rank + 1)]
    with pytest.raises(ArgumentError, match="plain data"):
        dist.all_gather_object(found, object())


@on(2)
def test_objects_arrive_as_what_they_were() -> None:
    rank = dist.get_rank()
    sent = [
        (1, (2.0, [None])), {3: "a", (4, "b"): {5, 6}}, frozenset("x"), 1 + 2j, flow.bfloat16, [], {}, np.float32(0.5),
        np.arange(6, dtype=np.int16).reshape(2, 3), np.array(["ab", "c"]), flow.arange(6.0).reshape(2, 3).t(),
        flow.ones(2, dtype=flow.bfloat16), flow.zeros(0, 3),
    ]  # fmt: skip
    found: list[Any] = list(sent) if rank == 0 else [None] * len(sent)
    dist.broadcast_object_list(found, src=0)
    for a, b in zip(sent, found, strict=True):
        assert type(a) is type(b)
        assert a.dtype == b.dtype if isinstance(a, (np.ndarray, flow.Tensor)) else True
        assert a.shape == b.shape and a.tolist() == b.tolist() if hasattr(a, "tolist") else a == b
    here: list[Any] = [{"rank": rank}, (rank,)]
    if rank == 0:
        dist.send_object_list(here, dst=1)
    else:
        assert dist.recv_object_list(here, src=0) == 0 and here == [{"rank": 0}, (0,)]


@on(2)
def test_a_world_that_a_launcher_made_is_joined_as_it_is() -> None:
    assert dist.is_available() and dist.is_initialized()
    dist.init_process_group("nccl", init_method="env://")
    assert dist.get_backend() == "nccl"
    with pytest.raises(RankError, match="called before"):
        dist.init_process_group("gloo")
    dist.destroy_process_group()
    with pytest.raises(RankError, match="already"):
        dist.init_process_group("gloo", rank=0, world_size=5)
    with pytest.raises(ArgumentError, match="backends are"):
        dist.init_process_group("smoke")
    with pytest.raises(ArgumentError, match="tcp://host:port"):
        dist.init_process_group("gloo", init_method="file:///tmp/x")
    with pytest.raises(RankError, match="each once"):
        dist.new_group([0, 0])


def test_one_rank_is_a_world() -> None:
    def alone() -> None:
        assert not dist.is_initialized() and dist.get_world_size() == 1
        dist.init_process_group("gloo", rank=0, world_size=1)
        assert dist.is_initialized()
        x = flow.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [1.0, 1.0]
        dist.destroy_process_group()
        assert not dist.is_initialized()

    spawn_threads(1, alone)


@on(4)
def test_groups_in_parts_and_in_orders_of_ones_own() -> None:
    rank = dist.get_rank()
    mine, every = dist.new_subgroups(2)
    assert mine.ranks == ((0, 1) if rank < 2 else (2, 3)) and [g.ranks for g in every] == [(0, 1), (2, 3)]
    x = flow.tensor([float(rank)])
    dist.all_reduce(x, group=mine)
    assert x.item() == (1.0 if rank < 2 else 5.0)
    alone, _ = dist.new_subgroups_by_enumeration([[3, 0], [1]])
    assert (alone is None) == (rank == 2)
    turned = dist.new_group([3, 1], sort_ranks=False, backend="gloo")
    assert rank not in (1, 3) or dist.get_rank(turned) == (rank == 1)
    assert rank not in (1, 3) or turned.group_name != dist.new_group([1, 3]).group_name
    for wrong in (lambda: dist.new_subgroups(3), lambda: dist.new_subgroups_by_enumeration([[0, 1], [1]])):
        with pytest.raises(ArgumentError):
            wrong()


@on(3)
def test_objects_by_their_places_in_a_group() -> None:
    rank, some = dist.get_rank(), dist.new_group([1, 2])
    if rank:
        found = [rank * 10]
        dist.broadcast_object_list(found, group=some, group_src=1)
        assert found == [20]
        got: list[Any] = [None]
        dist.scatter_object_list(got, ["a", "b"] if rank == 1 else None, group=some, group_src=0)
        assert got == ["a" if rank == 1 else "b"]
        gathered: list[Any] = [None, None]
        dist.gather_object(rank, gathered, group=some, group_dst=1)
        assert gathered == ([1, 2] if rank == 2 else [None, None])
    dist.barrier(timeout=None)
    assert dist.DistBackendError is RankError


def waits_in_vain(over: threading.Event) -> str:
    transport_of().overlaps = True  # as over c10d
    if dist.get_rank() == 1:
        assert over.wait(60)  # where the other is to be told it is
    work = all_reduce_later(flow.ones(1))
    assert work is not None
    try:
        work.wait(0.5 if dist.get_rank() == 0 else None)
        return ""
    except DeadlineError as error:
        return str(error)
    finally:
        over.set()


def test_who_waits_too_long_for_a_sum_is_told_where_the_others_are() -> None:
    told, _ = spawn_threads(2, waits_in_vain, threading.Event(), deadline=60)
    assert "'all_reduce' (collective) on stream 'collective:0,1', running" in told
    at = r"; rank 1 is at .*test_distributed\.py:\d+, in waits_in_vain: assert over\.wait\(60\)"
    assert re.search(at, told), told


@on(2)
def test_a_sum_that_need_not_be_waited_for_is_an_instruction_of_its_own() -> None:
    transport = transport_of()
    transport.overlaps = True  # as over c10d
    x = flow.tensor([dist.get_rank() + 1.0])
    with flow.vm.trace() as t:
        work = dist.all_reduce(x, async_op=True)
        y = x * 2  # who reads it waits
        assert work is not None and work.wait() and work.is_completed() and work.is_success()
    assert y.item() == 6 and x.item() == 3
    (event,) = (e for e in t.events if e.stream == "collective:0,1")
    assert (event.kind, event.policy, event.writes[0].partition("#")[0]) == ("collective", "worker", "float32[1]")
    assert event.line.startswith("test_distributed.py:")
