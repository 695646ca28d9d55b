"""flow.comm and flow.env on ranks that are threads."""

from __future__ import annotations

import pytest

import weft as flow
from tests.ranks import on
from weft.core.errors import ArgumentError
from weft.launch import spawn_threads

comm = flow.comm


def mine(*values: float) -> flow.Tensor:
    return flow.tensor([v + 10.0 * flow.env.get_rank() for v in values])


@on(3)
def test_reductions() -> None:
    x = mine(1, 2)
    assert comm.all_reduce(x) is x and x.tolist() == [33.0, 36.0]
    x = mine(1)
    comm.all_reduce(x, "max")
    assert x.item() == 21
    x = mine(1, 2, 3, 4).view(2, 2).t()  # not dense
    comm.all_reduce(x)
    assert x.tolist() == [[33.0, 39.0], [36.0, 42.0]]
    x = mine(1)
    comm.reduce(x, dst=1)
    assert x.item() == (33 if flow.env.get_rank() == 1 else 1 + 10 * flow.env.get_rank())
    out = flow.zeros(1)
    comm.reduce_scatter(out, [mine(1), mine(2), mine(3)])
    assert out.item() == 30 + 3 * (flow.env.get_rank() + 1)
    out = flow.zeros(2)
    comm.reduce_scatter_tensor(out, mine(1, 2, 3, 4, 5, 6))
    assert out.tolist() == [30 + 3 * (2 * flow.env.get_rank() + i) for i in (1, 2)]


@on(3)
def test_gathering_and_scattering() -> None:
    rank = flow.env.get_rank()
    outs = [flow.zeros(2) for _ in range(3)]
    comm.all_gather(outs, mine(1, 2))
    assert [o.tolist() for o in outs] == [[1 + 10 * r, 2 + 10 * r] for r in range(3)]
    out = flow.zeros(3, 2)
    comm.all_gather_into_tensor(out, mine(1, 2))
    assert out.tolist() == [[1 + 10 * r, 2 + 10 * r] for r in range(3)]
    outs = [flow.zeros(1) for _ in range(3)]
    comm.gather(mine(1), outs if rank == 2 else None, dst=2)
    assert [o.item() for o in outs] == ([1.0, 11.0, 21.0] if rank == 2 else [0.0] * 3)
    x = flow.zeros(1)
    comm.scatter(x, [mine(i) for i in range(3)] if rank == 1 else None, src=1)
    assert x.item() == 10 + rank
    outs = [flow.zeros(1) for _ in range(3)]
    comm.all_to_all(outs, [mine(i) for i in range(3)])
    assert [o.item() for o in outs] == [10.0 * r + rank for r in range(3)]
    x = mine(1)
    comm.broadcast(x, 2)
    assert x.item() == 21
    comm.barrier()


@on(2)
def test_messages() -> None:
    if flow.env.get_rank() == 0:
        comm.send(flow.tensor([[1, 2]], dtype=flow.int16), 1)
        comm.send(flow.ones(2), 1, send_meta=False)
        comm.send(flow.ones(2, 3).t(), 1)
        comm.send(flow.ones(2, 3), 1, send_meta=False)
        comm.send(flow.ones(2), 1, send_meta=False)
        for _ in range(3):
            comm.send(flow.ones(3), 1)
    else:
        x = comm.recv(0)
        assert x.dtype is flow.int16 and x.tolist() == [[1, 2]]
        assert comm.recv(0, shape=(2,), dtype=flow.float32).tolist() == [1.0, 1.0]
        out = flow.zeros(3, 2)
        assert comm.recv(0, out=out) is out and out.numpy().sum() == 6
        out = flow.zeros(3, 2).t()
        assert comm.recv(0, (2, 3), flow.float32, out=out) is out and out.numpy().sum() == 6
        assert comm.recv(0, out=flow.zeros(2)).tolist() == [1.0, 1.0]
        with pytest.raises(ArgumentError, match=r"sent weft.float32\[3\], and out is weft.int64\[3\]"):
            comm.recv(0, out=flow.zeros(3, dtype=flow.int64))
        with pytest.raises(ArgumentError, match=r"sent weft.float32\[3\], and the call expects weft.float32\[2\]"):
            comm.recv(0, (2,), flow.float32)
        for wrong in ({"shape": 3, "dtype": flow.float32}, {"out": [0.0]}):  # found before any message is taken
            with pytest.raises((ArgumentError, TypeError)):
                comm.recv(0, **wrong)  # type: ignore[arg-type]
        assert comm.recv(0).tolist() == [1.0, 1.0, 1.0]


def test_where_a_rank_stands() -> None:
    def each() -> tuple[int, ...]:
        env = flow.env
        assert env.all_device_placement("cpu") is flow.placement("cpu", [0, 1])
        return env.get_rank(), env.get_world_size(), env.get_local_rank(), env.get_node_size()

    assert [r[:2] for r in spawn_threads(2, each)] == [(0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: comm.all_reduce([1]), "takes tensors, not list"),  # type: ignore[arg-type]
        (lambda: comm.all_gather([flow.ones(1)] * 2, flow.ones(1)), "one tensor per rank, 1 of them; got 2"),
        (lambda: comm.broadcast(flow.ones(1), 4), "rank 4 is outside this world"),
        (lambda: comm.all_reduce(flow.ones(1, device="meta")), "no data"),
        (lambda: comm.broadcast(flow.ones(1, device="meta"), 0), "no data"),
        (lambda: comm.send(flow.ones(1), 1), "rank 1 is outside this world"),
        (lambda: comm.all_gather_into_tensor(flow.ones(3), flow.ones(2)), "make 2 elements, but the output"),
        (lambda: comm.reduce_scatter(flow.ones(3), [flow.ones(2)]), "they must agree"),
        (lambda: comm.all_reduce(flow.ones(1, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)), "local"),
    ],
)
def test_errors_teach(call, message: str) -> None:
    with pytest.raises(flow.errors.WeftError, match=message):
        call()
