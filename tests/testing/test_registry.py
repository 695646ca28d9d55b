"""The generic test of ops notices what is wrong with a declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from weft.core.placement import Placement
from weft.core.sbp import broadcast, parse
from weft.ops import OPS, Op, op
from weft.ops.notation import Rule
from weft.ops.pointwise.arithmetic import mul
from weft.testing import gradients, layouts, registry

Make = Callable[..., Op]


@pytest.fixture
def declare() -> Iterator[Make]:
    """Declare an op of one operand for the time of a test."""
    names: list[str] = []

    def make(kernel: Callable[..., Any], layout: str = "... -> ...", **options: Any) -> Op:
        def body(x: Tensor) -> Tensor:
            return kernel(x)

        body.__name__ = f"_tried_{len(names)}"
        names.append(body.__name__)
        return op(layout, **options)(body)

    yield make
    for name in names:
        del OPS[name]


def rule(text: str) -> Rule:
    left, _, right = text.partition(" -> ")
    return Rule(tuple(map(parse, left.split(", "))), tuple(map(parse, right.split(", "))))


TWO, THREE = Placement("cpu", [0, 1]), Placement("cpu", [0, 1, 2])
A, B = registry.rand(4, 6), registry.rand(6, 5)


@pytest.mark.parametrize("text", ["B, S(1) -> S(1)", "S(0), B -> S(0)", "S(1), S(0) -> P", "P, B -> P"])
@pytest.mark.parametrize("placement", [TWO, THREE])
def test_rules_that_hold(text: str, placement: Placement) -> None:
    assert not layouts.disagreements(OPS["matmul"], (A, B), [rule(text)], placement)


@pytest.mark.parametrize("text", ["B, S(1) -> S(0)", "S(0), B -> B", "S(1), S(0) -> P(max)", "P, P -> P", "B, B -> P"])
def test_rules_that_do_not_hold(text: str) -> None:
    assert layouts.disagreements(OPS["matmul"], (A, B), [rule(text)], TWO)


@pytest.mark.parametrize("text", ["S(0)", "S(1)", "P", "P(max)", "P(min)", "B"])
def test_shards_assemble_to_the_whole_on_a_grid(text: str) -> None:
    grid = Placement("cpu", [[0, 1, 2], [3, 4, 5]])
    for other in ("S(0)", "S(1)", "P", "P(max)", "B"):
        nd_sbp = parse(text), parse(other)
        whole = layouts.assemble(layouts.shards(A, nd_sbp, grid), nd_sbp)
        assert whole is not None and torch.allclose(whole, A), nd_sbp


def test_a_layout_that_claims_too_much_fails(declare: Make) -> None:
    softmax = declare(lambda x: torch.softmax(x, -1))
    with pytest.raises(AssertionError, match=r"S\(1\) -> S\(1\) over 2 ranks"):
        registry.check_layouts(softmax, (A,))


def test_a_rule_that_is_missing_is_found(declare: Make) -> None:
    double = declare(lambda x: x * 2, "a! b -> a! b")
    assert list(layouts.undeclared(double, (A,))) == ["P -> P", "P(max) -> P(max)", "S(0) -> S(0)"]


def test_a_wrong_gradient_fails(declare: Make) -> None:
    square = declare(torch.square)
    square.grad(lambda dy, x: mul(dy, x))
    with pytest.raises(AssertionError, match="operand 0"):
        gradients.check_gradient(square, (A,))


def test_a_gradient_that_forgets_an_operand_fails_the_second_time(declare: Make) -> None:
    cube = declare(lambda x: x * x * x)
    cube.grad(lambda dy, x: mul(dy, mul(mul(x.detach(), x.detach()), 3.0)))
    gradients.check_gradient(cube, (A,))
    with pytest.raises(AssertionError, match="operand 0"):
        gradients.check_gradient(cube, (A,), True)


def test_differences_stand_in_where_torch_has_no_gradient(declare: Make) -> None:
    opaque = declare(lambda x: torch.from_numpy(x.detach().numpy() ** 2))
    opaque.grad(lambda dy, x: mul(dy, mul(x, 2.0)))
    gradients.check_gradient(opaque, (A,))
    opaque.grad(lambda dy, x: mul(dy, mul(x, 2.1)))
    with pytest.raises(AssertionError, match="operand 0"):
        gradients.check_gradient(opaque, (A,))


def test_a_kernel_that_exchanges_its_memory_fails(declare: Make) -> None:
    relu = declare(torch.relu)
    relu.out(lambda y, x: y.set_(torch.relu(x)))
    with pytest.raises(AssertionError, match="memory was replaced"):
        registry.check_out(relu, (A,))


def test_a_wrong_in_place_kernel_fails(declare: Make) -> None:
    relu = declare(torch.relu)
    relu.inplace(torch.neg_)
    with pytest.raises(AssertionError):
        registry.check_inplace(relu, (A,))


def test_every_written_operand_is_compared() -> None:
    blend = OPS["blend"]
    args = blend.bind((A, A + 1, 0.5), {})
    assert layouts.written(blend, args) == [0]
    assert not layouts.disagreements(blend, args, [Rule((parse("S(0)"), parse("S(0)")), ())], TWO)
    assert "written operand 0" in layouts.disagreements(blend, args, [Rule((parse("P"), broadcast), ())], TWO)
