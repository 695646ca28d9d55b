"""Ops that a library registered with torch, called by modules on Weft's tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import ArgumentError

LIBRARY = torch.library.Library("weft_tests_registered", "DEF")
LIBRARY.define("mixed(Tensor x, Tensor? scale, Tensor[] others, float k=2.0, *, int power=1) -> (Tensor, Tensor)")
LIBRARY.define("cut(Tensor x) -> Tensor")
LIBRARY.define("overwritten(Tensor(a!) x) -> Tensor(a!)")


def mixed(x: Any, scale: Any, others: Any, k: float = 2.0, *, power: int = 1) -> Any:
    assert type(x) in (torch.Tensor, torch.nn.Parameter)  # a kernel gets no stand-in
    y = x * k + sum(others)
    return (y if scale is None else y * scale) ** power, (x > 0).long()


LIBRARY.impl("mixed", mixed, "CompositeImplicitAutograd")
LIBRARY.impl("cut", lambda x: x.detach().clone(), "CompositeImplicitAutograd")
LIBRARY.impl("overwritten", lambda x: x, "CPU")
OPS: Any = torch.ops.weft_tests_registered


class Mixing(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.scale = torch.nn.Parameter(torch.randn(4, 3)), torch.nn.Parameter(torch.randn(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, positive = OPS.mixed(self.weight, self.scale, [x, self.weight], power=2)
        z, _ = OPS.mixed.default(y, None, (x,), 3.0)
        return (z * positive + z).square().mean()


class Training(nn.Graph):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=1.0))

    def build(self, x: Any) -> Any:
        loss = self.model(x)
        loss.backward()
        return loss


def test_a_registered_op_has_torchs_values_and_gradients() -> None:
    theirs, x = Mixing(), torch.randn(4, 3)
    ours = flow.from_torch(theirs)
    expected = theirs(x)
    expected.backward()
    loss = ours(flow.from_torch(x))
    loss.backward()
    assert torch.equal(loss.detach().to_torch(), expected.detach())
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a.grad.to_torch(), b.grad)
    stepped = [(p - p.grad).detach() for p in theirs.parameters()]
    assert torch.allclose(Training(ours)(flow.from_torch(x)).to_torch(), expected)
    assert all(torch.allclose(a.to_torch(), b) for a, b in zip(ours.parameters(), stepped, strict=True))


def test_a_registered_op_takes_global_tensors() -> None:
    torch.manual_seed(0)
    theirs, x = Mixing(), torch.randn(4, 3)
    theirs(x).backward()

    def program() -> None:
        P, S, B = flow.placement("cpu", ranks=[0, 1]), flow.sbp.split, flow.sbp.broadcast
        ours = flow.from_torch(theirs).to_global(P, {"weight": S(0)})
        ours.zero_grad()
        ours(flow.from_torch(x).to_global(P, B).to_global(P, S(0))).backward()
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(a.grad.to_global(P, B).to_torch(), b.grad)

    on(2)(program)()


def test_what_a_registered_op_lacks_is_said() -> None:
    class Calling(torch.nn.Module):
        def __init__(self, op: Any) -> None:
            super().__init__()
            self.op = op

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.op(x)

    x = flow.ones(2, requires_grad=True)
    with pytest.raises(ArgumentError, match=r"weft_tests_registered\.cut\S* has no gradient"):
        flow.from_torch(Calling(OPS.cut))(x).sum().backward()
    with pytest.raises(ArgumentError, match=r"weft_tests_registered\.overwritten: .* no function of this name"):
        flow.from_torch(Calling(OPS.overwritten))(x.detach())
