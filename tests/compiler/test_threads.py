"""Chains of small calls run on one of torch's threads, and leave the others' number as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.compiler import faster
from weft.compiler.threads import one_is_enough
from weft.core import one_thread
from weft.core.device import Device
from weft.core.one_thread import alone
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.plan import parse


class Products(nn.Graph):
    def __init__(self, inductor: bool = False) -> None:
        super().__init__()
        if inductor:
            self.config.enable_inductor()

    def build(self, x: Any, w: Any) -> Any:
        for _ in range(3):
            x = x @ w
            for _ in range(8):  # calls that aren't shared
                x = x.T.T
        return x.sum(0)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def asks(width: int, inductor: bool = False) -> bool:
    graph = Products(inductor)
    x, w = flow.randn(width, width), flow.randn(width, width) / width
    found = graph(x, w)
    expected = (x @ w @ w @ w).sum(0)
    assert (found - expected).abs().max().item() < 1e-4 * expected.abs().max().item()
    assert torch.get_num_threads() == 2
    assert parse(str(graph.plan)) == graph.plan
    return next(t.step.one_thread for t in graph.plan.tasks if t.kind == "compute")


def test_small_products_ask_for_one_thread_and_large_ones_for_all(threads: None) -> None:
    assert [asks(width) for width in (8, 64, 512)] == [True, True, False]


@pytest.mark.parametrize(("device", "expected"), [("cpu", True), ("cuda:0", False)])
def test_an_update_elsewhere_leaves_the_cpus_threads(device: str, expected: bool) -> None:
    weight, grad = (Value(name, (4,), flow.float32, None, Device(device)) for name in "wg")
    args = (weight,), (grad,), (), 0.1, 0.0, 0.0, 0.0, False, False
    assert one_is_enough([Node("update", "sgd_update", args, ())], 8) == expected


@pytest.mark.parametrize(("sharing", "expected"), [(1e-5, True), (1e-6, False)])
def test_it_is_measured_where_inductor_may_be_asked(
    threads: None, sharing: float, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faster, "_sharing", lambda threads: (sharing, 1.0))
    assert asks(64, inductor=True) is expected
    assert asks(64)


def test_attention_on_several_threads_leaves_the_threads_of_products(threads: None) -> None:
    q, k, v = (torch.randn(2, 3, 70, 16) for _ in range(3))
    expected = (torch.softmax(q @ k.mT / 4, -1) @ v).sum().item()
    seen = []

    def attend() -> None:
        y, _ = OPS["scaled_dot_product_attention"].kernel(q, k, v)
        seen.append(y.sum().item())

    for run in (attend, lambda: alone(attend)(), attend):
        run()
    other = threading.Thread(target=attend)
    other.start()
    other.join()
    assert seen == pytest.approx([expected] * 4, rel=1e-4)
    library = one_thread._library()
    if library is not None:
        before = library.mkl_threads(0)
        assert library.mkl_threads(before) == 0
        assert before == torch.get_num_threads()


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
