"""An exact count of memory, which shows when eager ops take it and when they give it back."""

from __future__ import annotations

from collections.abc import Callable

import weft as flow
from bench import memory
from bench.measure import Row

BYTES = 4096  # of a tensor of 1024 float32


def peak(step: Callable[[], None], steps: int = 3) -> int:
    """What threads of earlier tests free meanwhile makes it less."""
    return max(memory.peak(step, steps) for _ in range(3))


def test_memory_is_taken_when_an_op_runs_and_given_back_when_its_result_goes() -> None:
    given = flow.ones(1024)

    def chain() -> None:
        x = given.exp()
        for _ in range(5):
            x = x.exp()  # the one before goes

    assert peak(chain, 1) == peak(chain) == 2 * BYTES


def test_what_backward_needs_is_held_until_it_has_been_there() -> None:
    leaf = flow.ones(1024, requires_grad=True)

    def step() -> None:
        x = leaf
        for _ in range(5):
            x = x.exp()  # saved for its gradient
        x.backward(flow.ones(1024))
        leaf.grad = None

    one = peak(step, 1)
    assert 6 * BYTES <= one <= 8 * BYTES  # five results, the gradient given, one or two on the way
    assert peak(step) == one  # nothing stays


def test_bytes_print_as_bytes() -> None:
    row = Row("peak", "torch", 2e6, 1e6, 1.05, unit="bytes")
    assert row.holds and row.texts() == ("peak", "torch 2.00 MB", "1.00 MB", "0.50x", "<= 1.05x", "yes")
