"""Instructions on real streams: order, waiting, flow control, closing. What must not happen yet is held by events."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.errors import DeadlineError, OpError, RankError
from weft.core.rank import Rank, current, enter
from weft.tensor.blob import Blob
from weft.vm.dependency import alias
from weft.vm.machine import VirtualMachine, vm_of

WAIT = 20  # seconds that nothing here should ever take


def tensors(*values: float) -> list[Blob]:
    return [Blob(torch.tensor(float(v))) for v in values]


def add(out: Blob, *others: Blob):
    def action():
        assert out.data is not None
        for other in others:
            out.data.add_(other.data)  # pyright: ignore[reportArgumentType]

    return action


blob_sets = st.sets(st.integers(0, 3), max_size=2)
streams = st.sampled_from(["collective", "collective:0,1", "file"])
programs = st.lists(st.tuples(streams, blob_sets, st.integers(0, 3)), max_size=40)


@settings(max_examples=40)
@given(programs)
def test_any_program_gives_the_values_of_its_order(program):
    def mix(out, others):
        out.data.mul_(3).add_(sum((o.data for o in others), torch.tensor(1))).remainder_(10007)

    truth = [Blob(torch.tensor(i)) for i in range(4)]
    blobs = [Blob(torch.tensor(i)) for i in range(4)]
    machine = VirtualMachine(Rank(), deadline=WAIT)
    for stream, reads, write in program:
        mix(truth[write], [truth[i] for i in reads])
        others = [blobs[i] for i in reads]
        machine.submit("op", stream, lambda o=blobs[write], s=others: mix(o, s), others, [blobs[write]])
    assert [int(machine.wait_read(b)) for b in blobs] == [int(b.data) for b in truth]
    machine.sync()
    assert all(b.now is b.data and b.access is None for b in blobs)
    machine.close()


def test_streams_overlap(vm: VirtualMachine):
    """Each of the two waits for the other: only if both run at once does either end."""
    meet = threading.Barrier(2)
    x, y = tensors(1, 2)
    vm.submit("op", "collective", lambda: meet.wait(WAIT), [x], [y])
    vm.submit("op", "file", lambda: meet.wait(WAIT), [x])
    vm.sync()


def test_the_caller_runs_ahead_of_a_worker(vm: VirtualMachine):
    go = threading.Event()
    x, y = tensors(1, 2)
    slow = vm.submit("collective", "collective", lambda: go.wait(WAIT), (), [x])
    later = vm.submit("op", "collective", add(y, x), [x], [y])
    assert not slow.finished and not later.finished
    go.set()
    assert vm.wait_read(y) == 3


def test_a_write_waits_for_readers(vm: VirtualMachine):
    go = threading.Event()
    x, out = tensors(1, 0)
    vm.submit("collective", "collective", lambda: go.wait(WAIT) and add(out, x)(), [x], [out])
    assert x.now == 1, "reading x beside another reader is fine"
    threading.Thread(target=go.set).start()
    vm.wait_write(x).fill_(100)
    assert vm.wait_read(out) == 1


def test_mut2_makes_memory_and_shape(vm: VirtualMachine):
    x, found, doubled = Blob(torch.tensor([0, 3, 0, 5])), Blob(None), Blob(None)

    def nonzero():
        found.data = x.data.nonzero()  # pyright: ignore[reportOptionalMemberAccess]

    def double():
        doubled.data = found.data * 2  # pyright: ignore[reportOptionalOperand]

    vm.submit("op", "collective", nonzero, [x], (), [found])
    vm.submit("op", "file", double, [found], (), [doubled])
    assert vm.wait_read(doubled).tolist() == [[2], [6]]
    assert found.now is found.data


def test_mut2_that_makes_nothing_is_a_broken_promise(vm: VirtualMachine):
    with pytest.raises(AssertionError, match="'lazy' was to make the memory"):
        vm.submit("op", "file", lambda: None, (), (), [Blob(None)], name="lazy").wait()


def test_aliases_follow_a_pending_write(vm: VirtualMachine):
    base = Blob(torch.zeros(4))
    view = alias(base, base.data[:2])  # pyright: ignore[reportOptionalSubscript]
    go = threading.Event()
    vm.submit("op", "collective", lambda: go.wait(WAIT) and base.data.fill_(7), (), [base])  # pyright: ignore
    assert view.now is None and base.now is None
    go.set()
    assert vm.wait_read(view).tolist() == [7, 7]
    assert view.now is view.data and base.now is base.data


def test_external_is_started_in_order_and_ends_when_it_is_told_to(vm: VirtualMachine):
    started: list[int] = []
    x, y = tensors(1, 2)
    go, all_started = threading.Event(), threading.Event()
    vm.submit("op", "collective", lambda: go.wait(WAIT), (), [x])
    first = vm.submit("launch", "graph:a", lambda: started.append(1), [x], [y])
    second = vm.submit("launch", "graph:a", lambda: started.append(2), (), [y])
    third = vm.submit("launch", "graph:a", lambda: started.append(3) or all_started.set(), (), [y])
    assert started == [], "the first isn't ready, and the others keep behind it"
    go.set()
    assert all_started.wait(WAIT) and started == [1, 2, 3], "several may be under way"
    first.finish()
    second.finish()
    assert first.finished and y.now is None
    third.finish()
    assert vm.wait_read(y) == 2


def test_an_external_action_ends_before_the_next_begins(vm: VirtualMachine):
    order: list[str] = []

    def first():
        order.append("first begins")
        launches.append(vm.submit("launch", "graph", lambda: order.append("second")))
        order.append("first ends")

    launches = []
    launches.append(vm.submit("launch", "graph", first))
    assert order == ["first begins", "first ends", "second"]
    for launch in launches:
        launch.finish()


def test_what_must_be_driven_later_is_driven_in_time(vm: VirtualMachine, monkeypatch: pytest.MonkeyPatch):
    """The caller begins to wait while the launch can't start yet, for something that stands behind the launch."""
    x, y, z = tensors(1, 2, 0)
    waiting = threading.Event()

    class Told(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waiting.set()
            return super().wait(timeout)

    vm.submit("op", "collective", lambda: waiting.wait(WAIT) and add(x, x)(), (), [x])
    launch = vm.submit("launch", "graph", lambda: None, [x], [y], drive=lambda seconds: (add(y, x)(), launch.finish()))
    vm.submit("op", "file", add(z, y), [y], [z])
    monkeypatch.setattr("weft.vm.waiting.threading.Event", Told)
    assert vm.wait_read(z) == 4
    monkeypatch.undo()


def test_who_waits_drives(vm: VirtualMachine):
    x, y, z = tensors(1, 2, 0)
    driven: list[str] = []

    def drive(launch):
        def work(seconds: float):
            assert 0 < seconds <= vm.deadline
            driven.append(threading.current_thread().name)
            add(y, x)()
            launches[launch].finish()

        return work

    launches: dict[str, object] = {}
    launches["a"] = vm.submit("launch", "graph:a", lambda: None, [x], [y], drive=drive("a"))
    launches["b"] = vm.submit("launch", "graph:b", lambda: None, [x], [y], drive=drive("b"))
    vm.submit("op", "collective", add(z, y), [y], [z])
    assert driven == []
    assert vm.wait_read(z) == 4, "what stands before it is driven as well, through the stream between"
    assert driven == ["MainThread"] * 2


def test_a_driver_may_leave_the_end_to_others(vm: VirtualMachine):
    (y,) = tensors(0)
    launch = vm.submit(
        "launch", "graph", lambda: None, (), [y], drive=lambda seconds: threading.Thread(target=finish).start()
    )

    def finish():
        add(y, *tensors(5))()
        launch.finish()

    assert vm.wait_read(y) == 5


def test_what_a_driver_raises_fails_the_launch(vm: VirtualMachine):
    (y,) = tensors(0)

    def drive(seconds: float):
        raise ValueError("boom")

    vm.submit("launch", "graph", lambda: None, (), [y], drive=drive)
    with pytest.raises(ValueError, match="boom"):
        vm.wait_read(y)


def test_deadline_says_who_holds_up(vm: VirtualMachine):
    go = threading.Event()
    x, y = tensors(1, 2)
    vm.submit("collective", "collective", lambda: go.wait(WAIT), (), [x], name="all_reduce")
    vm.submit("op", "file", add(y, x), [x], [y], name="save")
    with pytest.raises(DeadlineError) as caught:
        vm.wait_read(y, deadline=0)
    text = str(caught.value)
    assert "'save' (op) on stream 'file', queued, issued at" in text
    assert "held up by 'all_reduce' (collective) on stream 'collective'" in text and "test_machine.py" in text
    assert "WEFT_DEADLINE" in text
    go.set()


def test_an_action_that_waits_for_itself_is_told(vm: VirtualMachine):
    (x,) = tensors(1)
    with pytest.raises(DeadlineError, match="would wait for ever"):
        vm.submit("op", "file", lambda: vm.wait_read(x), (), [x]).wait()


def test_an_action_may_submit(vm: VirtualMachine):
    x, y = tensors(1, 2)
    vm.submit("op", "collective", lambda: vm.submit("op", "file", add(y, y), [y], [y]), [x])
    vm.sync()
    assert vm.wait_read(y) == 4


def test_flow_control_bounds_what_is_pending():
    machine = VirtualMachine(Rank(), deadline=WAIT, max_pending=3)
    go, reached = threading.Event(), threading.Event()
    machine.submit("op", "collective", lambda: go.wait(WAIT))
    count = []

    def program():
        for _ in range(10):
            machine.submit("op", "collective", lambda: count.append(1))
            if machine.statistics()["pending"] == 3:
                reached.set()

    thread = threading.Thread(target=program)
    thread.start()
    assert reached.wait(WAIT)
    go.set()
    thread.join(WAIT)
    machine.close()
    assert len(count) == 10 and machine.statistics()["peak_pending"] == 3


def test_a_finished_instruction_keeps_no_tensor(vm: VirtualMachine):
    (x,) = tensors(1)
    done = vm.submit("op", "collective", add(x, x), [x], [x])
    done.wait()
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None and done.state == "done"


def test_workers_run_as_their_rank():
    rank = Rank(1, 2)
    seen = []
    with enter(rank):
        assert vm_of() is vm_of(rank)
        vm_of().submit("op", "collective", lambda: seen.append((current(), threading.current_thread().name)))
        vm_of().sync()
    rank.close()
    assert seen == [(rank, "weft rank 1 collective")]


def test_close_lets_pending_work_end_and_takes_no_more():
    before = set(threading.enumerate())
    machine = VirtualMachine(Rank(), deadline=WAIT)
    x, y = tensors(1, 2)
    go = threading.Event()
    machine.submit("op", "collective", lambda: go.wait(WAIT) and add(x, x)(), (), [x])
    machine.submit("op", "file", add(y, x), [x], [y])
    threading.Thread(target=go.set).start()
    machine.close()
    machine.close()
    assert y.now == 4
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("weft rank 0")]
    for stream in ("file", "collective"):
        with pytest.raises(RankError, match="closed"):
            machine.submit("op", stream, lambda: None)


def test_close_cancels_what_never_ends():
    machine = VirtualMachine(Rank(), deadline=WAIT)
    x, y = tensors(1, 2)
    ran = []
    machine.submit("launch", "graph", lambda: None, (), [x], name="step")
    machine.submit("op", "collective", lambda: ran.append(1), [x], [y])
    machine.close(deadline=0)
    assert not machine.pending() and not ran
    with pytest.raises(RankError, match="closed before its work had ended"):
        machine.wait_read(y)


def test_cancel():
    machine = VirtualMachine(Rank(), deadline=WAIT)
    x, y = tensors(1, 2)
    inside, go = threading.Event(), threading.Event()
    machine.submit("op", "collective", lambda: inside.set() or go.wait(WAIT), (), [x])
    machine.submit("op", "collective", lambda: None, (), [y])
    assert inside.wait(WAIT)
    launch = machine.submit("launch", "graph", lambda: None)
    machine.cancel(RankError("rank 1 died"))
    go.set()
    machine.wait_read(x)
    for wait in (lambda: machine.wait_read(y), launch.wait):
        with pytest.raises(RankError, match="rank 1 died"):
            wait()
    with pytest.raises(RankError, match="runs nothing more: rank 1 died"):
        machine.submit("op", "file", lambda: None)
    machine.close()


def test_streams_have_one_policy(vm: VirtualMachine):
    assert vm.stream("collective:0,1").policy == "worker"
    assert vm.stream("mine", "worker") is vm.stream("mine")
    with pytest.raises(OpError, match="no policy is known for stream 'typo'"):
        vm.stream("typo")
    with pytest.raises(OpError, match="'mine' is worker"):
        vm.stream("mine", "external")


def test_statistics(vm: VirtualMachine):
    (x,) = tensors(1)
    vm.submit("op", "file", lambda: None, [x])
    vm.submit("op", "collective", lambda: None, [x])
    vm.sync()
    counts = vm.statistics()
    assert (counts["issued"], counts["completed"], counts["failed"], counts["pending"]) == (2, 2, 0, 0)
    assert counts["streams"]["collective"] == {"policy": "worker", "issued": 1, "queued": 0}


def test_a_program_that_just_ends_finishes_its_work():
    program = """
import sys, threading
from weft.vm import vm_of
main = threading.main_thread()
def save():
    main.join()  # the program's own end
    print("saved")
vm_of().submit("file", "file", save)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=250)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "saved\n", "")
