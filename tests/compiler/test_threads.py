"""Chains of small calls run on one of torch's threads, and leave the others' number as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.plan import parse
from weft.runtime.one_thread import alone


class Products(nn.Graph):
    def build(self, x: Any, w: Any) -> Any:
        for _ in range(3):
            x = x @ w
        return x.sum(0)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def asks(width: int) -> bool:
    graph = Products()
    x, w = flow.randn(width, width), flow.randn(width, width) / width
    found = graph(x, w)
    expected = (x @ w @ w @ w).sum(0)
    assert (found - expected).abs().max().item() < 1e-4 * expected.abs().max().item()
    assert torch.get_num_threads() == 2
    assert parse(str(graph.plan)) == graph.plan
    return next(t.step.one_thread for t in graph.plan.tasks if t.kind == "compute")


def test_small_products_ask_for_one_thread_and_large_ones_for_all(threads: None) -> None:
    assert [asks(width) for width in (8, 64, 512)] == [True, True, False]


def test_it_holds_for_this_thread_and_ends_with_it(threads: None) -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(torch.get_num_threads())
        other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        other.start()
        other.join()

    alone(look)()
    with pytest.raises(ZeroDivisionError):
        alone(lambda: 1 // 0)()  # type: ignore[arg-type,return-value]
    assert (seen, torch.get_num_threads()) == ([1, 2], 2)
