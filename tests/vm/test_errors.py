"""A failed instruction is raised where its result is needed, with the line that issued it."""

from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings

import pytest
import torch

from weft.core.errors import RankError
from weft.core.rank import Rank
from weft.tensor.blob import Blob
from weft.vm.dependency import alias
from weft.vm.machine import VirtualMachine

WAIT = 20


def boom():
    raise ValueError("the kernel refused")


def fail(vm: VirtualMachine, *, const=(), mut=()):
    return vm.submit("op", "collective", boom, const, mut, name="bad")  # the line at fault


def blobs(n: int) -> list[Blob]:
    return [Blob(torch.zeros(())) for _ in range(n)]


def test_a_wait_raises_with_the_users_line(vm: VirtualMachine):
    (x,) = blobs(1)
    fail(vm, mut=[x])
    with pytest.raises(ValueError, match="the kernel refused") as caught:
        vm.wait_read(x)
    (note,) = caught.value.__notes__
    assert note.startswith("in 'bad' (op) on stream 'collective', running, issued at ")
    assert "test_errors.py:" in note and note.endswith("# the line at fault") and "in fail:" in note
    assert "in boom" in "".join(traceback.format_exception(caught.value)), "the kernel's own traceback is kept"


def test_raising_again_adds_nothing(vm: VirtualMachine):
    (x,) = blobs(1)
    bad = fail(vm, mut=[x])
    depths = []
    for wait in (lambda: vm.wait_read(x), lambda: vm.wait_read(x), lambda: vm.wait_write(x), bad.wait, bad.wait):
        with pytest.raises(ValueError) as caught:
            wait()
        depths.append(sum(1 for f in traceback.extract_tb(caught.value.__traceback__) if f.name in ("run", "boom")))
        assert len(caught.value.__notes__) == 1
    assert set(depths) == {2}


def test_sync_raises_what_nobody_saw_and_only_once(vm: VirtualMachine):
    x, y = blobs(2)
    fail(vm, mut=[x])
    fail(vm, mut=[y])
    with pytest.raises(ValueError):
        vm.wait_read(x)
    with pytest.raises(ValueError):
        vm.sync()
    vm.sync()


def test_dependants_don_t_run_and_fail_with_the_same_error(vm: VirtualMachine):
    x, y, z, other = blobs(4)
    ran = []
    go = threading.Event()
    vm.submit("op", "collective", lambda: go.wait(WAIT))
    fail(vm, mut=[x])
    vm.submit("op", "file", lambda: ran.append("y"), [x], [y])
    launch = vm.submit("launch", "graph", lambda: ran.append("z"), [y], [z])
    vm.submit("op", "file", lambda: ran.append("other"), (), [other])
    go.set()
    vm.wait_read(other)
    for wait in (lambda: vm.wait_read(z), lambda: vm.wait_read(y), launch.wait):
        with pytest.raises(ValueError, match="refused") as caught:
            wait()
        assert len(caught.value.__notes__) == 1 and "'bad'" in caught.value.__notes__[0]
    assert ran == ["other"]


def test_a_new_value_ends_the_failure(vm: VirtualMachine):
    x, y, z = blobs(3)
    fail(vm, mut=[x, y, z])
    with pytest.raises(ValueError):
        vm.sync()
    vm.submit("op", "file", lambda: x.data.fill_(3), (), (), [x]).wait()  # pyright: ignore[reportOptionalMemberAccess]
    assert x.now == 3
    vm.wait_write(y, afresh=True).fill_(4)
    assert y.now == 4
    with pytest.raises(ValueError):
        vm.wait_write(z)


def test_views_of_lost_memory_are_lost(vm: VirtualMachine):
    base = Blob(torch.zeros(2))
    view = alias(base, base.data[0])  # pyright: ignore[reportOptionalSubscript]
    fail(vm, mut=[view])
    with pytest.raises(ValueError):
        vm.wait_read(base)
    late = alias(base, base.data)
    with pytest.raises(ValueError):
        vm.wait_read(late)


def test_a_launch_that_can_t_start_or_is_finished_with_an_error(vm: VirtualMachine):
    x, y = blobs(2)
    vm.submit("launch", "graph", boom, (), [x], name="step")
    launch = vm.submit("launch", "graph", lambda: None, (), [y], name="step")
    launch.finish(RankError("rank 1 died"))
    launch.finish(None)
    with pytest.raises(ValueError, match="refused"):
        vm.wait_read(x)
    with pytest.raises(RankError, match="rank 1 died") as caught:
        vm.wait_read(y)
    assert "'step' (launch) on stream 'graph', started" in caught.value.__notes__[0]


def test_closing_tells_of_errors_that_nobody_saw():
    machine = VirtualMachine(Rank(), deadline=WAIT)
    fail(machine)
    fail(machine)
    with pytest.warns(UserWarning, match=r"2 failed instructions that nobody asked for, first 'bad'.*refused"):
        machine.close()


def test_closing_is_silent_when_all_errors_were_seen():
    machine = VirtualMachine(Rank(), deadline=WAIT)
    fail(machine)
    with pytest.raises(ValueError):
        machine.sync()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine.close()


def test_closing_is_silent_about_the_error_that_the_program_ends_with(monkeypatch: pytest.MonkeyPatch):
    machine, error = VirtualMachine(Rank(), deadline=WAIT), ValueError("refused")
    launches = [machine.submit("launch", "graph", lambda: None, name="step") for _ in range(2)]
    for launch in launches:
        launch.finish(error)
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine.close()


def test_a_forked_process_is_told_that_it_has_no_workers(vm: VirtualMachine, monkeypatch: pytest.MonkeyPatch):
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(RankError, match="forked from rank 0"):
        vm.submit("op", "collective", lambda: None)
    monkeypatch.undo()
