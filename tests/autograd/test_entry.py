"""The function written for an op does what the general way does: outputs, tape, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.autograd.call import call
from weft.autograd.entry import make_entry
from weft.autograd.node import Node
from weft.autograd.overwrite import make_overwriting
from weft.core import dtype as dtypes
from weft.core.errors import WeftError
from weft.core.late import _unwritten
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.tensor.blob import Alias, Blob
from weft.tensor.tensor import Tensor, of_torch
from weft.testing import registry
from weft.testing.cases import copied
from weft.testing.layouts import Args, replaced, tensors
from weft.testing.registry import UNDERIVED

WRITTEN = [
    name for name, op in OPS.items()
    if op.operands and op.visible and not (op.conversion or op.dynamic or name in UNDERIVED)
]  # fmt: skip


def given(op: Op, args: Args) -> tuple[Any, ...]:
    """The arguments as Weft's tensors, those of floats wanting a gradient."""
    mine = [of_torch(t) for t in tensors(op, copied(op, args))]
    for t in mine:
        t.requires_grad = t.dtype.differentiable
    made = replaced(op, args, mine)
    for t in written(op, made):
        t.requires_grad = False
    return made


def written(op: Op, args: tuple[Any, ...]) -> list[Tensor]:
    return [args[i] for i in op.writes if args[i] is not None]


def visible(op: Op, result: Any) -> tuple[Tensor, ...]:
    return (result,) if op.visible == 1 else tuple(result)


def gradients(op: Op, args: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> list[Any]:
    """What backward gives the operands, from ones."""
    roots = [y for y in outputs if y.requires_grad]
    if roots:
        flow.autograd.backward(roots, [flow.ones_like(y) for y in roots])
    flat = [v for i in op.operands for v in (args[i] if isinstance(args[i], (list, tuple)) else [args[i]])]
    return [None if t.grad is None else t.grad.to_torch() for t in flat if isinstance(t, Tensor)]


def of_node(node: Any, args: tuple[Any, ...]) -> Any:
    """What a node keeps, so that it can be compared with what another keeps of the same call."""
    if node is None:
        return None
    index, node = getattr(node, "index", None), getattr(node, "node", node)
    operands = [v for a in args for v in (a if isinstance(a, (list, tuple)) else [a])]

    def shown(v: Any) -> Any:
        if type(v) in (list, tuple) and any(isinstance(x, (Tensor, Blob, Alias)) for x in v):
            return [shown(x) for x in v]
        if isinstance(v, (Tensor, Blob, Alias)):
            at = next((i for i, t in enumerate(operands) if t is v), None)
            data = v.data if isinstance(v, (Blob, Alias)) else v.detach().to_torch()
            assert data is not None
            return at, data.dtype, data.nan_to_num().tolist()
        if isinstance(v, Node):  # the general way may bring a gradient to the dtype that it has
            assert v.op.name == "cast", "operands are leaves"
            return shown(v.edges[0])
        return dtypes.of(v) if isinstance(v, torch.dtype) else v

    zeros = None if node.outputs is None else [(z().dtype, tuple(z().shape)) for z in node.outputs]
    return index, [[shown(v) for v in kept] for kept in (node.edges, node.saved, node.versions, node.attributes)], zeros


def same(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num())


@pytest.mark.parametrize("name", WRITTEN)
def test_the_written_way_is_the_general_way(name: str) -> None:
    op = OPS[name]
    entry = make_entry(op)
    for row in registry.cases(op):
        found = []
        for way in (lambda args: entry(**dict(zip(op.names, args, strict=True))), lambda args: call(op, args)):
            args = given(op, row)
            flow.manual_seed(5)
            outputs = visible(op, way(args))
            tape = [(y.requires_grad, None if y.node is None else repr(y.node)) for y in outputs]
            kept = [of_node(y.node, args) for y in outputs]
            tape += [y._view_of and (y._view_of[0] is args[op.operands[0]], *y._view_of[1:]) for y in outputs]
            found.append(((*outputs, *written(op, args)), tape, kept, gradients(op, args, outputs)))
        (ours, our_tape, our_kept, our_grads), (theirs, their_tape, their_kept, their_grads) = found
        assert our_tape == their_tape
        assert our_kept == their_kept
        assert all(same(a.to_torch(), b.to_torch()) for a, b in zip(ours, theirs, strict=True))
        assert all(same(a, b) for a, b in zip(our_grads, their_grads, strict=True))


def test_wrong_arguments_leave_by_the_general_way() -> None:
    for way in (make_entry(OPS["relu"]), lambda x: call(OPS["relu"], (x,))):
        with pytest.raises(WeftError, match="argument 'x' must be tensor, not str"):
            way("no tensor")


def test_calls_that_are_traced_write_no_entry() -> None:
    """They take the general way, so a graph needn't wait until the fast one is compiled; calls that don't fit do."""
    made: dict[str, Any] = {}

    class Net(flow.nn.Graph):
        def build(self, x: Tensor) -> Tensor:
            y = made["clamp"](x, max=0.5)
            made["mul_"](y, 2.0)
            return made["softmax"](y, dim=1)

    names = ("clamp", "softmax", "mul_")
    made |= {n: make_entry(OPS[n]) for n in names[:2]} | {"mul_": make_overwriting(OPS["mul"])}
    net, x = Net(), flow.randn(2, 3)
    expected = (2 * x.clamp(max=0.5)).softmax(dim=1)
    assert net(x).allclose(expected)
    assert all(f.__code__ is _unwritten.__code__ for f in made.values())
    made["clamp"](x, max=0.5)
    assert made["clamp"].__code__ is not _unwritten.__code__
    net.close()


@pytest.mark.parametrize(("args", "options"), [((0.0, 1.0, 2.0), {}), ((), {"maximum": 1.0}), ((1.0,), {"min": 0.0})])
def test_calls_that_do_not_fit_raise_the_same_while_traced(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    class Net(flow.nn.Graph):
        def build(self, x: Tensor) -> Tensor:
            return make_entry(OPS["clamp"])(x, *args, **options)

    x = flow.randn(2, 3)
    with pytest.raises((WeftError, TypeError)) as eager:
        make_entry(OPS["clamp"])(x, *args, **options)
    with pytest.raises(type(eager.value)) as traced:
        Net()(x)
    assert str(traced.value).splitlines()[0] == str(eager.value).splitlines()[0]
