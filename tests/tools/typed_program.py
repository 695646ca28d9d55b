"""A program of a user, for the type checker alone: what is right passes, and what is wrong is found.

`make check` reads it with unnecessary ignores as errors, so every `ignore` here says that the line is flagged.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true, reportUnknownMemberType=false, reportUnusedExpression=false

from typing import assert_type

import weft as flow
from weft import nn
from weft.nn import functional as F


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, 1)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.down(F.gelu(self.up(x)).relu_() + 1)


def train(steps: int) -> float:
    net = Net(8)
    optimizer = flow.optim.AdamW(net.parameters(), lr=1e-3)
    x, target = flow.randn(16, 8), flow.zeros(16, 1)
    loss = flow.tensor(0.0)
    for _ in range(steps):
        loss = F.mse_loss(net(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


class Trained(nn.Graph):
    def __init__(self, net: Net) -> None:
        super().__init__()
        self.net = net

    def build(self, x: flow.Tensor) -> flow.Tensor:
        return self.net(x)


def right(x: flow.Tensor, y: flow.Tensor) -> None:
    assert_type(flow.relu(x), flow.Tensor)
    assert_type(x.relu().sum(dim=1, keepdim=True), flow.Tensor)
    assert_type(2 * x - y @ x.T / 3 + x[0, 1:], flow.Tensor)
    assert_type(x == y, flow.Tensor)
    assert_type(x.max(), flow.Tensor)
    values, indices = x.max(dim=0)
    assert_type(values, flow.Tensor)
    assert_type(indices, flow.Tensor)
    assert_type(flow.split(x, 2), tuple[flow.Tensor, ...])
    assert_type(x.float().long().to(flow.half), flow.Tensor)
    assert_type(flow.allclose(x, y, rtol=1e-3), bool)
    assert_type(flow._C.relu(x), flow.Tensor)
    assert_type(flow.absolute(flow._C.acos(x.clip(-1, 1).subtract(1))), flow.Tensor)
    assert_type(flow.linalg.inv(x), flow.Tensor)
    assert_type(flow.special.zeta(x, 1.0), flow.Tensor)
    assert_type(flow.add(x, y, out=flow.empty(0)), flow.Tensor)
    assert_type(flow.zeros(2, pin_memory=True, layout=flow.strided), flow.Tensor)
    assert_type(F.relu(x, inplace=True), flow.Tensor)
    assert_type(flow.float, flow.dtype)
    placement = flow.placement("cpu", ranks=[0, 1])
    assert_type(flow.ones(2, 3, placement=placement, sbp=flow.sbp.split(0)).is_global, bool)
    for row in x:
        assert_type(row, flow.Tensor)


def wrong(x: flow.Tensor) -> None:
    flow.rellu(x)  # pyright: ignore[reportAttributeAccessIssue]
    x.rellu()  # pyright: ignore[reportAttributeAccessIssue]
    flow.relu()  # pyright: ignore[reportCallIssue]
    flow.relu(x, 1, 2)  # pyright: ignore[reportCallIssue]
    flow.add(x, 1, out=2)  # pyright: ignore[reportArgumentType]
    flow.relu_(x, out=x)  # pyright: ignore[reportCallIssue]
    flow.relu(x, wrong=1)  # pyright: ignore[reportCallIssue]
    flow.relu("x")  # pyright: ignore[reportArgumentType]
    x.softmax(dim="last")  # pyright: ignore[reportArgumentType]
    x.max(dim=0.5)  # pyright: ignore[reportArgumentType]
    x + "one"  # pyright: ignore[reportOperatorIssue]
    F.layer_norm(x)  # pyright: ignore[reportCallIssue]
    nn.Liner(2, 3)  # pyright: ignore[reportAttributeAccessIssue]
    flow.linalg.inverse(x)  # pyright: ignore[reportAttributeAccessIssue]
