from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import pytest

import weft as flow
from weft.core.dispatch import changed, here, outside
from weft.core.errors import AutogradError


@pytest.fixture
def x() -> flow.Tensor:
    return flow.ones(2, requires_grad=True)


def test_no_grad_as_context_and_nested(x: flow.Tensor) -> None:
    with flow.no_grad():
        assert not (x * 2).requires_grad and not flow.is_grad_enabled()
        with flow.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad and flow.is_grad_enabled()


@pytest.mark.parametrize("bare", [True, False])
def test_no_grad_as_decorator(x: flow.Tensor, bare: bool) -> None:
    def double(a: flow.Tensor) -> flow.Tensor:
        """Twice."""
        return a * 2

    wrapped = flow.no_grad(double) if bare else flow.no_grad()(double)
    assert not wrapped(x).requires_grad
    assert wrapped.__name__ == "double" and wrapped.__doc__ == "Twice."
    assert flow.is_grad_enabled()


def test_decorated_method() -> None:
    class Model:
        scale = 2.0

        @flow.no_grad()
        def with_call(self, a: flow.Tensor) -> flow.Tensor:
            return a * self.scale

        @flow.no_grad
        def without(self, a: flow.Tensor) -> flow.Tensor:
            return a * self.scale

    a = flow.ones(2, requires_grad=True)
    assert not Model().with_call(a).requires_grad and not Model().without(a).requires_grad


MODES = [flow.no_grad, flow.no_grad(), flow.inference_mode(), flow.enable_grad, flow.enable_grad()]


@pytest.mark.parametrize("mode", MODES)
def test_decorated_generators_keep_the_mode_to_themselves(mode: Any) -> None:
    """What is sent and thrown in arrives, and what is returned comes out; as with torch's."""
    log: list[str] = []

    @mode
    def run() -> Generator[bool, Any, str]:
        try:
            got = yield flow.is_grad_enabled()
            try:
                yield got
            except KeyError:
                yield flow.is_grad_enabled()
            return "result"
        finally:
            log.append(f"ended with {flow.is_grad_enabled()}")

    inside, outside = mode is flow.enable_grad or isinstance(mode, flow.enable_grad), True
    steps = run()
    assert next(steps) is inside and flow.is_grad_enabled() is outside
    assert steps.send("sent") == "sent" and flow.is_grad_enabled() is outside
    assert steps.throw(KeyError()) is inside and flow.is_grad_enabled() is outside
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == "result"
    half = run()
    next(half)
    half.close()
    assert log == [f"ended with {inside}"] * 2 and flow.is_grad_enabled() is outside


def test_one_context_entered_twice(x: flow.Tensor) -> None:
    mode = flow.no_grad()
    with mode, mode:
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_recursive_decorated_function(x: flow.Tensor) -> None:
    @flow.no_grad()
    def down(n: int) -> flow.Tensor:
        return x * 2 if n == 0 else down(n - 1)

    assert not down(3).requires_grad and flow.is_grad_enabled()


def test_mode_is_put_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), flow.no_grad():
        raise ZeroDivisionError
    assert flow.is_grad_enabled()


def test_set_grad_enabled_as_call_and_context(x: flow.Tensor) -> None:
    flow.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        flow.set_grad_enabled(True)
    with flow.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_set_grad_enabled_as_decorator(x: flow.Tensor) -> None:
    @flow.set_grad_enabled(False)
    def f() -> flow.Tensor:
        return x * 2

    assert flow.is_grad_enabled() and not f().requires_grad


def test_inference_mode(x: flow.Tensor) -> None:
    with flow.inference_mode():
        assert not (x * 2).requires_grad
    with flow.inference_mode(False):
        assert (x * 2).requires_grad


def test_modes_belong_to_a_thread(x: flow.Tensor) -> None:
    seen = []
    with flow.no_grad():
        thread = threading.Thread(target=lambda: seen.append(flow.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_anomaly_mode_tells_where_forward_was(x: flow.Tensor) -> None:
    class Bad(flow.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        def backward(ctx, dy):
            raise ValueError("mine")

    with flow.autograd.detect_anomaly(), pytest.raises(ValueError, match="mine"):
        (Bad.apply(x) * 2).sum().backward()
    assert flow.core.dispatch.here.plain
    with flow.autograd.set_detect_anomaly(True):
        h = x * 2
        y = (h * h).sum()
    with flow.no_grad():
        h.add_(1.0)
    with pytest.raises(AutogradError) as e:
        y.backward()
    assert any("test_modes.py" in note for note in e.value.__notes__)


def test_anomaly_mode_refuses_gradients_that_are_no_numbers(x: flow.Tensor) -> None:
    with flow.autograd.detect_anomaly():
        y = ((x - 1).sqrt() * 0).sum()
        with pytest.raises(AutogradError, match=r"sqrt_backward.*nan"):
            y.backward()


def in_global_mode() -> Any:
    return flow.utils.global_view.global_mode(True, flow.placement("cpu", ranks=[0]), flow.sbp.broadcast)


MODES = {
    "autocast": lambda: flow.autocast("cpu", dtype=flow.bfloat16),
    "anomaly": flow.autograd.detect_anomaly,
    "saved tensors": lambda: flow.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "device": lambda: flow.device("meta"),
    "global": in_global_mode,
}


@pytest.mark.parametrize("mode", MODES)
def test_what_follows_from_the_modes(mode: str) -> None:
    """Hot paths look at `changed` alone while no thread is in a mode."""
    me = threading.get_ident()
    changed.discard(me)
    with MODES[mode]():
        with MODES["device"]():
            assert me in changed and not here.local
        assert me in changed and here.local is (mode == "autocast")
        assert flow.zeros(2).is_global is (mode == "global")
        with outside():
            assert me not in changed and here.plain and here.local and not here.casting
        assert me in changed
    assert me not in changed and here.plain and here.local and not here.casting
