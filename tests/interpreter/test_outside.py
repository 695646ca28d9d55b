"""Ranks outside a placement: they are told values, and a graph's views of variables elsewhere aren't theirs to make."""

from __future__ import annotations

import weft as flow
from tests.graphs import Calls
from tests.ranks import on
from weft import nn

B = flow.sbp.broadcast


@on(3)
def test_numpy_answers_on_every_rank() -> None:
    place = flow.placement("cpu", ranks=[1, 2])
    for sbp in (B, flow.sbp.split(0), flow.sbp.partial_sum):
        x = flow.ones(4, placement=place, sbp=B).to_global(sbp=sbp)
        assert x.numpy().tolist() == [1.0] * 4
    assert flow.ones((), placement=place, sbp=B).numpy().shape == ()


@on(2)
def test_a_view_of_a_buffer_is_sent_to_another_stage() -> None:
    first, second = (flow.placement("cpu", ranks=[r]) for r in range(2))

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", flow.tril(flow.ones(4, 4, placement=first, sbp=B)))
            self.layer = nn.Linear(4, 4).to_global(placement=second, sbp=B)

        def forward(self, x: flow.Tensor) -> flow.Tensor:
            return self.layer(x) * self.mask[:4, :4].to_global(placement=second)

    model, x = Masked(), flow.ones(4, 4, placement=second, sbp=B)
    assert (Calls(model)(x).numpy() == model(x).numpy()).all()


@on(2)
def test_a_transposed_global_tensor_is_viewed() -> None:
    x = flow.arange(6.0).reshape(2, 3).to_global(placement=flow.placement("cpu", ranks=[0, 1]), sbp=B)
    assert x.t().view(-1).tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


@on(2)
def test_a_graph_that_keeps_parameters_in_parts_sees_them_whole() -> None:
    place, seen = flow.placement("cpu", ranks=[0, 1]), []
    model = nn.Linear(4, 4).to_global(placement=place, sbp=B)

    class Train(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))
            self.config.enable_zero(shard_min_size=1)

        def build(self, x: flow.Tensor) -> flow.Tensor:
            seen.append(self.model.weight.sbp)
            loss = self.model(x).sum()
            loss.backward()
            return loss

    Train()(flow.ones(2, 4, placement=place, sbp=flow.sbp.split(0))).item()
    assert seen == [(B,)] and model.weight.sbp == (flow.sbp.split(0),)


def test_a_blocks_parameter_has_a_config() -> None:
    class Staged(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = nn.Linear(2, 2)
            self.model.weight.config.stage_id = 0

        def build(self, x: flow.Tensor) -> flow.Tensor:
            return self.model(x)

    assert Staged().model.weight.to(nn.graph.GraphTensor).stage_id == 0
