"""Ops on another thread: the same values and gradients, and whoever reads them waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import weft as flow
from weft.ops import OPS, op
from weft.ops.declaration import Op


def test_values_and_gradients_are_those_of_the_programs_own_thread() -> None:
    torch.manual_seed(0)
    given = torch.randn(6, 6)
    reference = given.clone().requires_grad_()
    (reference @ reference).relu().softmax(-1)[0].square().sum().backward()
    x = flow.tensor(given, requires_grad=True)
    worker = flow.asyncs.Thread()
    with flow.asyncs.thread(worker):
        y = (x @ x).relu().softmax(-1)[0]
        z = y.square().sum()
    z.backward()
    torch.testing.assert_close(x.grad.to_torch(), reference.grad)  # type: ignore[union-attr]


def test_the_program_goes_on_while_an_op_runs() -> None:
    begun, go = threading.Event(), threading.Event()

    @op("... -> ...", uniform=True)
    def held_back(x: Tensor) -> Tensor:
        if x.device.type != "meta":
            begun.set()
            assert go.wait(60)
        return x + 1

    try:
        first, second = flow.asyncs.Thread(), flow.asyncs.Thread()
        with flow.asyncs.thread(first):
            x = held_back(flow.ones(2))
            y = x * 2
        assert begun.wait(60)
        assert y.shape == (2,) and y.dtype is flow.float32  # known before it is computed
        with flow.asyncs.thread(second):  # does not wait for the first
            assert (flow.ones(2) + 1).tolist() == [2.0, 2.0]
        go.set()
        assert y.tolist() == [4.0, 4.0]
    finally:
        go.set()
        del OPS["held_back"]


@pytest.fixture
def broken() -> Iterator[Op]:
    @op("... -> ...", uniform=True)
    def out_of_luck(x: Tensor) -> Tensor:
        if x.device.type != "meta":
            raise ValueError("no luck")
        return x + 1

    yield out_of_luck
    del OPS["out_of_luck"]


def test_an_error_comes_to_who_reads(broken: Op) -> None:
    with flow.asyncs.thread(flow.asyncs.Thread()):
        y = broken(flow.ones(2))
    with pytest.raises(Exception, match="no luck"):
        y.tolist()


def test_shapes_that_only_data_tells_wait_for_the_data() -> None:
    with flow.asyncs.thread(flow.asyncs.Thread()):
        x = flow.tensor([3.0, 0.0, 1.0, 3.0]) * 2
        assert flow.nonzero(x).tolist() == [[0], [2], [3]]
        assert flow.unique(x).tolist() == [0.0, 2.0, 6.0]
        assert flow.masked_select(x, x > 1).tolist() == [6.0, 2.0, 6.0]


def test_waiting_for_everything_raises_what_nobody_read(broken: Op) -> None:
    with flow.asyncs.thread(flow.asyncs.Thread()):
        y = broken(flow.ones(2))
    with pytest.raises(Exception, match="no luck"):
        flow.cuda.synchronize()
    del y
    flow.cuda.synchronize()


def test_threads_that_are_dropped_leave_none_behind() -> None:
    def once() -> None:
        with flow.asyncs.thread(flow.asyncs.Thread()):
            y = flow.ones(2) * 2
        assert y.tolist() == [2.0, 2.0]

    once()
    before = threading.active_count()
    for _ in range(20):
        once()
    assert threading.active_count() == before
