"""Graphs that take inputs of any form: as eager training, with what was compiled for the forms called last."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.core.errors import GraphError
from weft.launch import spawn_threads

SIZES = (4, 6, 4, 8, 6, 4)


def trained(placement: Any = None) -> None:
    S, B = flow.sbp.split(0), flow.sbp.broadcast
    where = {} if placement is None else {"placement": placement, "sbp": S}

    def model() -> tuple[Any, Any]:
        flow.manual_seed(3)
        made = nn.Linear(3, 2)
        made = made if placement is None else made.to_global(placement, B)
        return made, flow.optim.SGD(made.parameters(), lr=0.1, momentum=0.9)

    @nn.Graph.with_dynamic_input_shape(size=2)
    class Train(nn.Graph):
        """Trains."""

        def __init__(self) -> None:
            super().__init__()
            self.m, optimizer = model()
            self.add_optimizer(optimizer)

        def build(self, x: Any) -> Any:
            loss = self.m(x).square().mean()
            loss.backward()
            return loss

    eager, optimizer = model()
    graph, plans, other = Train(), [], nn.Graph.trace(lambda x: x + 1)
    for n in SIZES:
        x = flow.ones(n, 3, **where) * n
        loss = eager(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert graph(x).item() == pytest.approx(loss.item(), rel=1e-5)
        plans.append(graph.plan)
        assert other(flow.ones(n, 3, **where) if n == 4 else flow.ones(4, 3, **where)).shape == (4, 3)
    assert graph.state_dict()["m"]["weight"].numpy() == pytest.approx(eager.weight.numpy(), rel=1e-5)
    assert plans[2] is plans[0] and plans[4] is not plans[1] and plans[5] is not plans[2]
    assert (Train.__name__, Train.__doc__, graph.name[:6]) == ("Train", "Trains.", "Train_")
    graph.close()
    with pytest.raises(GraphError, match="was closed"):
        graph(flow.ones(4, 3, **where))


def test_it_trains_as_eager_does() -> None:
    trained()


def test_over_ranks() -> None:
    spawn_threads(2, lambda: trained(flow.placement.all("cpu")))


@pytest.mark.parametrize("size", [0, True, 1.5])
def test_it_keeps_at_least_one(size: Any) -> None:
    with pytest.raises(GraphError, match="at least one form is kept"):
        nn.Graph.with_dynamic_input_shape(size=size)
