"""Tensors without dimensions in the place of numbers, as torch's kernels take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError
from weft.ops import OPS, ops
from weft.ops.declaration import Op
from weft.tensor.tensor import of_torch
from weft.testing.cases import cases, copied


def _called(op: Op, args: Any, place: int | None = None) -> list[Any]:
    """The memory of what an op gives; the number at the place given as a tensor."""
    ours = [_ours(a) for a in copied(op, args)]
    if place is not None:
        ours[place] = flow.tensor(args[place], dtype=flow.int64 if type(args[place]) is int else flow.float64)
    flow.manual_seed(0)
    named = {p.name: a for p, a in zip(op.params, ours, strict=True) if p.keyword_only}
    made = getattr(ops, op.name)(*ours[: len(ours) - len(named)], **named)
    made = made if isinstance(made, (list, tuple)) else [made]
    return [t.detach().blob.data for t in made if isinstance(t, flow.Tensor)]


def _ours(v: Any) -> Any:
    if isinstance(v, torch.Tensor):
        return of_torch(v)
    return type(v)(map(_ours, v)) if type(v) in (list, tuple) else v


def test_of_every_op() -> None:
    tried = set()
    for op in OPS.values():
        for args in cases(op)[:1] if op.operands else ():
            for place, p in enumerate(op.params):
                if type(args[place]) not in (int, float) or p.type not in ("int", "float"):
                    continue
                expected, got = _called(op, args), _called(op, args, place)
                assert [type(t) for t in got] == [torch.Tensor] * len(expected), (op.name, p.name)
                assert all(map(torch.equal, got, expected)), (op.name, p.name)
                tried.add(op.name)
    assert len(tried) > 90, len(tried)


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "full": lambda f, n, x: f.full((2,), n),
    "full_like": lambda f, n, x: f.full_like(x, n),
    "arange": lambda f, n, x: f.arange(n),
    "linspace": lambda f, n, x: f.linspace(0, 1, n),
    "roll": lambda f, n, x: x.roll(n),
    "split": lambda f, n, x: x.split(n)[0],
    "chunk": lambda f, n, x: x.chunk(n, -1)[0],
    "movedim": lambda f, n, x: x.movedim(n - 2, -1),
    "pad": lambda f, n, x: f.nn.functional.pad(x, (n, 0)),
    "layer_norm": lambda f, n, x: f.nn.functional.layer_norm(x, (n * 2,)),
    "conv": lambda f, n, x: f.nn.functional.conv2d(x[None], x[None], stride=n, padding=(n, n)),
    "pool": lambda f, n, x: f.nn.functional.max_pool2d(x, n),
    "smooth_l1": lambda f, n, x: f.nn.functional.smooth_l1_loss(x, x + 1, beta=n),
    "logsumexp": lambda f, n, x: x.logsumexp(n),
    "uniform": lambda f, n, x: x.clone().uniform_(n, n),
}


@pytest.mark.parametrize("name", CALLS)
def test_of_functions_and_methods(name: str) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    expected = CALLS[name](torch, torch.tensor(2), x)
    got = CALLS[name](flow, flow.tensor(2), of_torch(x))
    assert type(got.blob.data) is torch.Tensor and torch.equal(got.to_torch(), expected)
    inside = flow.from_torch(lambda n, x: CALLS[name](torch, n, x))(flow.tensor(2), of_torch(x))
    assert type(inside.blob.data) is torch.Tensor and torch.equal(inside.to_torch(), expected)


def test_of_global_tensors() -> None:
    placed: Any = {"placement": flow.placement("cpu", [0]), "sbp": flow.sbp.broadcast}
    x, one = flow.arange(6.0).reshape(2, 3).to_global(**placed), flow.tensor(1)
    for call in (lambda n: x.sum(n), lambda n: x.amax(n), lambda n: x.cumsum(n), lambda n: x.argmax(n)):
        for n in (one, one.to_global(**placed)):
            assert call(n).tolist() == call(1).tolist()


def test_what_is_no_such_number() -> None:
    x = flow.ones(2, 2)
    for n in (flow.tensor(1.0), flow.tensor([1]), flow.tensor(1.0, requires_grad=True)):
        for call in (lambda n=n: x.softmax(n), lambda n=n: x.roll(n), lambda n=n: flow.cat([x, x], n)):
            with pytest.raises(ArgumentError):
                call()
    with pytest.raises(ArgumentError, match="not a Module subclass"):
        flow.nn.ModuleList([flow.ones(2)])
