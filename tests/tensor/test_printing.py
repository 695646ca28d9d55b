"""What tensors look like, as golden strings."""

from __future__ import annotations

import copy
import logging
import pickle
import pprint
import reprlib
import threading
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import RankError
from weft.core.rank import current
from weft.job.value import Value
from weft.launch import spawn_threads
from weft.tensor.tensor import of_value
from weft.vm import vm_of

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


def test_a_global_number_is_formatted_as_one_where_it_is_known() -> None:
    """Names of modules are made so, f"expert_{i}"; no rank waits for another."""

    def each() -> tuple[str, str]:
        x = flow.tensor(3, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)
        return f"{x}", f"{x.to_global(sbp=flow.sbp.partial_sum)}"[:6]

    assert spawn_threads(3, each, deadline=60) == [("3", "tensor")] * 2 + [
        (f"tensor([], part of size=(), {where('broadcast')}, dtype=weft.int64)", "tensor")
    ]


def where(sbp: str) -> str:
    return f'placement=weft.placement(type="cpu", ranks=[0, 1]), sbp=weft.sbp.{sbp}'


def test_a_global_tensor_prints_this_ranks_part_and_shows_the_whole() -> None:
    def each() -> tuple[str, str, str]:
        x = flow.tensor([1.0, 2.0, 3.0], placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))
        return repr(x), repr(x.to_global(sbp=flow.sbp.broadcast)), flow.show(x)

    split, alike = where("split(dim=0)"), where("broadcast")
    whole = f"tensor([1., 2., 3.], {split})"  # on every rank of the world
    assert spawn_threads(3, each, deadline=60) == [
        (f"tensor([1., 2.], part of size=(3,), {split})", f"tensor([1., 2., 3.], {alike})", whole),
        (f"tensor([3.], part of size=(3,), {split})", f"tensor([1., 2., 3.], {alike})", whole),
        (f"tensor([], part of size=(3,), {split})", f"tensor([], part of size=(3,), {alike})", whole),
    ]
    local = flow.ones(2)
    assert flow.show(local) == repr(local)


class Step(flow.nn.Graph):
    def __init__(self, layer: flow.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def build(self, x: flow.Tensor) -> flow.Tensor:
        self.seen = f"{x} {self.layer.weight!r}"
        return self.layer(x)


def ways(x: object) -> list[str]:
    """Everything that writes a value down without being asked for it."""
    record = logging.LogRecord("", 0, "", 0, "%s %r", (x, x), None)
    return [repr(x), str(x), f"{x}", f"{x!s}{x!r}", repr([x]), repr({"x": (x,)}), record.getMessage(),
            reprlib.repr(x), pprint.pformat(x)]  # fmt: skip


def attributes(x: object) -> None:
    """Look at each, as a debugger does."""
    for name in sorted({*dir(x)} - {"H", "mH"}):  # ops, which conjugate
        try:
            getattr(x, name)
        except Exception as error:  # a device of what lies on several
            assert not isinstance(error, RankError), (type(x), name, error)


def test_printing_on_one_rank_alone_waits_for_nobody() -> None:
    ranks = flow.placement("cpu", [0, 1])
    layouts = [flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum]

    def each() -> Any:
        layer = flow.nn.Linear(2, 2).to_global(placement=ranks, sbp=flow.sbp.split(0))
        optimizer = flow.optim.Adam(layer.parameters())
        inputs = [flow.ones(2, 2, placement=ranks, sbp=s) for s in layouts]
        outputs = [layer(x) for x in inputs]
        outputs[0].sum().backward()
        optimizer.step()
        graph = Step(layer)
        graph(inputs[0])
        looked_at = [
            *inputs, *outputs, *(x.sum() for x in outputs), *layer.parameters(), layer.weight.grad, layer,
            optimizer, layer.state_dict(), optimizer.state_dict(), graph,
            flow.distributions.Normal(inputs[0], inputs[0], False),
        ]  # fmt: skip
        assert "tensor(..., placement=" in graph.seen and ", is_lazy='True', size=" in graph.seen
        if current().index == 0:
            for x in looked_at:
                assert all(ways(x))
                attributes(x)
            copies = [(len(x), hash(x), copy.deepcopy(x), pickle.dumps(x)) for x in inputs]
            assert len(copies) == len(layouts)
            pending = graph(inputs[0])  # rank 1 launches once more, when it has been looked at
            assert "not computed yet" in repr(pending)
        else:
            pending = None
        before.wait(60)
        if pending is None:
            graph(inputs[0])
        return looked_at

    before = threading.Barrier(2)
    for x in spawn_threads(2, each, deadline=60)[1]:  # and where no rank is
        assert all(ways(x))


def test_what_is_not_made_yet_prints() -> None:
    """As a debugger meets it in a class's `__new__`."""
    for kind in (flow.Tensor, flow.nn.Parameter):
        assert all("not made yet" in said for said in ways(kind.__new__(kind)))


def test_what_failed_is_told_in_place_of_numbers() -> None:
    def each() -> str:
        x = flow.ones(2, 2, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))
        vm_of().submit("file", "file", fail, (), (x.shard,), name="spoil")
        with pytest.raises(ValueError, match="full"):
            x.to_local().numpy()
        return repr(x)

    def fail() -> None:
        raise ValueError("the disk is full")

    for said in spawn_threads(2, each, deadline=60):
        assert "size=(2, 2)" in said and "not computed: spoil failed with ValueError('the disk is full')" in said


def test_a_symbol_prints_what_is_known_of_it() -> None:
    y = of_value(Value("y", (2, 3), flow.float32, None, flow.device("cpu")), None)
    assert repr(y) == "tensor(..., is_lazy='True', size=(2, 3), dtype=weft.float32)"


def test_a_tensor_is_told_without_its_values() -> None:
    """As OneFlow answered, with the names as they are printed here."""
    x, weight = flow.ones(2, 3), flow.nn.Linear(2, 3).weight
    place = flow.placement("cpu", ranks=[0])
    form = "size=(2, 3), dtype=weft.float32"
    assert x._meta_repr() == f"tensor(..., {form})"
    assert weight._meta_repr() == "tensor(..., size=(3, 2), dtype=weft.float32, requires_grad=True)"
    assert (x @ weight)._meta_repr().startswith("tensor(..., size=(2, 2), dtype=weft.float32, grad_fn=<")
    whole = x.to_global(place, flow.sbp.broadcast)
    assert whole._meta_repr() == f"tensor(..., placement={place!r}, sbp={flow.sbp.broadcast!r}, {form})"
