"""The tests of one device, on an emulated one where there is none; and what the emulation finds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import weft as flow
from tests.emulated.streams import Race
from tests.worlds import Start
from weft.transport import transport_of
from weft.transport.c10d import C10dTransport

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
OTHERS = ("test_emulated.py", "test_programs.py", "test_ranks.py")
FILES = sorted(p.name for p in Path(__file__).parent.glob("test_*.py") if p.name not in OTHERS)


def run(name: str) -> None:
    """In a rank's process: the tests of one file."""
    os.environ.pop("PYTEST_XDIST_WORKER", None)
    path = str(Path(__file__).parent / name)
    raise SystemExit(int(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", path])))


@pytest.mark.parametrize("name", FILES)
def test_on_an_emulated_device(name: str, world: Start) -> None:
    (said,) = world("run", 1, "local", name).well()
    assert " passed" in said


def one_rank() -> None:
    x = torch.ones(4, device="cuda")
    with pytest.raises(RuntimeError, match="two devices, cuda:0 and cpu"):
        x + torch.ones(4)
    with pytest.raises(RuntimeError, match="cuda:1 and cuda:0"):
        x + torch.ones(4, device="cuda:1")
    with pytest.raises(RuntimeError, match="invalid device"):
        torch.ones(4, device="cuda:9")

    side, mark = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side), pytest.raises(Race, match="reads"):
        x * 2  # which was filled on another stream
    mark.record()
    side.wait_event(mark)
    with torch.cuda.stream(side):
        y = x * 2
        x[:2].add_(1)
    (x[2:] + 1).tolist()  # another part of it; and the host waits for the current stream alone
    with pytest.raises(Race, match="reads"):
        y + 1
    with pytest.raises(Race, match="writes"):
        x.zero_()
    torch.cuda.current_stream().wait_stream(side)
    assert (y + x).tolist() == [4.0, 4.0, 3.0, 3.0]

    for lent in (False, True):
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            y = torch.ones(1 << 10, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        y * 2
        if lent:
            y.record_stream(torch.cuda.current_stream())
        address, others, found = y.data_ptr(), [], False
        del y
        with torch.cuda.stream(side):
            for _ in range(100):
                try:
                    others.append(torch.ones(1 << 10, device="cuda"))
                except Race as race:
                    found = "freed too early" in str(race)
        assert found is not lent or (not lent and address not in [t.data_ptr() for t in others])

    graph, made = torch.cuda.CUDAGraph(), None
    with torch.cuda.graph(graph):
        made = (x + 1) @ x
        x.mul_(2)
        with pytest.raises(RuntimeError, match="capturing"):
            x.tolist()
    assert x.tolist() == [2.0, 2.0, 1.0, 1.0]
    for _ in range(2):
        graph.replay()
    assert x.tolist() == [8.0, 8.0, 4.0, 4.0] and made.item() == 2 * 5 * 4 + 2 * 3 * 2


def two_ranks() -> None:
    rank = flow.env.get_rank()
    transport = transport_of()
    assert isinstance(transport, C10dTransport)
    processes = transport.processes((0, 1), "cuda")
    x = torch.full((4,), float(rank), device=f"cuda:{rank}")
    with pytest.raises(RuntimeError, match="No backend"):
        processes.allreduce([torch.ones(4)])
    work = processes.allreduce([x])
    with pytest.raises(Race, match="allreduce"):
        x + 1
    work.wait()
    assert (x + 1).tolist() == [2.0] * 4


def test_what_the_emulation_finds(world: Start) -> None:
    world("one_rank", 1, "local").well()
    world("two_ranks", 2, "c10d").well()
