"""What tensors look like, as golden strings."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from weft.job.value import Value
from weft.launch import spawn_threads
from weft.tensor.tensor import of_value

P = flow.placement("cpu", [0])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: flow.tensor([[1.0, 2.0]]), "tensor([[1., 2.]])"),
        (lambda: flow.tensor([[1.0, 2.0]], requires_grad=True), "tensor([[1., 2.]], requires_grad=True)"),
        (lambda: flow.tensor([1.0], requires_grad=True).relu(), "tensor([1.], grad_fn=<relu_backward>)"),
        (lambda: flow.tensor([1, 2]), "tensor([1, 2])"),
        (lambda: flow.tensor([1, 2], dtype=flow.int32), "tensor([1, 2], dtype=weft.int32)"),
        (lambda: flow.tensor(1.5, dtype=flow.float16), "tensor(1.5000, dtype=weft.float16)"),
        (lambda: flow.zeros(0, 3), "tensor([], size=(0, 3))"),
        (lambda: flow.tensor([True]), "tensor([True])"),
        (lambda: flow.nn.Parameter(flow.ones(1)), "Parameter containing:\ntensor([1.], requires_grad=True)"),
        (
            lambda: flow.tensor([1.0, 2.0], placement=P, sbp=flow.sbp.split(0)),
            'tensor([1., 2.], placement=weft.placement(type="cpu", ranks=[0]), sbp=weft.sbp.split(dim=0))',
        ),
        (
            lambda: flow.ones(1, dtype=flow.int32, placement=P, sbp=flow.sbp.partial_sum),
            'tensor([1], placement=weft.placement(type="cpu", ranks=[0]), sbp=weft.sbp.partial_sum, dtype=weft.int32)',
        ),
    ],
)
def test_text(make, text: str) -> None:
    assert repr(make()) == str(make()) == text
    assert make().ndim == 0 or f"{make()}" == text


def test_numbers_are_written_by_torch() -> None:
    data = torch.linspace(-1e5, 1e3, 60).view(3, 20)
    assert repr(flow.tensor(data)) == repr(data)
    long = torch.arange(5000)
    assert repr(flow.tensor(long)) == repr(long)
    flow.set_printoptions(precision=2)
    try:
        assert repr(flow.tensor([1 / 3])) == "tensor([0.33])"
    finally:
        flow.set_printoptions(profile="default")


def test_one_number_is_formatted_as_a_number() -> None:
    for lib in (flow, torch):
        x = lib.tensor(0.25, requires_grad=True)
        assert (f"{x}", f"{x * 2}", f"{lib.tensor(3)}", f"{lib.tensor([1.5])}") == (
            "0.25",
            "0.5",
            "3",
            "tensor([1.5000])",
        )
        assert f"{lib.nn.Parameter(lib.ones(()))}".startswith("Parameter containing")
    assert f"{flow.tensor(1.23456):.2f}" == "1.23" and f"{flow.tensor(7):3d}" == "  7"


def test_a_global_tensor_prints_its_logical_value_on_every_rank_and_its_form_elsewhere() -> None:
    def each() -> str:
        x = flow.tensor([1.0, 2.0, 3.0], placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))
        return repr(x)

    where = 'placement=weft.placement(type="cpu", ranks=[0, 1]), sbp=weft.sbp.split(dim=0)'
    first, second, outside = spawn_threads(3, each, deadline=20)
    assert first == second == f"tensor([1., 2., 3.], {where})"
    assert outside == f"tensor(..., {where}, size=(3,), dtype=weft.float32)"


def test_a_symbol_prints_what_is_known_of_it() -> None:
    y = of_value(Value("y", (2, 3), flow.float32, None, flow.device("cpu")), None)
    assert repr(y) == "tensor(..., is_lazy='True', size=(2, 3), dtype=weft.float32)"
