"""Overloads: the first that fits is called, and a call that fits none is told why."""

from __future__ import annotations

import inspect
import re

import pytest
import torch

import weft as flow
from weft.api import table
from weft.api.signature import Signature, overloaded
from weft.core.errors import ArgumentError, AutogradError
from weft.ops import OPS


def whole(x: Tensor) -> str:  # noqa: F821
    """The first one's words."""
    return "whole"


def along(x: Tensor, dim: int, keepdim: bool = False) -> str:  # noqa: F821
    return "along"


def between(x: Tensor, other: Tensor, *, scale: float = 1.0) -> str:  # noqa: F821
    return "between"


f = overloaded("f", whole, along, between)
x = flow.ones(2, 3)


def test_the_first_signature_that_fits_is_called() -> None:
    assert f(x) == "whole"
    assert f(x, 1) == f(x, dim=1, keepdim=True) == f(x, 1, True) == "along"
    assert f(x, x) == f(x, other=x, scale=2) == "between"
    assert f.__doc__ == "The first one's words."


def test_no_match_lists_what_was_given_and_what_is_accepted() -> None:
    with pytest.raises(ArgumentError) as caught:
        f(x, "a")
    assert str(caught.value) == (
        "f(float32[2,3], 'a'): no signature takes these arguments; there are\n"
        "  f(x: Tensor)\n"
        "      takes 1 positional argument but 2 were given\n"
        "  f(x: Tensor, dim: int, keepdim: bool = False)\n"
        "      argument 'dim' must be int, not str\n"
        "  f(x: Tensor, other: Tensor, *, scale: float = 1.0)\n"
        "      argument 'other' must be tensor, not str"
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing required argument 'x'"),
        ((1,), {}, "argument 'x' must be tensor, not int"),
        ((x, 1, True, 2), {}, "takes 3 positional arguments but 4 were given"),
        ((x, 1), {"dim": 2}, "got several values for argument 'dim'"),
        ((x, 1), {"axis": 2}, "got an unexpected argument 'axis'"),
        ((x, True), {}, "argument 'dim' must be int, not bool"),
    ],
)
def test_what_is_wrong_is_named(args: tuple, kwargs: dict, message: str) -> None:
    assert Signature(along).refusal(args, kwargs) == message


def test_max_is_three_functions() -> None:
    a, b = flow.tensor([1.0, 5.0]), flow.tensor([3.0, 2.0])
    assert flow.max(a).item() == 5 and flow.max(a, b).tolist() == [3.0, 5.0]
    values, indices = flow.max(a, dim=0)
    assert (values.item(), indices.item()) == (5.0, 1)
    with pytest.raises(ArgumentError, match="no signature takes"):
        flow.max(a, "b")


@pytest.mark.parametrize(
    "call",
    [
        lambda: flow.relu(),
        lambda: flow.relu(3),
        lambda: flow.relu(x, 1, 2),
        lambda: flow.relu(x, wrong=1),
        lambda: flow.cat(x),
        lambda: x + "a",
        lambda: flow.add(x, None),
        lambda: flow.relu_(),
        lambda: flow.ones("a"),
        lambda: flow.ones(2, device="cpu", placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast),
        lambda: flow.ones(2, sbp=flow.sbp.broadcast),
        lambda: flow.randint(3, 1, (2,)),
        lambda: flow.full((2,), 1, dtype="floaty"),
    ],
)
def test_wrong_arguments_are_type_errors(call) -> None:
    with pytest.raises(TypeError):
        call()


NAMED: list[tuple[str, dict[str, object]]] = [
    ("exp", {"input": x}), ("sum", {"input": x, "axis": 0, "keepdims": True}), ("max", {"input": x, "axis": 1}),
    ("add", {"input": x, "other": 2, "alpha": 3}), ("where", {"condition": x > 0, "input": x, "other": -x}),
    ("std", {"input": x, "dim": 0}), ("reshape", {"input": x, "shape": (-1,)}),
    ("permute", {"input": x, "dims": (1, 0)}), ("matmul", {"input": x, "other": x.t()}),
    ("cat", {"tensors": [x, x], "axis": 1}), ("softmax", {"input": x, "dim": 0}), ("flatten", {"x": x, "start_dim": 0}),
]  # fmt: skip


@pytest.mark.parametrize("name, given", NAMED)
def test_a_parameter_goes_by_the_names_that_others_have_for_it(name: str, given: dict[str, object]) -> None:
    function, values = getattr(flow, name), list(given.values())
    if name in ("sum", "add"):  # some of theirs are by keyword only
        plain = {"sum": lambda: flow.sum(x, 0, True), "add": lambda: flow.add(x, 2, alpha=3)}[name]()
    else:
        plain = function(*values)
    named = function(**given)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (named, plain)), strict=True):
        assert a.tolist() == b.tolist()


def test_inplace_is_a_keyword_of_what_can_overwrite() -> None:
    y = flow.tensor([-1.0, 2.0])
    assert flow.relu(y, inplace=True) is y and y.tolist() == [0.0, 2.0]
    assert flow.relu(flow.tensor([-1.0]), inplace=False).tolist() == [0.0]
    with pytest.raises(AutogradError, match="leaf"):
        flow.relu(flow.ones(2, requires_grad=True), inplace=True)
    with pytest.raises(ArgumentError, match="unexpected argument 'inplace'"):
        flow.matmul(flow.ones(2, 2), flow.ones(2, 2), inplace=True)


def test_signatures_tell_of_inplace_as_torchs_do() -> None:
    for name, f in table.listed("neural"):
        theirs = getattr(torch.nn.functional, name, None)
        takes = list(inspect.signature(theirs).parameters) if inspect.isfunction(theirs) else []
        if "inplace" in takes:
            assert list(inspect.signature(f).parameters).index("inplace") == takes.index("inplace"), name
    assert "inplace" in inspect.signature(flow.relu).parameters


def test_errors_of_functions_that_overwrite_say_their_own_names_and_signatures() -> None:
    found = 0
    for op in OPS.values():
        if op.inplace_kernel is not None and (f := getattr(flow._C, f"{op.name}_", None)) is not None:
            with pytest.raises(ArgumentError) as told:
                f()
            name, _, accepted = str(told.value).partition("accepted: ")
            if len(accepted.splitlines()) == 1:  # of one way to call it
                takes = re.findall(r"(\w+): ", accepted)
                assert name.startswith(f"{op.name}_()") and takes == list(inspect.signature(f).parameters), told.value
                found += 1
    assert found > 50


def test_a_function_that_takes_more_than_its_op_tells_one_signature() -> None:
    told = set()
    for args in ((), (flow.ones(2, 2),), (1,) * 9):
        with pytest.raises(ArgumentError) as error:
            flow.matmul(*args)
        told.add(str(error.value).partition("accepted: ")[2])
    assert len(told) == 1 and "transpose_b" in told.pop()
