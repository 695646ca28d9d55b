"""`flow.cuda`: figures of memory, queues, marks in them, waiting."""

from __future__ import annotations

import pytest

import weft as flow

pytestmark = pytest.mark.cuda
MIB = 2**20


@pytest.mark.hardware
def test_there_is_a_device() -> None:
    assert flow.cuda.is_available() and flow.cuda.device_count() >= 1
    assert flow.cuda.get_device_name() and flow.cuda.get_device_properties().total_memory > MIB
    assert flow.cuda.get_device_capability()[0] >= 3
    assert isinstance(flow.cuda.is_bf16_supported(), bool)
    flow.cuda.set_device(0)
    with flow.cuda.device(0):
        assert flow.cuda.current_device() == 0
    free, total = flow.cuda.mem_get_info()
    assert 0 < free <= total


@pytest.mark.hardware
def test_memory_is_counted_while_a_tensor_lives() -> None:
    flow.cuda.synchronize()
    before = flow.cuda.memory_allocated()
    flow.cuda.reset_peak_memory_stats()
    x = flow.zeros(MIB, device="cuda")
    y = x + 1
    assert 8 * MIB <= flow.cuda.memory_allocated() - before < 10 * MIB
    del x, y
    assert flow.cuda.memory_allocated() == before
    assert flow.cuda.max_memory_allocated() - before >= 8 * MIB
    held = flow.cuda.memory_reserved()
    flow.cuda.empty_cache()
    assert flow.cuda.memory_reserved() <= held <= flow.cuda.max_memory_reserved()


@pytest.mark.hardware
def test_backward_gives_its_memory_back() -> None:
    flow.cuda.synchronize()
    x = flow.ones(MIB, device="cuda", requires_grad=True)
    before = flow.cuda.memory_allocated()
    y = (x.exp() * x).sin().sum()
    assert flow.cuda.memory_allocated() - before >= 8 * MIB  # what backward will read
    y.backward()
    del y
    assert flow.cuda.memory_allocated() - before < 6 * MIB  # the gradient


def test_queues_and_marks() -> None:
    side = flow.cuda.Stream()
    start, end = flow.cuda.Event(enable_timing=True), flow.cuda.Event(enable_timing=True)
    a = flow.rand(1024, 1024, device="cuda")
    side.wait_stream(flow.cuda.current_stream())
    with flow.cuda.stream(side):
        assert flow.cuda.current_stream() == side
        start.record()
        b = a @ a
        end.record()
    assert flow.cuda.current_stream() == flow.cuda.default_stream()
    flow.cuda.current_stream().wait_stream(side)
    c = b + 1
    flow.cuda.synchronize()
    assert end.query() and start.elapsed_time(end) > 0
    assert (c - (a @ a) - 1).abs().max().item() < 1e-2


def test_typed_tensors_and_seeds() -> None:
    assert flow.cuda.FloatTensor([1.0, 2.0]).device.type == "cuda"
    assert (
        flow.cuda.HalfTensor(2, 3).dtype is flow.float16 and flow.cuda.LongTensor([1]).type() == "weft.cuda.LongTensor"
    )
    flow.cuda.manual_seed(1)
    a = flow.rand(3, device="cuda")
    flow.cuda.manual_seed_all(1)
    assert flow.rand(3, device="cuda").tolist() == a.tolist()


@pytest.mark.parametrize("pinned", [False, True])
def test_copies_go_on_beside_kernels(pinned: bool) -> None:
    """What was given away, or is written at once, is neither read too early nor too late."""
    n = 1 << 20
    given = flow.zeros(n).pin_memory() if pinned else flow.zeros(n)
    busy = flow.rand(1024, 1024, device="cuda")
    sums = []
    for step in range(50):
        busy = (busy @ busy).clamp(0, 1)  # the copy overtakes it
        given.fill_(step)
        x = given.cuda()
        given.fill_(-1.0)
        sums.append((x * 2).sum())
        del x  # its memory is needed by kernels still
    assert [s.item() for s in sums] == [2.0 * n * step for step in range(50)]
    back = [(flow.full((n,), float(step), device="cuda") + 1).cpu() for step in range(20)]
    assert [(float(b[0]), float(b[-1])) for b in back] == [(step + 1.0, step + 1.0) for step in range(20)]
    assert bool(busy.isfinite().all())


def test_a_copy_that_nobody_waits_for() -> None:
    batches = [flow.full((1 << 18,), float(i)).pin_memory() for i in range(8)]
    there = [b.to("cuda", non_blocking=True) for b in batches]
    assert [float(t.mean()) for t in there] == [float(i) for i in range(8)]


@pytest.mark.hardware
def test_what_the_device_and_its_memory_tell() -> None:
    cuda = flow.cuda
    assert cuda.get_arch_list() and not cuda.is_current_stream_capturing()
    cuda.set_per_process_memory_fraction(0.9)
    assert cuda.get_per_process_memory_fraction() == pytest.approx(0.9)
    cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(flow.errors.OptionError, match="from 0 to 1"):
        cuda.set_per_process_memory_fraction(2.0)
    x = flow.ones(2, device="cuda", dtype=flow.bfloat16)
    assert isinstance(x, cuda.BFloat16Tensor) and cuda.memory_cached() >= cuda.memory_allocated() > 0
    with cuda.device_of(x), cuda.device_of(flow.ones(1)):
        assert cuda.current_device() == 0
    cuda.nvtx.range_push("here")
    cuda.nvtx.range_pop()
    apart = cuda.Stream()
    before = cuda.current_stream()
    cuda.set_stream(apart)
    try:
        assert cuda.current_stream() == apart and (flow.ones(3, device="cuda") * 2).sum().item() == 6.0
    finally:
        cuda.set_stream(before)
    accelerator = flow.accelerator
    assert accelerator.memory_allocated() == cuda.memory_allocated() and accelerator.get_memory_info()[1] > MIB
    with accelerator.device_index(0):
        assert accelerator.current_device_idx() == 0
