"""The gradients of slices in a graph: parts side by side become one concatenation, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast


class Net(nn.Module):
    def __init__(self, cut) -> None:
        super().__init__()
        self.linear, self.cut = nn.Linear(4, 6), cut

    def forward(self, x):
        return self.cut(self.linear(x))


def parts(y):
    return y[:, :2], y[:, 2:4], y[:, 4:]


def thirds(y):
    a, b, c = parts(y)
    return (a * b * c).sum()


def two_of_three(y):
    a, _, c = parts(y)
    return (a * c).sum()


def with_the_whole(y):
    a, b, c = parts(y)
    return y.square().sum() + (a * b * c).sum()


def part_of_a_part(y):
    a, b = y[:, :4], y[:, 4:]
    return (a[:, 1:3] * b).sum()  # the gradient of a is padded itself, and stays


def trained(net, x, graph: bool):
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    if not graph:
        net(x).backward()
        optimizer.step()
        return net.linear.weight.detach(), ""

    train = Trains(net, optimizer, lambda y: y)
    train(x).to_local().numpy()
    text = str(train.job)
    train.close()
    return net.linear.weight.detach(), text


@pytest.mark.parametrize(
    "cut, joined", [(thirds, True), (two_of_three, False), (with_the_whole, False), (part_of_a_part, True)]
)
def test_a_sum_of_parts_is_a_concatenation(cut, joined):
    values = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    start = Net(cut).state_dict()

    def run(graph):
        place = flow.placement("cpu", ranks=[0, 1])
        net = Net(cut).to_global(placement=place, sbp=B)
        net.load_state_dict(start)
        weight, text = trained(net, flow.tensor(values, placement=place, sbp=S(0)), graph)
        return weight.numpy(), text

    eager, _ = spawn_threads(2, run, False)[0]
    compiled, text = spawn_threads(2, run, True)[0]
    assert np.allclose(eager, compiled, atol=1e-6)
    assert ("= cat(" in text) == joined
    if joined:
        assert text.count("= narrow_scatter_zeros(") == (cut is part_of_a_part)
