"""The function written for a gradient, and the quick way over nodes, do what the general ways do, for every op."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.autograd.call import call
from weft.autograd.unpack import source_of
from weft.core import dtype as dtypes
from weft.core.dispatch import here
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.tensor.tensor import Tensor, of_torch
from weft.testing import registry
from weft.testing.cases import copied
from weft.testing.layouts import Args, replaced, tensors
from weft.testing.registry import UNDERIVED

TAPED = [
    name for name, op in OPS.items()
    if op.vjp and op.operands and not (op.conversion or op.writes or op.dynamic or name in UNDERIVED)
]  # fmt: skip


def leaves(op: Op, row: Args) -> list[Tensor]:
    return [of_torch(t).requires_grad_(of_torch(t).dtype.differentiable) for t in tensors(op, copied(op, row))]


def outputs(op: Op, row: Args, given: list[Tensor]) -> list[Tensor]:
    """Those that a gradient goes back from."""
    flow.manual_seed(5)
    result = call(op, replaced(op, row, given))
    return [y for y in (result if isinstance(result, tuple) else (result,)) if y.requires_grad]


def taken(op: Op, node: Any, gradients: list[Any]) -> list[Any]:
    """What the gradient takes, by what the op says it saves."""
    found, at, attributes = [], 0, iter(node.attributes)
    for kind, place in op.saves:
        if kind == "gradient":
            found.append(node._zeros(place) if gradients[place] is None else gradients[place])
        elif kind == "gradient or None":
            found.append(gradients[place])
        elif kind == "attribute":
            found.append(next(attributes))
        elif kind == "needs":
            found.append(tuple(e is not None for e in node.edges))
        else:
            saved = node.saved[at]
            found.append(
                node._operand(saved, at) if kind == "operand"
                else node._output(saved, place, at) if kind == "output"
                else dtypes.of(saved) if kind == "dtype" else saved
            )  # fmt: skip
            at += 1
    return found


def plain(v: Any) -> Any:
    if isinstance(v, Tensor):
        return v.dtype, v.detach().to_torch().nan_to_num().tolist()
    return [plain(e) for e in v] if type(v) in (list, tuple) else v


@pytest.mark.parametrize("name", TAPED)
def test_a_gradient_takes_what_its_op_says_it_saves(name: str) -> None:
    op = OPS[name]
    space: dict[str, Any] = {
        "vjp": lambda *given: given, "dtype_of": dtypes.of, "here": here, "new": object.__new__, "Tensor": Tensor
    }  # fmt: skip
    exec(source_of(op), space)
    for row in list(registry.cases(op))[:3]:
        roots = outputs(op, row, leaves(op, row))
        if roots:
            node = getattr(roots[0].node, "node", roots[0].node)
            given: list[Any] = [None] * op.visible
            given[getattr(roots[0].node, "index", 0)] = flow.ones_like(roots[0])
            with flow.no_grad():
                found = space["unpack"](node, given, node.saved)
            assert [*map(plain, found)] == [*map(plain, taken(op, node, given))]


@pytest.mark.parametrize("name", TAPED)
def test_nodes_that_somebody_watches_give_the_same(name: str) -> None:
    """A hook after accumulation lets every node be visited with care; else they are gone over quickly."""
    op = OPS[name]
    for row in list(registry.cases(op))[:1]:
        found = []
        for watched in (False, True):
            given = leaves(op, row)
            roots = outputs(op, row, given)
            total = [y * 2 + y for y in roots]  # so that gradients meet
            for t in given:
                if watched and t.requires_grad:
                    t.register_post_accumulate_grad_hook(lambda t: None)
            flow.autograd.backward(total, [flow.ones_like(y) for y in total])
            found.append([t.grad if t.grad is None else t.grad.to_torch() for t in given])
        for quick, careful in zip(*found, strict=True):
            assert (quick is None) == (careful is None)
            if quick is not None and careful is not None:
                assert quick.dtype == careful.dtype
                torch.testing.assert_close(quick, careful, rtol=0, atol=0, equal_nan=True)
