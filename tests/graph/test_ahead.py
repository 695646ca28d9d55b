"""A rank that is launches ahead of another hands it data, not the launch."""

from __future__ import annotations

import weft as flow
from weft import nn
from weft.core.rank import current
from weft.launch import spawn_threads
from weft.transport import transport_of

P0, P1, B = flow.placement("cpu", [0]), flow.placement("cpu", [1]), flow.sbp.broadcast


class Two(nn.Graph):
    """Rank 1 has no input of its own."""

    def __init__(self, weight: nn.Linear) -> None:
        super().__init__()
        self.weight = weight

    def build(self, x: flow.Tensor) -> flow.Tensor:
        return self.weight((x + 1).to_global(placement=P1, sbp=B))


def test_what_arrives_early_waits_for_the_launch() -> None:
    def run() -> None:
        weight = nn.Linear(2, 2, bias=False).to_global(placement=P1, sbp=B)
        nn.init.ones_(weight.weight)
        graph, x = Two(weight), flow.ones(1, 2, placement=P0, sbp=B)
        if current().index == 0:
            graph(x), graph(x)
            graph.running.executor.wait(2)  # this rank has done its part of both
            transport_of().put("both", b"sent")
            graph(x)
        else:
            assert graph(x).to_local().tolist() == [[4.0, 4.0]]
            transport_of().get("both", 20)
            assert "1 of 1 launches have finished" in graph.report()  # it does all that there is to do
            assert graph.running.executor.error is None
            with flow.no_grad():
                weight.weight.to_local().fill_(2.0)  # before the second launch, as this rank's program says
            for _ in range(2):
                assert graph(x).to_local().tolist() == [[8.0, 8.0]]
        graph.close()

    spawn_threads(2, run, deadline=60)
